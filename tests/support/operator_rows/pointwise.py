# Rows of tern/ops/pointwise.h, activation.h and compare.h.

import torch
from torch.nn import functional as F

from .driver import VERSION, Row
from .inputs import ALL, BOOL, FLOATS, INF, INTS, NAN, NUMBERS, WIDE, binary, layouts, make, short_rows, special, unary


def scaled(function):
    return lambda a, b, alpha=1: function(a, b, alpha=alpha)


def with_alpha():
    yield from binary()()
    for dtype in ALL:
        for alpha in (2, -3, 0.5, True):
            yield make((3, 5), dtype), make((5,), dtype, 1), alpha
            yield make((3, 5), dtype), 3, alpha


def numbers_with(x_dtypes=ALL, numbers=(True, 2, 0, -1, 2.5, INF, NAN), low=-3.0, high=3.0, first=False):
    def cases():
        for dtype in x_dtypes:
            for x in (make((3, 5), dtype, 0, low, high), make((), dtype, 0, low, high), make((0,), dtype, 0, low, high), layouts(dtype, 0, low, high)[0],
                      *((special(dtype),) if dtype in WIDE else ())):
                for number in numbers:
                    yield (number, x) if first else (x, number)
        x = make((70001,), x_dtypes[0], 0, low, high)
        yield (2.5, x) if first else (x, 2.5)
    return cases


def rounding_cases():
    for mode in ("trunc", "floor"):
        # Where the quotient overflows, the floor of PyTorch 1.13 is NaN.
        yield from binary(right=(0.5, 4.0), numbers=(2, -2, 2.5, -0.75), with_special=mode == "trunc" or VERSION >= (2, 0), more=(mode,))()
        yield make((3, 5), torch.int64), torch.zeros(5, dtype=torch.int64), mode
        yield make((3, 5), torch.int32), 0, mode
        yield make((3, 5)), 0, mode
    yield make((3,)), make((3,), seed=1), "ceil"


def division(numbers=(2, -2, 2.5, -0.75, 0.0), with_special=True):
    def cases():
        yield from binary(right=(0.5, 4.0), numbers=numbers, with_special=with_special)()
        for dtype in FLOATS:
            yield special(dtype)[[0, 1, 2, 3, 4, 11, 12, 13, 14, 15, 16, 18, 19]].unsqueeze(1), special(dtype)[[0, 1, 2, 3, 4, 11, 12, 13, 14, 15, 16, 18, 19]]
        for dtype in INTS:
            yield make((3, 5), dtype, 0, -9, 9), make((3, 5), dtype, 1, -4, 4) * 2 + 1
            yield make((3,), dtype), make((3,), dtype) * 0
            yield make((3,), dtype), 0
    return cases


def powers():
    for args in binary(left=(0.1, 3.0), numbers=(True, 2, 3, 2.5, 0, 0.5, -1.5))():
        base, exponent = args
        if base.dtype == torch.bool and exponent is True:
            continue  # PyTorch 1.13 does not take it
        if not base.dtype.is_floating_point and isinstance(exponent, torch.Tensor) and exponent.dtype == torch.float64 and VERSION < (2, 0):
            continue  # PyTorch 1.13 takes the logarithm of the gradient in float32
        yield args
    for dtype in WIDE:
        for exponent in (-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, INF, -INF, NAN):
            yield special(dtype), exponent
    for dtype in INTS:
        yield make((3, 5), dtype), make((3, 5), dtype, 1, 0.0, 5.0)
        yield make((3, 5), dtype, 0, 1.0, 5.0), make((3, 5), dtype, 1, -3.0, -1.0)
        for exponent in (0, 1, 2, 3, 5, -1, 2.0, True):
            yield make((3, 5), dtype), exponent


def float_powers(first=False):
    for a, b in ((torch.float32, torch.float64), (torch.float16, torch.int32), (torch.int64, torch.bool), (torch.float64, torch.float64)):
        yield (2.5, make((3, 5), b, 1)) if first else (make((3, 5), a, 0, 0.1, 3.0), make((5,), b, 1))
        yield (3, special(a)) if first else (special(a), 2)


def angles():
    for args in binary(numbers=())():
        # PyTorch's gradient negates the integers in their own dtype: uint8 wraps, bool raises.
        if [a.dtype for a in args if not a.dtype.is_floating_point] not in ([torch.uint8], [torch.bool]):
            yield args


def bounds():
    for dtype in ALL:
        for x in (make((3, 5), dtype), make((), dtype), make((0,), dtype), special(dtype), make((5, 3), dtype).t()):
            for low, high in ((-1.25, 1.25), (-2, 3), (None, 1.25), (-2, None), (0.25, 1.75), (2, -2), (None, None), (NAN, 1.0), (0, INF)):
                if dtype == torch.uint8 and any(b is not None and b < 0 for b in (low, high)):
                    continue  # PyTorch wraps the bounds
                if (low, high) == (0, INF) and VERSION < (2, 15):
                    continue  # the gradient at a bound was 1 before
                yield x, low, high
    if VERSION >= (2, 15):
        for dtype in FLOATS:
            for low, high in ((-1, 1), (None, 1.0), (-1.0, None), (1, 1), (-INF, INF)):
                yield special(dtype), low, high
    for shape in ((1,), (70001,)):
        yield make(shape), -1.25, 1.25
    yield from bounds_of_elements()


def bounds_of_elements(ends=((True, True), (True, False), (False, True), (False, False))):
    """Bounds that are tensors, or None."""
    def chosen(x, low, high):
        for has_low, has_high in ends:
            yield x, low if has_low else None, high if has_high else None
    for dtype in NUMBERS:
        # PyTorch 1.13 has no gradient where x is broadcast.
        wider = (((5,), (3, 5), ()), ((), (4,), (1,))) if VERSION >= (2, 15) else ()
        for x, low, high in (((3, 5), (3, 5), (3, 5)), ((3, 5), (5,), (3, 1)), ((0,), (0,), (1,)), *wider):
            yield from chosen(make(x, dtype), make(low, dtype, 1, -2.0, 1.0), make(high, dtype, 2, -1.0, 2.0))
        yield from chosen(layouts(dtype)[0], make((3, 5), dtype, 1, -2.0, 1.0), make((5, 3), dtype, 2).t())
        if dtype.is_floating_point and VERSION >= (2, 15):  # ties and NaN were shared otherwise before
            few = special(dtype)[[0, 1, 2, 3, 11, 12, 13, 14]]  # zeros of one sign
            yield from chosen(few[:, None, None], few[:, None], few)
    for a in (torch.float32, torch.float64, torch.float16, torch.int32):
        for b in (torch.float32, torch.float64, torch.int64):
            yield from chosen(make((3, 5), a), make((3, 5), b, 1, -2.0, 1.0), make((), b, 2, -1.0, 2.0))
    yield from chosen(make((3, 5)), make((4,)), make((5,)))


def one_bound(low):
    def cases():
        for dtype in ALL:
            for x in (make((3, 5), dtype), make((), dtype), make((0,), dtype), special(dtype), layouts(dtype)[0]):
                for bound in (1, 0.25, NAN):
                    if not (dtype.is_floating_point and VERSION < (2, 15) and x.numel() == 20):  # 1.13: another gradient at the bound
                        yield x, bound
        for x, a, b in bounds_of_elements(((True, True),)):
            yield x, a if low else b
    return cases


def lerps():
    for dtype in FLOATS:
        for weight in (0, 1, 0.25, 0.75, -0.5, 1.5):
            yield make((3, 5), dtype), make((3, 5), dtype, 1), weight
        for a, b, w in (((3, 5), (3, 5), (3, 5)), ((3, 5), (5,), (3, 1)), ((5,), (3, 5), ()), ((), (4,), (1,)), ((0,), (0,), (1,)), ((67,), (67,), (67,))):
            yield make(a, dtype), make(b, dtype, 1), make(w, dtype, 2, -0.5, 1.5)
            yield make(a, dtype), make(b, dtype, 1), 0.3
        for x in layouts(dtype)[:4]:
            yield x, make((3, 5), dtype, 1), make((5, 3), dtype, 2, -0.5, 1.5).t()
            yield x, make((5,), dtype, 1), 0.6
        if VERSION >= (2, 0):  # 1.13 gives infinities where the difference is NaN
            few = special(dtype)[[0, 1, 2, 3, 4, 11, 12, 13, 14]]
            yield few[:, None, None], few[:, None], few
    yield make((70001,)), make((70001,), seed=1), make((70001,), seed=2)
    for x in short_rows():
        yield x, make((1,), seed=1), x
    yield make((3, 5)), make((3, 5), torch.float64), 0.5
    yield make((3, 5)), make((3, 5)), make((3, 5), torch.float64)
    if VERSION >= (2, 0):
        yield make((3, 5)), make((3, 5)), make((), torch.float64)
    yield make((3, 5)), make((4,)), 0.5
    yield make((3, 5)), make((5,)), make((4,))
    yield make((3, 5), torch.int64), make((3, 5), torch.int64), 0.5


def three(quotient=False):
    def cases():
        for dtype in NUMBERS:
            low = 1.0 if quotient else -3.0
            for a, b, c in (((3, 5), (3, 5), (3, 5)), ((3, 5), (5,), (3, 1)), ((5,), (3, 5), ()), ((), (4,), (1,)), ((0,), (0,), (1,)), ((67,), (67,), (67,))):
                for more in ((), (2,), (-1,), *(((0.5,),) if dtype.is_floating_point else ())):
                    yield (make(a, dtype), make(b, dtype, 1), make(c, dtype, 2, low, 3.0), *more)
            for x in layouts(dtype)[:4]:
                yield x, make((3, 5), dtype, 1), make((5, 3), dtype, 2, low, 3.0).t()
            if dtype.is_floating_point:
                few = special(dtype)[[0, 1, 2, 3, 4, 11, 12, 13, 14]]
                yield few[:, None, None], few[:, None], few
        for a in (torch.float32, torch.float64, torch.float16, torch.int32):
            for b in (torch.float32, torch.int64):
                for c in (torch.float64,) if quotient else (torch.float64, torch.int16, torch.bool):
                    yield make((3, 5), a), make((3, 5), b, 1), make((), c, 2, low, 3.0)
        yield make((70001,)), make((70001,), seed=1), make((70001,), seed=2, low=low)
        yield make((3, 5)), make((4,)), make((5,))
    return cases


def alike():
    """Pairs of one dtype, and one that is not."""
    yield from binary(numbers=(), promotes=False)()
    yield make((3,)), make((3,), torch.float64)


def hardtanh_bounds():
    for args in activations((), (-1.25, 0.5), (0.25, 2.5), (1.0, 1.0))():
        if args[0].dtype != torch.uint8 or args[1:] == (0.25, 2.5):
            yield args


def shrinking():
    for args in activations((), (1.25,))():
        yield args if args[0].numel() != 20 or VERSION >= (2, 0) else (args[0][1:], *args[1:])  # 1.13 gives 0 for NaN


def slopes():
    for dtype in FLOATS:
        for shape in ((3, 5), (2, 5, 3), (2, 5, 3, 2), (0, 5), (4,), ()):
            for size in {1, shape[1] if len(shape) > 1 else 1}:
                yield make(shape, dtype), make((size,), dtype, 1)
        yield special(dtype), make((1,), dtype, 1)
        yield make((5, 3), dtype).t(), make((5,), dtype, 1)
    yield make((300, 70), torch.float32), make((70,), torch.float32, 1)
    yield make((3, 5)), make((4,))
    yield make((3, 5)), make((5, 1))


def halves():
    for dtype in FLOATS:
        for shape, dim in (((3, 4), -1), ((4, 3), 0), ((2, 6, 3), 1), ((0, 4), 1), ((2, 0), 1), ((3, 5), 1), ((), 0), ((6,), 1)):
            yield make(shape, dtype), dim
        yield make((4, 6), dtype).t(), 0
        yield special(dtype),
    yield make((300, 140)), 1


def activations(*arguments):
    def cases():
        for more in arguments or ((),):
            yield from unary(more=more)()
    return cases


def gelu_cases():
    for args in activations((), ("none",), ("tanh",), ("fast",))():
        # PyTorch gives NaN at infinity on some machines.
        yield args if args[0].numel() != 20 else (args[0][3:], *args[1:])


def close_cases():
    for dtype in NUMBERS:
        a = make((3, 5), dtype)
        yield a, a + 1
        yield a, a.clone()
        yield a, (a * 2).to(dtype), 0.5, 0.25
        yield a, make((5,), dtype, 1), 1.0
    for dtype in FLOATS:
        for equal_nan in (False, True):
            yield special(dtype).expand(20, 20).t().contiguous(), special(dtype).expand(20, 20).contiguous(), 1e-5, 1e-8, equal_nan
    for shape in ((), (1,), (0,), (2, 0, 3), (70001,)):
        yield make(shape), make(shape, seed=1), 1.0
        yield make(shape), make(shape)
    yield make((5, 3)).t(), make((3, 5)), 1.0
    yield make((3, 1)), make((1, 5)), 1.0
    yield make((3,)), make((3,), torch.float64)
    yield make((3,)), make((2,))
    yield make((3,)), make((3,)), -1.0


def equal_cases():
    for dtype in ALL:
        a = make((3, 5), dtype)
        yield a, a.clone()
        yield a, a.t().contiguous().t()
        yield a, torch.ones_like(a)
        yield a, make((3, 4), dtype)
        yield a[:, :0], a[:, :0]
    yield special(torch.float32), special(torch.float32)
    yield torch.tensor([0.0]), torch.tensor([-0.0])
    yield torch.tensor(1.0), torch.tensor(1.0)
    yield torch.tensor(1.0), torch.tensor([1.0])
    yield make((70001,)), make((70001,)).clone()


def plain(name, function=None, **options):
    """A function of each element whose name is PyTorch's."""
    cases = options.pop("cases", None) or unary(**{k: options.pop(k) for k in ("dtypes", "low", "high") if k in options})
    return Row(name, function or getattr(torch, name), cases, **options)


def predicate(name, function=None, cases=None):
    return Row(name, function or getattr(torch, name), cases or binary(numbers=(True, 2, -1, 0.5, NAN)), grad=False, widen=False)


def logic(name):
    return Row(name, getattr(torch, name), binary(numbers=()), grad=False, widen=False)


def bits(name):
    return Row(name, getattr(torch, name), binary(INTS + BOOL + (torch.float32,), numbers=(True, 2, 5), with_special="integers"), grad=False)


ROWS = [
    Row("add", scaled(torch.add), with_alpha),
    Row("sub", scaled(torch.sub), with_alpha),
    Row("rsub", torch.rsub, numbers_with()),
    Row("mul", torch.mul, binary()),
    Row("div", torch.div, division()),
    Row("div_rounded", lambda a, b, mode: torch.div(a, b, rounding_mode=mode), rounding_cases, widen=False),
    # torch.div, since a / b multiplies by the reciprocal: 0 / 1e-40 gives NaN.
    Row("number_div", lambda a, b: torch.div(torch.tensor(a), b.unsqueeze(0)).squeeze(0), numbers_with(first=True, low=0.5)),
    Row("floor_divide", torch.floor_divide, division((2, -2, 2.5, -0.75), with_special=False), grad=False, widen=False),
    Row("remainder", torch.remainder, division((2, -2, 2.5, -0.75), with_special=False), widen=False),
    Row("fmod", torch.fmod, division((2, -2, 2.5, -0.75), with_special=False), widen=False),
    Row("pow", torch.pow, powers, tolerance=2),
    Row("number_pow", torch.pow, numbers_with(numbers=(True, 2, 0, 3, 2.5, 0.5, 0.0, INF, NAN), first=True), tolerance=2),
    Row("float_power", torch.float_power, float_powers, tolerance=2),
    Row("number_float_power", torch.float_power, lambda: float_powers(first=True), tolerance=2),
    Row("atan2", torch.atan2, angles),
    Row("maximum", torch.maximum, binary(numbers=(), with_special=True)),
    Row("minimum", torch.minimum, binary(numbers=(), with_special=True)),
    Row("number_remainder", torch.remainder,
        lambda: (args for args in numbers_with(numbers=(2, 7, -3, 2.5, -0.75), low=0.5, first=True, x_dtypes=FLOATS)() if args[1].numel() != 20), grad=False, widen=False),
    Row("fmax", torch.fmax, binary(numbers=()), zero_sign=False, since=(2, 15), reason="equal elements did not share the gradient"),
    Row("fmin", torch.fmin, binary(numbers=()), zero_sign=False, since=(2, 15), reason="equal elements did not share the gradient"),
    Row("logaddexp", torch.logaddexp, binary(numbers=()), absolute=1),
    Row("logaddexp2", torch.logaddexp2, binary(numbers=()), absolute=1),
    Row("xlogy", torch.xlogy, binary(numbers=(2, 0.5, 0, -1))),
    Row("number_xlogy", torch.xlogy, numbers_with(numbers=(True, 2, 0, -1, 2.5, NAN), first=True)),
    Row("hypot", torch.hypot, binary(numbers=())),
    Row("copysign", torch.copysign, binary(numbers=(True, 2, -1, -0.0))),
    Row("heaviside", torch.heaviside, alike, grad=False),
    Row("lerp", torch.lerp, lerps, absolute=1),
    Row("addcmul", lambda x, a, b, value=1: torch.addcmul(x, a, b, value=value), three(), absolute=3),
    Row("addcdiv", lambda x, a, b, value=1: torch.addcdiv(x, a, b, value=value), three(quotient=True), absolute=3),
    plain("neg"),
    Row("positive", torch.positive, lambda: ((make((3, 5), dtype),) for dtype in ALL)),
    plain("abs"),
    plain("sign"),
    plain("square"),
    plain("floor"),
    plain("ceil"),
    plain("round"),
    plain("trunc"),
    plain("exp"),
    plain("expm1"),
    plain("log", low=0.0),
    plain("log1p", low=-0.9),
    plain("log2", low=0.0),
    plain("log10", low=0.0),
    plain("sqrt", low=0.0),
    plain("rsqrt", low=0.1),
    plain("reciprocal"),
    plain("sin"),
    plain("cos"),
    plain("tan"),
    plain("erf"),
    plain("erfc"),
    plain("exp2"),
    plain("asin", low=-1.0, high=1.0),
    plain("acos", low=-1.0, high=1.0),
    plain("atan"),
    plain("sinh"),
    plain("cosh"),
    plain("asinh"),
    plain("acosh", low=1.0, high=4.0),
    plain("atanh", low=-0.9, high=0.9),
    plain("sinc", low=0.2, absolute=0.1),
    plain("frac"),
    plain("deg2rad"),
    plain("rad2deg"),
    Row("logit", lambda x, eps=None: torch.logit(x, eps), lambda: (args for more in ((), (0.1,), (-1.0,)) for args in unary(low=0.0, high=1.0, more=more)()), absolute=1,
        special_grad=False),
    Row("nan_to_num", lambda x, nan=0.0, posinf=None, neginf=None: torch.nan_to_num(x, nan, posinf, neginf), activations((), (1.5,), (NAN, 2.0, -3.0), (0.0, None, 5.0))),
    Row("clamp", lambda x, low=None, high=None: torch.clamp(x, low, high), bounds, widen=False),
    Row("clamp_min", torch.clamp_min, one_bound(low=True), widen=False),
    Row("clamp_max", torch.clamp_max, one_bound(low=False), widen=False),
    plain("relu"),
    plain("sigmoid"),
    plain("tanh"),
    plain("silu", F.silu),
    Row("gelu", lambda x, approximate="none": F.gelu(x, approximate=approximate), gelu_cases, absolute=0.3, zero_sign=False),
    Row("softplus", F.softplus, activations((), (2.0, 3.0))),
    plain("logsigmoid", F.logsigmoid),
    # PyTorch 1.13 computes exp(x) - 1; at NaN its gradient depends on the dtype.
    Row("elu", F.elu, activations((), (0.5,)), absolute=0.03 if VERSION < (2, 0) else 0, zero_sign=False, special_grad=False),
    Row("rrelu", F.rrelu, activations((), (0.2, 0.3), (0.3, 0.2)) if VERSION >= (2, 0) else activations((), (0.2, 0.3))),
    Row("leaky_relu", F.leaky_relu, activations((), (0.2,))),
    Row("celu", F.celu, activations((), (0.5,)), absolute=0.03 if VERSION < (2, 0) else 0, zero_sign=False, special_grad=False),
    Row("selu", F.selu, activations(), absolute=0.03 if VERSION < (2, 0) else 0, zero_sign=False, special_grad=False),
    Row("prelu", F.prelu, slopes),
    # Its gradient at large numbers is NaN in PyTorch.
    Row("mish", F.mish, activations(), absolute=0.1, special_grad=False),
    Row("softsign", F.softsign, unary(dtypes=FLOATS), special_grad=False),
    # PyTorch's gradient takes 1 / 6 as a float32; at NaN the gradients of these depend on dtype and place.
    Row("hardsigmoid", F.hardsigmoid, unary(dtypes=(torch.float32, torch.float16, torch.bfloat16)), special_grad=False),
    Row("hardswish", F.hardswish, activations(), special_grad=False),
    Row("hardtanh", F.hardtanh, hardtanh_bounds, special_grad=False),
    Row("relu6", F.relu6, unary(low=-8.0, high=8.0), special_grad=False),
    Row("hardshrink", F.hardshrink, activations((), (1.25,)), special_grad=False),
    Row("softshrink", F.softshrink, shrinking, zero_sign=False, special_grad=False),
    Row("tanhshrink", F.tanhshrink, activations(), absolute=0.3),
    Row("threshold", F.threshold, activations((0.25, 1.5))),
    Row("glu", F.glu, halves),
    predicate("eq"),
    predicate("ne"),
    predicate("lt"),
    predicate("le"),
    predicate("gt"),
    predicate("ge"),
    logic("logical_and"),
    logic("logical_or"),
    logic("logical_xor"),
    predicate("logical_not", cases=unary()),
    bits("bitwise_and"),
    bits("bitwise_or"),
    bits("bitwise_xor"),
    Row("bitwise_not", torch.bitwise_not, unary(INTS + BOOL + (torch.float32,)), grad=False),
    predicate("isnan", cases=unary()),
    predicate("isinf", cases=unary()),
    predicate("isfinite", cases=unary()),
    predicate("isposinf", cases=unary()),
    predicate("isneginf", cases=unary()),
    predicate("signbit", cases=unary()),
    Row("isclose", torch.isclose, close_cases, grad=False, widen=False),
    Row("allclose", torch.allclose, close_cases, grad=False, widen=False),
    Row("equal", torch.equal, equal_cases, grad=False, widen=False),
]
