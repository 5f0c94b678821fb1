# Rows of tern/ops/creation.h and random.h. Of random tensors shape and dtype are compared, and the values where they are
# certain; the numbers themselves have tests of their own (tests/ops/random_test.cpp).

import torch
from torch.nn import functional as F

from .driver import Row
from .inputs import ALL, FLOATS, INTS, NUMBERS, WIDE, integers, layouts, make

SIZES = ([], [0], [3], [2, 3], [2, 0, 3], [-1], [2, -3])


def shapes(*more, dtypes=ALL):
    def cases():
        for size in SIZES:
            for extra in more or ((),):
                yield (size, *extra)
                for dtype in dtypes:
                    yield (size, *extra, dtype)
    return cases


def likes(*more, dtypes=ALL):
    def cases():
        for source in dtypes:
            for x in (make((2, 3), source), make((), source), make((0,), source), layouts(source)[0]):
                for extra in more or ((),):
                    yield (x, *extra)
                    for dtype in dtypes:
                        yield (x, *extra, dtype)
    return cases


def full_cases():
    for size in SIZES[:5]:
        for value in (0, 3, 2.5, True, False):
            yield size, value
            for dtype in ALL:
                if dtype.is_floating_point or not isinstance(value, float):
                    yield size, value, dtype


def ranges():
    for start, end, step in ((0, 5, 1), (1, 10, 3), (5, 0, -2), (0, 0, 1), (0.0, 1.0, 0.3), (1.0, 2.0, 0.1), (0, 2.5, 1), (-3, 3, 1), (0, 100000, 7), (5, 0, 1),
                             (0, 5, 0), (0, 5, -1), (0.5, 4.5, 1)):
        yield start, end, step
        for dtype in FLOATS + INTS:
            if max(abs(start), abs(end)) < 100 and (dtype != torch.uint8 or min(start, end) >= 0):
                if dtype.is_floating_point or all(isinstance(v, int) for v in (start, end, step)):
                    yield start, end, step, dtype


def spaces(*more):
    def cases():
        for start, end, steps in ((0, 1, 5), (-2.5, 7.0, 11), (3.0, 3.0, 1), (1.0, 2.0, 0), (5.0, -5.0, 8), (0.0, 1.0, -1), (0.0, 1.0, 1)):
            for extra in more or ((),):
                yield (start, end, steps, *extra)
                for dtype in WIDE:
                    yield (start, end, steps, *(extra or (() if not more else (None,))), dtype)
    return cases


def windows(*more):
    """(length, periodic) + more + (dtype,)."""
    for length in (0, 1, 2, 5, 64, -1):
        for periodic in (True, False):
            yield length, periodic, *more
            yield length, periodic, *more, torch.float64
    yield 5, True, *more, torch.int64


def triangles():
    for dtype in ALL:
        for x in (make((3, 4), dtype), make((2, 4, 3), dtype), make((4, 3), dtype).t(), make((0, 3), dtype), make((1, 1), dtype)):
            for diagonal in (0, 1, -1, 5, -5):
                yield x, diagonal
    yield (make((70, 65)),)
    yield (make((3,)),)


def one_hots():
    for shape in ((4,), (2, 3), ()):
        yield (integers(shape, 0, 5),)
        yield integers(shape, 0, 5), 7
    yield torch.tensor([1, 5]), 3
    yield torch.tensor([-1]), 3
    yield torch.tensor([1.0]), 3
    yield torch.zeros(0, dtype=torch.int64), 3


def tensor_cases():
    for dtype in ALL:
        yield torch.tensor([0.0, 1.0, 2.0, 1.0], dtype=torch.float64), dtype
    yield torch.tensor([], dtype=torch.float64), torch.float32


def dropouts():
    for dtype in FLOATS:
        x = make((3, 5), dtype)
        yield x, 0.0, True
        yield x, 1.0, True
        yield x, 0.5, False
        yield make((0,), dtype), 0.5, True
    yield make((3,)), 1.5, True
    yield make((3,)), -0.1, True


def channel_dropouts(*shapes, refuses_rows=True):
    def cases():
        for dtype in FLOATS:
            for shape in shapes:
                yield make(shape, dtype), 0.0, True
                yield make(shape, dtype), 1.0, True
                yield make(shape, dtype), 0.5, False
            yield make((0, *shapes[0][1:]), dtype), 0.5, True
        yield make(shapes[0]), 1.5, True
        yield make(shapes[0]), -0.1, True
        if refuses_rows:
            yield make((3,)), 0.5, True
    return cases


def weights():
    w = make((4, 6), low=0.1, high=2.0)
    for x in (w, w[0], w.double()):
        yield x, 3
        yield x, 9, True
    yield w, 7
    yield -w, 2
    yield torch.zeros(3), 1
    yield w.long(), 1
    yield w, 0


def changes(name):
    """A random change in place of each dtype; torch draws other numbers."""
    return lambda x, *more: getattr(x.clone(), name)(*more)


def floats_only(*more):
    return lambda: ((make(s, d), *extra) for d in ALL for s in ((3, 5), (), (0,)) for extra in more if d.is_floating_point or s == (3, 5))


def with_one_integer():
    yield from shapes(dtypes=FLOATS)()
    yield [3], torch.int64


RANDOM = {"values": False, "grad": False}
CURVE = {"grad": False, "scale": "tensor", "zero_sign": False}
ROWS = [
    Row("empty", lambda s, dtype=None: torch.empty(s, dtype=dtype), shapes(), **RANDOM),
    Row("zeros", lambda s, dtype=None: torch.zeros(s, dtype=dtype), shapes()),
    Row("ones", lambda s, dtype=None: torch.ones(s, dtype=dtype), shapes()),
    Row("full", lambda s, v, dtype=None: torch.full(s, v, dtype=dtype), full_cases),
    Row("empty_like", lambda x, dtype=None: torch.empty_like(x, dtype=dtype), likes(), **RANDOM),
    Row("zeros_like", lambda x, dtype=None: torch.zeros_like(x, dtype=dtype), likes(), widen=False),
    Row("ones_like", lambda x, dtype=None: torch.ones_like(x, dtype=dtype), likes(), widen=False),
    Row("full_like", lambda x, v, dtype=None: torch.full_like(x, v, dtype=dtype), likes((1,)), widen=False),
    Row("tensor", lambda x, dtype: torch.tensor(x.tolist(), dtype=dtype), tensor_cases, grad=False),
    Row("from_blob", torch.clone, lambda: ((make((2, 3), d),) for d in ALL), grad=False),
    Row("arange", lambda a, b, s=1, dtype=None: torch.arange(a, b, s, dtype=dtype), ranges),
    Row("linspace", lambda a, b, n, dtype=None: torch.linspace(a, b, n, dtype=dtype), spaces(), absolute=1),
    Row("logspace", lambda a, b, n, base=10.0, dtype=None: torch.logspace(a, b, n, 10.0 if base is None else base, dtype=dtype), spaces((), (2.0,)), absolute=1, tolerance=4),
    Row("hann_window", lambda n, p, dtype=None: torch.hann_window(n, p, dtype=dtype), windows, **CURVE),
    Row("hamming_window", lambda n, p, a=0.54, b=0.46, dtype=None: torch.hamming_window(n, p, a, b, dtype=dtype), lambda: windows(0.3, 0.6), **CURVE),
    Row("blackman_window", lambda n, p, dtype=None: torch.blackman_window(n, p, dtype=dtype), windows, **CURVE),
    Row("bartlett_window", lambda n, p, dtype=None: torch.bartlett_window(n, p, dtype=dtype), windows, **CURVE),
    Row("eye", lambda n, m=None, dtype=None: torch.eye(n, n if m is None else m, dtype=dtype),
        lambda: ((n, m, d) for n in (0, 1, 3, -1) for m in (None, 0, 2, 5) for d in (None, *ALL))),
    Row("tril", torch.tril, triangles),
    Row("triu", torch.triu, triangles),
    Row("one_hot", F.one_hot, one_hots),
    Row("rand", lambda s, dtype=None: torch.rand(s, dtype=dtype), with_one_integer, **RANDOM),
    Row("randn", lambda s, dtype=None: torch.randn(s, dtype=dtype), with_one_integer, **RANDOM),
    Row("randint", lambda a, b, s, dtype=None: torch.randint(a, b, s, dtype=dtype),
        lambda: ((a, b, *c) for a, b in ((0, 5), (2, 3), (3, 3), (5, 1)) for c in shapes(dtypes=NUMBERS)()), **RANDOM),
    Row("randperm", lambda n, dtype=None: torch.randperm(n, dtype=dtype), lambda: ((n, d) for n in (0, 1, 10, -1) for d in (None, torch.int32, torch.float32)), **RANDOM),
    Row("normal", lambda m, s, size, dtype=None: torch.normal(m, s, size, dtype=dtype),
        lambda: ((m, s, *c) for m, s in ((0.0, 1.0), (2.0, 0.0), (0.0, -1.0)) for c in shapes(dtypes=FLOATS)()), **RANDOM),
    Row("normal_each", torch.normal, lambda: ((make(m, d), make(s, d, 1, 0.1, 1.0)) for d in FLOATS for m, s in (((3, 5), (3, 5)), ((3, 1), (5,)), ((0,), (1,)))), **RANDOM),
    Row("normal_with_number", torch.normal, lambda: (args for d in FLOATS for args in ((make((3, 5), d), 0.5), (make((3,), d), -1.0), (2.0, make((3, 5), d, 0, 0.1, 1.0)))), **RANDOM),
    Row("poisson", torch.poisson, lambda: ((make(s, d, 0, low, 20.0),) for d in FLOATS for s, low in (((3, 5), 0.0), ((), 0.0), ((0,), 0.0), ((3,), -9.0))), **RANDOM),
    Row("standard_gamma", torch._standard_gamma, lambda: ((make(s, d, 0, 0.1, 20.0),) for d in FLOATS for s in ((3, 5), (), (0,))), **RANDOM),
    Row("binomial", torch.binomial, lambda: ((make(s, d, 0, 0.0, 20.0).round(), make(p, d, 1, 0.0, 1.0)) for d in (torch.float32, torch.float64) for s, p in (((3, 5), (3, 5)), ((0,), (0,)))), **RANDOM),
    Row("rand_like", lambda x, dtype=None: torch.rand_like(x, dtype=dtype), likes(dtypes=FLOATS), **RANDOM),
    Row("randn_like", lambda x, dtype=None: torch.randn_like(x, dtype=dtype), likes(dtypes=FLOATS), **RANDOM),
    Row("randint_like", lambda x, a, b, dtype=None: torch.randint_like(x, a, b, dtype=dtype), likes((0, 5), dtypes=NUMBERS), **RANDOM),
    Row("bernoulli", torch.bernoulli, lambda: ((p,) for d in FLOATS for p in (torch.zeros(3, dtype=d), torch.ones(2, 3, dtype=d), torch.full((2,), 1.5, dtype=d))), grad=False),
    Row("multinomial", torch.multinomial, weights, **RANDOM),
    Row("dropout", F.dropout, dropouts, zero_sign=False),
    Row("dropout1d", F.dropout1d, channel_dropouts((2, 3, 5), (3, 5)), zero_sign=False),
    Row("dropout2d", F.dropout2d, channel_dropouts((2, 3, 4, 5), (2, 3, 5)), zero_sign=False),
    Row("dropout3d", F.dropout3d, channel_dropouts((2, 3, 4, 5, 2), (2, 3, 4, 5), refuses_rows=False), zero_sign=False),
    Row("alpha_dropout", F.alpha_dropout, channel_dropouts((2, 3, 5), (3, 5), refuses_rows=False), zero_sign=False),
    Row("feature_alpha_dropout", F.feature_alpha_dropout, channel_dropouts((2, 3, 4), (3, 5)), zero_sign=False),
    Row("uniform_", changes("uniform_"), floats_only((), (1.0, 2.0), (2.0, 1.0)), **RANDOM),
    Row("normal_", changes("normal_"), floats_only((), (1.0, 2.0), (0.0, -1.0)), **RANDOM),
    Row("exponential_", changes("exponential_"), lambda: ((make(s, d), *extra) for d in WIDE for s in ((3, 5), (0,)) for extra in ((), (2.0,), (-1.0,))), **RANDOM),
    Row("bernoulli_", changes("bernoulli_"), floats_only((0.0,), (1.0,), (2.0,)), grad=False),
    Row("random_", changes("random_"), floats_only((), (0, 2), (2, 2)), **RANDOM),
]
