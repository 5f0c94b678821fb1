# Rows of tern/ops/shape.h and copy.h.

import torch

from .driver import VERSION, Row
from .inputs import ALL, WIDE, layouts, make, short_rows

BASES = ((), (1,), (0,), (6,), (2, 3), (2, 3, 4), (2, 0, 3), (1, 3, 1, 2))


def each(*arguments, dtypes=(torch.float32,), shapes=BASES):
    """All combinations of inputs and arguments; where they do not fit both sides must raise."""
    def cases():
        for dtype in dtypes:
            for shape in shapes:
                for more in arguments:
                    yield (make(shape, dtype), *more)
        for dtype in ALL:
            for x in layouts(dtype)[:6 if dtype in WIDE else 1] + short_rows(dtype):
                for more in arguments:
                    yield (x, *more)
    return cases


def pairs():
    for a in BASES + ((3, 2), (24,), (4, 6)):
        for b in BASES + ((3, 2), (24,), (4, 6)):
            yield make(a), make(b, torch.float64, 1)
    for dtype in ALL:
        for x in layouts(dtype)[:2]:
            for shape in ((15,), (5, 3), (2, 3, 5), (4,)):
                yield x, make(shape)


def lists(*arguments):
    """Lists of tensors that fit, of two dtypes, of one, empty, and that do not fit."""
    def cases():
        groups = [[make((2, 3)), make((2, 3), seed=1)], [make((2, 3)), make((4, 3), seed=1)], [make((2, 3)), make((2, 1), seed=1), make((2, 2))],
                  [make((3,))], [make(()), make((), seed=1)], [make((0,)), make((2, 3))], [make((2, 3), torch.float64), make((2, 3), torch.int32)],
                  [make((2, 3), torch.float16), make((2, 3), torch.bfloat16)], [make((2, 3, 4)), make((2, 3, 4), seed=2).permute(0, 1, 2)],
                  [make((3, 2)).t(), make((2, 3), seed=3)], [make((3,)), make((3,), torch.bool)], [make((2, 0)), make((2, 3))], [make((3, 1)).expand(3, 3)] * 2]
        groups += [[make((2, 3), dtype), make((2, 3), dtype, 1)] for dtype in ALL]
        groups += [[make((5, 33), seed=i) for i in range(40)]]
        for group in groups:
            for more in arguments:
                yield (group, *more)
        for more in arguments:
            yield ([], *more)
    return cases


def tuples(function):
    return lambda *args: list(function(*args))


def slicing(x, dim, start=None, end=None, step=1):
    if step <= 0:
        raise ValueError("step must be greater than zero")
    dim = range(x.dim())[dim]
    return x[(slice(None),) * dim + (slice(start, end, step),)]


def squeeze_list(x, dims=None):
    if dims is None:
        return x.squeeze()
    dims = [range(max(x.dim(), 1))[d] for d in dims]
    if len(set(dims)) != len(dims):
        raise RuntimeError("dim appears multiple times in the list of dims")
    for d in sorted(dims, reverse=True):
        x = x.squeeze(d)
    return x


def split_sizes(x, sizes, dim=0):
    return list(torch.split(x, sizes, dim))


def conversions():
    for a in ALL:
        for b in ALL:
            yield make((3, 5), a, 0, 0.0, 3.0), b
            yield make((5, 3), a, 0, 0.0, 3.0).t(), b
            yield make((), a, 0, 0.0, 3.0), b
            yield make((0,), a), b
    for dtype in WIDE:
        values = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-45, 65519.0, 65520.0, 1e38, 3.39e38, 0.1], dtype=dtype)
        for target in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool):
            yield values, target
    yield make((70001,)), torch.float64


def strided_cases():
    for shape, strides, offset in (((3, 2), (1, 3), None), ((2, 2), (2, 1), 1), ((2, 2), (1, 1), 0), ((), (), 3), ((0, 3), (3, 1), 0), ((4, 4), (4, 1), 0),
                                   ((3,), (-1,), 2), ((2,), (1, 1), 0), ((2, 3), (0, 1), 2)):
        for dtype in ALL:
            yield make((2, 5), dtype), list(shape), list(strides), *(() if offset is None else (offset,))
        yield make((5, 4)).t()[1:], list(shape), list(strides), *(() if offset is None else (offset,))
    yield make(()), [], []
    yield make((1,)), [2], [0]
    yield make((0,)), [0], [1]


def small(*arguments, least=0):
    """Few inputs of at least so many dimensions with each of the arguments."""
    inputs = (make(()), make((4,)), make((4, 6)), make((6, 4), torch.float16).t(), make((2, 6, 4), torch.int64))
    return lambda: ((x, *more) for x in inputs for more in arguments if x.dim() >= least)


def at_least(function):
    """The function, of a tensor or a list, and cases."""
    def cases():
        yield from small(())()
        yield ([make(()), make((3,), torch.int64), make((2, 3)), make((2, 0, 3))],)
    return lambda x: list(function(x)) if isinstance(x, list) else function(x), cases


def splits(function, least):
    """(x, indices) or (x, None, sections)."""
    cases = small((None, 2), (None, 3), (None, 0), (None, -2), ([1, 3],), ([],), ([-1, 9],), least=least)
    return lambda x, at, sections=1: list(function(x, sections if at is None else at)), cases


def part_cases(shape, *arguments):
    """(x, src) + arguments for a part of that shape of [3, 5]; then a src that does not fit."""
    for x, src in ((torch.float32, torch.float32), (torch.float16, torch.float16), (torch.int64, torch.float32), (torch.float32, torch.int64), (torch.bool, torch.bool)):
        yield make((3, 5), x), make(shape, src, 1), *arguments
    yield make((5, 3)).t(), make(shape[::-1], torch.float32, 1).permute(*range(len(shape))[::-1]), *arguments
    yield make((3, 5)), make((1,) * len(shape)), *arguments


def repeat_interleave(x, repeats, dim=None):
    return torch.repeat_interleave(x, repeats, dim=dim)


TWO = [(a, b) for a in (0, 1, -1, 2, -4) for b in (0, 1, -1)]
ROWS = [
    Row("view", lambda x, s: x.view(s), each(([-1],), ([6],), ([2, 3],), ([3, -1],), ([1, 6],), ([2, -1, 2],), ([-1, -1],), ([0, -1],), ([],), ([15],), ([3, 5, 1],), ([5, 3],))),
    Row("reshape", lambda x, s: x.reshape(s), each(([-1],), ([6],), ([2, 3],), ([3, -1],), ([1, 6],), ([-1, -1],), ([0, -1],), ([],), ([15],), ([5, 3],), ([4, 6],))),
    Row("view_as", lambda x, o: x.view_as(o), pairs, no_grad=(1,)),
    Row("reshape_as", lambda x, o: x.reshape_as(o), pairs, no_grad=(1,)),
    Row("flatten", torch.flatten, each((), (1,), (0, 1), (-2, -1), (1, 0), (0, 5))),
    Row("unflatten", lambda x, dim, sizes: torch.nn.Unflatten(dim, tuple(sizes))(x) if sizes else x.unflatten(dim, ()), each((0, [1, -1]), (-1, [3, 1]), (1, [3, -1]), (0, [2, 2]), (3, [1]), shapes=BASES[3:])),
    Row("squeeze", squeeze_list, each((), ([0],), ([-1],), ([0, 2],), ([1, -1],))),
    Row("squeeze_dim", lambda x, d: x.squeeze(d), each((0,), (-1,), (2,), (-3,))),
    Row("unsqueeze", torch.unsqueeze, each((0,), (1,), (-1,), (-2,), (3,), (-6,))),
    Row("permute", lambda x, d: x.permute(d), each(([],), ([0],), ([1, 0],), ([2, 0, 1],), ([-1, 0, 1],), ([0, 0],), ([3, 2, 1, 0],))),
    Row("transpose", torch.transpose, each(*TWO)),
    Row("swapaxes", torch.swapaxes, each(*TWO)),
    Row("t", torch.t, each(())),
    Row("mT", lambda x: x.mT, each((), shapes=BASES[1:])),
    Row("movedim", torch.movedim, each(([0], [-1]), ([0, 1], [1, 0]), ([2], [0]), ([0, 0], [0, 1]), ([0, 1], [0]), ([-1], [0]))),
    Row("expand", lambda x, s: x.expand(s), each(([2, 3],), ([4, 2, 3],), ([-1, 3],), ([5, -1, -1],), ([0],), ([3],), ([2, 3, 4],), ([],), ([-2],), ([-1, 3, 5, 2],))),
    Row("expand_as", lambda x, o: x.expand_as(o), pairs, no_grad=(1,)),
    Row("broadcast_to", lambda x, s: torch.broadcast_to(x, s), each(([2, 3],), ([4, 2, 3],), ([-1, 3],), ([3],), ([],))),
    Row("broadcast_tensors", lambda ts: list(torch.broadcast_tensors(*ts)), lists(())),
    Row("meshgrid", lambda ts, indexing="ij": list(torch.meshgrid(*ts, indexing=indexing)), lambda: (c for c in lists((), ("ij",), ("xy",), ("ab",))() if c[0] or VERSION >= (2, 0))),
    Row("narrow", torch.narrow, each((0, 0, 1), (0, 1, 1), (-1, -1, 1), (1, 0, 0), (1, 1, 2), (0, 0, 9), (0, 0, -1), (5, 0, 1))),
    Row("slice", slicing, each((0,), (0, 1), (0, None, -1), (-1, 0, None, 2), (1, -2, 99), (0, 5, 2), (0, 0, 2, 0), (3, 0, 1))),
    Row("select", torch.select, each((0, 0), (0, -1), (-1, 1), (1, 2), (0, 9), (0, -9), (4, 0))),
    Row("unbind", tuples(torch.unbind), each((0,), (-1,), (1,), (4,))),
    Row("chunk", tuples(torch.chunk), each((1, 0), (2, 0), (4, -1), (3, 1), (0, 0), (7, 0), (2, 4))),
    Row("split", tuples(torch.split), each((1, 0), (2, 0), (4, -1), (2, 1), (0, 0), (-1, 0), (7, 0))),
    Row("split_sizes", split_sizes, each(([1, 1], 0), ([2, 1], 1), ([3, 3], 0), ([0, 6], 0), ([3, 2], -1), ([-1, 4], 0), ([], 0))),
    Row("diagonal", torch.diagonal, each((0,), (1,), (-1, 0, 1), (0, -1, -2), (5,), (0, 0, 0), (0, 0, 2))),
    Row("unfold", lambda x, d, size, step: x.unfold(d, size, step), each((0, 2, 1), (-1, 2, 2), (0, 0, 1), (0, 9, 1), (0, 1, 0), (1, 3, 1))),
    Row("as_strided", torch.as_strided, strided_cases),
    Row("atleast_1d", *at_least(torch.atleast_1d)),
    Row("atleast_2d", *at_least(torch.atleast_2d)),
    Row("atleast_3d", *at_least(torch.atleast_3d)),
    Row("hsplit", *splits(torch.hsplit, 0)),
    Row("vsplit", *splits(torch.vsplit, 1)),
    Row("dsplit", *splits(torch.dsplit, 2)),
    Row("select_scatter", torch.select_scatter, lambda: (*part_cases((3,), 1, -2), *part_cases((5,), 0, 2), (make((3, 5)), make((3,)), 1, 5), (make(()), make(()), 0, 0))),
    Row("slice_scatter", lambda x, src, dim=0, start=None, end=None, step=1: torch.slice_scatter(x, src, dim, start, end, step),
        lambda: (*part_cases((2, 5), 0, 1, 9), *part_cases((3, 3), -1, None, None, 2), *part_cases((0, 5), 0, 2, 1), (make((3, 5)), make((3, 5)), 0, 0, 3, 0)),
        since=(2, 15), reason="the part was another one"),
    Row("diagonal_scatter", torch.diagonal_scatter, lambda: (*part_cases((3,)), *part_cases((2,), -1), *part_cases((1,), 2, -1, 0), (make((3, 5)), make((3,)), 0, 1, 1))),
    Row("cat", torch.cat, lists((), (1,), (-1,), (3,)), widen=False),
    Row("stack", torch.stack, lists((), (1,), (-1,), (3,)), widen=False),
    Row("hstack", torch.hstack, lists(()), widen=False),
    Row("vstack", torch.vstack, lists(()), widen=False),
    Row("repeat", lambda x, r: x.repeat(r), each(([2],), ([2, 3],), ([1, 2, 3],), ([0, 2],), ([],), ([1, 1, 1, 2],), ([-1],))),
    Row("tile", lambda x, r: torch.tile(x, r), each(([2],), ([2, 3],), ([1, 2, 3],), ([0],), ([],), ([-1],))),
    Row("repeat_interleave", repeat_interleave, each((2,), (0,), (3, 0), (2, -1), (2, 1), (1, 5))),
    Row("roll", lambda x, s, d=None: torch.roll(x, s, d), each(([1],), ([1], [0]), ([-2], [-1]), ([1, 2], [0, 1]), ([7], [0]), ([1, 2], [0]), ([0], [0]))),
    Row("flip", lambda x, d: torch.flip(x, d), each(([0],), ([-1],), ([0, 1],), ([],), ([0, 0],), ([3],))),
    Row("to", lambda x, dtype: x.to(dtype), conversions, widen=False),
    Row("contiguous", lambda x: x.contiguous(), each(())),
    Row("clone", torch.clone, each(())),
    Row("item", lambda x: x.item(), lambda: ((make(s, d),) for d in ALL for s in ((), (1,), (1, 1), (2,), (0,))), grad=False),
]
