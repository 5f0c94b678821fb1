# Runs rows: PyTorch computes values and gradients, the helper program (tests/ops/operator_tool.cpp) does the same on Tern,
# and this compares them. Where PyTorch raises, Tern must raise too.

import dataclasses
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Callable, Optional, Sequence

import torch

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
# Largest relative difference by dtype; a row may multiply it.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 4e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.complex128: 1e-12, torch.complex64: 4e-6}
NARROW = (torch.float16, torch.bfloat16)
DEVICES = ("cpu", "simulated", "emulated", "gpu")
# How long the helper program may take for one case; a real GPU is not had for long.
TIMEOUT_S = {"cpu": 600, "simulated": 600, "emulated": 600, "gpu": 90}
# So many crashes and sticky errors, each of which costs a new process, end a row; a case without an answer does at once.
MOST_FAULTS = 5
# What Tern says of errors after which a process can not use the GPU any more.
STICKY = "The error is sticky"


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
    widen: bool = True          # for 16-bit values PyTorch's float32 result, rounded, is as good
    zero_sign: bool = True      # -0.0 differs from 0.0 in values
    special_grad: bool = True   # False: no gradients of NaN and infinities; with "tensor", none in their company
    since: tuple = (1, 13)      # PyTorch's version that defines the behaviour
    reason: str = ""            # why older ones differ


@dataclasses.dataclass
class Case:
    row: Row
    args: tuple
    error: Optional[str] = None      # PyTorch's error
    dtypes: Sequence = ()            # of the results
    requires_grad: Sequence = ()
    cotangents: Sequence = ()
    answers: Sequence = ()           # pairs of values and gradients (None for unused inputs), each as good as the others
    autocast: Optional[torch.dtype] = None  # Tern runs under autocast to it

    def request(self):
        return {"op": self.row.name, "args": list(self.args), "cotangents": list(self.cotangents), "autocast": self.autocast}

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
    return "complex" if dtype.is_complex else "float" if dtype.is_floating_point else "bool" if dtype == torch.bool else "int"


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
    if isinstance(result, (bool, int, float, complex)):
        dtypes = {float: torch.float64, complex: torch.complex128}
        return [torch.tensor(result, dtype=dtypes.get(type(result)))]
    return list(result)


def no_answer(error):
    """Whether the error tells of a gap or a fault of PyTorch, and nothing about the operator."""
    gaps = ("not implemented for", "not supported for dtype", "INTERNAL ASSERT", "returned an invalid gradient", "Autograd not support dtype")
    return isinstance(error, NotImplementedError) or any(gap in str(error) for gap in gaps)


def may_want_gradient(dtype):
    return dtype.is_floating_point or dtype.is_complex


def cotangent_like(tensor):
    """Weights around 1 that no symmetry of a formula cancels."""
    if tensor.dtype.is_complex:
        return torch.view_as_complex(cotangent_like(torch.view_as_real(tensor.detach().resolve_conj().clone())))
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
                     replace_tensors(a, lambda t: t.detach().requires_grad_() if may_want_gradient(t.dtype) else t)
                     for i, a in enumerate(args))
    case = Case(row, args)
    floats = set()
    replace_tensors(args, lambda t: floats.add(t.dtype) if t.dtype.is_floating_point else None)
    narrow = [dtype for dtype in NARROW if dtype in floats]
    native = None
    try:
        native = run_torch(case, args)
        case.dtypes = [o.dtype for o in native[0]]
        case.requires_grad = [o.requires_grad for o in native[0]]
        case.answers = [native]
    except Exception as error:  # whatever PyTorch raises is the expectation
        if not no_answer(error):
            case.error = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            return case
    forward = native
    if native is None:
        try:  # the gradient alone may be missing
            with torch.no_grad():
                forward = as_list(row.torch(*args)), []
        except Exception:
            if len(floats) > 1:
                return None  # nobody says what the result's dtype is
    if narrow and (row.widen or native is None):
        wide_args = tuple(replace_tensors(a, widened) for a in args)
        try:
            outputs, grads = run_torch(case, wide_args, None if native is None else case.cotangents)
        except Exception as error:
            if native is None and no_answer(error):
                return None
            if native is None:
                case.error = str(error)
            return case
        if native is None:
            case.dtypes = [narrow[0] if o.dtype == torch.float32 else o.dtype for o in outputs] if forward is None \
                else [o.dtype for o in forward[0]]
            case.requires_grad = [o.requires_grad for o in outputs]
            case.cotangents = [None if c is None else c.to(d) for c, d in zip(case.cotangents, case.dtypes)]
        case.answers = [*case.answers, (outputs, grads)]
    elif native is None:
        return None
    return case


def difference(actual, expected, tolerance, scale, absolute, zero_sign):
    """None when equal within the tolerance, else a text."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"is {describe(actual)}, PyTorch gives {describe(expected)}"
    if actual.numel() == 0:
        return None
    if actual.dtype.is_complex:
        actual, expected = (torch.view_as_real(t.resolve_conj()) for t in (actual, expected))
    if not actual.dtype.is_floating_point:
        wrong = actual != expected
    else:
        a, b = actual.double(), expected.double()
        finite = torch.isfinite(b)
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
    if result.get("error", "").startswith("operator_tool:"):
        return result["error"]
    if STICKY in result.get("error", ""):  # no wrong use may do that
        return f"raises: {result['error']}"
    if case.error is not None:
        return None if "error" in result else f"no error, PyTorch raises {case.error}"
    if "error" in result:
        return f"raises: {result['error']}"
    if len(result["outputs"]) != len(case.dtypes):
        return f"{len(result['outputs'])} results, PyTorch gives {len(case.dtypes)}"
    # The narrowest dtype that takes part decides what rounding may do.
    tolerance = [0, *(TOLERANCE.get(dtype, 0) for dtype in case.dtypes)]
    replace_tensors(case.args, lambda t: tolerance.append(TOLERANCE.get(t.dtype, 0)))
    tolerance = max(tolerance) * row.tolerance
    for i, (actual, dtype) in enumerate(zip(result["outputs"], case.dtypes)):
        if not row.values:
            expected = case.answers[0][0][i]
            if actual.dtype != dtype or actual.shape != expected.shape:
                return f"result {i} is {describe(actual)}, PyTorch gives {describe(expected)}"
            continue
        texts = [difference(actual, outputs[i].detach().to(dtype), tolerance, row.scale, row.absolute, row.zero_sign)
                 for outputs, _ in case.answers]
        if all(texts):
            return f"result {i}: {texts[-1]}"
    if row.grad and list(result["requires_grad"]) != list(case.requires_grad):
        return f"requires_grad is {result['requires_grad']}, PyTorch says {list(case.requires_grad)}"
    return verdict_on_gradients(case, result["grads"], tolerance) if row.grad and row.values and case.answers[0][1] else None


def verdict_on_gradients(case, gradients, tolerance):
    row, wanting = case.row, leaves(case.args)
    if len(gradients) != len(wanting):
        return f"{len(gradients)} gradients, PyTorch gives {len(wanting)}"
    for i, (actual, leaf) in enumerate(zip(gradients, wanting)):
        actual = torch.zeros_like(leaf) if actual is None else actual
        texts = []
        for outputs, grads in case.answers:
            expected = torch.zeros_like(leaf) if grads[i] is None else grads[i].to(leaf.dtype)
            if not row.special_grad and row.scale == "element":
                expected = torch.where(torch.isfinite(leaf), expected, actual)
            elif not row.special_grad and not all(bool(torch.isfinite(t).all()) for t in (leaf, *outputs)):
                expected = actual
            texts.append(difference(actual, expected, tolerance * row.grad_tolerance, row.scale, max(1.0, row.absolute), False))
        if all(texts):
            return f"gradient {i}: {texts[-1]}"
    return None


def find_tool():
    """The helper program; without it the test is skipped."""
    tool = os.environ.get("TERN_OPERATOR_TOOL")
    if not tool or not os.path.exists(tool):
        print("SKIP: TERN_OPERATOR_TOOL does not name the helper program")
        sys.exit(77)
    return tool


def environment_of(device):
    """What makes the helper program run on a device: cpu, a simulated GPU, one whose kernels the CUDA emulator runs, or a real gpu."""
    return {
        "cpu": {"TERN_TEST_DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": "", "TERN_SIM_GPUS": "0"},
        "simulated": {"TERN_TEST_DEVICE": "cuda:0", "TERN_SIM_GPUS": "1"},
        "emulated": {"TERN_TEST_DEVICE": "cuda:0", "TERN_CUDA_PLUGIN": os.environ.get("TERN_EMULATED_PLUGIN", "")},
        "gpu": {"TERN_TEST_DEVICE": "cuda:0"},
    }[device]


class Helper:
    """One run of the helper program, from a case on. Afterwards `failure` says why it ended early, `hangs` whether that was for want
    of an answer, and `running` which case it had begun last."""

    def __init__(self, command, output, device):
        self.command, self.output, self.device = command, output, device
        self.running, self.failure, self.hangs = None, None, False

    def results(self, first, left_out):
        """The results, as they come."""
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen([*self.command, str(first), *map(str, left_out)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=errors, bufsize=0, env={**os.environ, **environment_of(self.device)})
            try:
                for line in self._lines(process.stdout):
                    if line != b"saved":
                        if line.isdigit():  # CUDA's libraries may print something else
                            self.running = int(line)
                        continue
                    path = f"{self.output}.{first}"
                    results = torch.load(path)
                    os.remove(path)
                    first += len(results)
                    yield from results
                if not self.hangs and process.wait() != 0:
                    errors.seek(0)
                    self.failure = f"exit code {process.returncode}: {errors.read().decode(errors='replace').strip()[-2000:]}"
            finally:
                process.kill()
                process.wait()
                process.stdout.close()

    def _lines(self, stream):
        pending = b""
        while True:
            ready, _, _ = select.select([stream], [], [], TIMEOUT_S[self.device])
            if not ready:
                self.failure, self.hangs = f"no answer within {TIMEOUT_S[self.device]} s", True
                return
            piece = os.read(stream.fileno(), 65536)
            if not piece:
                return
            *lines, pending = (pending + piece).split(b"\n")
            yield from lines


def run_tool(tool, cases, device):
    """Tern's results on a device, as they come. After a crash, a case without an answer, or an error that ends all use of a real GPU,
    the rest goes on in a new process; a row with too many of these is left."""
    with tempfile.TemporaryDirectory(prefix="tern-operators-") as folder:
        request, output = pathlib.Path(folder) / "request.pt", pathlib.Path(folder) / "results.pt"
        torch.save([case.request() for case in cases], request)
        at, faults, without_start = 0, {}, 0
        left_out = {}  # the results of cases that are not run, or not once more

        def crashed(text, **more):
            return {"outputs": [], "requires_grad": [], "grads": [], "crash": text, **more}

        def count(i, weight):
            name = cases[i].row.name
            faults[name] = faults.get(name, 0) + weight
            if faults[name] >= MOST_FAULTS:
                for j in range(i + 1, len(cases)):
                    if cases[j].row.name == name:
                        left_out.setdefault(j, crashed("after what became of others of the row", not_run=True))

        while at < len(cases):
            if at in left_out:
                yield left_out[at]
                at += 1
                continue
            helper = Helper([tool, str(request), str(output)], output, device)
            for result in helper.results(at, [i for i in left_out if i > at]):
                yield left_out.get(at, result)
                at += 1
                if result is not None and STICKY in result.get("error", ""):
                    count(at - 1, 1)
                    break
            if helper.failure and helper.running is not None:
                left_out[helper.running] = crashed(helper.failure)
                count(helper.running, MOST_FAULTS if helper.hangs else 1)
            elif helper.failure:
                without_start += 1
                if without_start > 1:  # it does not even come to the first case
                    yield crashed(helper.failure)
                    yield from (crashed("since the helper program does not start", not_run=True) for _ in cases[at + 1:])
                    return


def make_oracle():
    """Prepares PyTorch for rows: the same random numbers in every run, and no AMX, on which its convolutions of bfloat16 corrupt memory
    (seen with 1.13 and 2.15). It reads the latter once, at the first of them."""
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    torch.manual_seed(0)


def run_rows(rows, tool, devices, limit=3):
    """Prints a line for each case that fails (at most `limit` for a row on a device), as they come, and how far it is; returns (passed,
    failed, without an answer, not run). Each case counts once for each device."""
    make_oracle()
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
    passed = count = waived = 0
    told = time.monotonic()
    for device in devices:
        failed, not_run = {}, {}
        for result, case in zip(run_tool(tool, cases, device), cases):
            name = case.row.name
            text = "crashed: " + result["crash"] if "crash" in result else verdict(case, result)
            if "not_run" in result:
                waived += 1
                not_run.setdefault((name, result["crash"]), []).append(case)
            elif text:
                count += 1
                failed[name] = failed.get(name, 0) + 1
                if failed[name] <= limit:
                    print(f"FAILED on {device}: {case.text()}: {text}", flush=True)
            else:
                passed += 1
            if time.monotonic() - told > 1:  # where this is ended from outside, the last such line counts
                print(f"so far {passed} passed, {count} failed", flush=True)
                told = time.monotonic()
        for name, number in failed.items():
            if number > limit:
                print(f"       and {number - limit} more of {name} on {device}")
        for (name, why), those in not_run.items():
            print(f"not run on {device}: {len(those)} cases of {name}, {why}")
    return passed, count, unanswered, waived
