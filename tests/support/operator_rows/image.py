# Rows of tern/ops/pad.h, pixel.h and distance.h, and of what conv.h and norm.h have for sequences and instances.

import torch
from torch.nn import functional as F

from .driver import VERSION, Row
from .inputs import ALL, FLOATS, INF, NAN, make


def paddings():
    """(x, padding, mode, value)."""
    for dtype in ALL:
        for shape, padding in (((3,), [1, 2]), ((2, 3), [1, 0, 2, 1]), ((2, 3, 4), [-1, 2]), ((2, 3, 4), [0, 0, 1, 1, 2, 0]), ((2, 2, 3, 4), [1, 2, 3, 4])):
            yield make(shape, dtype), padding
            yield make(shape, dtype), padding, "constant", 2
        yield make((2, 3), dtype), [1, 1], "constant", 1.5
        yield make((2, 3, 4), dtype), [-1, -1, -2, 0]
        yield make((3, 4), dtype).t(), [1, 1, 1, 1]
        for shape in ((2, 3, 5), (3, 5)):
            for padding in ([1, 2], [4, 0], [0, 3], [-1, 2], [2, -3], [-2, -1], [0, 0]):
                yield make(shape, dtype), padding, "reflect"
                yield make(shape, dtype), padding, "replicate"
        for shape in ((2, 3, 5, 4), (3, 5, 4)):
            for padding in ([1, 2, 3, 4], [3, 0, 0, 2], [-1, 2, 3, -2]):
                yield make(shape, dtype), padding, "reflect"
                yield make(shape, dtype), padding, "replicate"
        for shape, padding in (((2, 3, 5), [1, 2]), ((2, 3, 5), [5, 5]), ((2, 3, 5), [-1, 2]), ((2, 3, 5), [2, -2]), ((2, 3, 5, 4), [1, 2, 5, 4]), ((2, 3, 5, 4), [-1, 2, 3, -2])):
            yield make(shape, dtype), padding, "circular"
        yield make((2, 3, 2, 3, 4), dtype), [1, 3, 2, 1, 1, 0], "reflect"
        yield make((2, 3, 2, 3, 4), dtype), [1, 3, 2, 1, 1, 0], "replicate"
        yield make((2, 3, 2, 3, 4), dtype), [1, 3, 2, 1, 1, 0], "circular"
        if VERSION >= (2, 0):  # PyTorch 1.13 takes no circular padding without a batch
            yield make((3, 5), dtype), [1, 2], "circular"
            yield make((3, 5, 4), dtype), [1, 2, 5, 4], "circular"
    for mode in ("reflect", "replicate", "circular"):
        yield make((4, 3, 2)).transpose(0, 2), [2, 1], mode
        yield make((4, 5, 3, 2)).permute(3, 2, 0, 1), [2, 1, 0, 3], mode
        yield make((3, 1)).expand(2, 3, 4), [1, 2], mode
        yield make((0, 3, 5)), [1, 2], mode
        yield make((0, 3, 5, 4)), [1, 2, 1, 2], mode
        yield make((2, 3, 70, 65)), [9, 17, 20, 3], mode
        yield torch.tensor([[1.0, NAN, INF, -INF]]).reshape(1, 1, 4), [2, 2], mode
        for shape, padding in (((5,), [1, 1]), ((2, 3, 4, 5), [1, 1]), ((2, 3), [1, 1, 1, 1]), ((2, 3, 5), [1, 1, 1]), ((2, 3, 5), []), ((2, 3, 5), [-3, -3])):
            yield make(shape), padding, mode
        yield make((2, 3, 5)), [1, 1], mode, 1.0
    yield make((2, 3, 5)), [5, 0], "reflect"
    yield make((2, 3, 5)), [0, 5], "reflect"
    yield make((2, 3, 5, 4)), [1, 1, 5, 0], "reflect"
    yield make((2, 0, 5)), [1, 1], "reflect"
    yield make((2, 3, 0)), [1, 1], "replicate"
    yield make((2, 3, 5)), [6, 0], "circular"
    yield make((2, 3, 5)), [1, 1], "mirror"
    yield make(()), []
    yield make((2,)), []
    yield make((0, 3)), [1, 1]
    yield make((0,)), [1, 1], "constant", -3.5
    yield make((3,)), [-3, 0]
    yield make((3,)), [-1, -2]
    yield make((3,)), [-3, 4], "constant", 7
    yield make((16, 3, 32, 33)), [1, 1, 1, 1]
    yield make((3,)), [-4, 0]
    yield make((3,)), [-4, 2]
    yield make((3,)), [1, 2, 3]
    yield make((3,)), [1, 1, 1, 1]
    yield make(()), [1, 1]


def pad(x, padding, mode="constant", value=0):
    return F.pad(x, padding, mode, value)


def shuffles(large, factors):
    def cases():
        for dtype in ALL:
            for factor in factors:
                yield make(large(factor, 2, 3), dtype), factor
                yield make((2, *large(factor, 3, 2)), dtype), factor
        yield make((2, 3, *large(2, 2, 2))), 2
        yield make((2, *large(2, 3, 2))).transpose(2, 3), 2
        yield make((3, *large(2, 5, 5)))[::2], 2
        yield make((0, *large(2, 2, 2))), 2
        yield make((2, *large(2, 37, 41))), 2
        yield make((2, 3)), 2
        yield make((3, 3, 5)), 2
        yield make((4, 2, 2)), 0
        yield make((4, 2, 2)), -1
    return cases


def transposed():
    """(x, weight, bias, stride, padding, output_padding, groups, dilation)."""
    for dtype in FLOATS if VERSION >= (2, 0) else FLOATS[:3]:  # PyTorch 1.13 does not take bfloat16
        for batch in ((2,), ()):
            x = make((*batch, 4, 6), dtype)
            for outputs, groups in ((6, 1), (6, 2)):
                weight, bias = make((4, outputs // groups, 3), dtype, 1), make((outputs,), dtype, 2)
                for options in ((1, 0, 0, groups, 1), (2, 1, 1, groups, 1), (3, 0, 2, groups, 2), (1, 1, 0, groups, 2), (1, 0, 1, groups, 2)):
                    yield (x, weight, bias, *options)
                yield (x, weight, None, 2, 0, 0, groups, 1)
    x, weight = make((2, 4, 6)), make((4, 3, 3), seed=1)
    yield make((4, 2, 6)).transpose(0, 1), make((3, 4, 3), seed=1).transpose(0, 1), None, 2, 0, 0, 1, 1
    yield make((3, 16, 65)), make((16, 8, 4), seed=1), make((8,), seed=2), 2, 1, 0, 1, 1
    yield x, weight, make((4,)), 1, 0, 0, 1, 1
    yield x, make((3, 3, 3)), None, 1, 0, 0, 1, 1
    yield x, make((4, 3, 3, 3)), None, 1, 0, 0, 1, 1
    yield make((4,)), weight, None, 1, 0, 0, 1, 1
    yield make((2, 4, 6, 1)), weight, None, 1, 0, 0, 1, 1
    yield x, weight, None, 1, 0, 1, 1, 1
    yield x, weight, None, 1, -1, 0, 1, 1
    yield x, weight, None, 0, 0, 0, 1, 1


def instances():
    for dtype in FLOATS:
        for shape in ((2, 3, 5), (2, 3, 4, 5), (1, 3, 7)):
            x = make(shape, dtype)
            mean, var = make((3,), dtype, 1), make((3,), dtype, 2, 0.5, 2.0)
            weight, bias = make((3,), dtype, 3), make((3,), dtype, 4)
            yield x,
            yield x, None, None, weight, bias
            yield x, None, None, weight, None, True, 0.1, 1e-3
            yield x, None, None, None, bias
            yield x, mean, var, weight, bias, True
            yield x, mean, var, None, None, True, 0.3, 1e-3
            yield x, mean, var, weight, bias, False
            yield x, mean, var, None, None, False
    yield make((2, 4, 5, 3)).permute(0, 3, 1, 2), make((3,), seed=1), make((3,), seed=2, low=0.5, high=2.0), make((3,), seed=3), make((3,), seed=4)
    yield make((2, 4, 5, 3)).permute(0, 3, 1, 2), None, None, make((6,), seed=3)[::2], make((3,), seed=4)
    yield make((5, 17, 24, 25)), None, None, make((17,), seed=3), make((17,), seed=4)
    yield make((2, 3, 2)) * 0 + 7, None, None, make((3,)), None, True, 0.1, 1.0
    yield make((2, 3, 5)), None, None, None, None, False
    yield make((2, 3, 1)),
    yield make((2, 3)),
    yield make((3,)),
    yield make((2, 3, 4)), make((4,)), make((4,))
    yield make((2, 3, 4)), None, None, make((2,))


def instance_norm(x, mean=None, var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    mean, var = None if mean is None else mean.clone(), None if var is None else var.clone()
    y = F.instance_norm(x, mean, var, weight, bias, use_input_stats, momentum, eps)
    return [y] + [t.detach() for t in (mean, var) if t is not None]


def vectors():
    for dtype in FLOATS:
        for shape, dims in (((4, 3), (0, 1, -1)), ((2, 3, 4), (0, 1, 2)), ((5,), (0,))):
            for dim in dims:
                for p in (2.0, 1.0, 3.0, INF):
                    yield make(shape, dtype), p, dim
        yield make((4, 3), dtype), 2.0, 1, 2.5
    yield make((4, 3)),
    yield make((3, 4)).t(), 2.0, 1
    yield make((0, 3)), 2.0, 1
    yield make((70, 300)), 2.0, 1
    yield make((3, 4)) * 0, 2.0, 1
    yield torch.tensor([[1.0, NAN], [INF, 1.0], [1e20, 1e20], [0.0, 2.0]]), 2.0, 1
    yield make(()), 2.0, 0
    yield make((3,)), 2.0, 1
    yield make((3, 4), torch.int64), 2.0, 1


def pairs_of_vectors(*options):
    def cases():
        for dtype in FLOATS:
            for a, b in (((4, 3), (4, 3)), ((2, 3, 4), (2, 3, 4)), ((4, 3), (1, 3)), ((2, 1, 3), (4, 3)), ((2, 3, 4), (3, 1))):
                for more in options:
                    yield (make(a, dtype), make(b, dtype, 1), *more)
        yield make((3, 4)).t(), make((4, 3), seed=1)
        yield make((70, 300)), make((70, 300), seed=1)
        yield make((0, 3)), make((0, 3))
        yield make((4, 3), torch.float16), make((4, 3), seed=1)
        yield make((4, 3), torch.int64), make((4, 3), seed=1)
        yield make((4, 3), torch.int64), make((4, 3), torch.int64)
        yield make((4, 3)), make((4, 2))
        yield torch.tensor([[1.0, NAN], [INF, 1.0], [1.0, 2.0]]), torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 3.0]])
    return cases


def cosines():
    yield from pairs_of_vectors((), (0,), (-1, 0.5))()
    yield make((4, 3)) * 0, make((4, 3), seed=1)
    yield make((4, 3)) * 1e20, make((4, 3), seed=1) * 1e20
    yield make((3,)), make((3,), seed=1), 0
    yield make((3,)), make((3,), seed=1), 1


def distances():
    yield from pairs_of_vectors((), (1.0,), (3.0, 0.5), (INF, 1e-6, True), (2.0, 0.0))()
    yield make((3,)), make((3,), seed=1)
    yield make((4, 3)), make((3,), seed=1)


SUM = {"scale": "tensor", "zero_sign": False, "tolerance": 4}
ROWS = [
    Row("pad", pad, paddings),
    Row("pixel_shuffle", F.pixel_shuffle, shuffles(lambda r, h, w: (2 * r * r, h, w), (1, 2, 3))),
    Row("pixel_unshuffle", F.pixel_unshuffle, shuffles(lambda r, h, w: (2, h * r, w * r), (1, 2, 3))),
    Row("conv_transpose1d", F.conv_transpose1d, transposed, **SUM),
    Row("instance_norm", instance_norm, instances, no_grad=(1, 2), special_grad=False, **SUM),
    Row("normalize", F.normalize, vectors, special_grad=False, **SUM),
    Row("cosine_similarity", F.cosine_similarity, cosines, special_grad=False, **SUM),
    Row("pairwise_distance", F.pairwise_distance, distances, special_grad=False, **SUM),
]
