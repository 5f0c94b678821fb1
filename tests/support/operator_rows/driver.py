# Runs rows: PyTorch computes values and gradients, the helper program (tests/ops/operator_tool.cpp) does the same on Tern,
# and this compares them. Where PyTorch raises, Tern must raise too.

import dataclasses
import pathlib
import subprocess
import tempfile
import warnings
from typing import Callable, Optional, Sequence

import torch

warnings.filterwarnings("ignore")
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
# Largest relative difference by dtype; a row may multiply it.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 4e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
NARROW = (torch.float16, torch.bfloat16)


@dataclasses.dataclass
class Row:
    """One operator. `cases` gives argument tuples; the same go to `torch` and to Tern's operator `name`."""
    name: str
    torch: Callable
    cases: Callable
    grad: bool = True           # compare gradients of all floating arguments but those at `no_grad`
    no_grad: Sequence[int] = ()
    tolerance: float = 1        # factor on TOLERANCE
    grad_tolerance: float = 4   # factor on TOLERANCE for gradients
    scale: str = "element"      # errors are relative to each "element", or to the largest of the "tensor"
    absolute: float = 0         # with "element": differences below TOLERANCE * absolute do not count
    values: bool = True         # False: random or uninitialised, only shape and dtype are compared
    widen: bool = True          # 16-bit values are compared with PyTorch's float32 result, rounded
    zero_sign: bool = True      # -0.0 differs from 0.0 in values
    special_grad: bool = True   # gradients are compared at NaN and infinite results too
    since: tuple = (1, 13)      # PyTorch's version that defines the behaviour
    reason: str = ""            # why older ones differ


@dataclasses.dataclass
class Case:
    row: Row
    args: tuple
    error: Optional[str] = None      # PyTorch's error
    outputs: Sequence = ()           # expected values
    dtypes: Sequence = ()
    requires_grad: Sequence = ()
    cotangents: Sequence = ()
    grads: Sequence = ()             # expected gradients, None for unused inputs
    compares_grads: bool = True

    def request(self):
        return {"op": self.row.name, "args": list(self.args), "cotangents": list(self.cotangents)}

    def text(self):
        return f"{self.row.name}({', '.join(describe(a) for a in self.args)})"


def describe(value):
    if isinstance(value, torch.Tensor):
        strides = "" if value.is_contiguous() else f" strides {list(value.stride())}"
        return f"{str(value.dtype)[6:]} {list(value.shape)}{strides}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(describe(v) for v in value)}]"
    return repr(value)


def kind(dtype):
    return "float" if dtype.is_floating_point else "bool" if dtype == torch.bool else "int"


def outline(args):
    """What decides whether arguments fit: kinds, shapes, strides, plain values."""
    return repr(replace_tensors(list(args), lambda t: (kind(t.dtype), t.shape, t.stride())))


def replace_tensors(value, function):
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(replace_tensors(v, function) for v in value)
    return value


def leaves(args):
    found = []
    for value in args:
        for tensor in value if isinstance(value, list) else [value]:
            if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
                found.append(tensor)
    return found


def as_list(result):
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (bool, int, float)):
        return [torch.tensor(result, dtype=torch.float64 if isinstance(result, float) else None)]
    return list(result)


def not_implemented(error):
    return isinstance(error, NotImplementedError) or "not implemented for" in str(error) or "not supported for dtype" in str(error)


def cotangent_like(tensor):
    """Weights around 1 that no symmetry of a formula cancels."""
    weights = 0.5 + (torch.arange(1, tensor.numel() + 1, dtype=torch.float64) * 0.6180339887498949) % 1
    return weights.reshape(tensor.shape).to(tensor.dtype)


def run_torch(case, args, cotangents=None):
    """Outputs and gradients; sets the cotangents on the first run."""
    outputs = as_list(case.row.torch(*args))
    if cotangents is None:
        cotangents = [cotangent_like(o) if o.requires_grad else None for o in outputs]
        case.cotangents = cotangents
    wanting = leaves(args)
    pairs = [(o, c.to(o.dtype)) for o, c in zip(outputs, cotangents) if c is not None and o.requires_grad]
    grads = []
    if pairs and wanting:
        grads = torch.autograd.grad([o for o, _ in pairs], wanting, [c for _, c in pairs], allow_unused=True)
    return outputs, grads


def widened(tensor):
    wide = tensor.detach().float() if tensor.dtype in NARROW else tensor.detach()
    return wide.requires_grad_(tensor.requires_grad)


def prepare(row, args):
    """The case with what PyTorch says; None where PyTorch has no answer."""
    args = tuple(args)
    if row.grad:
        args = tuple(a if i in row.no_grad else
                     replace_tensors(a, lambda t: t.detach().requires_grad_() if t.dtype.is_floating_point else t)
                     for i, a in enumerate(args))
    case = Case(row, args)
    narrow = []
    replace_tensors(args, lambda t: narrow.append(t) if t.dtype in NARROW else None)
    native, native_error = None, None
    try:
        native = run_torch(case, args)
    except Exception as error:  # whatever PyTorch raises is the expectation
        if not not_implemented(error):
            case.error = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            return case
        native_error = error
    if native is not None:
        outputs, grads = native
        case.outputs, case.grads = outputs, grads
        case.dtypes = [o.dtype for o in outputs]
        case.requires_grad = [o.requires_grad for o in outputs]
    elif not narrow:
        return None
    if narrow and (row.widen or native is None):
        wide_args = tuple(replace_tensors(a, widened) for a in args)
        try:
            outputs, grads = run_torch(case, wide_args, None if native is None else case.cotangents)
        except Exception as error:
            if native is None:
                if not_implemented(error):
                    return None
                case.error = str(error)
            return case
        if native is None:
            target = narrow[0].dtype
            case.dtypes = [target if o.dtype == torch.float32 else o.dtype for o in outputs]
            case.requires_grad = [o.requires_grad for o in outputs]
            case.cotangents = [None if c is None else c.to(d) for c, d in zip(case.cotangents, case.dtypes)]
        case.outputs = [o.to(d) for o, d in zip(outputs, case.dtypes)]
        case.grads = [None if g is None else g.to(leaf.dtype) for g, leaf in zip(grads, leaves(args))]
    case.outputs = [o.detach() for o in case.outputs]
    return case


def difference(actual, expected, factor, scale, absolute, zero_sign):
    """None when equal within the tolerance, else a text."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"is {describe(actual)}, PyTorch gives {describe(expected)}"
    if actual.numel() == 0:
        return None
    if not actual.dtype.is_floating_point:
        wrong = actual != expected
    else:
        a, b = actual.double(), expected.double()
        finite = torch.isfinite(b)
        tolerance = TOLERANCE[actual.dtype] * factor
        largest = torch.finfo(actual.dtype).max
        room = b.abs() * tolerance + torch.finfo(actual.dtype).tiny * torch.finfo(actual.dtype).eps * 2 + tolerance * absolute
        if scale == "tensor" and bool(finite.any()):
            room = room + tolerance * max(1.0, float(b[finite].abs().max()))
        wrong = ~((a - b).abs() <= room) & ~(a == b) & ~(a.isnan() & b.isnan())
        # Next to the largest number a rounding decides between it and infinity.
        wrong &= ~((a.abs() >= largest * (1 - tolerance)) & (b.abs() >= largest * (1 - tolerance)) & (a.sign() == b.sign()))
        if zero_sign:
            wrong |= (a == 0) & (b == 0) & (torch.signbit(a) != torch.signbit(b))
    if not bool(wrong.any()):
        return None
    place = tuple(wrong.nonzero()[0].tolist())
    return f"{int(wrong.sum())} of {wrong.numel()} elements differ, at {list(place)} it is {actual[place].item()!r}, " \
           f"PyTorch gives {expected[place].item()!r}"


def verdict(case, result):
    """None when Tern agrees, else what is wrong."""
    row = case.row
    if case.error is not None:
        return None if "error" in result else f"no error, PyTorch raises {case.error}"
    if "error" in result:
        return f"raises: {result['error']}"
    outputs = result["outputs"]
    if len(outputs) != len(case.outputs):
        return f"{len(outputs)} results, PyTorch gives {len(case.outputs)}"
    for i, (actual, expected, dtype) in enumerate(zip(outputs, case.outputs, case.dtypes)):
        expected = expected.to(dtype)
        if not row.values:
            if actual.dtype != dtype or actual.shape != expected.shape:
                return f"result {i} is {describe(actual)}, PyTorch gives {describe(expected)}"
            continue
        text = difference(actual, expected, row.tolerance, row.scale, row.absolute, row.zero_sign)
        if text:
            return f"result {i}: {text}"
    if not row.grad:
        return None
    if list(result["requires_grad"]) != list(case.requires_grad):
        return f"requires_grad is {result['requires_grad']}, PyTorch says {list(case.requires_grad)}"
    if not row.values or not case.grads:
        return None
    if len(result["grads"]) != len(case.grads):
        return f"{len(result['grads'])} gradients, PyTorch gives {len(case.grads)}"
    for i, (actual, expected, leaf) in enumerate(zip(result["grads"], case.grads, leaves(case.args))):
        actual = torch.zeros_like(leaf) if actual is None else actual
        expected = torch.zeros_like(leaf) if expected is None else expected.to(leaf.dtype)
        if not row.special_grad:
            kept = torch.isfinite(leaf.detach())
            for output in case.outputs:
                if output.shape == leaf.shape and output.dtype.is_floating_point:
                    kept &= torch.isfinite(output)
            actual, expected = actual * 0 if not bool(kept.any()) else actual[kept], expected * 0 if not bool(kept.any()) else expected[kept]
        text = difference(actual, expected, row.grad_tolerance * row.tolerance, row.scale, max(1.0, row.absolute), False)
        if text:
            return f"gradient {i}: {text}"
    return None


def run_tool(tool, cases):
    """Tern's results. When the program fails, the cases are halved until the one at fault is found."""
    if not cases:
        return []
    with tempfile.TemporaryDirectory(prefix="tern-operators-") as folder:
        request, results = pathlib.Path(folder) / "request.pt", pathlib.Path(folder) / "results.pt"
        torch.save([case.request() for case in cases], request)
        process = subprocess.run([tool, str(request), str(results)], capture_output=True, text=True)
        if process.returncode == 0:
            return torch.load(results)
    if len(cases) == 1:
        return [{"outputs": [], "requires_grad": [], "grads": [], "crash": f"exit code {process.returncode}: {process.stderr.strip()[-2000:]}"}]
    middle = len(cases) // 2
    return run_tool(tool, cases[:middle]) + run_tool(tool, cases[middle:])


def run_rows(rows, tool, limit=3):
    """Prints a line for each case that fails (at most `limit` for a row); returns (passed, failed, without an answer)."""
    torch.manual_seed(0)
    cases, unanswered = [], 0
    for row in rows:
        if VERSION < row.since:
            print(f"left out: {row.name}: PyTorch {torch.__version__} differs: {row.reason}")
            continue
        raised = set()  # of wrong uses that differ in dtype alone one is enough: PyTorch takes milliseconds to raise
        for args in row.cases():
            key = outline(args)
            if key in raised:
                continue
            case = prepare(row, args)
            if case is not None and case.error is not None:
                raised.add(key)
            if case is None:
                unanswered += 1
            else:
                cases.append(case)
    failed = {}
    for case, result in zip(cases, run_tool(tool, cases)):
        text = "crashed: " + result["crash"] if "crash" in result else verdict(case, result)
        if text:
            failed.setdefault(case.row.name, []).append(f"FAILED {case.text()}: {text}")
    for texts in failed.values():
        print("\n".join(texts[:limit]))
        if len(texts) > limit:
            print(f"       and {len(texts) - limit} more")
    count = sum(len(texts) for texts in failed.values())
    return len(cases) - count, count, unanswered
