# Complex numbers: what only they have, Fourier transforms, and the operators of real numbers with complex ones.
import torch

from .driver import Row
from .inputs import COMPLEX, FEW_PAIRS, FEW_SHAPES, PAIRS, SHAPES, WIDE, integers, layouts, make

# Sums and transforms lose what their terms lose.
SUMS = dict(scale="tensor", tolerance=2, zero_sign=False)
# Functions of the tool chain, of which PyTorch has others; at the ends of their cuts signs of zeros decide.
CLOSE = dict(scale="tensor", zero_sign=False)
PART = {torch.complex64: torch.float32, torch.complex128: torch.float64}


def of_one(low=-3.0, high=3.0, dtypes=COMPLEX):
    def cases():
        for dtype in dtypes:
            for shape in SHAPES if dtype == dtypes[0] else FEW_SHAPES:
                yield (make(shape, dtype, 0, low, high),)
            for x in layouts(dtype, 0, low, high):
                yield (x,)
        yield (make((70001,), dtypes[0], 0, low, high),)
    return cases


def of_two(low=-3.0, high=3.0, numbers=(2, -1.5, 1 - 2j)):
    def cases():
        for dtype in COMPLEX:
            for a, b in PAIRS if dtype == torch.complex64 else FEW_PAIRS:
                yield make(a, dtype, 0, low, high), make(b, dtype, 1, low, high)
            for a, b in zip(layouts(dtype, 0, low, high)[:3], layouts(dtype, 1, low, high)[1:4]):
                yield a, b
            for number in numbers:
                yield make((3, 5), dtype, 0, low, high), number
            for other in (torch.float32, torch.float64, torch.int64):
                for a, b in (((3, 5), (5,)), ((3, 1), ()), ((), (3, 5))):
                    yield make(a, dtype, 0, low, high), make(b, other, 1, 1.0, high)
                    yield make(b, other, 1, 1.0, high), make(a, dtype, 0, low, high)
        yield make((3, 5)), 1 - 2j
        yield make((3, 5), torch.int64), 2.5j
        yield make((3, 5), torch.complex64), make((5,), torch.complex128)
        yield make((3, 40000), torch.complex64, 0, low, high), make((40000,), torch.complex64, 1, low, high)
        yield make((3, 5), torch.complex64), make((4,), torch.complex64)
    return cases


def some(*cases):
    """The cases in both dtypes; tuples in a case are shapes of complex tensors, "R" before one of a real one."""
    def tensors(case, dtype):
        for i, value in enumerate(case):
            if isinstance(value, tuple) and value[:1] == ("R",):
                yield make(value[1:], PART[dtype], i)
            elif isinstance(value, tuple):
                yield make(value, dtype, i)
            else:
                yield value
    return lambda: (tuple(tensors(case, dtype)) for dtype in COMPLEX for case in cases)


def is_whole(x):
    """PyTorch takes logarithms of integers in float32."""
    return not x.is_floating_point() and not x.is_complex()


def transforms(sizes, *more):
    """(x, ...) along several dimensions and of lengths with all kinds of factors."""
    def cases():
        for dtype in sizes["dtypes"]:
            for shape, args in [((n,), ()) for n in sizes["lengths"]] + list(more):
                yield (make(shape, dtype), *args)
            yield (make((5, 4, 6), dtype).permute(2, 0, 1), None, 1)
            yield (make((6, 8), dtype)[::2, 1:7],)
        yield (make((), sizes["dtypes"][0]),)
    return cases


LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 30, 31, 64, 67, 97, 100, 131)
ALONG = (((3, 8), ()), ((3, 8), (None, 0)), ((3, 8), (5,)), ((3, 8), (12, -1, "ortho")), ((3, 8), (None, -1, "forward")), ((2, 7, 9), (None, 1)),
         ((20, 17), (None, 0, "ortho")), ((19, 24), ()), ((3, 0), (4,)), ((0, 4), ()), ((3, 4), (0,)), ((3, 4), (None, 2)), ((3, 4), (None, -1, "none")))
TO_COMPLEX = dict(dtypes=(torch.complex64, torch.complex128, torch.float32, torch.float64, torch.int64), lengths=LENGTHS)
OF_REAL = dict(dtypes=(torch.float32, torch.float64, torch.int64), lengths=LENGTHS)
TO_REAL = dict(dtypes=(torch.complex64, torch.complex128, torch.float32), lengths=LENGTHS[1:])
SEVERAL = (((3, 8), ()), ((3, 8), ((5, 6),)), ((2, 3, 8), (None, (0, 2))), ((2, 3, 8), ((4, -1), (2, 1), "ortho")), ((2, 6, 5), (None, (1, 2), "forward")),
           ((2, 3, 8), ((4,), (1, 2))), ((2, 3, 8), (None, (1, 1))), ((2, 3, 8), ((1, 2, 3, 4),)))


def several(dtypes):
    return lambda: ((make(shape, dtype), *(list(a) if isinstance(a, tuple) else a for a in args)) for dtype in dtypes for shape, args in SEVERAL)


ANY, REAL = TO_COMPLEX["dtypes"][:3], OF_REAL["dtypes"][:2]


def pieces():
    window = torch.hann_window(16)
    for dtype in (torch.float32, torch.float64):
        w = window.to(dtype)
        yield make((50,), dtype), 16, 4, None, w
        yield make((2, 50), dtype), 16, None, None, w, True, "constant", True
        yield make((2, 50), dtype), 16, 5, 10, w[:10], False
        yield make((2, 50), dtype), 15, 5, 10, None, True, "reflect", False, False
        yield make((2, 50), dtype), 16, 5, None, w, True, "reflect", False, None, False
    yield make((40,), torch.complex64), 16, 4, None, window
    yield make((10,)), 16, 4, None, window, False
    yield make((40,)), 16, 0, None, window
    yield make((40,)), 16, 4, None, window[:10]


def stft(x, n_fft, hop=None, win=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None, return_complex=True):
    return torch.stft(x, n_fft, hop, win, window, center, pad_mode, normalized, onesided, return_complex=return_complex)


def spectra():
    window = torch.hann_window(16) + 0.1
    for dtype in COMPLEX:
        w = window.to(PART[dtype])
        yield make((9, 12), dtype), 16, 4, None, w
        yield make((2, 9, 12), dtype), 16, 4, None, w, True, None, True
        yield make((2, 9, 12), dtype), 16, 4, None, w, True, 40
        yield make((2, 9, 5), dtype), 16, 4, 12, w[:12], True, 60
        yield make((2, 16, 5), dtype), 16, 4, None, w, False, None, False, False, True
        yield make((2, 16, 5), dtype), 16, 4, None, w, False, None, False, False, False
    yield make((2, 9, 12)), 16, 4, None, window
    yield make((2, 8, 12), torch.complex64), 16, 4, None, window
    yield make((9, 12), torch.complex64), 16, 20, None, window


def istft(x, n_fft, hop=None, win=None, window=None, center=True, length=None, normalized=False, onesided=None, return_complex=False):
    return torch.istft(x, n_fft, hop, win, window, center, normalized, onesided, length, return_complex)


def pairs_of_parts():
    for dtype in WIDE:
        for shape in ((2,), (3, 2), (0, 2), (3, 4, 2), (3, 5), ()):
            yield (make(shape, dtype),)
        yield (make((5, 3, 2), dtype).transpose(0, 1),)
        yield (make((3, 3), dtype)[:, 1:],)


def parts():
    for dtype in WIDE:
        for a, b in FEW_PAIRS + (((0,), (0,)),):
            yield make(a, dtype), make(b, dtype, 1)
    yield make((3,)), make((3,), torch.float64)
    yield make((3,), torch.int64), make((3,), torch.int64)


AT = torch.tensor([2, 0, 2, 1])
PLACES = integers((4, 5), 0, 3)
MASK = make((3, 5), torch.bool, 9)


def einsum_cases():
    for dtype in COMPLEX:
        yield "bixy,ioxy->boxy", [make((2, 3, 4, 5), dtype), make((3, 2, 4, 5), dtype, 1)]
        yield "ij,jk->ik", [make((3, 4), dtype), make((4, 5), dtype, 1)]
        yield "bi,bi->b", [make((3, 4), dtype), make((3, 4), dtype, 1)]


UNARY = "exp sin cos sinh cosh asinh atanh atan asin sigmoid square reciprocal sqrt rsqrt log log2 log10 neg abs sgn".split()

ROWS = [
    Row("view_as_real", torch.view_as_real, of_one()),
    Row("view_as_complex", torch.view_as_complex, pairs_of_parts),
    Row("complex", torch.complex, parts),
    Row("polar", torch.polar, lambda: [(a.abs(), b) for a, b in parts()], scale="tensor"),
    Row("real", torch.real, lambda: [*of_one()(), (make((3,)),)]),
    Row("imag", torch.imag, lambda: [*of_one()(), (make((3,)),)]),
    Row("conj", lambda x: torch.conj(x).resolve_conj(), of_one()),
    Row("conj_physical", torch.conj_physical, of_one()),
    Row("resolve_conj", torch.resolve_conj, of_one()),
    Row("adjoint", lambda x: x.mH.resolve_conj(), some(((3, 5),), ((2, 3, 4),), ((3,),), (("R", 3, 4),))),
    Row("angle", torch.angle, lambda: [*of_one()(), *of_one(dtypes=(torch.float32, torch.int64))()], scale="tensor", zero_sign=False),
    Row("isreal", torch.isreal, lambda: [*of_one()(), (torch.tensor([1, 2j, 3 + 1j]),), (make((3,)),)], grad=False),
    *(Row(f"Tensor.{name}", f, some(((3, 5),), ((2, 3, 4),)), scale="tensor") for name, f in (
        ("real", torch.real), ("imag", torch.imag), ("conj", lambda x: x.conj().resolve_conj()), ("angle", torch.angle),
        ("mH", lambda x: x.mH.resolve_conj()), ("adjoint", lambda x: x.mH.resolve_conj()))),
    *(Row(f"fft.{name}", getattr(torch.fft, name), transforms(TO_COMPLEX, *ALONG), **SUMS) for name in ("fft", "ifft")),
    *(Row(f"fft.{name}", getattr(torch.fft, name), transforms(OF_REAL, *ALONG), **SUMS) for name in ("rfft", "ihfft")),
    *(Row(f"fft.{name}", getattr(torch.fft, name), transforms(TO_REAL, *ALONG, ((3, 8), (7,)), ((5, 4), (6, 0))), **SUMS) for name in ("irfft", "hfft")),
    *(Row(f"fft.{name}", getattr(torch.fft, name), several(ANY), **SUMS) for name in ("fftn", "ifftn", "irfftn", "hfftn")),
    *(Row(f"fft.{name}", getattr(torch.fft, name), several(REAL), **SUMS) for name in ("rfftn", "ihfftn")),
    *(Row(f"fft.{name}", getattr(torch.fft, name), some(((4, 6),), ((2, 4, 6), [3, 8]), ((2, 4, 6), None, [0, 1]), ((2, 4, 6), None, [0, 1], "ortho")),
          **SUMS) for name in ("fft2", "ifft2", "irfft2", "hfft2")),
    *(Row(f"fft.{name}", getattr(torch.fft, name), some((("R", 4, 6),), (("R", 2, 4, 6), [3, 8]), (("R", 2, 4, 6), None, [0, 1], "ortho"), ((4, 6),)),
          **SUMS) for name in ("rfft2", "ihfft2")),
    *(Row(f"fft.{name}", getattr(torch.fft, name), lambda: ((1,), (2,), (7,), (8, 0.25), (9, 2.0)), grad=False) for name in ("fftfreq", "rfftfreq")),
    *(Row(f"fft.{name}", getattr(torch.fft, name), some(((5, 4),), ((5, 4), 0), ((2, 5, 4), [0, 1]), (("R", 5),))) for name in ("fftshift", "ifftshift")),
    Row("stft", stft, pieces, no_grad=(4,), **SUMS),
    Row("istft", istft, spectra, no_grad=(4,), **SUMS),

    *(Row(name, getattr(torch, name), of_two(), scale="tensor") for name in ("add", "sub", "mul")),
    Row("div", torch.div, of_two(1.0), scale="tensor"),
    Row("rsub", torch.rsub, some(((3, 5), 2), ((3, 5), 1 - 2j), (("R", 3, 5), 1j)), scale="tensor"),
    Row("number_div", lambda a, b: a / b, some((2, (3, 5)), (1 - 2j, (3, 5)), (1j, ("R", 3, 5))), **CLOSE),
    Row("pow", torch.pow, lambda: [args for args in of_two(0.2, 2.0, numbers=(2, 0, 0.5, 3, -1, 1 - 2j))() if not is_whole(args[0])], tolerance=4, grad_tolerance=16, **CLOSE),
    Row("number_pow", torch.pow, some((2, (3, 5)), (1 - 2j, (3, 5))), tolerance=4, **CLOSE),
    Row("eq", torch.eq, lambda: [*of_two()(), (make((3,), torch.complex64),) * 2], grad=False),
    Row("ne", torch.ne, lambda: [*of_two()(), (make((3,), torch.complex64),) * 2], grad=False),
    *(Row(name, getattr(torch, name), of_one(), tolerance=8, grad_tolerance=16, **CLOSE) for name in UNARY),
    # Without their poles, at pi / 2 and i pi / 2.
    *(Row(name, getattr(torch, name), of_one(-1.3, 1.3), tolerance=8, grad_tolerance=16, **CLOSE) for name in ("tan", "tanh")),
    *(Row(name, getattr(torch, name), of_one(0.1, 0.9), tolerance=4, grad_tolerance=16, **CLOSE) for name in ("acos", "acosh")),
    Row("expm1", torch.expm1, of_one(), tolerance=8, grad_tolerance=8, since=(2, 0), reason="not there", **CLOSE),
    Row("log1p", torch.log1p, of_one(-0.4, 2.0), tolerance=8, grad_tolerance=8, since=(2, 0), reason="not there", **CLOSE),
    *(Row(name, getattr(torch, name), lambda: [*some(((3, 5),))(), (torch.tensor([1 + 2j, complex("nan"), complex(0, float("inf")), 1j]),)], grad=False)
      for name in ("isnan", "isinf", "isfinite")),
    *(Row(name, getattr(torch, name), some(((3, 5), (3, 5)), ((3, 5), (5,))), grad=False) for name in ("isclose", "allclose", "equal")),

    Row("sum", lambda x, *a: torch.sum(x, *a) if a else torch.sum(x), some(((3, 5),), ((3, 5), [0]), ((2, 3, 4), [0, 2], True), ((0,),), ((),)), **SUMS),
    Row("mean", lambda x, *a: torch.mean(x, *a) if a else torch.mean(x), some(((3, 5),), ((3, 5), [0]), ((2, 3, 4), [0, 2], True), ((),)), **SUMS),
    Row("cumsum", torch.cumsum, some(((3, 5), 0), ((3, 5), -1), ((), 0)), **SUMS),
    Row("all", lambda x, *a: torch.all(x, *a) if a else torch.all(x), some(((3, 5),), ((3, 5), 1)), grad=False),
    Row("any", lambda x, *a: torch.any(x, *a) if a else torch.any(x), some(((3, 5),), ((3, 5), 1)), grad=False),
    Row("count_nonzero", lambda x: torch.count_nonzero(x), some(((3, 5),)), grad=False),
    Row("var", lambda x: torch.var(x), some(((3, 5),)), **SUMS),
    Row("std", lambda x: torch.std(x), some(((3, 5),)), **SUMS),

    *(Row(name, getattr(torch, name), some(*cases), **SUMS) for name, cases in {
        "matmul": [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)),
                   ((3, 0), (0, 2)), ((65, 33), (33, 40)), ((3, 4), (3, 4)), ((3, 4), ("R", 4, 5))],
        "mm": [((3, 4), (4, 5))], "bmm": [((2, 3, 4), (2, 4, 5))], "mv": [((3, 4), (4,))],
        "outer": [((3,), (4,))], "inner": [((3, 4), (2, 4))], "kron": [((2, 3), (3, 2))],
        "addmm": [((3, 5), (3, 4), (4, 5)), ((5,), (3, 4), (4, 5))], "baddbmm": [((2, 3, 5), (2, 3, 4), (2, 4, 5))]}.items()),
    *(Row(name, getattr(torch, name), some(((4,), (4,))), since=(2, 0), reason="1.13 of Debian gives 0", **SUMS) for name in ("dot", "vdot")),
    Row("linear", torch.nn.functional.linear, some(((3, 4), (5, 4)), ((2, 3, 4), (5, 4), (5,))), **SUMS),
    Row("einsum", torch.einsum, einsum_cases, **SUMS),

    Row("cat", lambda x, d: torch.cat(x, d), lambda: [([make((3, 5), a), make((2, 5), b, 1)], 0) for a in COMPLEX for b in (*COMPLEX, torch.float32)]),
    Row("stack", lambda x, d: torch.stack(x, d), lambda: [([make((3, 5), d), make((3, 5), d, 1)], 1) for d in COMPLEX]),
    Row("roll", torch.roll, some(((3, 5), [1], [0]))),
    Row("flip", torch.flip, some(((3, 5), [0, 1]))),
    Row("permute", torch.permute, some(((2, 3, 4), [2, 0, 1]))),
    Row("expand", lambda x, s: x.expand(s), some(((3, 1), [3, 4]))),
    Row("repeat", lambda x, s: x.repeat(s), some(((3, 2), [2, 2]))),
    Row("pad", torch.nn.functional.pad, some(((2, 3, 5), [1, 2]), ((2, 3, 5), [1, 2], "reflect"))),
    Row("tril", torch.tril, some(((4, 4), 0), ((2, 3, 5), 1))),
    Row("triu", torch.triu, some(((4, 4), 0))),
    Row("diagonal", torch.diagonal, some(((4, 5), 1))),
    Row("trace", torch.trace, some(((4, 4),)), **SUMS),
    Row("to", lambda x, dtype: x.to(dtype), lambda: [(make((3, 5), a), b) for a in (*COMPLEX, torch.float32, torch.int64) for b in (*COMPLEX, torch.float32)]),
    Row("clone", torch.clone, of_one()),
    Row("item", lambda x: x.item(), some(((),), ((1, 1),)), grad=False),
    Row("index", lambda x, i: x[tuple(i)], lambda: [(make((3, 5), d), i) for d in COMPLEX for i in ([AT], [MASK])]),
    Row("index_select", torch.index_select, some(((3, 5), 0, AT), ((5, 3), 1, AT))),
    Row("gather", torch.gather, some(((3, 5), 0, PLACES))),
    Row("scatter", torch.scatter, some(((3, 5), 0, PLACES[:1], (1, 5)))),
    Row("scatter_add", torch.scatter_add, some(((3, 5), 0, PLACES, (4, 5))), **SUMS),
    Row("index_add", torch.index_add, some(((3, 5), 0, AT, (4, 5))), **SUMS),
    Row("masked_fill", torch.masked_fill, some(((3, 5), MASK, 2.0), ((3, 5), MASK, 1 - 1j))),
    Row("masked_select", torch.masked_select, some(((3, 5), MASK))),
    Row("where", torch.where, some((MASK, (3, 5), (5,)))),
    Row("where", torch.where, some((MASK, (3, 5), ("R", 5))), grad=False),  # PyTorch's gradient raises
    Row("full", lambda s, v, *d: torch.full(s, v, dtype=d[0] if d else None), lambda: (([2, 3], 1 - 2j), ([2], 2.5, torch.complex128), ([2], 1j, torch.complex64)), grad=False),
    Row("ones", lambda s, d: torch.ones(s, dtype=d), lambda: (([2, 3], d) for d in COMPLEX), grad=False),
    Row("zeros_like", torch.zeros_like, some(((3, 5),)), grad=False),

    *(Row(f"{name}_", lambda x, y, n=name: getattr(x.clone(), f"{n}_")(y), some(((3, 5), (3, 5)), ((3, 5), (5,)), ((3, 5), 2.0), ((3, 5), ("R", 5))), scale="tensor")
      for name in ("add", "sub", "mul", "div")),
    Row("copy_", lambda x, y: x.clone().copy_(y), some(((3, 5), (5,)), ((3, 5), ("R", 5)))),
    Row("fill_", lambda x, v: x.clone().fill_(v), some(((3, 5), 2.0), ((3, 5), 1 - 2j))),
    *(Row(f"{name}_", lambda x, n=name: getattr(x.clone(), f"{n}_")(), some(((3, 5),)), tolerance=4, **CLOSE) for name in ("exp", "sin", "neg", "sigmoid", "zero")),
    # Complex numbers have no order.
    *(Row(name, lambda x, n=name: getattr(torch, n)(x), some(((3, 5),)), grad=False) for name in ("floor", "relu")),
]
