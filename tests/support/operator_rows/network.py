# Rows of tern/ops/matmul.h, conv.h, pool.h and norm.h.

import torch
from torch.nn import functional as F

from .driver import VERSION, Row
from .inputs import ALL, FLOATS, INF, INTS, NAN, WIDE, distinct, make

PRODUCTS = (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3,)),
            ((3,), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0)), ((0, 2, 3), (0, 3, 4)), ((1, 1), (1, 1)),
            ((17, 33), (33, 65)), ((67, 5), (5, 130)), ((2, 3), (4, 5)), ((2, 3), (2, 3)), ((2, 2, 3), (3, 3, 4)), ((), (3,)), ((3,), ()), ((4,), (3,)),
            ((130, 200), (200, 70)))


def products(keep=lambda a, b: True, dtypes=ALL):
    def cases():
        for a, b in PRODUCTS:
            if keep(len(a), len(b)):
                for dtype in dtypes if a in ((3,), (2, 3), (5, 2, 3)) else WIDE:
                    if dtype != torch.bool or 0 not in a + b:
                        yield make(a, dtype), make(b, dtype, 1)
        for a, b in ((torch.float32, torch.float64), (torch.float32, torch.int64), (torch.float16, torch.float32)):
            for s, u in (((3,), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((2, 3), (3,))):
                if keep(len(s), len(u)):
                    yield make(s, a), make(u, b)
        for dtype in WIDE:
            if keep(2, 2):
                yield make((5, 3), dtype).t(), make((6, 5), dtype, 1).t()
                yield make((3, 12), dtype)[:, ::2], make((6, 9), dtype, 1)[:, 1::2]
                yield make((3, 1), dtype).expand(3, 6), make((6,), dtype, 1).expand(4, 6).t()
            if keep(3, 3):
                yield make((4, 2, 3), dtype).transpose(0, 1), make((3, 2, 5), dtype, 1).transpose(0, 1)
                yield make((4, 3), dtype).expand(2, 4, 3), make((2, 5, 3), dtype, 1).transpose(1, 2)
        if keep(2, 2):
            yield torch.tensor([[1.0, INF], [NAN, 2.0]]), torch.tensor([[1.0, 0.0], [2.0, -1.0]])
    return cases


def adds(batched):
    def cases():
        shapes = ((5, 2, 3), (5, 3, 4), (5, 2, 4)) if batched else ((2, 3), (3, 4), (2, 4))
        for dtype in ALL:
            a, b = make(shapes[0], dtype, 1), make(shapes[1], dtype, 2)
            for bias in (shapes[2], (4,), (1,), (2, 1), ()):
                yield make(bias, dtype), a, b
            if dtype.is_floating_point:
                yield make(shapes[2], dtype), a, b, 0.5, 2.0
                if not batched or VERSION >= (2, 0):  # PyTorch 1.13 reads the input all the same
                    yield torch.full(shapes[2], NAN, dtype=dtype), a, b, 0, 1
            yield make(shapes[2], dtype), a, b, 2, 3
        yield make((3,)), make(shapes[0]), make(shapes[1])
        yield make(shapes[2]), make(shapes[1]), make(shapes[1])
        yield make(shapes[2]), make(shapes[0], torch.float64), make(shapes[1])
        yield make(shapes[2]), make(shapes[0][:-1] + (0,)), make(shapes[1][:-2] + (0, 4))
        flip = lambda t: t.transpose(-1, -2)
        yield flip(make(flip(make(shapes[2])).shape)), flip(make(flip(make(shapes[0])).shape, seed=1)), flip(make(flip(make(shapes[1])).shape, seed=2))
        yield make((5, 70, 60)[not batched:]), make((5, 70, 50)[not batched:], seed=1), make((5, 50, 60)[not batched:], seed=2)
    return cases


def vector_adds(rows, columns, biases):
    """(input, of shapes that broadcast; a, b) of addmv and addr."""
    def cases():
        for dtype in FLOATS + (torch.int64,):
            a, b = make(rows, dtype, 1), make(columns, dtype, 2)
            for bias in biases:
                yield make(bias, dtype), a, b
            yield make(biases[0], dtype), a, b, 2, 3
            if dtype.is_floating_point:
                yield torch.full(biases[0], NAN, dtype=dtype), a, b, 0, 0.5
        yield make(biases[0][::-1]).permute(*range(len(biases[0]))[::-1]), make(rows[::-1]).permute(*range(len(rows))[::-1]), make((columns[0] * 2,))[::2], 0.5
        yield make((5,)), make(rows), make(columns)
        yield make((4, *biases[0])), make(rows), make(columns)
        yield make(biases[0]), make((2, 2, 2)), make(columns)
        yield make(biases[0]), make(rows), make((2, 2))
    return cases


def mixed_adds():
    yield from vector_adds((2,), (3,), ((2, 3), (3,), (2, 1), ()))()
    yield make((2, 3), torch.int16), make((2,), torch.int32), make((3,), torch.int64), 2
    yield make((2, 3), torch.int64), make((2,), torch.int64), make((3,), torch.int64), 0.5
    yield make((2, 3), torch.int64), make((2,), torch.int64), make((3,), torch.int64), 1, 0.5


def chains():
    for dtype in WIDE:
        yield ([make((2, 3), dtype), make((3, 4), dtype, 1), make((5, 4), dtype, 2).t()],)
    yield ([make((2, 3))],)
    yield ([make((2, 3)), make((2, 3))],)
    yield ([make((3,)), make((3, 2))],)
    yield ([],)


def inners():
    for dtype in FLOATS + (torch.int64,):
        for a, b in (((3,), (3,)), ((2, 3), (4, 3)), ((2, 2, 3), (3,)), ((), (2, 3)), ((2, 3), ())):
            yield make(a, dtype), make(b, dtype, 1)
    yield make((3, 2)).t(), make((3, 4), seed=1).t()
    yield make((2, 1)), make((4, 3))
    yield make((2, 3)), make((3,), torch.float64)


def linears():
    for dtype in FLOATS:
        for x in ((3,), (4, 3), (2, 4, 3), (0, 3), (70, 3)):
            yield make(x, dtype), make((5, 3), dtype, 1), make((5,), dtype, 2)
            yield make(x, dtype), make((5, 3), dtype, 1)
    yield make((3, 4)).t(), make((3, 5), torch.float32, 1).t(), make((10,), torch.float32, 2)[::2]
    yield make((64, 100)), make((130, 100), seed=1), make((130,), seed=2)
    yield make((4, 3)), make((5, 4)), make((5,))
    yield make((4, 3)), make((5, 3)), make((4,))
    yield make((4, 3)), make((5, 3), torch.float64)


def feed_forwards():
    for dtype in FLOATS:
        for x in ((3,), (4, 3), (2, 4, 3), (0, 3), (70, 3)):
            yield make(x, dtype), make((8, 3), dtype, 1), make((8,), dtype, 2), make((5, 8), dtype, 3), make((5,), dtype, 4)
        yield make((4, 3), dtype), make((7, 3), dtype, 1), None, make((5, 7), dtype, 3), None
    yield make((4, 3)), make((8, 4)), make((8,)), make((5, 8)), make((5,))
    yield make((4, 3)), make((8, 3)), make((8,)), make((5, 7)), make((5,))
    yield make((4, 3)), make((8, 3)), make((8,)), make((5, 8), torch.float64), None


def sums_of_products():
    for dtype in FLOATS:
        a, b, c = make((2, 3, 4), dtype), make((2, 4, 5), dtype, 1), make((3, 3), dtype, 2)
        for equation, tensors in (("bij,bjk->bik", [a, b]), ("bij,bjk", [a, b]), ("ii->i", [c]), ("ii", [c]), ("ij->ji", [c]), ("...ij->...ji", [a]),
                                  ("i,j->ij", [c[0], c[1]]), ("bij,bjk->", [a, b]), ("bij,ij,bik->jk", [a, a[0], a]), ("ij,ij->", [c, c]), ("b...,b...->...", [a, a]),
                                  ("bij,bjk,bkl->bil", [a, b, make((2, 5, 3), dtype, 3)]), ("ij", [c]), ("ba", [c])):
            yield equation, tensors
    yield "bij,bkj->bik", [make((3, 2, 4)).transpose(0, 1), make((2, 4, 5), seed=1).transpose(1, 2)]
    yield "ij,jk", [make((0, 3)), make((3, 4))]
    yield "ij,jk", [make((3, 0)), make((0, 4))]
    yield ",i", [make(()), make((3,))]
    yield "ij,jk", [make((130, 70)), make((70, 60), seed=1)]
    yield "ij,jk", [make((2, 3), torch.int64), make((3, 4), torch.int64, 1)]
    for equation, tensors in (("ij,jk->ik", [make((2, 3)), make((4, 5))]), ("ij->k", [make((2, 3))]), ("ij", [make((2,))]), ("i,j->ij", [make((2,))]),
                              ("ij->ii", [make((2, 2))]), ("i-j", [make((2, 2))])):
        yield equation, tensors


def convolutions(rank):
    """(x, weight, bias, stride, padding, dilation, groups, padding is a word)."""
    square = {1: ((12,), (3,)), 2: ((9, 12), (3, 2)), 3: ((5, 6, 7), (2, 3, 2))}[rank]
    large = {1: (132,), 2: (24, 24), 3: (7, 8, 9)}[rank]

    def cases():
        for dtype in FLOATS:
            for batch in ((2,), ()):
                x = make((*batch, 4, *square[0]), dtype)
                for outputs, groups in ((6, 1), (6, 2), (4, 4)):
                    weight, bias = make((outputs, 4 // groups, *square[1]), dtype, 1), make((outputs,), dtype, 2)
                    for stride, padding, dilation in ((1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 1, 2)):
                        yield x, weight, bias, stride, padding, dilation, groups
                    yield x, weight, None, 1, 1, 1, groups
        x, weight = make((2, 3, *square[0])), make((5, 3, *square[1]), seed=1)
        for word in ("same", "valid", "other"):
            yield x, weight, None, 1, word, 1, 1, True
        yield x, weight, None, 2, "same", 1, 1, True
        if rank == 2:  # an image for each channel
            for dtype in FLOATS:
                for k, stride, padding, dilation in ((3, 1, 1, 1), (5, 2, [2, 1], 1), (7, [1, 2], 3, 1), (3, [3, 2], [0, 4], [1, 2])):
                    yield make((2, 4, 11, 12), dtype), make((8, 1, k, k), dtype, 1), make((8,), dtype, 2), stride, padding, dilation, 4
            yield make((2, 3, 40, 70)), make((3, 1, 5, 5), seed=1), None, 1, 2, 1, 3
        yield make((3, 4, *large)), make((5, 4, *square[1]), seed=1), make((5,), seed=2), 1, 1, 1, 1
        if rank == 3:
            for dtype in FLOATS:
                yield make((2, 3, 6, 7, 5), dtype), make((4, 3, 3, 2, 3), dtype, 1), make((4,), dtype, 2), [2, 1, 3], [3, 0, 1], [1, 2, 1], 1
                yield make((2, 3, 6, 7, 5), dtype), make((4, 3, 1, 2, 3), dtype, 1), None, [1, 1, 2], [0, 0, 1], 1, 1
                yield make((1, 2, 2, 4, 5), dtype), make((4, 1, 5, 3, 1), dtype, 1), None, 1, [6, 1, 0], 1, 2  # taps beyond all slices
            yield x, make((4, 3, 4, 3, 2), seed=1), None, 1, "same", [1, 2, 1], 1, True
            yield x, make((4, 3, 1, 1, 1), seed=1), None, [2, 1, 1], 0, 1, 1
        if rank == 2:
            yield x, weight, None, [2, 1], [0, 1], [1, 2], 1
            yield make((1, 1, 28, 28)), make((6, 1, 5, 5), seed=1), make((6,), seed=2), 1, 2, 1, 1
            yield make((3, 6, 14, 14)), make((16, 6, 5, 5), seed=1), make((16,), seed=2), 1, 0, 1, 1
            yield make((2, 16, 7, 7)), make((32, 16, 1, 1), seed=1), make((32,), seed=2), 1, 0, 1, 1
            for dtype in FLOATS:  # an image of many places is a matrix
                yield make((3, 5, 8, 16), dtype), make((7, 5, 1, 1), dtype, 1), make((7,), dtype, 2), 1, 0, 1, 1
                yield make((2, 5, 23, 24), dtype), make((7, 5, 4, 3), dtype, 1), None, [2, 1], [1, 2], [1, 2], 1
            yield make((2, 9, 12, 3)).permute(0, 3, 1, 2), weight, None, 1, 1, 1, 1
            for stride, padding, dilation in ((1, 2, 1), ([2, 3], [1, 0], [1, 2]), (3, 4, 2)):
                yield make((2, 3, 40, 37)), make((6, 1, 5, 3), seed=1), make((6,), seed=2), stride, padding, dilation, 3
            yield make((2, 3, 4)), make((5, 3, 2)), None, 1, 0, 1, 1
        yield make((0, 3, *square[0])), weight, None, 1, 0, 1, 1
        yield make((3, 2, *square[0])).transpose(0, 1), make((3, 5, *square[1]), seed=1).transpose(0, 1), make((10,), seed=2)[::2], 1, 0, 1, 1
        yield make((1, 1, *square[1])), make((1, 1, *square[1]), seed=1), make((1,), seed=2), 1, 0, 1, 1
        yield x, make((5, 2, *square[1])), None, 1, 0, 1, 1
        yield x, weight, make((4,)), 1, 0, 1, 1
        yield x, weight, None, 0, 0, 1, 1
        yield x, weight, None, 1, -1, 1, 1
        yield x, weight, None, 1, 0, 0, 1
        yield x, weight, None, 1, 0, 1, 2
        yield x, weight, None, 1, 0, 9, 1
        yield x, weight.double(), None, 1, 0, 1, 1
    return cases


def transposed():
    """(x, weight, bias, stride, padding, output_padding, groups, dilation)."""
    for dtype in FLOATS if VERSION >= (2, 0) else FLOATS[:3]:  # PyTorch 1.13 does not take bfloat16
        for batch in ((2,), ()):
            x = make((*batch, 4, 5, 6), dtype)
            for outputs, groups in ((6, 1), (6, 2)):
                weight, bias = make((4, outputs // groups, 3, 2), dtype, 1), make((outputs,), dtype, 2)
                for options in ((1, 0, 0, groups, 1), (2, 1, 1, groups, 1), ([2, 3], [0, 1], [1, 2], groups, 1), (1, 1, 0, groups, 2)):
                    yield (x, weight, bias, *options)
                yield (x, weight, None, 2, 0, 0, groups, 1)
    x, weight = make((2, 4, 5, 6)), make((4, 3, 3, 2), seed=1)
    yield make((4, 2, 5, 6)).transpose(0, 1), make((3, 4, 3, 2), seed=1).transpose(0, 1), None, 2, 0, 0, 1, 1
    yield make((1, 16, 13, 14)), make((16, 8, 3, 3), seed=1), make((8,), seed=2), 2, 1, 1, 1, 1
    yield x, weight, make((4,)), 1, 0, 0, 1, 1
    yield x, make((3, 3, 3, 2)), None, 1, 0, 0, 1, 1
    yield x, weight, None, 1, 0, 1, 1, 1
    yield x, weight, None, 1, -1, 0, 1, 1


def transposed3():
    for dtype in FLOATS if VERSION >= (2, 0) else FLOATS[:3]:
        for batch in ((2,), ()):
            x = make((*batch, 4, 3, 4, 5), dtype)
            for outputs, groups in ((6, 1), (6, 2)):
                weight, bias = make((4, outputs // groups, 3, 2, 2), dtype, 1), make((outputs,), dtype, 2)
                for options in ((1, 0, 0, groups, 1), (2, 1, 1, groups, 1), ([2, 3, 1], [0, 1, 0], [1, 2, 0], groups, 1), (1, 1, 0, groups, 2), ([1, 2, 1], 0, [2, 0, 1], groups, [3, 1, 2])):
                    yield (x, weight, bias, *options)
                yield (x, weight, None, 2, 0, 0, groups, 1)
    x, weight = make((2, 4, 3, 4, 5)), make((4, 3, 3, 2, 2), seed=1)
    yield make((4, 2, 3, 4, 5)).transpose(0, 1), make((3, 4, 3, 2, 2), seed=1).transpose(0, 1), None, 2, 0, 0, 1, 1
    yield x, make((4, 3, 1, 1, 1), seed=1), make((3,), seed=2), 1, 0, 0, 1, 1
    yield x, weight, make((4,)), 1, 0, 0, 1, 1
    yield x, make((3, 3, 3, 2, 2)), None, 1, 0, 0, 1, 1
    yield x, make((4, 3, 3, 2)), None, 1, 0, 0, 1, 1
    yield make((4, 4)), weight, None, 1, 0, 0, 1, 1
    yield x, weight, None, 1, 0, 1, 1, 1
    yield x, weight, None, 1, -1, 0, 1, 1
    yield x, weight, None, 1, 4, 0, 1, 1


def windows(rank, dilations=True, averages=False):
    """(x, kernel, stride, padding, dilation, ceil) of max, (x, kernel, stride, padding, ceil, count pad, divisor) of averages."""
    sizes = {1: (13,), 2: (9, 13), 3: (7, 9, 8)}[rank]
    large = (2, 5, 11, 13, 12) if rank == 3 else (5, 16, 31, 33)[:rank + 2]

    def cases():
        integers = () if rank == 3 else (torch.int64,) if averages else INTS
        for dtype in (*FLOATS, *integers):
            for x in (distinct((2, 3, *sizes), dtype), distinct((3, *sizes), dtype)):
                if dtype in (torch.uint8, torch.int8):
                    x = x.clamp(0, 100)
                for kernel, stride, padding, dilation, ceil in ((2, None, 0, 1, False), (3, 2, 1, 1, False), (3, 2, 1, 1, True), (2, 3, 0, 1, True), (3, 1, 1, 1, False),
                                                                (2, 1, 0, 3, False), (2, 2, 1, 2, True)):
                    if averages:
                        for count in (True, False):
                            yield (x, kernel, stride, padding, ceil, count) if rank == 1 or count else (x, kernel, stride, padding, ceil, count, 5)
                    else:
                        yield x, kernel, stride, padding, dilation, ceil
        x = distinct((2, 3, *sizes))
        if rank == 2:
            yield (x, [2, 3], [1, 2], [1, 0], [1, 2], False) if not averages else (x, [2, 3], [1, 2], [1, 0], False, True)
            yield (x.permute(0, 1, 3, 2), 2, None, 0, 1, False) if not averages else (x.permute(0, 1, 3, 2), 2, None, 0, False, True)
        if rank == 3:
            yield (x, [2, 3, 1], [1, 2, 3], [1, 0, 0], [1, 2, 1], False) if not averages else (x, [2, 3, 4], [1, 2, 3], [1, 0, 2], True, False)
        if not averages:
            spoiled = x.clone()
            spoiled.view(-1)[::7] = NAN
            yield spoiled, 3, 2, 0, 1, False
            yield torch.full((1, 1, *sizes), -INF), 2, None, 0, 1, False
        yield distinct((3, 2, *sizes)).transpose(0, 1), 2, None, 0, *((1, False) if not averages else (False, True))
        yield distinct(large), 3, 2, 1, *((1, False) if not averages else (False, True))
        yield x[:0], 2, None, 0, *((1, False) if not averages else (False, True))
        yield x, 20, None, 0, *((1, False) if not averages else (False, True))
        yield x, 0, None, 0, *((1, False) if not averages else (False, True))
        yield x, 2, None, 2, *((1, False) if not averages else (False, True))
        yield x, 2, 0, 0, *((1, False) if not averages else (False, True))
        yield make((4,)), 2, None, 0, *((1, False) if not averages else (False, True))
    return cases


def adaptive(rank):
    sizes = {1: (13,), 2: (9, 13), 3: (7, 9, 8)}[rank]
    large = (2, 5, 11, 13, 12) if rank == 3 else (5, 16, 31, 33)[:rank + 2]

    def cases():
        for dtype in FLOATS:
            for x in (distinct((2, 3, *sizes), dtype), distinct((3, *sizes), dtype)):
                for size in (1, 3, 5, 13):
                    yield x, size
        if rank == 2:
            yield distinct((2, 3, *sizes)), [4, 2]
            yield distinct((2, 3, *sizes)).transpose(2, 3), [1, 1]
        yield distinct((3, 2, *sizes)).transpose(0, 1), 3
        yield distinct(large), 7
        yield distinct((1, 1, *(1 for _ in sizes))), 1
        yield make((0, 3, *sizes)), 2
        yield make((4,)), 2
        yield make((2, 3, *sizes)), -2
    return cases


def bilinears():
    for dtype in FLOATS:
        for batch in ((5,), (2, 3), ()):
            yield make((*batch, 3), dtype), make((*batch, 4), dtype, 1), make((2, 3, 4), dtype, 2), make((2,), dtype, 3)
            yield make((*batch, 3), dtype), make((*batch, 4), dtype, 1), make((2, 3, 4), dtype, 2), None
    yield make((3, 5)).t(), make((4, 5), seed=1).t(), make((4, 3, 2), seed=2).permute(2, 1, 0), make((2,), seed=3)
    yield make((0, 3)), make((0, 4)), make((2, 3, 4), seed=2), make((2,), seed=3)
    yield make((17, 33)), make((17, 21), seed=1), make((9, 33, 21), seed=2), make((9,), seed=3)
    yield make((5, 3)), make((4, 4)), make((2, 3, 4)), None
    yield make((5, 3)), make((5, 3)), make((2, 3, 4)), None
    yield make((5, 3)), make((5, 4)), make((3, 4)), None
    yield make((5, 3)), make((5, 4)), make((2, 3, 4)), make((3,))
    yield make((5, 3)), make((4,)), make((2, 3, 4)), None


def responses():
    for dtype in FLOATS:
        for shape in ((2, 5, 4), (2, 7, 3, 4), (2, 3, 2, 3, 2)):
            for size in (1, 2, 3, 5):
                yield make(shape, dtype), size
            yield make(shape, dtype), 3, 0.5, 0.5, 2.0
    yield make((3, 4, 5, 6)).permute(0, 3, 1, 2), 3, 0.1
    yield make((0, 3, 4)), 2
    yield make((2, 3)), 2


def lp_windows(rank):
    def cases():
        for dtype in FLOATS:
            for shape in ((2, 3, *(9, 13, 8)[:rank]), (3, *(9, 13, 8)[:rank])):
                x = make(shape, dtype, low=0.5)
                for p, kernel, stride, ceil in ((2.0, 2, None, False), (3.0, 3, 2, True), (1.5, 2, 1, False), (-1.0, 2, 2, False)):
                    yield x, p, kernel, stride, ceil
        yield make((2, 3, *(9, 13, 8)[:rank])), 2.0, 3, 2
        yield make((2, 3, *(9, 13, 8)[:rank])), 2.0, 20
        yield make((4,)), 2.0, 2
    return cases


def bags():
    """(input, weight, offsets, mode, per sample weights, include last offset, padding index)."""
    numbers, places = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 2, 2, 7])
    for dtype in WIDE:
        weight = distinct((10, 3), dtype)
        for mode in ("sum", "mean", "max"):
            yield numbers, weight, places, mode
            yield numbers.int(), weight, places.int(), mode
            yield numbers.reshape(2, 4), weight, None, mode
            yield numbers, weight, torch.tensor([0, 3, 8]), mode, None, True
            for padding in (2, -6):
                yield numbers, weight, places, mode, None, False, padding
            yield torch.tensor([2, 2, 1]), weight, torch.tensor([0, 2]), mode, None, False, 2
        yield numbers, weight, places, "sum", make((8,), dtype, 1)
        yield numbers.reshape(2, 4), weight, None, "sum", make((2, 4), dtype, 1), False, 4
        if VERSION >= (2, 0):  # PyTorch 1.13 divides by the frequencies of other rows
            yield numbers, weight, places, "sum", make((8,), dtype, 1), False, 2, True
            yield numbers, weight, places, "mean", None, False, 4, True
    weight = distinct((10, 3))
    yield numbers[:0], weight, torch.tensor([0, 0]), "mean"
    yield numbers, weight, torch.tensor([1, 2]), "mean"
    yield numbers, weight, torch.tensor([0, 9]), "mean"
    yield numbers, weight, None, "sum"
    yield numbers.reshape(2, 4), weight, torch.tensor([0, 2]), "sum"
    yield numbers + 3, weight, places, "sum"
    yield numbers, weight, places, "mean", make((8,), seed=1)
    yield numbers, weight, places, "sum", make((7,), seed=1)
    yield numbers, weight, places, "max", None, False, None, True
    yield numbers, weight, places, "least"


def embedding_bag(input, weight, offsets=None, mode="mean", samples=None, last=False, padding=None, scale=False):
    return F.embedding_bag(input, weight, offsets, mode=mode, per_sample_weights=samples, include_last_offset=last, padding_idx=padding, scale_grad_by_freq=scale)


def renormed_bags():
    numbers, places = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 2, 2, 7])
    for dtype in WIDE:
        for mode in ("sum", "mean", "max"):
            for norm, order in ((1.0, 2.0), (2.5, 1.0)):
                yield numbers, make((10, 3), dtype), places, mode, norm, order
            yield numbers.reshape(2, 4), make((10, 3), dtype), None, mode, 1.0, 3.0
    yield numbers + 3, make((10, 3)), places, "sum", 1.0


def renormed_bag(input, weight, offsets, mode, norm, order=2.0):
    table = weight.clone()  # which is changed
    return [F.embedding_bag(input, table, offsets, norm, order, mode=mode), table.detach()]


def maxima(rank):
    """(x, indices, kernel, stride, padding, output size) of the way back from poolings."""
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    sizes = ((13,), (9, 13), (7, 9, 8))[rank - 1]

    def cases():
        for dtype in FLOATS if VERSION >= (2, 0) else WIDE:
            for x in (distinct((2, 3, *sizes), dtype), distinct((3, *sizes), dtype)):
                for kernel, stride, padding in ((2, None, 0), (3, 2, 1), (3, 3, 0)):
                    y, places = pool(x.float(), kernel, stride, padding, return_indices=True)
                    yield y.to(dtype), places, kernel, stride, padding, list(x.shape)[-rank:]
                    yield y.to(dtype), places, kernel, stride, padding, list(x.shape) if x.dim() == rank + 2 else list(x.shape)[-rank:]
        y, places = pool(distinct((2, 3, *sizes)), 2, return_indices=True)
        yield y, places.clamp(max=2 ** rank * y[0, 0].numel() - 1) % (2 ** rank * y[0, 0].numel()), 2
        yield y.transpose(0, 1), places.transpose(0, 1) % 4, 2
        yield y[:0], places[:0], 2
        yield y, places % 4, 2, None, 0, [size + 3 for size in sizes]
        yield y, places % 4, 2, None, 0, [1] * (rank + 1)
        yield y, places + 10000, 2
        yield y, -places - 1, 2
        yield y, places.int(), 2
        yield y, places[:1], 2
        yield make((4,)), torch.zeros(4, dtype=torch.int64), 2
    return cases


def max_pool(function, indices=False):
    def apply(x, kernel, stride=None, padding=0, dilation=1, ceil=False):
        result = function(x, kernel, stride, padding, dilation, ceil_mode=ceil, return_indices=indices)
        return result
    return apply


def average(function):
    def apply(x, kernel, stride=None, padding=0, ceil=False, count=True, divisor=None):
        return function(x, kernel, stride, padding, ceil, count, divisor)
    return apply


def batches():
    for dtype in FLOATS:
        for shape in ((4, 3), (2, 3, 5), (2, 3, 4, 5)):
            x = make(shape, dtype)
            mean, var = make((3,), dtype, 1), make((3,), dtype, 2, 0.5, 2.0)
            weight, bias = make((3,), dtype, 3), make((3,), dtype, 4)
            yield x, mean, var, weight, bias, False
            yield x, mean, var, weight, bias, True, 0.3, 1e-3
            yield x, mean, var, None, None, False
            yield x, None, None, weight, bias, True
            yield x, None, None, None, None, True
    x = make((2, 3, 4, 5))
    yield make((2, 4, 5, 3)).permute(0, 3, 1, 2), make((3,), seed=1), make((3,), seed=2, low=0.5, high=2.0), make((3,), seed=3), make((3,), seed=4), True
    yield make((64, 17, 9, 9)), None, None, make((17,), seed=3), make((17,), seed=4), True
    yield x, None, None, None, None, False
    yield make((2, 6)).t()[:, :2], None, None, None, None, True
    yield make((2, 3, 2)) * 0 + 7, None, None, make((3,)), None, True, 0.1, 1.0
    yield make((1, 3)), None, None, None, None, True
    yield x, make((4,)), make((4,)), None, None, False
    yield x, None, None, make((2,)), None, True
    yield make((3,)), None, None, None, None, True


def batch_norm(x, mean, var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    mean, var = None if mean is None else mean.clone(), None if var is None else var.clone()
    y = F.batch_norm(x, mean, var, weight, bias, training, momentum, eps)
    return [y] + [t.detach() for t in (mean, var) if t is not None]


def layers():
    for dtype in FLOATS:
        for shape, normal in (((4, 5), [5]), ((2, 3, 4), [3, 4]), ((2, 3, 4), [4]), ((3,), [3]), ((0, 5), [5]), ((2, 70), [70])):
            x, weight, bias = make(shape, dtype), make(tuple(normal), dtype, 1), make(tuple(normal), dtype, 2)
            yield x, normal, weight, bias
            yield x, normal, None, None, 1e-3
            yield x, normal, weight
    yield make((5, 4)).t(), [5], make((5,)), make((5,), seed=1)
    yield make((70, 300)), [300], make((300,), seed=1), make((300,), seed=2)
    yield make((3, 1)), [1], make((1,)), None, 1.0
    yield make((3, 4)) * 0 + 7, [4], make((4,)), None, 1.0
    yield torch.tensor([[1.0, NAN, 2.0], [INF, 1.0, 2.0], [1.0, 2.0, 3.0]]), [3]
    yield make(()), [1]
    yield make((4, 5)), [4]
    yield make((4, 5)), [5], make((4,))
    yield make((4, 5)), []


def groups():
    for dtype in FLOATS:
        for shape, count in (((2, 6, 3, 4), 3), ((2, 6, 5), 2), ((3, 6), 1), ((3, 6, 2), 6)):
            yield make(shape, dtype), count, make((6,), dtype, 1), make((6,), dtype, 2)
            yield make(shape, dtype), count, None, None, 1e-3
    yield make((6, 2, 3)).transpose(0, 1), 3, make((12,), seed=1)[::2], make((6,), seed=2)
    yield make((0, 6, 3)), 3
    yield make((0, 6, 3)), 3, make((6,), seed=1), make((6,), seed=2)
    yield make((3, 16, 9, 9)), 4, make((16,), seed=1), make((16,), seed=2)
    yield make((2, 6, 24, 25)), 2, make((6,), seed=1), make((6,), seed=2)
    yield make((2, 6, 3)), 4
    yield make((2, 6, 3)), 0
    yield make((2, 6, 3)), 2, make((5,))


def root_mean_squares():
    for dtype in FLOATS:
        for shape, normal in (((4, 5), [5]), ((2, 3, 4), [3, 4]), ((2, 70), [70])):
            yield make(shape, dtype), normal, make(tuple(normal), dtype, 1)
            yield make(shape, dtype), normal, None, 1e-3
    yield make((5, 4)).t(), [5], make((5,), seed=1)
    yield make((0, 5)), [5], make((5,), seed=1)
    yield make((70, 300)), [300], make((300,), seed=1)
    yield make((4, 5)), [4]


def rms_norm(x, normal, weight=None, eps=None):
    if list(x.shape[len(x.shape) - len(normal):]) != list(normal):
        raise RuntimeError("normalized_shape")
    dims = tuple(range(-len(normal), 0))
    if eps is None:
        eps = torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32).eps
    y = x * torch.rsqrt(x.square().mean(dims, keepdim=True) + eps)
    return y if weight is None else y * weight


SUM = {"scale": "tensor", "zero_sign": False, "tolerance": 4}
ROWS = [
    Row("matmul", torch.matmul, products(), **SUM),
    Row("mm", torch.mm, products(), **SUM),
    Row("bmm", torch.bmm, products(), **SUM),
    Row("mv", torch.mv, products(), **SUM),
    Row("dot", torch.dot, products(lambda a, b: a <= 2 and b <= 2), **SUM),
    Row("outer", torch.outer, products(lambda a, b: a <= 2 and b <= 2), **SUM),
    Row("addmv", lambda c, a, b, beta=1, alpha=1: torch.addmv(c, a, b, beta=beta, alpha=alpha), vector_adds((2, 3), (3,), ((2,), (1,), ())), **SUM),
    Row("addr", lambda c, a, b, beta=1, alpha=1: torch.addr(c, a, b, beta=beta, alpha=alpha), mixed_adds, **SUM),
    Row("chain_matmul", lambda matrices: torch.chain_matmul(*matrices), chains, **SUM),
    Row("inner", torch.inner, inners, **SUM),
    Row("addmm", lambda c, a, b, beta=1, alpha=1: torch.addmm(c, a, b, beta=beta, alpha=alpha), adds(False), **SUM),
    Row("baddbmm", lambda c, a, b, beta=1, alpha=1: torch.baddbmm(c, a, b, beta=beta, alpha=alpha), adds(True), **SUM),
    Row("linear", F.linear, linears, **SUM),
    Row("linear_relu", lambda *given: torch.relu(F.linear(*given)), linears, **SUM),
    Row("linear_gelu_linear", lambda x, v, b, w, c: F.linear(F.gelu(F.linear(x, v, b), approximate="tanh"), w, c), feed_forwards, **SUM),
    Row("einsum", lambda equation, tensors: torch.einsum(equation, *tensors), sums_of_products, **SUM),
    Row("conv2d", lambda x, w, b, s, p, d, g, word=False: F.conv2d(x, w, b, s, p, d, g), convolutions(2), **SUM),
    Row("conv2d_relu", lambda x, w, b, s, p, d, g, word=False: torch.relu(F.conv2d(x, w, b, s, p, d, g)), convolutions(2), **SUM),
    Row("conv1d", lambda x, w, b, s, p, d, g, word=False: F.conv1d(x, w, b, s, p, d, g), convolutions(1), **SUM),
    Row("conv3d", lambda x, w, b, s, p, d, g, word=False: F.conv3d(x, w, b, s, p, d, g), convolutions(3), **SUM),
    Row("conv_transpose2d", F.conv_transpose2d, transposed, **SUM),
    Row("conv_transpose3d", F.conv_transpose3d, transposed3, **SUM),
    Row("max_pool2d", max_pool(F.max_pool2d), windows(2)),
    Row("max_pool2d_with_indices", max_pool(F.max_pool2d, True), windows(2)),
    Row("avg_pool2d", average(F.avg_pool2d), windows(2, averages=True), **SUM),
    Row("adaptive_avg_pool2d", F.adaptive_avg_pool2d, adaptive(2), **SUM),
    Row("adaptive_max_pool2d", F.adaptive_max_pool2d, adaptive(2)),
    Row("adaptive_max_pool2d_with_indices", lambda x, s: F.adaptive_max_pool2d(x, s, return_indices=True), adaptive(2)),
    Row("max_pool3d", max_pool(F.max_pool3d), windows(3)),
    Row("max_pool3d_with_indices", max_pool(F.max_pool3d, True), windows(3)),
    Row("avg_pool3d", average(F.avg_pool3d), windows(3, averages=True), **SUM),
    Row("adaptive_avg_pool3d", F.adaptive_avg_pool3d, adaptive(3), **SUM),
    Row("adaptive_max_pool3d", F.adaptive_max_pool3d, adaptive(3)),
    Row("adaptive_max_pool3d_with_indices", lambda x, s: F.adaptive_max_pool3d(x, s, return_indices=True), adaptive(3)),
    Row("bilinear", F.bilinear, bilinears, **SUM),
    Row("local_response_norm", F.local_response_norm, responses, **SUM),
    Row("lp_pool1d", F.lp_pool1d, lp_windows(1), special_grad=False, **SUM),
    Row("lp_pool2d", F.lp_pool2d, lp_windows(2), special_grad=False, **SUM),
    Row("lp_pool3d", getattr(F, "lp_pool3d", None), lp_windows(3), since=(2, 3), reason="it has no lp_pool3d", special_grad=False, **SUM),
    Row("embedding_bag", embedding_bag, bags, **SUM),
    Row("embedding_bag_renormed", renormed_bag, renormed_bags, **SUM),
    Row("max_unpool1d", F.max_unpool1d, maxima(1)),
    Row("max_unpool2d", F.max_unpool2d, maxima(2)),
    Row("max_unpool3d", F.max_unpool3d, maxima(3)),
    Row("max_pool1d", max_pool(F.max_pool1d), windows(1)),
    Row("max_pool1d_with_indices", max_pool(F.max_pool1d, True), windows(1)),
    Row("avg_pool1d", lambda x, k, s=None, p=0, c=False, n=True: F.avg_pool1d(x, k, s, p, c, n), windows(1, averages=True), **SUM),
    Row("adaptive_avg_pool1d", F.adaptive_avg_pool1d, adaptive(1), **SUM),
    Row("adaptive_max_pool1d", F.adaptive_max_pool1d, adaptive(1)),
    Row("adaptive_max_pool1d_with_indices", lambda x, s: F.adaptive_max_pool1d(x, s, return_indices=True), adaptive(1)),
    Row("batch_norm", batch_norm, batches, no_grad=(1, 2), **SUM),
    Row("layer_norm", F.layer_norm, layers, **SUM),
    Row("group_norm", F.group_norm, groups, **SUM),
    Row("rms_norm", rms_norm, root_mean_squares, **SUM),
]
