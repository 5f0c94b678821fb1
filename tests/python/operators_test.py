"""Operators are called as PyTorch's: the expressions of the operator table (tests/support/operator_rows) a second time, with
`tern` in the place of `torch`, and calls as programs write them, beside what PyTorch gives. How exact numbers are is the table's
business; this is about names, arguments, overloads and results.
"""

import importlib
import itertools
import pathlib
import sys
import types
import unittest
from unittest import mock

import torch

import tern
import tern.nn.functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import operator_rows  # noqa: E402
from operator_forms import FORMS, RANDOM_FORMS  # noqa: E402
from operator_rows import driver, inputs  # noqa: E402

# What of each row is run: the first cases whose arguments differ in kind.
LOOKED_AT, CASES, LARGEST = 300, 8, 300

# Rows that are no calls of tern.
LEFT_OUT = {
    "recurrent_layer": "is torch._VF's; the layers are in layers_test.py",
    "index": "is torch.ops.aten's, in Python x[...]",
    "index_put": "is torch.ops.aten's, in Python x[...] = y",
    "index_put_": "is torch.ops.aten's, in Python x[...] = y",
    "embedding_renorm_": "is a part of F.embedding",
    "norm": "is torch.linalg's; torch.norm is among the forms",
    "Tensor.norm": "is torch.linalg's; torch.norm is among the forms",
}


def names_for(module):
    """What the forms are about."""
    return {"torch": module, "F": module.nn.functional, "x": module.tensor([[0.5, -1.25, 2.0], [3.0, -0.75, 0.25]]),
            "y": module.tensor([[1.5, 2.0, -0.5], [0.25, 4.0, -3.0]]), "i": module.tensor([[0, 1, 2], [2, 0, 1]])}


class Missing:
    """What tern does not have: an error when it is used."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, name):
        return Missing(f"{self.name}.{name}")

    def __call__(self, *args, **kwargs):
        raise AttributeError(f"there is no {self.name}")


class Stand(types.ModuleType):
    """A module of tern in the place of one of torch. Inputs that rows make while they are imported are PyTorch's."""

    importing = True

    def __init__(self, module):
        super().__init__(module.__name__)
        self.module = module

    def __getattr__(self, name):
        if Stand.importing and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        return getattr(self.module, name, None) or Missing(f"{self.module.__name__}.{name}")


def rows_of_tern():
    """The modules of rows, with tern as `torch`; inputs and comparison stay PyTorch's."""
    package = types.ModuleType("rows_of_tern")
    package.__path__ = operator_rows.__path__
    stands = {"torch": Stand(tern), "torch.nn": Stand(tern.nn), "torch.nn.functional": Stand(tern.nn.functional)}
    kept = {"rows_of_tern": package, "rows_of_tern.driver": driver, "rows_of_tern.inputs": inputs}
    with mock.patch.dict(sys.modules, {**stands, **kept}):
        modules = {name: importlib.import_module(f"rows_of_tern.{name}") for name in operator_rows.FAMILIES}
    Stand.importing = False
    for module in modules.values():
        for row in module.ROWS:
            if getattr(row.torch, "__defaults__", None):
                row.torch.__defaults__ = to_tern(row.torch.__defaults__)
    return modules


def to_tern(value):
    if isinstance(value, torch.Tensor):
        result = tern.tensor(value.detach().reshape(-1).tolist(), dtype=to_tern(value.dtype)).reshape(value.shape)
        return result.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        return getattr(tern, str(value)[6:])
    return type(value)(map(to_tern, value)) if isinstance(value, (list, tuple)) else value


def to_torch(tensor):
    dtype = getattr(torch, str(tensor.dtype)[6:])
    return torch.tensor(tensor.detach().reshape(-1).tolist(), dtype=dtype).reshape(tuple(tensor.shape))


def tensors_in(value):
    if isinstance(value, (torch.Tensor, tern.Tensor)):
        return [value]
    return [t for each in value for t in tensors_in(each)] if isinstance(value, (list, tuple)) else []


def outline(value):
    """The kinds of results: tuples with their fields, lists, tensors, numbers."""
    if isinstance(value, (torch.Tensor, tern.Tensor)):
        return "tensor"
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None) or [f for f in ("values", "indices", "min", "max") if hasattr(type(value), f)]
        return tuple(fields), [outline(each) for each in value]
    return [outline(each) for each in value] if isinstance(value, list) else type(value).__name__


def kinds(value):
    if isinstance(value, (list, tuple)):
        return [kinds(each) for each in value]
    return str(value.dtype) if isinstance(value, torch.Tensor) else type(value).__name__


def with_gradient(tensor):
    return tensor.detach().requires_grad_(driver.may_want_gradient(tensor.dtype))


def chosen(row):
    """Cases that PyTorch computes: arguments, with gradients where the row has them, and PyTorch's results and gradients."""
    seen = set()
    for args in itertools.islice(row.cases(), LOOKED_AT):
        tensors = tensors_in(args)
        key = repr(kinds(args))
        if key in seen or any(t.numel() > LARGEST or t.dtype not in (torch.float32, torch.complex64, torch.int64, torch.bool) for t in tensors):
            continue
        if row.grad:
            args = tuple(a if i in row.no_grad else driver.replace_tensors(a, with_gradient) for i, a in enumerate(args))
        try:
            result = row.torch(*args)
            yield args, result, gradients(torch, result, args)
        except Exception:  # a wrong use, which the table compares
            continue
        seen.add(key)
        if len(seen) == CASES:
            return


def gradients(module, results, arguments):
    results = [r for r in tensors_in(results) if r.requires_grad]
    arguments = [a for a in tensors_in(arguments) if a.requires_grad]
    if not results or not arguments:
        return []
    sums = [r.sum() for r in results]
    sums = [total.real + total.imag if total.is_complex() else total for total in sums]
    return module.autograd.grad(sums, arguments, allow_unused=True)


def difference(result, expected, values=True, tolerance=1):
    """None, or what is wrong with what tern gives."""
    if outline(result) != outline(expected):
        return f"gives {outline(result)}, PyTorch {outline(expected)}"
    if not tensors_in(expected):
        same = result == expected or result != result and expected != expected
        return None if same or isinstance(result, float) and abs(result - expected) < 1e-5 else f"is {result}, not {expected}"
    for actual, wanted in zip(tensors_in(result), tensors_in(expected)):
        actual, wanted = to_torch(actual), wanted.detach()
        if not values:  # random numbers
            actual, wanted = torch.zeros_like(actual), torch.zeros_like(wanted)
        text = driver.difference(actual, wanted, 1e-4 * tolerance, "tensor", 1, False)
        if text:
            return text
    return None


def difference_of_gradients(actual, wanted, tolerance):
    """Where they are finite: what is at the borders is the table's business."""
    for a, w in zip(actual, wanted):
        if a is not None and w is not None:
            a = to_torch(a)
            text = driver.difference(a, torch.where(w.isfinite(), w, a), 1e-4 * tolerance, "tensor", 1, False)
            if text:
                return f"gradient: {text}"
    return None


class Operators(unittest.TestCase):
    def test_rows_of_the_table(self):
        driver.make_oracle()
        copies, ran = rows_of_tern(), 0
        for family, module in operator_rows.families().items():
            for row, copy in zip(module.ROWS, copies[family].ROWS, strict=True):
                if driver.VERSION < row.since or row.name in LEFT_OUT:
                    continue
                for args, expected, expected_gradients in chosen(row):
                    ran += 1
                    with self.subTest(row=row.name, args=[driver.describe(a) for a in args]):
                        given = to_tern(args)
                        result = copy.torch(*given)
                        self.assertIsNone(difference(result, expected, row.values, row.tolerance))
                        if row.values:
                            found = gradients(tern, result, given)
                            self.assertIsNone(difference_of_gradients(found, expected_gradients, row.tolerance))
        self.assertGreater(ran, 1000)

    def test_forms(self):
        random = RANDOM_FORMS.strip().splitlines()
        for form in FORMS.strip().splitlines() + random:
            with self.subTest(form=form):
                try:
                    expected = eval(form, names_for(torch))
                except (TypeError, AttributeError):
                    self.assertLess(driver.VERSION, (2, 15), "PyTorch takes it")
                    continue
                if isinstance(expected, str) and tern.get_default_device().type == "cuda":
                    expected = expected.replace("torch.", "torch.cuda.")  # names of types
                self.assertIsNone(difference(eval(form, names_for(tern)), expected, values=form not in random))

    def test_wrong_use_of_out(self):
        for module in (torch, tern):
            x = module.ones(2, requires_grad=True)
            with self.assertRaises(RuntimeError):
                module.exp(x, out=module.zeros(2))
            with self.assertRaises((RuntimeError, TypeError)):
                module.exp(x.detach(), out=module.zeros(2, dtype=module.int64))
            with self.assertRaises(TypeError):
                module.exp(x, outs=x)
            out = module.zeros(2)
            self.assertIs(module.exp(x.detach(), out=out), out)


if __name__ == "__main__":
    unittest.main()
