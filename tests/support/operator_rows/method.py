# Rows of the methods of Tensor and of C++'s operators. They forward to the functions of the same name, so a part of the
# cases of those is enough. Methods that change the tensor in place, and are no functions of its elements, have their rows in
# index.py and creation.py.

import dataclasses
import operator
import pathlib
import re

import torch

from . import creation, index, network, order, pointwise, reduce, shape, special
from .driver import VERSION, Row
from .inputs import make

FUNCTIONS = {row.name: row for family in (pointwise, reduce, shape, index, order, network, creation, special) for row in family.ROWS}
COUNT, FEW = 24, 8
CORE = pathlib.Path(__file__).resolve().parents[3] / "tern" / "core"


def element_functions():
    """Those of tern/core/element_functions.h, which are methods in both forms."""
    return re.findall(r"^  X\((\w+)\)", (CORE / "element_functions.h").read_text(), re.MULTILINE)


def second_names():
    """Pairs of the second and the first name in tern/core/second_names.h."""
    return re.findall(r"^  X\((\w+), (\w+)\)", (CORE / "second_names.h").read_text(), re.MULTILINE)


def part(cases, fits, count):
    """So many of the cases that fit, spread over all of them; none that are large."""
    def chosen():
        small = [args for args in cases() if fits(args) and all(not isinstance(a, torch.Tensor) or a.numel() < 1000 for a in args)]
        yield from small[::max(1, len(small) // count)]
    return chosen


def of(function, name=None, fits=lambda args: True, torch_function=None, count=COUNT):
    """The row of a function under the name of the method, with those arguments that the method takes."""
    row = FUNCTIONS[function]
    return dataclasses.replace(row, name=name or f"Tensor.{function}", torch=torch_function or row.torch, cases=part(row.cases, fits, count))


def second(function, name, fits=lambda args: True, torch_function=None):
    """A few cases of a function under its second name."""
    return of(function, name, fits, torch_function or getattr(torch, name), FEW)


def infix(function, symbol, apply):
    return of(function, f"a {symbol} b", lambda args: len(args) == 2, apply)


def number_first(function, symbol, apply):
    """The cases x, number of a function, the other way round."""
    row = of(function, f"number {symbol} b", lambda args: len(args) == 2 and not isinstance(args[1], torch.Tensor), apply)
    cases = row.cases
    return dataclasses.replace(row, cases=lambda: (args[::-1] for args in cases()))


def in_place(function, method=None, fits=lambda args: True):
    """The row of a function as that of the method that changes the tensor."""
    method = method or f"{function}_"
    return of(function, method, fits, lambda x, *more: getattr(x.clone(), method)(*more))


def of_tensors(args):
    return all(isinstance(a, torch.Tensor) for a in args)


def with_factors(method):
    return lambda x, a, b, beta=1, alpha=1: getattr(x.clone(), method)(a, b, beta=beta, alpha=alpha)


def diagonal_fills():
    for dtype in (torch.float32, torch.float16, torch.int64, torch.bool):
        for shape in ((3, 3), (8, 3), (3, 5), (0, 3), (3, 3, 3)):
            yield make(shape, dtype), 1, True
    yield make((5, 3)).t(), 2.5
    yield make((7, 2), torch.int32), 2.5
    yield make((3,)), 1
    yield make((2, 3, 3)), 1


def with_value(method):
    return lambda x, a, b, value=1: getattr(x.clone(), method)(a, b, value=value)


def one(args):
    return len(args) == 1


def two(args):
    return len(args) == 2


def few(args):
    return len(args) <= 3


ROWS = [
    infix("add", "+", operator.add),
    infix("sub", "-", operator.sub),
    infix("mul", "*", operator.mul),
    infix("div", "/", operator.truediv),
    number_first("add", "+", operator.add),
    number_first("rsub", "-", operator.sub),
    number_first("mul", "*", operator.mul),
    infix("eq", "==", operator.eq),
    infix("ne", "!=", operator.ne),
    infix("lt", "<", operator.lt),
    infix("le", "<=", operator.le),
    infix("gt", ">", operator.gt),
    infix("ge", ">=", operator.ge),
    infix("remainder", "%", operator.mod),
    of("number_remainder", "number % b", torch_function=operator.mod),
    infix("bitwise_and", "&", operator.and_),
    infix("bitwise_or", "|", operator.or_),
    infix("bitwise_xor", "^", operator.xor),
    of("bitwise_not", "~a"),
    of("logical_not", "!a"),
    of("neg", "-a"),
    Row("a[i]", lambda x, i: x[i], lambda: ((make(s), i) for s in ((4,), (3, 5), (0,), ()) for i in (0, -1, 2, 4, -5))),
    Row("a[b]", lambda x, i: x[i], lambda: ((make((3, 5)), i) for i in (torch.tensor([2, 0, -1]), torch.tensor([[1], [0]]), torch.tensor(1), torch.tensor([3]),
                                                                        torch.tensor([True, False, True]), make((3, 5), torch.bool, 7), torch.tensor([], dtype=torch.int64)))),
    of("to"),
    of("clone", "Tensor.cpu"),
    *(of(name) for name in ("contiguous", "clone", "view", "reshape", "permute", "transpose", "t", "expand", "narrow", "slice", "select", "unsqueeze", "flatten",
                            "chunk", "split")),
    of("squeeze_dim", "Tensor.squeeze"),
    of("squeeze", "Tensor.squeeze", one),
    *(of(name) for name in ("abs", "exp", "log", "sqrt", "square", "sigmoid", "tanh", "relu", "clamp", "matmul")),
    of("pow", fits=lambda args: not isinstance(args[1], torch.Tensor)),
    of("eq", fits=lambda args: isinstance(args[1], torch.Tensor)),
    of("mm"),
    of("softmax", fits=two),
    of("log_softmax", fits=two),
    *(of(name, fits=few) for name in ("sum", "mean", "max", "min", "argmax", "argmin")),
    *(of(name, fits=one) for name in ("any", "all")),
    of("norm", fits=lambda args: two(args) and args[1] == 2, torch_function=lambda x, p: torch.linalg.vector_norm(x)),
    *(of(name, fits=lambda args: two(args[:2]) and args[1] is None and args[2] != 2, torch_function=lambda x, dim, c, name=name: getattr(x, name)(unbiased=c == 1))
      for name in ("var", "std")),
    *(in_place(name) for name in element_functions() if f"{name}_" not in FUNCTIONS),
    *(in_place(name) for name in ("floor_divide", "remainder", "fmod", "pow", "atan2", "copysign", "xlogy", "hypot", "heaviside", "clamp_min", "clamp_max",
                                  "lerp", "logit", "nan_to_num")),
    *(in_place(name, fits=lambda args: isinstance(args[1], torch.Tensor)) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    *(of(name, f"{name}_", torch_function=with_value(f"{name}_")) for name in ("addcmul", "addcdiv")),
    *(of(name, f"{name}_", torch_function=lambda x, *more, name=name: getattr(x.clone(), f"{name}_")(*more), count=FEW) for name in (
        "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not")),
    *(in_place(name) for name in ("tril", "triu", "renorm", "unsqueeze", "transpose", "t")),
    *(in_place(name, fits=two) for name in ("cumsum", "cumprod")),
    in_place("masked_scatter", fits=lambda args: VERSION >= (2, 0) or args[0].is_contiguous()),  # 1.13 writes elsewhere
    in_place("squeeze_dim", "squeeze_"),
    in_place("squeeze", "squeeze_", one),
    *(of(name, f"{name}_", lambda args, rank=rank: args[0].dim() >= rank, with_factors(f"{name}_"))
      for name, rank in (("addmm", 2), ("baddbmm", 3), ("addmv", 1), ("addr", 2))),
    Row("fill_diagonal_", lambda x, value, wrap=False: x.clone().fill_diagonal_(value, wrap), diagonal_fills),
    *(second(function, name, of_tensors) for name, function in second_names()),
    second("clamp", "clip", torch_function=lambda x, low=None, high=None: torch.clip(x, low, high)),
    second("cat", "concat"),
    second("cat", "concatenate", torch_function=torch.cat),  # which PyTorch 1.13 does not have
    second("vstack", "row_stack"),
    second("transpose", "swapdims"),
    second("movedim", "moveaxis"),
    second("dot", "vdot", lambda args: args[0].dim() == args[1].dim() == 1),
    of("div_rounded", "div_rounded_", torch_function=lambda a, b, mode: a.clone().div_(b, rounding_mode=mode)),
]
