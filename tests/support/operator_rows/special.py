# Rows of tern/ops/special.h, and of the special functions in pointwise.h. PyTorch computes float32 in float32, Tern in double: near
# zeros of these functions only the size of the error is compared.

import torch

from .driver import VERSION, Row
from .inputs import FLOATS, INF, INTS, WIDE, binary, make, special, unary


def gamma_operands():
    """Shapes and places, on both sides of each other, and the ends of their ranges."""
    for dtype in FLOATS if VERSION >= (2, 0) else WIDE:
        for a, x in (((3, 5), (3, 5)), ((3, 1), (5,)), ((), (4,)), ((0,), (1,))):
            yield make(a, dtype, 0, 0.2, 6.0), make(x, dtype, 1, 0.1, 9.0)
    for dtype in WIDE:
        yield make((200,), dtype, 0, 0.01, 60.0), make((200,), dtype, 1, 0.01, 60.0)
        ends = torch.tensor([0.0, 1.0, 3.5, INF, -1.0], dtype=dtype)
        yield ends[:, None], ends
        yield make((40,), dtype, 0, 900.0, 1100.0), make((40,), dtype, 1, 900.0, 1100.0)
    yield make((3,)), make((3,), torch.int64)
    yield make((3,), torch.int64, 0, 1.0, 5.0), make((3,), torch.int64, 0, 1.0, 5.0)


def zeta_operands():
    for args in binary(WIDE, numbers=(2, 1.5), left=(1.2, 6.0), right=(0.2, 9.0), with_special=False)():
        yield args
    for dtype in WIDE:
        ends = torch.tensor([0.0, 0.5, 1.0, 2.0, 2.5, 4.0, -2.0], dtype=dtype)
        yield ends[:, None], torch.cat([ends, torch.tensor([-1.5], dtype=dtype)])


def orders():
    """polygamma(n, x)."""
    for n in (0, 1, 2, 3, 6, -1):
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64):
            yield n, make((3, 5), dtype, 0, 0.3, 9.0)
        yield n, make((70,), torch.float32, 0, 0.05, 40.0)
        if n > 1:  # the first one has ten digits in PyTorch
            yield n, make((70,), torch.float64, 0, 0.05, 40.0)
    yield 1, make((50,), torch.float32, 0, -8.9, -8.1)


def dimensions():
    """multigammaln(x, p)."""
    for p in (1, 2, 5):
        for dtype in WIDE:
            yield make((3, 5), dtype, 0, (p - 1) / 2 + 0.1, 9.0), p
        yield make((), torch.float32, 0, 4.0, 9.0), p
    yield make((3,), torch.int64, 0, 3.0, 9.0), 2
    yield make((3,)), 0


def whole(limit=40, numbers=(), tensors=INTS + (torch.bool, torch.float32)):
    return binary(tensors, numbers=numbers, with_special=False, left=(-limit, limit), right=(-limit, limit))


def shifts(number_first=False):
    def cases():
        for dtype in INTS:
            bits = 8 * torch.iinfo(dtype).bits // 8
            a = make((3, 7), dtype, 0, -90.0, 90.0)
            for by in (0, 1, 3, bits - 1, bits, -1):
                if number_first:
                    yield 5, torch.full((3,), by if dtype != torch.uint8 else max(by, 0), dtype=dtype)
                elif by >= 0 or dtype != torch.uint8:
                    yield a, by
                    yield a, torch.full((7,), by, dtype=dtype)
            if not number_first:
                yield a.t(), make((7, 3), dtype, 1, 0.0, 7.0)
        if not number_first:
            yield make((3,), torch.int32), make((3,), torch.int64, 0, 0.0, 7.0)
            yield make((3,)), make((3,))
    return cases


CLOSE = {"absolute": 4, "tolerance": 8, "grad_tolerance": 16, "zero_sign": False}
GAMMA = {"no_grad": (0,), "absolute": 8, "tolerance": 60, "grad_tolerance": 60, "zero_sign": False, "special_grad": False}
ROWS = [
    Row("lgamma", torch.lgamma, unary(low=-4.5, high=9.0), special_grad=False, **CLOSE),
    Row("digamma", torch.digamma, unary((torch.float32, torch.float16, torch.bfloat16), low=0.1, high=9.0, with_special=False), **CLOSE),
    Row("polygamma", torch.polygamma, orders, special_grad=False, **CLOSE),
    Row("erfinv", torch.erfinv, unary(low=-0.999, high=0.999), special_grad=False, **CLOSE),
    Row("mvlgamma", torch.mvlgamma, dimensions, **CLOSE),
    Row("igamma", torch.igamma, gamma_operands, **GAMMA),
    Row("igammac", torch.igammac, gamma_operands, **GAMMA),
    Row("gcd", torch.gcd, whole(), grad=False),
    Row("lcm", torch.lcm, whole(9), grad=False),
    Row("bitwise_left_shift", torch.bitwise_left_shift, shifts(), grad=False, since=(2, 0), reason="shifts by all bits and by negative numbers were the processor's"),
    Row("number_bitwise_left_shift", torch.bitwise_left_shift, shifts(True), grad=False, since=(2, 0), reason="shifts by all bits and by negative numbers were the processor's"),
    Row("bitwise_right_shift", torch.bitwise_right_shift, shifts(), grad=False, since=(2, 0), reason="shifts by all bits and by negative numbers were the processor's"),
    Row("number_bitwise_right_shift", torch.bitwise_right_shift, shifts(True), grad=False, since=(2, 0), reason="shifts by all bits and by negative numbers were the processor's"),
    Row("special.gammaln", torch.special.gammaln, unary(FLOATS, low=0.1, high=9.0), special_grad=False, **CLOSE),
    Row("special.psi", torch.special.psi, unary(low=-4.5, high=9.0), grad=False, **CLOSE),
    Row("special.digamma", torch.special.digamma, unary(low=-4.5, high=9.0), grad=False, **CLOSE),
    Row("special.polygamma", torch.special.polygamma, orders, special_grad=False, **CLOSE),
    Row("special.multigammaln", torch.special.multigammaln, dimensions, **CLOSE),
    Row("special.gammainc", torch.special.gammainc, gamma_operands, **GAMMA),
    Row("special.gammaincc", torch.special.gammaincc, gamma_operands, **GAMMA),
    Row("special.zeta", torch.special.zeta, zeta_operands, no_grad=(0,), special_grad=False, **CLOSE),
    Row("special.number_zeta", torch.special.zeta, lambda: ((s, make((3, 5), dtype, 0, 0.2, 9.0)) for dtype in WIDE for s in (2, 3.5)), special_grad=False, **CLOSE),
    Row("special.erfinv", torch.special.erfinv, unary(FLOATS, low=-0.999, high=0.999), special_grad=False, **CLOSE),
    Row("special.ndtr", torch.special.ndtr, unary(), absolute=1),
    Row("special.entr", torch.special.entr, unary(low=0.0), special_grad=False, absolute=1, zero_sign=False),
]
