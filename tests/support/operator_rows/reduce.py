# Rows of tern/ops/reduce.h, scan.h, softmax.h and sort.h.

import torch

from .driver import VERSION, Row
from .inputs import ALL, FEW_SHAPES, FLOATS, INF, INTS, NAN, NUMBERS, SHAPES, WIDE, distinct, integers, layouts, make, short_rows, special_values

# Where a choice among equal elements is open, the inputs have no equal ones.
DIMS = (None, 0, -1, 1, [0, 1], [-1, 0], [], [0, 2])


def special_rows(dtype, large=None):
    """Each row of the matrix holds another kind of special value, among ordinary numbers."""
    rows = []
    for value in (NAN, INF, -INF, 0.0, -0.0, torch.finfo(dtype).tiny / 4, large or torch.finfo(dtype).max / 16):
        rows.append([1.0, value, -2.0, value, 0.5])
    rows.append([INF, -INF, 1.0, 2.0, 3.0])
    rows.append([-INF] * 5)
    rows.append([NAN] * 5)
    return torch.tensor(rows, dtype=dtype)


def inputs(dtypes=ALL, source=make, low=-3.0, high=3.0, with_special=True, large=None):
    for dtype in dtypes:
        for shape in SHAPES if dtype in WIDE else FEW_SHAPES + ((2, 3, 4),):
            yield make(shape, dtype, 0, low, high) if source is make else source(shape, dtype)
        if source is make:
            yield from layouts(dtype, 0, low, high)[:6 if dtype in WIDE else 2]
        else:
            yield source((5, 3), dtype).t()
            yield source((2, 3, 4), dtype).permute(2, 0, 1)
        if with_special and dtype.is_floating_point:
            yield special_rows(dtype, large)
    yield make((17, 4099), dtypes[0], 0, low, high) if source is make else source((17, 4099), dtypes[0])
    yield make((4099, 17), dtypes[0], 0, low, high) if source is make else source((4099, 17), dtypes[0])


def over_lists(dtypes=ALL, dims=DIMS, **options):
    """(x, dims, keepdim); dims may be a list."""
    def cases():
        for i, x in enumerate(inputs(dtypes, **options)):
            for j, dim in enumerate(dims):
                yield (x, dim, (i + j) % 2 == 0) if dim is not None else (x,)
        for x in short_rows(dtypes[0]):
            yield x, -1, False
        yield make((2, 3)), 2, False
        yield make((2, 3)), -3, False
        yield make((2, 3)), [0, 0], False
    return cases


def over_one(dtypes=ALL, **options):
    """(x, dim, keepdim), and (x,) for all elements."""
    def cases():
        for i, x in enumerate(inputs(dtypes, **options)):
            yield (x,)
            for j, dim in enumerate((0, -1, 1)):
                yield x, dim, (i + j) % 2 == 0
        yield make((2, 3)), 2, False
        yield make((2, 3)), -3, False
    return cases


def products():
    """The same, and products of many numbers that are neither tiny nor huge."""
    yield from with_dtypes(over_one(low=-1.5, high=1.5), 4)()
    for dtype in FLOATS:
        for size in (33, 700):
            x = 1 + make((4, size), dtype, 0, -0.01, 0.01)
            x[1, 30] = 0
            x[2, [5, 31]] = 0
            yield x, 1, False
            yield x[:, ::2], 1, True
            yield (x[0],)


def along(dtypes=ALL, more=((),), **options):
    """(x, dim) + more."""
    def cases():
        for x in inputs(dtypes, **options):
            for dim in (0, -1, 1):
                for extra in more:
                    yield (x, dim, *extra)
        yield make((2, 3)), 2
        yield make((2, 3)), -3
    return cases


def with_dtypes(base, count):
    """The same with the result's dtype as the last of `count` arguments."""
    def cases():
        yield from base()
        for dtype in ALL:
            for target in (torch.float32, torch.float64, torch.int64, torch.float16, torch.int32):
                arguments = (make((3, 5), dtype), 1, False)[:count - 1]
                yield (*arguments, target)
    return cases


def extremes():
    for args in over_one()():
        if args[0].dim() or VERSION >= (2, 0):  # PyTorch 1.13 gives [1] for 0-d
            yield args


def integrals():
    """(y, x, dx, dim)."""
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8):
        y = make((2, 4, 3), dtype, 0, 0.0, 3.0)
        yield (y,)
        yield y, None, 0.5, 1
        for x in ((4,), (4, 3), (2, 4, 3), (4, 1)):
            yield y, make(x, dtype, 1, 0.0, 3.0), None, -2
        yield make((4,), dtype), make((4,), torch.float64, 1)
    yield make((4, 3)).t(), make((4,), torch.int64, 1)
    yield make((1,)),
    for dtype in (torch.float64, torch.int64):
        yield make((2, 0, 3), dtype), None, None, 1
        yield make((2, 0, 3), dtype), make((0,), dtype), None, 1
    yield make((3,), torch.bool),
    yield make((3,)), make((3,), torch.bool)
    yield make(()),
    yield make((2, 3)), make((2,))
    yield make((2, 3)), make((1, 2, 3))
    yield make((2, 3)), None, None, 2


def integral(function):
    return lambda y, x=None, dx=None, dim=-1: function(y, x, dim=dim) if x is not None else function(y, dx=1 if dx is None else dx, dim=dim)


def covariances():
    """(x, correction, fweights, aweights)."""
    counts, weights = integers((6,), 0, 4), make((6,), torch.float32, 1, 0.1, 2.0)
    for dtype in (torch.float32, torch.float64, torch.int64):
        x = make((3, 6), dtype)
        yield (x,)
        yield x, 0
        yield x, 1, counts
        yield x, 2, None, weights
        yield x, 1, counts, weights.double()
        yield x, 0, counts, weights
        yield make((6,), dtype), 1, counts
    yield make((6, 3)).t(), 1
    yield torch.tensor([[1, 2, 4], [1, 3, 9]]), 5
    yield (make((1, 6)),)
    for shape in ((), (2, 0), (2, 2, 2)):
        yield (make(shape),)
    yield (make((3,), torch.bool),)
    x = make((3, 6))
    for wrong in (counts.float(), counts > 1, counts - 9, counts[:5], counts[None], counts * 0):
        yield x, 1, wrong
    for wrong in (counts, -weights, weights[:5], weights * 0, torch.full((6,), NAN)):
        yield x, 1, None, wrong


def call(function):
    """function(x), or function(x, dim, keepdim[, dtype])."""
    def apply(x, dim=None, keepdim=False, dtype=None):
        if dim is None:
            return function(x) if dtype is None else function(x, dtype=dtype)
        return function(x, dim, keepdim) if dtype is None else function(x, dim, keepdim, dtype=dtype)
    return apply


def extreme(function):
    return lambda x, dim=None, keepdim=False: function(x) if dim is None else function(x, dim if dim != [] else (), keepdim)


def choose(function):
    return lambda x, dim=None, keepdim=False: function(x, dim=dim, keepdim=keepdim) if dim is not None else function(x)


def truth(function):
    """PyTorch 1.13 takes one dimension only: several are taken one after the other."""
    def apply(x, dim=None, keepdim=False):
        if dim is None:
            return function(x)
        if isinstance(dim, int):
            return function(x, dim, keepdim)
        dims = [range(max(x.dim(), 1))[d] for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError("dim appears multiple times in the list of dims")
        result = x if x.dtype == torch.uint8 else x != 0
        if x.dtype == torch.uint8 and not dims:
            return (x != 0).to(torch.uint8)
        for d in sorted(dims, reverse=True):
            result = function(result, d, keepdim)
        return result
    return apply


def moments(function):
    def apply(x, dim=None, correction=1, keepdim=False):
        return function(x, dim=None if dim in (None, []) else dim, correction=int(correction), keepdim=keepdim)
    return apply


def moment_cases():
    for x in inputs(FLOATS + (torch.int64,)):
        for dim in (None, 0, -1, 1, [0, 1], []):
            for correction in (1, 0, 2):
                yield (x, dim, correction, True) if dim is not None else (x, None, correction)


def norms():
    for x in inputs(FLOATS + (torch.int64,)):
        for p in (2.0, 1.0, 0.0, 3.0, 8.0, 9.0, 0.5, INF, -INF, -2.0):
            yield x, p
            for dim in (0, -1, [0, 1]):
                yield x, p, dim, dim == 0
    for dtype in FLOATS:
        for target in WIDE:
            yield make((3, 5), dtype), 2.0, 1, False, target


def softmaxes():
    yield from along(FLOATS)()
    for dtype in FLOATS:
        yield make((150, 17), dtype), 1
        yield make((33, 128), dtype), -1
        yield make((16390, 3), dtype), 1
        yield make((600, 5), dtype), 0
    rows = make((40, 20)).clone()
    rows[3], rows[5, 2], rows[7, 4] = -INF, NAN, INF
    yield rows, 1
    columns = make((600, 5)).clone()
    columns[:300, 0], columns[:, 1], columns[30, 2], columns[500, 3], columns[100, 3] = -INF, -INF, NAN, INF, -INF
    yield columns, 0
    for dtype in ALL:
        yield make((3, 5), dtype), 1, torch.float32
        yield make((3, 5), dtype), 0, torch.float64
    yield make((3, 5), torch.int64), 1


def norm(x, p=2.0, dim=None, keepdim=False, dtype=None):
    if x.numel() > 10000:
        return torch.linalg.vector_norm(x.double(), p, dim, keepdim).to(x.dtype)  # PyTorch adds float32 one by one
    return torch.linalg.vector_norm(x, p, dim, keepdim, dtype=dtype)


def topk_cases():
    for dtype in NUMBERS + (torch.bool,):
        x = distinct((5, 7), dtype) if dtype != torch.bool else make((5, 7), dtype)
        for k in (0, 1, 3, 5):
            for dim in (0, -1):
                for largest in (True, False):
                    yield x, k, dim, largest, True
        yield x.t(), 2, 1, True, True
    for x in (torch.tensor(3.0), distinct((2000,)), distinct((3, 300))):
        yield x, 1, -1, True, True
        yield x, min(50, x.numel()), -1, False, True
    for shape in ((1,), (0,), (0, 3), (3, 0)):
        yield make(shape), 0, -1, True, True
        yield make(shape), 1, -1, True, True
    yield distinct((70001,)), 3, -1, True, True
    yield special_rows(torch.float32)[:3, :2], 1, 1, True, True
    yield make((3, 5)), 6, -1, True, True
    yield make((3, 5)), -1, -1, True, True
    yield make((3, 5)), 2, 2, True, True


def sort_cases():
    for x in inputs(ALL):
        for dim in (0, -1):
            for descending in (False, True):
                yield x, dim, descending
    yield torch.tensor(special_values(torch.float32)), 0, False
    yield torch.tensor(special_values(torch.float32)), 0, True
    yield make((2, 3)), 2, False


def sort(x, dim=-1, descending=False):
    return torch.sort(x, stable=True, dim=dim, descending=descending)


def median_cases():
    for x in inputs(NUMBERS, source=distinct, with_special=False):
        if x.numel():
            yield (x,)
        for dim in (0, -1, 1):
            yield x, dim, False
            yield x, dim, True
    yield (torch.tensor([1.0, NAN, 3.0]),)
    yield torch.tensor([[1.0, NAN, 3.0], [2.0, 1.0, 3.0]]), 1, False
    yield (torch.tensor([2.0, 2.0, 1.0, 2.0]),)
    yield (torch.tensor([True, False]),)
    yield make((2, 3)), 2, False


SUM = {"scale": "tensor", "zero_sign": False, "tolerance": 2}
# Where the correction leaves no degree of freedom, PyTorch's gradient depends on the overload and the version.
MOMENTS = {**SUM, "special_grad": False}
ROWS = [
    Row("sum", call(torch.sum), with_dtypes(over_lists(), 4), **SUM),
    Row("mean", call(torch.mean), with_dtypes(over_lists(), 4), **SUM),
    # With several zeros PyTorch's gradient is 0 even next to NaN.
    Row("prod", call(torch.prod), products, special_grad=False, **SUM),
    Row("max", choose(torch.max), over_one(source=distinct)),
    Row("min", choose(torch.min), over_one(source=distinct)),
    Row("amax", extreme(torch.amax), over_lists()),
    Row("amin", extreme(torch.amin), over_lists()),
    Row("aminmax", lambda x, dim=None, keepdim=False: torch.aminmax(x, dim=dim, keepdim=keepdim), extremes,
        grad=VERSION >= (2, 15)),  # 2.11 has no derivative
    Row("argmax", choose(torch.argmax), over_one(source=distinct), grad=False),
    Row("argmin", choose(torch.argmin), over_one(source=distinct), grad=False),
    Row("any", truth(torch.any), over_lists(), grad=False, widen=False),
    Row("all", truth(torch.all), over_lists(), grad=False, widen=False),
    Row("count_nonzero", lambda x, dim=None: torch.count_nonzero(x, dim=dim if dim != [] else None),
        lambda: (c[:2] for c in over_lists()()), grad=False),
    Row("var", moments(torch.var), moment_cases, **MOMENTS),
    Row("std", moments(torch.std), moment_cases, **MOMENTS),
    Row("var_mean", moments(torch.var_mean), moment_cases, **MOMENTS),
    Row("std_mean", moments(torch.std_mean), moment_cases, **MOMENTS),
    Row("norm", norm, norms, **SUM),
    Row("trapezoid", integral(torch.trapezoid), integrals, **SUM),
    Row("trapz", integral(torch.trapz), lambda: ((make((4, 3)), None, 0.5, 0), (make((4, 3)), make((4,), seed=1), None, 0)), **SUM),
    Row("cumulative_trapezoid", integral(torch.cumulative_trapezoid), integrals, **SUM),
    Row("cov", lambda x, correction=1, f=None, a=None: torch.cov(x, correction=correction, fweights=f, aweights=a), covariances, **SUM),
    Row("corrcoef", torch.corrcoef, lambda: ((x,) for x in (make((3, 6)), make((6, 3), torch.float64).t(), make((3, 6), torch.int64), make((6,)), make(()), make((2, 2, 2)))), **SUM),
    Row("msort", torch.msort, lambda: ((distinct(s, d),) for s in ((), (7,), (4, 3)) for d in (torch.float32, torch.int64))),
    Row("cumsum", lambda x, dim, dtype=None: torch.cumsum(x, dim, dtype=dtype), with_dtypes(along(), 3), **SUM),
    # PyTorch's gradient divides by the elements: NaN at infinities, where each derivative is finite or infinite.
    Row("cumprod", lambda x, dim, dtype=None: torch.cumprod(x, dim, dtype=dtype), with_dtypes(along(low=-1.5, high=1.5), 3), special_grad=False, **SUM),
    Row("softmin", lambda x, dim, dtype=None: torch.softmax(-x, dim, dtype=dtype), softmaxes, **SUM),
    Row("softmax", lambda x, dim, dtype=None: torch.softmax(x, dim, dtype=dtype), softmaxes, **SUM),
    Row("log_softmax", lambda x, dim, dtype=None: torch.log_softmax(x, dim, dtype=dtype), softmaxes, **SUM),
    Row("logsumexp", lambda x, dim, keepdim=False: torch.logsumexp(x, dim if dim != [] else list(range(x.dim())), keepdim),
        over_lists(dims=(0, -1, [0, 1])), **SUM),
    Row("sort", sort, sort_cases, zero_sign=True),
    Row("argsort", lambda x, dim=-1, descending=False: sort(x, dim, descending)[1], sort_cases, grad=False),
    Row("topk", torch.topk, topk_cases),
    Row("median", choose(torch.median), median_cases),
]
