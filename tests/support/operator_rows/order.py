# Rows of tern/ops/unique.h, histogram.h, quantile.h, diagonal.h and products.h; of scan.h, sort.h, index.h, distance.h, reduce.h and
# shape.h those that are made of other operators or stand beside them.

import torch

from .driver import VERSION, Row
from .inputs import ALL, FEW_SHAPES, FLOATS, INF, INTS, NAN, NUMBERS, SHAPES, WIDE, distinct, integers, layouts, make, special, special_values
from .reduce import along, inputs, over_lists, special_rows


def plain_inputs(dtypes=ALL, **options):
    """(x,) of all shapes and layouts."""
    return lambda: ((x,) for x in inputs(dtypes, **options))


def unique_cases():
    for x in inputs(ALL):
        yield x, False, False
        if not x.isnan().any():  # which NaN is which, is open
            yield x, True, True
    yield torch.tensor([3, 1, 3, 2, 1, 3]), True, False
    yield torch.tensor([3.0, NAN, 3.0, NAN, -0.0, 0.0]), False, True
    yield integers((5000,), 0, 40), True, True
    for dtype in NUMBERS:
        x = integers((6, 2), 0, 2, dtype=dtype)
        for dim in (0, 1, -1):
            yield x, True, True, dim
    yield integers((50, 3, 2), 0, 2), True, True, 0
    yield integers((3, 50, 2), 0, 2).transpose(0, 2), True, True, 1
    yield torch.tensor([2, 1, 2]), True, True, 0
    yield make((2, 0)), True, True, 0
    yield make((0, 2)), True, True, 0
    yield make((2, 2)), True, True, 2


def unique_of(function, **more):
    def apply(x, inverse=False, counts=False, dim=None):
        return function(x, return_inverse=inverse, return_counts=counts, dim=dim, **more)
    return apply


def isin_cases():
    for dtype in ALL if VERSION >= (2, 0) else [d for d in ALL if d != torch.bfloat16]:  # PyTorch 1.13 does not take it
        for count in (0, 1, 5, 40):
            yield make((3, 5), dtype), make((count,), dtype, 1)
            yield make((3, 5), dtype), make((count,), dtype, 1), False, True
        yield make((5, 3), dtype).t(), make((2, 5), dtype, 1)
        yield make((), dtype), make((), dtype)
        yield make((0,), dtype), make((3,), dtype)
    yield make((3, 5), torch.int64), make((20,))
    for dtype in FLOATS if VERSION >= (2, 15) else ():  # NaN was found among many
        yield special(dtype), torch.cat([special(dtype), special(dtype)])
        yield special(dtype), torch.full((20,), NAN, dtype=dtype)
    yield integers((300,), 0, 50), integers((20,), 0, 50)
    yield integers((300,), 0, 50), 7
    yield integers((300,), 0, 50), 7, False, True


def isin(elements, test, assume_unique=False, invert=False):
    return torch.isin(elements, test, assume_unique=assume_unique, invert=invert)


def bincounts():
    for dtype in INTS:
        x = integers((20,), 0, 6, dtype=dtype)
        yield (x,)
        yield x, None, 9
        yield x, None, 3
        for weights in ALL:
            yield x, make((20,), weights, 1)
    yield (integers((5000,), 0, 300),)
    yield integers((5000,), 0, 300), make((5000,))
    yield integers((40,), 0, 6)[::2], make((40,))[::2]
    for minlength in (0, 4, -1):
        yield torch.tensor([], dtype=torch.int64), None, minlength
    yield torch.tensor([], dtype=torch.int64), make((0,)), 2
    yield (torch.tensor([1, -1]),)
    yield (torch.tensor([[1]]),)
    yield (torch.tensor(1),)
    yield (torch.tensor([1.0]),)
    yield torch.tensor([1]), make((2,))
    yield torch.tensor([1]), None, -1


def histograms():
    for dtype in WIDE:
        x = make((40,), dtype)
        for arguments in ((), (10,), (4, -1.0, 2.0), (3, 5.0, 9.0), (7, -3.0, 3.0), (5, 0.0, 0.0)):
            yield (x, *arguments)
        yield make((5, 33), dtype).t(), 6
        yield make((), dtype), 3
        yield make((0,), dtype), 3
        yield torch.full((5,), 2.0, dtype=dtype), 4
        yield torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, NAN, 3.0, INF], dtype=dtype), 4, 0.0, 2.0
    yield make((4,)), 0
    yield make((4,)), -1
    yield make((4,)), 3, 2.0, 1.0
    yield make((4,)), 3, 0.0, INF
    yield torch.tensor([1.0, INF]), 3
    yield torch.tensor([1.0, NAN]), 3


MODES = ("linear", "lower", "higher", "midpoint", "nearest")


def quantiles():
    for dtype in WIDE:
        for x in (distinct((7,), dtype), distinct((3, 5), dtype), distinct((2, 3, 4), dtype).permute(2, 0, 1), distinct((5, 33), dtype).t(), make((), dtype),
                  make((1,), dtype)):
            for i, mode in enumerate(MODES):
                yield x, 0.3, None, False, mode
                yield x, (0.0, 1.0, 0.5, 0.25, 0.9)[i], -1, i % 2 == 0, mode
                yield x, torch.tensor([0.1, 0.0, 0.75, 1.0], dtype=dtype), 0, i % 2 == 1, mode
                yield x, torch.tensor([0.6], dtype=dtype), None, i % 2 == 1, mode
                yield x, torch.tensor(0.5, dtype=dtype), 0, True, mode
        yield torch.tensor([[1.0, NAN, 3.0], [2.0, 1.0, 5.0], [NAN, NAN, NAN]], dtype=dtype), 0.4, 1
        yield torch.tensor([[1.0, NAN, 3.0], [2.0, 1.0, 5.0], [NAN, NAN, NAN]], dtype=dtype), torch.tensor([0.4, 1.0], dtype=dtype), 1
        yield torch.tensor([1.0, NAN, 3.0], dtype=dtype), 0.5
        yield torch.tensor([1.0, INF, 3.0, -INF], dtype=dtype), torch.tensor([0.4, 0.5, 0.1, 0.0], dtype=dtype)
    x = make((3, 5))
    yield x, 1.1
    yield x, -0.1
    yield x, torch.tensor([0.5, 1.5])
    yield x, torch.tensor([[0.5]])
    yield x, torch.tensor([0.5], dtype=torch.float64)
    yield x, 0.5, 2
    yield x, 0.5, 1, False, "other"
    yield make((0,)), 0.5
    yield make((2, 0)), 0.5, 1
    yield make((3,), torch.int64), 0.5
    yield make((3,), torch.float16), 0.5


def quantile(function):
    return lambda x, q, dim=None, keepdim=False, interpolation="linear": function(x, q, dim=dim, keepdim=keepdim, interpolation=interpolation)


def kth_cases():
    for x in inputs(NUMBERS, source=distinct, with_special=False):
        for dim in (0, -1, 1):
            for k in (1, 2, 3):
                yield x, k, dim, k == 2
    rows = special_rows(torch.float32)[:6, :4]
    for k in (1, 2, 4):
        yield rows[:, :2] + torch.arange(6).unsqueeze(1), min(k, 2), 1, False
    yield torch.tensor([2.0, NAN, 1.0]), 2
    yield torch.tensor([2.0, NAN, 1.0]), 3
    yield distinct((70001,)), 35000
    yield make((3,)), 0
    yield make((3,)), 4
    yield make((2, 3)), 1, 2
    yield (torch.tensor([True, False]), 1)


def nanmedians():
    for x in inputs(NUMBERS, source=distinct, with_special=False):
        if x.numel():
            yield (x,)
        for dim in (0, -1, 1):
            yield x, dim, False
            yield x, dim, True
    for dtype in FLOATS:
        x = distinct((5, 6), dtype).clone()
        x[0, 1] = x[1, 0] = x[1, 4] = NAN
        x[2, 1:] = NAN
        yield (x,)
        yield x, 0, False
        yield x, 1, True
    yield (torch.tensor([NAN, NAN]),)
    yield (torch.tensor([True, False]),)
    yield make((2, 3)), 2, False


def nanmedian(x, dim=None, keepdim=False):
    return torch.nanmedian(x) if dim is None else torch.nanmedian(x, dim, keepdim)


def modes():
    # PyTorch chooses any index of the value: it is told apart where values are distinct or the same everywhere.
    for x in inputs(ALL, with_special=False):
        for dim in (0, -1):
            yield x, dim, dim == 0
    for x in (integers((40, 9), 0, 4), integers((9, 40), 0, 5).float()):
        yield x, 0, True
        yield x, 1, False
    yield make((2, 3)), 2


def mode_values(x, dim=-1, keepdim=False):
    """The smallest of the values that occur most often, by counting; the last place in sorted order."""
    if x.dim() and x.size(dim) == 0 or x.dim() == 0 and dim not in (0, -1):
        return torch.mode(x, dim, keepdim)
    torch.mode(x, dim, keepdim)
    rows = x.unsqueeze(0) if x.dim() == 0 else x.movedim(dim, -1)
    counts = (rows.unsqueeze(-1) == rows.unsqueeze(-2)).sum(-1)
    most = counts == counts.amax(-1, keepdim=True)
    wide = rows.detach().double().masked_fill(~most, INF)
    equal = rows.detach().double() == wide.amin(-1, keepdim=True)
    places = torch.arange(rows.size(-1)).expand(rows.shape).masked_fill(~equal, -1).amax(-1, keepdim=True)
    values = rows.gather(-1, places)
    if x.dim() == 0:
        return values.squeeze(0), places.squeeze(0)
    values, places = values.movedim(-1, dim), places.movedim(-1, dim)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def with_nan(dtypes=FLOATS):
    def cases():
        for x in inputs(dtypes):
            holes = x.masked_fill(make(tuple(x.shape), torch.bool, 5), NAN) if x.dtype.is_floating_point else x
            for dim in (None, 0, -1, [0, 1], []):
                yield (holes, dim, dim == 0) if dim is not None else (holes,)
        yield make((3, 5)), 1, False, torch.float64
        yield make((3, 5)), 2
    return cases


def nan_reduction(function):
    def apply(x, dim=None, keepdim=False, dtype=None):
        return function(x, dim=None if dim in (None, []) else dim, keepdim=keepdim, dtype=dtype)
    return apply


def extremes_so_far():
    for x, dim in along(ALL)():
        if VERSION >= (2, 15) or x.numel() > 0 and x.dim() > 0 or dim < max(1, x.dim()):  # older ones do not look at dim there
            yield x, dim
    for dtype in (torch.float32, torch.int64):
        yield integers((5000,), 0, 2000).to(dtype), 0
        yield integers((3, 5000), 0, 2000).to(dtype), 1
        yield integers((300, 70), 0, 100).to(dtype), 0
    x = make((4, 3000)).clone()
    x[1, 2000] = x[2, 17] = x[2, 2900] = NAN
    yield x, 1
    yield x.t(), 0


def logcumsumexps():
    yield from along(FLOATS)()
    yield make((3, 5000)), 1
    yield make((70, 300), low=-100.0, high=100.0), 0
    yield make((40, 20)), 1
    yield make((3,), torch.int64), 0


def differences():
    for x in inputs(ALL):
        yield (x,)
        for n, dim in ((0, 0), (1, 0), (2, -1), (3, 1), (9, 0)):
            yield x, n, dim
    x = make((3, 5))
    yield x, 1, 0, make((2, 5))
    yield x, 1, -1, None, make((3, 1))
    yield x, 2, 1, make((3, 2)), make((3, 1))
    yield x, 1, 0, make((2, 4))
    if VERSION >= (2, 15):  # 1.13 takes a negative order as 0
        yield x, -1
    yield x, 1, 2


def diff(x, n=1, dim=-1, prepend=None, append=None):
    return torch.diff(x, n, dim, prepend=prepend, append=append)


def scattered(dtypes=NUMBERS, larger=False):
    """`larger`: with sources larger than the index, of which PyTorch has no gradient."""
    def cases():
        for how in ("sum", "prod", "mean", "amax", "amin"):
            for include in (True, False):
                for dtype in dtypes:
                    x = make((4, 5), dtype, low=-2.0, high=2.0)
                    yield x, 0, integers((3, 5), 0, 4), make((3, 5), dtype, 1, -2.0, 2.0), how, include
                    yield x, 1, integers((4, 9), 0, 5), make((4, 9), dtype, 1, -2.0, 2.0), how, include
                x = make((4, 5))
                yield x, -1, integers((2, 7), 0, 3), make((4, 8) if larger else (2, 7), seed=1), how, include
                yield make((5, 4)).t(), 0, integers((6, 5), 0, 4), make((6, 5), seed=1), how, include
                yield x, 0, integers((0, 5), 0, 4), make((0, 5)), how, include
                yield make(()), 0, torch.tensor(0), make((), seed=1), how, include
                yield make((300,)), 0, integers((2000,), 0, 290), make((2000,), low=0.5, high=1.5), how, include
                yield make((40, 30)), 0, integers((100, 1), 0, 40).expand(100, 30), make((100, 30), low=0.5, high=1.5), how, include
                yield make((70000,)), 0, integers((50,), 0, 70000), make((50,)), how, include
                if how in ("amax", "amin", "sum"):
                    yield special(torch.float32), 0, integers((40,), 0, 20), special(torch.float32).repeat(2), how, include
        # With zeros, whose gradients go another way.
        for include in (True, False):
            yield torch.tensor([0.0, 2.0, 3.0, 0.0]), 0, torch.tensor([0, 0, 1, 1, 2]), torch.tensor([2.0, 3.0, 0.0, 4.0, 5.0]), "prod", include
            yield make((4,)), 0, torch.tensor([0, 0, 1, 1, 2]), torch.tensor([2.0, 0.0, 0.0, 0.0, 5.0]), "prod", include
        x = make((4, 5))
        yield x, 0, torch.tensor([[4]]), make((1, 1)), "sum"
        yield x, 0, torch.tensor([[1]]), make((1, 1)), "other"
        yield x, 0, torch.tensor([1]), make((1,)), "sum"
        yield x, 2, torch.tensor([[1]]), make((1, 1)), "sum"
        yield x, 0, torch.tensor([[1, 2]]), make((1, 1)), "sum"
        yield x, 0, torch.tensor([[1]]), make((1, 1), torch.float64), "amax"
        yield x, 0, torch.tensor([[1.0]]), make((1, 1)), "amax"
    return cases


def scatter_reduce(x, dim, index, src, reduce, include_self=True):
    return torch.scatter_reduce(x, dim, index, src, reduce, include_self=include_self)


def scatter_reduce_(x, dim, index, src, reduce, include_self=True):
    return x.clone().scatter_reduce_(dim, index, src, reduce, include_self=include_self)


def puts():
    for dtype in ALL:
        x = make((3, 4), dtype)
        yield x, torch.tensor([[0, 11], [-1 - 4, 5]]), make((2, 2), dtype, 1)
        if dtype != torch.bool:
            yield x, torch.tensor([0, 0, 3]), make((3,), dtype, 1), True
        yield make((4, 3), dtype).t(), torch.tensor([1, 7]), make((2,), dtype, 1)
        yield make((4, 3), dtype).t(), torch.tensor([1, 7, 1]), make((3,), dtype, 1), dtype != torch.bool
    yield make((3,)), torch.tensor(2), make((1,))
    yield make((3,)), torch.tensor([], dtype=torch.int64), make((0,))
    yield make((3,)), torch.tensor([3]), make((1,))
    yield make((3,)), torch.tensor([-4]), make((1,))
    yield make((3,)), torch.tensor([0]), make((2,))
    yield make((3,)), torch.tensor([0]), make((1,), torch.float64)
    yield make((3,)), torch.tensor([0.0]), make((1,))


def diags():
    for dtype in ALL:
        for offset in (0, 1, -2, 9, -9):
            yield make((4,), dtype), offset
            if abs(offset) < 5 or VERSION >= (2, 15):  # 1.13 raises where the diagonal is outside
                yield make((3, 5), dtype), offset
    yield make((5, 3)).t(), 1
    yield make((3, 5))[:, ::2], -1
    for shape in ((0,), (0, 3), (2, 3, 4), ()):
        yield make(shape), 1


def embeds():
    for dtype in ALL:
        yield make((3,), dtype), 0
        yield make((2, 3), dtype), 1
        yield make((2, 3), dtype), -2, 0, 2
    for dims in ((0, 1), (1, 0), (-1, 0), (2, 1)):
        yield make((2, 3, 4)), 1, *dims
        yield make((4, 3, 2)).permute(2, 1, 0), -1, *dims
    yield make((0,)), 2
    yield make((2, 0)), 0
    yield make((2, 3)), 0, 1, 1
    yield make((2, 3)), 0, 1, -2
    yield make((2, 3)), 0, 3, 0


def blocks():
    for dtype in ALL:
        yield ([make((2, 3), dtype), make((1,), dtype), make((), dtype), make((4,), dtype), make((3, 2), dtype).t()],)
    yield ([make((2, 3)), make((2, 2), torch.int64)],)
    yield ([make((2, 0)), make((0, 3)), make((1, 1))],)
    yield ([make((2, 3, 1))],)


def triangles():
    for row, col in ((3, 3), (2, 5), (5, 2), (0, 3), (3, 0), (1, 1)):
        for offset in (-9, -2, -1, 0, 1, 2, 9):
            yield row, col, offset
    yield 3, 3, 0, torch.int32
    yield -1, 3, 0
    yield 3, -1, 0
    yield 3, 3, 0, torch.float32


def triangle(function):
    return lambda row, col, offset=0, dtype=torch.int64: function(row, col, offset, dtype=dtype)


def tensordots():
    for dtype in FLOATS + (torch.int64,):
        a, b = make((2, 3, 4), dtype), make((3, 4, 5), dtype, 1)
        yield (a, b)
        yield a, make((4, 2), dtype, 1), 1
        yield a, make((3,), dtype, 1), 0
        yield a, make((4, 5, 3), dtype, 1), [1, 2], [2, 0]
        yield a, make((4, 5, 3), dtype, 1), [-1], [0]
    yield make((2, 3, 4)), make((1, 4, 5)), [1, 2], [0, 1]
    yield make((2, 1, 4)), make((3, 4, 5)), [1, 2], [0, 1]
    yield make((2, 3)), make((3, 2)), [0, 1], [1, 0]
    yield make((0, 3)), make((3, 2)), 1
    yield make((2, 0)), make((0, 2)), 1
    yield make((2, 3)), make((3, 2)), 3
    yield make((2, 3)), make((3, 2)), -1
    yield make((2, 3)), make((4, 2)), 1
    yield make((2, 3)), make((3, 2)), [0], [1, 0]
    yield make((2, 3)), make((3, 2)), [0, 0], [1, 1]
    yield make((2, 3)), make((3, 2)), [2], [1]
    yield make((2, 3)), make((3, 2), torch.float64), 1


def tensordot(a, b, dims=2, dims_b=None):
    return torch.tensordot(a, b, dims if dims_b is None else (dims, dims_b))


def krons():
    for dtype in ALL:
        yield make((2, 3), dtype), make((3, 2), dtype, 1)
        yield make((2,), dtype), make((3, 2, 2), dtype, 1)
    yield make((2, 3)), make((2,), torch.int64)
    yield make(()), make((3,))
    yield make((0, 2)), make((3,))
    yield make((3, 2)).t(), make((4, 2)).t()


def crosses():
    for dtype in NUMBERS:
        yield make((3,), dtype), make((3,), dtype, 1), 0
        yield make((2, 3), dtype), make((2, 3), dtype, 1), -1
        yield make((3, 4), dtype), make((3, 4), dtype, 1), 0
        yield make((3, 4), dtype), make((3, 1), dtype, 1), 0
    yield make((4, 3)), make((4, 3), seed=1)
    yield make((5, 3)).t(), make((3, 5)), 0
    yield make((0, 3)), make((0, 3)), 1
    yield make((2, 4)), make((2, 4))
    yield make((2, 4)), make((2, 4)), 1
    yield make((3,)), make((2, 3)), -1
    yield make((2, 3)), make((4, 3)), 1


def cross(a, b, dim=None):
    return torch.cross(a, b) if dim is None else torch.cross(a, b, dim)


def cdists():
    for dtype in WIDE:
        for p in (2.0, 1.0, 0.0, 3.0, 0.5, INF, 1.5):
            yield make((4, 3), dtype), make((5, 3), dtype, 1), p
            yield make((2, 4, 3), dtype), make((5, 3), dtype, 1), p
            yield make((2, 1, 4, 3), dtype), make((3, 5, 3), dtype, 1), p
            yield make((4, 0), dtype), make((5, 0), dtype), p
            yield make((0, 3), dtype), make((5, 3), dtype), p
            yield make((4, 3), dtype), make((0, 3), dtype), p
        yield make((40, 7), dtype), make((33, 7), dtype, 1), 2.0
        for p in (1.0, 3.0, 0.5, INF, 0.0):
            yield make((40, 7), dtype), make((33, 7), dtype, 1), p
            yield make((130, 5), dtype), make((3, 5), dtype, 1), p
            yield make((2, 70, 37), dtype), make((2, 141, 37), dtype, 1), p
        yield make((2, 70, 37), dtype), make((2, 141, 37), dtype, 1), 2.0, "donot_use_mm_for_euclid_dist"
        yield make((4, 7), dtype), make((3, 7), dtype, 1), 2.0, "use_mm_for_euclid_dist"
        yield make((40, 7), dtype), make((33, 7), dtype, 1), 2.0, "donot_use_mm_for_euclid_dist"
        yield make((3, 4), dtype).t(), make((3, 5), dtype, 1).t(), 2.0
    yield make((4, 3)), make((4, 3)), 1.0, "donot_use_mm_for_euclid_dist"
    yield make((4, 3)), make((5, 4))
    yield make((3,)), make((5, 3))
    yield make((4, 3)), make((5, 3)), -1.0
    yield make((4, 3)), make((5, 3)), 2.0, "other"
    yield make((4, 3), torch.int64), make((5, 3), torch.int64)


def pdists():
    for dtype in FLOATS:
        for shape in ((5, 3), (2, 4), (1, 3), (30, 17)):
            # In 16 bits several differences may be the largest.
            for p in (2.0, 1.0, 3.0, INF, 0.0) if dtype in WIDE else (2.0, 1.0, 3.0, 0.0):
                yield make(shape, dtype), p
    yield make((3, 5)).t(),
    yield torch.tensor([[1.0, 2.0], [1.0, 2.0], [0.0, 3.0]]),
    yield make((3,)),
    yield make((2, 3, 4)),
    yield make((5, 3)), -1.0


def cdist(a, b, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    return torch.cdist(a, b, p, compute_mode)


def renorms():
    for dtype in WIDE:
        for p in (2.0, 1.0, 3.0):
            for dim in (0, 1, -1):
                yield make((3, 5), dtype), p, dim, 4.0
        yield make((2, 3, 4), dtype).permute(2, 0, 1), 2.0, 1, 1.0
    yield make((3, 5)), 2.0, 0, 0.0
    yield make((3, 5)), 0.0, 0, 1.0
    yield make((3, 5)), 2.0, 0, -1.0
    yield make((3,)), 2.0, 0, 1.0
    yield make((3, 5)), 2.0, 2, 1.0


def tensor_splits(at=False):
    def cases():
        for x in (make((7,)), make((5, 3)).t(), make((2, 6, 3)), make((0,)), make((3, 5), torch.int64)):
            for dim in (0, -1):
                for how in ([[1, 3], [], [0], [3, 1], [-2], [9, 20]] if at else [1, 2, 3, 9]):
                    yield x, how, dim
        yield make(()), ([1] if at else 1), 0
        yield make((3,)), ([1] if at else 1), 1
        if not at:
            yield make((3,)), 0, 0
            yield make((3,)), -1, 0
    return cases


def stacks():
    for dtype in ALL:
        yield ([make((2, 3), dtype), make((2, 3), dtype, 1)],)
        yield ([make((3,), dtype), make((3,), dtype, 1)],)
    yield ([make(()), make(())],)
    yield ([make((2, 3, 4)), make((2, 3, 1))],)
    yield ([make((3, 2)).t(), make((2, 3), torch.float64)],)
    yield ([make((3,)), make((3, 2))],)
    yield ([make((2, 3)), make((3, 2))],)
    yield ([],)


def cartesians():
    for dtype in ALL:
        yield ([make((2,), dtype), make((3,), dtype)],)
    yield ([make((2,)), make((3,)), make((4,))[::2]],)
    yield ([make((4,))],)
    yield ([make((2,)), make((0,))],)
    yield ([make((2, 1))],)
    yield ([make((2,)), make(())],)


def combination_cases():
    for dtype in ALL:
        for r in (0, 1, 2, 3, 5):
            for with_replacement in (False, True):
                yield make((4,), dtype), r, with_replacement
    yield make((8,))[::2], 2, False
    yield make((0,)), 2, True
    yield make((2, 2)), 2, False
    yield make(()), 2, False
    yield make((3,)), -1, False


def rotations():
    for x in (make((3, 5)), make((5, 3), torch.int64).t(), make((2, 3, 4)), make((0, 3)), make((3, 4), torch.bool)):
        for k in (0, 1, 2, 3, 4, -1, 7):
            yield x, k
        yield x, 1, [1, 0]
        yield x, 3, [-1, 0]
    yield make((2, 3, 4)), 1, [0, 2]
    yield make((3, 5)), 1, [0, 0]
    yield make((3, 5)), 1, [0]
    yield make((3,)), 1
    yield make((3, 5)), 1, [0, 2]


SUM = {"scale": "tensor", "zero_sign": False, "tolerance": 2}
COPIES = {"zero_sign": True}
ROWS = [
    # PyTorch 1.13 leaves NaN where its sort happens to.
    Row("unique", unique_of(torch.unique, sorted=True), lambda: (c for c in unique_cases() if VERSION >= (2, 15) or not c[0].isnan().any()), grad=False, zero_sign=False),
    Row("unique_consecutive", unique_of(torch.unique_consecutive), unique_cases, grad=False, zero_sign=False),
    Row("isin", isin, isin_cases, grad=False),
    Row("bincount", lambda x, weights=None, minlength=0: torch.bincount(x, weights, minlength), bincounts, grad=False, **SUM),
    Row("histc", lambda x, bins=100, low=0, high=0: torch.histc(x, bins, low, high), histograms, grad=False, since=(2, 15), reason="NaN was counted"),
    Row("quantile", quantile(torch.quantile), quantiles, special_grad=False, **SUM),
    Row("nanquantile", quantile(torch.nanquantile), quantiles, special_grad=False, **SUM),
    Row("kthvalue", torch.kthvalue, kth_cases),
    Row("nanmedian", nanmedian, nanmedians),
    Row("mode", mode_values, modes, zero_sign=False),
    Row("nansum", nan_reduction(torch.nansum), with_nan(FLOATS + INTS), special_grad=False, **SUM),
    Row("nanmean", nan_reduction(torch.nanmean), with_nan(FLOATS + (torch.int64,)), special_grad=False, **SUM),
    Row("cummax", torch.cummax, extremes_so_far),
    Row("cummin", torch.cummin, extremes_so_far),
    Row("logcumsumexp", torch.logcumsumexp, logcumsumexps, special_grad=False, **SUM),
    Row("diff", diff, differences, **SUM),
    Row("scatter_reduce", scatter_reduce, scattered(), special_grad=False, **SUM),
    Row("scatter_reduce_", scatter_reduce_, scattered((torch.float32, torch.int64), larger=True), grad=False, **SUM),
    Row("put", torch.put, puts),
    Row("put_", lambda x, index, source, accumulate=False: x.clone().put_(index, source, accumulate), puts),
    Row("diag", torch.diag, diags),
    Row("diagflat", torch.diagflat, lambda: ((x, offset) for (x,) in plain_inputs()() if x.numel() < 100 for offset in (0, 1, -2))),
    Row("diag_embed", torch.diag_embed, embeds),
    Row("trace", torch.trace, lambda: ((x,) for x in (*(make((3, 5), dtype) for dtype in ALL), *layouts()[:4], make((0, 3)), make((0, 0)), make((3,)), make((2, 3, 4)))), **SUM),
    Row("block_diag", lambda tensors: torch.block_diag(*tensors), blocks),
    Row("tril_indices", triangle(torch.tril_indices), triangles, grad=False),
    Row("triu_indices", triangle(torch.triu_indices), triangles, grad=False),
    Row("tensordot", tensordot, tensordots, **SUM),
    Row("kron", torch.kron, krons),
    Row("cross", cross, crosses, **SUM),
    Row("pdist", torch.nn.functional.pdist, pdists, scale="tensor", zero_sign=False, tolerance=8),
    Row("cdist", cdist, cdists, scale="tensor", zero_sign=False, tolerance=8),
    Row("renorm", torch.renorm, renorms, **SUM),
    Row("ravel", torch.ravel, plain_inputs()),
    Row("tensor_split", torch.tensor_split, tensor_splits()),
    Row("tensor_split_at", torch.tensor_split, tensor_splits(at=True)),
    Row("dstack", torch.dstack, stacks),
    Row("column_stack", torch.column_stack, stacks),
    Row("cartesian_prod", lambda tensors: torch.cartesian_prod(*tensors), cartesians),
    Row("combinations", torch.combinations, combination_cases),
    Row("flipud", torch.flipud, plain_inputs()),
    Row("fliplr", torch.fliplr, plain_inputs()),
    Row("rot90", lambda x, k=1, dims=(0, 1): torch.rot90(x, k, dims), rotations),
]
