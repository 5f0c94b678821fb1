"""The stages of the check on a GPU, in their order: what matters most comes first, since time may end. Each is a function of the
Check (machine.py) that gives parts (run.part), all together or one at a time, and may put figures into `check.figures`."""

import dataclasses
import json
import os
import re
import shutil
import sys
from typing import Callable

from .machine import printed
from .report import part_of_bench, part_of_operators
from .run import failure, part, part_of, status_of_outcome

# Rooms whose tests run with every tensor on the GPU: rooms_on_sim of tests/CMakeLists.txt.
# The longest is first.
ROOMS = ("io", "core", "autograd", "ops", "nn", "optim", "data", "train", "errors")
# For compute-sanitizer: kernels with shared memory, indices and pieces, each a few times. {name: (test program, tests, those of them that
# take too long when races are looked for, which takes about ten times as long as memcheck, share of the time)}. Random.Permutations and
# Losses.Gradients start more kernels than all others together; what NCCL and the algorithms that are tried do is theirs.
SANITIZED = {
    "layers": ("ops", "CtcLoss.*:Losses.Margins*:Interpolate.*:Rows/*:Recurrent.*:Attention.*:Pad.*:PixelShuffle.*:SearchSorted.*:ShortRows.*",
               "Rows/*:Interpolate.Repeats*:Recurrent.AnyLayout*:Attention.DerivativesAgree*", 4),
    "cuda": ("backends_cuda", "Gpu.*-Gpu.ALinkOfOneProcess:Gpu.TheFastest*:Gpu.LongSumsOfOneThread*",
             "Gpu.KernelsOfAStepWait*:Gpu.IndependentKernelsOfAStep:Gpu.ManyElementsAreWritten*", 4),
    "reduce": ("ops", "Reduce.*:ReduceGradient.*", "Reduce.EveryLayoutAndDimList*:Reduce.IntegersAndBool:ReduceGradient.AgreesWith*", 2),
    "matmul": ("ops", "Matmul.*:Linear.*", "Matmul.EveryRankAndBroadcast:Matmul.Gradients:Linear.EverySize:Linear.TwoWithGelu*", 2),
    "network": ("ops", "Conv2d.*:MaxPool2d.*:AvgPool2d.*:BatchNorm.*:LayerNorm.*:GroupNorm.*:RmsNorm.*:CrossEntropy.*:Losses.Pairs:Losses.LargeSums:"
                       "Random.Numbers*:Random.KnownNumbers:Random.Layout*:Random.Distributions:Random.Ranges:Random.Multinomial:Random.Dropout",
                "Conv2d.EveryOption:CrossEntropy.EveryOption*:LayerNorm.ManyRows*:BatchNorm.Training*:Random.Distributions", 5),
    "index": ("ops", "Softmax.*:SoftmaxGradient.*:Sort.*:SortAndScan.*:Scan.*:Index.*:Masks.*:Scatter.*:Gather.*:Take.*:Where.*:Embedding.*:"
                     "Nonzero.*", "Sort.IsStableForEvery*:Index.Gradients:Softmax.Every*:Softmax.ManyRows*:SoftmaxGradient.AgreesWith*", 5),
    "optim": ("optim", "GradScaler.*:All/Optimizers.*:OptimizerState.*:ClipGrad*", "GradScaler.RecordedStepsAreTheSame:GradScaler.ScaleAnd*", 2),
}
@dataclasses.dataclass
class Stage:
    name: str
    what: str
    run: Callable
    limit_s: float


def facts(check):
    outcome = check.program("facts", "doctor", [check.bin / "tern", "doctor"], {}, hang_s=120)
    check.program("facts", "nvidia-smi", ["nvidia-smi", "-q"], {}, hang_s=60)
    doctor = part("tern doctor", "passed", reason=outcome.how()) if check.simulated and not outcome.ok else part_of("tern doctor", outcome)
    torch = check.facts["torch"]
    if not torch:
        return [doctor, part("PyTorch", "skipped", reason=f"{check.python} imports no torch: the parts that need it are left out")]
    sees = torch["sees_gpu"] == "True" or check.simulated
    return [doctor, part("PyTorch", "passed" if sees else "failed", reason="" if sees else "it sees no GPU")]


def cuda(check):
    # On simulated GPUs these skip themselves.
    return [check.tests("cuda", "backends_cuda", {})]


def rooms(check):
    on_gpu = {**check.on_gpu(), **check.shared_cores, "TERN_CUDA_ATTENTION": "always"}  # tests have few scores
    return check.side_by_side([lambda room=room: check.tests("rooms", room, on_gpu) for room in ROOMS])


def operators(check):
    if not check.facts["torch"]:
        return [part("operator table", "skipped", reason="there is no PyTorch")]

    sys.path.insert(0, str(check.root / "tests/support"))
    from operator_rows import FAMILIES  # names alone

    def cases(script, title, arguments, env=None):
        command = [check.python, check.root / "tests/ops" / script, "--on", "simulated" if check.simulated else "gpu", *arguments]
        outcome = check.program("operators", title.replace(" ", "-"), command, {**check.shared_cores, **(env or {})})
        # The last line that says it: of the whole table, or how far it was.
        counts = {key: int(n) for pair in re.findall(r"(\d+) passed, (\d+) failed", outcome.text)[-1:] for key, n in zip(("passed", "failed"), pair)}
        faults = [line.partition(": ")[2] for line in outcome.text.splitlines() if line.startswith("FAILED on ")]
        found = [failure(fault.split("(")[0], fault) for fault in faults]
        if outcome.code == 77 or (not counts and not outcome.stopped):
            return part(title, "skipped" if outcome.code == 77 else "failed", reason=outcome.last_lines())
        notes = [line for line in outcome.text.splitlines() if line.startswith(("left out: ", "not run on "))]
        notes += [] if outcome.ok else [outcome.how()]
        status = "passed" if outcome.ok else "incomplete" if outcome.out_of_time and not found else "failed"
        return part(title, status, **counts, failures=found, seconds=outcome.seconds, reason="; ".join(notes))

    # Small float32 products and convolutions have kernels of their own; so that those of the libraries are seen too.
    libraries = {"TERN_CUDA_CONV": "cudnn", "TERN_CUDA_MATMUL": "cublas"}
    return check.side_by_side([
        *[lambda name=name: cases("operator_table.py", name, ["--family", name]) for name in FAMILIES],
        lambda: cases("operator_table.py", "network by libraries", ["--family", "network"], libraries),
        lambda: cases("operator_random.py", "random cases", ["--count", "400" if check.simulated else "2000"]),
    ])


def metrics_of(folder):
    """(loss of the first step, test accuracy of the last epoch) of a run of `tern train`."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line.get("type") == "step"]
    epochs = [line for line in lines if line.get("type") == "epoch"]
    return steps[0]["loss"], epochs[-1].get("test_accuracy", epochs[-1].get("accuracy"))


def train(check, stage, name, folder, *arguments, **env):
    data = f"mnist:{check.mnist}" if check.mnist else "digits"
    small = ["--limit", "2000"] if check.simulated else []
    command = [check.bin / "tern", "train", "--model", "lenet", "--data", data, "--seed", "7", "--log-every", "1", "--out", folder, *small, *arguments]
    return check.program(stage, name, command, env)


def fresh_folder(check, name):
    folder = check.work / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def lenet(check):
    """The same training on the CPU and on the GPU."""
    parts, results, epochs = [], {}, "1" if check.simulated else "3"
    for name, device, env in (("cpu", "cpu", {"CUDA_VISIBLE_DEVICES": "", "TERN_SIM_GPUS": None}), ("gpu", "cuda:0", {})):
        folder = fresh_folder(check, f"lenet-{name}")
        outcome = train(check, "lenet", name, folder, "--epochs", epochs, "--batch-size", "64", "--device", device, **env)
        if outcome.ok:
            results[name] = (*metrics_of(folder), outcome.seconds)
        parts.append(part_of(f"training on {device}", outcome, test="tern train"))
    if len(results) == 2:
        (here, right_here, seconds_here), (there, right_there, seconds_there) = results["cpu"], results["gpu"]
        check.figures["lenet"] = {"data": "MNIST" if check.mnist else "digits", "epochs": int(epochs), "first_loss_cpu": here, "first_loss_gpu": there,
                                  "accuracy_cpu": right_here, "accuracy_gpu": right_there, "seconds_cpu": seconds_here,
                                  "seconds_gpu": seconds_there}
        parts.append(judged("first loss", abs(here - there) <= 1e-4, f"{there:.6f}, on the CPU {here:.6f}; bar: within 1e-4"))
        parts.append(judged("accuracy", right_there >= right_here - 0.003,
                            f"{right_there:.2%}, on the CPU {right_here:.2%}; bar: not more than 0.3 points below"))
    return parts


def judged(name, met, text):
    return part(name, "passed" if met else "failed", reason=text)


def bench(check):
    for name in ("gpu_peer", "tern"):
        if not (check.bin / name).exists():
            return [part("benchmarks", "skipped", reason=f"{name} is not there (TERN_BUILD_BENCH)")]
    report = check.output / "bench.json"
    report.unlink(missing_ok=True)
    # It ends by itself before it is ended.
    command = [sys.executable, check.root / "bench/gpu_compare.py", "--tern", check.bin / "gpu_peer", "--json", report, "--log",
               check.log("bench", "peers"), "--budget", f"{max(5.0, check.left() - 20):.0f}", "--rounds", str(check.options.rounds)]
    if (check.bin / "gpu_bare").exists():
        command += ["--bare", check.bin / "gpu_bare"]
    if check.facts["torch"]:
        command += ["--python", check.python]
    if check.simulated:
        command += ["--small", "--rounds", "1", "--seconds", "0.001", "--torch-device", "cpu", "--no-compiled"]
    if check.options.cases:
        command += ["--only", check.options.cases]
    outcome = check.program("bench", "compare", command, {})
    try:
        check.figures["bench"] = found = json.loads(report.read_text())
    except (OSError, ValueError):
        return [part_of("benchmarks", outcome, status="failed" if outcome.ok else "")]
    for row in found["rows"]:
        row["version"] = check.facts["version"]
    return [part_of_bench(found, outcome.seconds, status_of_outcome(outcome), "" if outcome.ok else outcome.how())]


def operator_bench(check):
    """What is slower than PyTorch is a figure, no fault."""
    missing = [] if (check.bin / "operator_peer").exists() else ["operator_peer is not there (TERN_BUILD_BENCH)"]
    if reasons := missing + ([] if check.facts["torch"] else ["there is no PyTorch"]):
        return [part("operators beside PyTorch", "skipped", reason="; ".join(reasons))]
    report = check.output / "operator-bench.json"
    report.unlink(missing_ok=True)
    command = [check.python, check.root / "bench/operators.py", "--tern", check.bin / "operator_peer", "--python", check.python, "--device", "cuda:0",
               "--json", report, "--budget", f"{max(5.0, check.left() - 30):.0f}", "--rounds", str(check.options.rounds), "--seconds", "0.006"]
    command += ["--torch-device", "cpu", "--rounds", "1", "--only", "layers"] if check.simulated else ["--scale", "8"]
    # The operands of all cases, some gigabytes, go through a file.
    memory = "/dev/shm"
    fits = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 16 << 30
    outcome = check.program("operator_bench", "compare", command, {"TMPDIR": memory} if fits else {})
    try:
        check.figures["operators"] = found = json.loads(report.read_text())
    except (OSError, ValueError):
        return [part_of("operators beside PyTorch", outcome, status="failed" if outcome.ok else "")]
    return [part_of_operators(found, outcome.seconds)]


def soak(check):
    """Memory stays flat over many steps."""
    if not (check.bin / "gpu_peer").exists():
        return [part("memory", "skipped", reason="gpu_peer is not there (TERN_BUILD_BENCH)")]
    steps, parts = 200 if check.simulated else 10000, []
    for name, figure, more in (("memory", "soak", []), ("memory, captured", "soak_captured", ["--captured"])):
        outcome = check.program("soak", figure, [check.bin / "gpu_peer", "soak", steps, *more], {})
        samples = [json.loads(line) for line in outcome.text.splitlines() if line.startswith("{")]
        if not outcome.ok or len(samples) < 3:
            parts.append(part_of(name, outcome, test="gpu_peer soak", status="failed" if outcome.ok else ""))
            continue
        first, last = samples[0], samples[-1]
        check.figures[figure] = {"steps": steps, "first": first, "last": last}
        flat = last["allocated"] <= first["allocated"] and last["reserved"] <= first["reserved"]
        taken, grown = first["free"] - last["free"], last["resident"] - first["resident"]
        text = f"GPU: {first['allocated']} bytes in tensors after {first['step']} steps, {last['allocated']} after {last['step']}; reserved " \
               f"{first['reserved']} and {last['reserved']}; {taken / (1 << 20):.1f} MiB less free; the process grew by " \
               f"{grown / (1 << 20):.1f} MiB on the host"
        parts.append(judged(name, flat and max(taken, grown) < 32 << 20, text))
    return parts


def parallel(check):
    parts = [check.tests("parallel", "parallel", check.gpus(4))]
    folders = {name: fresh_folder(check, f"parallel-{name}") for name in ("one", "two")}
    two = check.gpus(2)
    one = train(check, "parallel", "train-one", folders["one"], "--epochs", "1", "--batch-size", "256", "--device", "cuda:0", **two)
    both = train(check, "parallel", "train-two", folders["two"], "--epochs", "1", "--batch-size", "256", "--devices", "cuda:0,cuda:1", **two)
    parts += [part_of("tern train on one GPU", one, test="tern train"), part_of("tern train on two", both, test="tern train")]
    if one.ok and both.ok:
        (loss_one, right_one), (loss_two, right_two) = metrics_of(folders["one"]), metrics_of(folders["two"])
        check.figures["parallel"] = {"first_loss_one": loss_one, "first_loss_two": loss_two, "accuracy_one": right_one, "accuracy_two": right_two}
        parts.append(judged("first loss of both", abs(loss_one - loss_two) <= 1e-4, f"{loss_one:.6f} and {loss_two:.6f}; bar: within 1e-4"))
    return parts


def device(check):
    # These make the GPUs that they want, or start programs that are told where to run: a thousand of them, which need not wake the GPU.
    hidden = {"TERN_SIM_GPUS": None, "CUDA_VISIBLE_DEVICES": ""}
    return [check.tests("device", "device", {"TERN_SIM_GPUS": None}), check.tests("device", "kernels", hidden), check.tests("device", "cli", hidden)]


# "0.123 ms" and "97.5 %" differ from run to run; names of devices from machine to machine.
def plain(text):
    text = re.sub(r"[0-9]+\.[0-9]+ (ms|%)", r"# \1", text)
    return re.sub(r"^(  cuda:\d+: )(?!one of|1000 of).*", r"\1# GPU", text, flags=re.MULTILINE)


def same_print(actual, expected):
    """Equal but for the last digits of numbers."""
    number = re.compile(r"-?\d+\.\d+(?:e[+-]\d+)?")
    if number.sub("#", actual) != number.sub("#", expected):
        return False
    return all(abs(float(a) - float(b)) <= 1e-3 * max(1.0, abs(float(b))) for a, b in zip(number.findall(actual), number.findall(expected)))


def examples(check):
    parts, done = [], set()
    kept = sorted((check.root / "tests/examples/expected").glob("*.txt"))
    programs = [p for p in sorted((check.build / "examples").glob("*")) if p.is_file() and os.access(p, os.X_OK)]
    for program in programs:
        counts = sorted(int(p.stem.rsplit(".", 1)[1]) for p in kept if p.stem.rsplit(".", 1)[0] == program.name)
        counts = [count for count in counts if count > 0] or [1]
        if program.name not in {p.stem.rsplit(".", 1)[0] for p in kept}:
            continue  # no example: a helper of the build
        for count in counts:
            folder = fresh_folder(check, f"example-{program.name}-{count}")
            folder.mkdir(parents=True)
            name = f"{program.name} on {count}"
            outcome = check.program("examples", name.replace(" ", "-"), [program], check.gpus(count), hang_s=120, cwd=folder)
            expected = check.root / f"tests/examples/expected/{program.name}.{count}.txt"
            if not outcome.ok:
                parts.append(part_of(name, outcome))
            elif expected.exists() and not same_print(plain(outcome.text), plain(expected.read_text())):
                parts.append(part(name, "failed", reason="prints something else than it should", failures=[failure(name, difference(outcome.text, expected))]))
            else:
                parts.append(part(name, "passed", seconds=outcome.seconds, reason="" if expected.exists() else "only that it runs"))
            done.add(program.name)
    return parts or [part("examples", "skipped", reason="no example is built (TERN_BUILD_EXAMPLES)")]


def difference(actual, expected):
    wanted, found = plain(expected.read_text()).splitlines(), plain(actual).splitlines()
    for i, line in enumerate(wanted):
        if i >= len(found) or not same_print(found[i], line):
            return f"line {i + 1} is: {found[i] if i < len(found) else '(missing)'}\nexpected: {line}"
    return f"it prints {len(found)} lines, expected {len(wanted)}"


OPEN_IN_TORCH = """
import sys, torch
loaded = torch.load(sys.argv[1], map_location="cpu", weights_only=True)
assert all(torch.isfinite(t).all() and t.device.type == "cpu" for t in loaded.values()), "a weight is not finite"
print(len(loaded), "tensors")
"""


def checkpoints(check):
    """Files written on the GPU go on elsewhere, and PyTorch's scripts of the tests pass."""
    parts = []
    folder = fresh_folder(check, "resume")
    steps = [("a run on the GPU", ("--epochs", "1", "--batch-size", "256", "--schedule", "none", "--device", "cuda:0"), {}),
             ("goes on on the CPU", ("--resume", "--epochs", "2", "--device", "cpu"), {"CUDA_VISIBLE_DEVICES": "", "TERN_SIM_GPUS": None}),
             ("goes on on the GPU", ("--resume", "--epochs", "3", "--device", "cuda:0"), {})]
    for name, arguments, env in steps:
        if "--resume" in arguments:
            outcome = check.program("checkpoints", "resume", [check.bin / "tern", "train", "--out", folder, *arguments], env)
        else:
            outcome = train(check, "checkpoints", "resume", folder, *arguments, **env)
        parts.append(part_of(name, outcome))
        if not outcome.ok:
            break
    if not check.facts["torch"]:
        return parts + [part("with PyTorch", "skipped", reason="there is no PyTorch")]
    if all(each["status"] == "passed" for each in parts):
        outcome = check.program("checkpoints", "torch", [check.python, "-c", OPEN_IN_TORCH, folder / "lenet.pt"], {})
        parts.append(part_of("opens in PyTorch", outcome))
    runner = check.root / "tests/support/run_python_test.py"
    for script in ("io/torch_roundtrip", "train/module_roundtrip", "train/resume_in_torch"):
        outcome = check.program("checkpoints", script.replace("/", "-"), [check.python, runner, check.root / f"tests/{script}.py"],
                                {"TERN_TEST_DEVICE": "cuda:0"})
        parts.append(part_of(script, outcome, status="skipped" if outcome.code == 77 else ""))
    return parts


# What of tests/python is about the host alone: its files, arrays and memory, names of tensors there, and PyTorch's draws.
ON_HOST = ("distributions_test", "files_test", "names_test", "numpy_test", "shared_memory_test", "whole_model_test")


def why_no_module(check, folder):
    """None where the Python of the check can import the module, else the reason."""
    extensions = sorted(folder.glob("tern/_C.*.so"))
    if not extensions:
        return f"{folder}/tern has no extension"
    suffix = printed([check.python, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"])
    if not any(each.name == f"_C{suffix}" for each in extensions):
        return f"the extension is {', '.join(each.name for each in extensions)}, this Python wants _C{suffix}"
    if not check.facts["torch"] or not printed([check.python, "-c", "import numpy; print('here')"]):
        return f"{check.python} imports no torch or no numpy"
    return None


def python(check):
    """The tests of the Python module, with every tensor on the GPU."""
    folder = check.root / "python" if check.bundle else check.build / "python"
    if reason := why_no_module(check, folder):
        return [part("Python module", "skipped", reason=f"not run: {reason}")]
    env = {**check.on_gpu(), **check.shared_cores, "PYTHONPATH": str(folder)}

    def test(script):
        command = [check.python, check.root / "tests/support/run_python_test.py", script]
        outcome = check.program("python", script.stem, command, env)
        result = part_of(script.stem, outcome, status="skipped" if outcome.code == 77 else "")
        faults = sorted(set(re.findall(r"^(?:FAIL|ERROR): (\S+)", outcome.text, re.MULTILINE)))
        if ran := re.search(r"^Ran (\d+) tests?", outcome.text, re.MULTILINE):
            result.update(passed=int(ran[1]) - len(faults), failed=len(faults))
        return result

    scripts = [path for path in sorted((check.root / "tests/python").glob("*_test.py")) if path.stem not in ON_HOST]
    return check.side_by_side([lambda script=script: test(script) for script in scripts])


def sanitizer(check):
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if check.simulated or not os.path.exists(program):
        yield part("compute-sanitizer", "skipped", reason="the GPUs are simulated" if check.simulated else "it is not on this machine")
        return
    # A test that asks for more memory than there is gets a CUDA error on purpose: only what kernels do counts.
    # Races within a library's kernels are its own affair; newer releases call the option --kernel-name, and take this one too.
    tools = (("memcheck", ["--report-api-errors", "no"], {"TERN_NO_CUDA_MEMORY_CACHING": "1"}), ("racecheck", ["--kernel-regex", "kns=tern"], {}))
    left = 2 * (2 + sum(share for *_, share in SANITIZED.values()))
    for tool, extra, env in tools:
        wrapper = [program, "--tool", tool, "--print-limit", "20", "--error-exitcode", "99", *extra]
        for name in ("train", *SANITIZED):  # the program first: it shows soonest that the tool can not work here
            test, only, slow, share = SANITIZED.get(name, ("", "", "", 2))
            if tool == "racecheck" and slow:
                only += (":" if "-" in only else "-") + slow
            label, limit = f"{tool}-{name}", check.left() * share / left
            log = check.log("sanitizer", label)
            if test:
                env_here = env if test == "backends_cuda" else {**env, **check.on_gpu()}
                result = check.tests("sanitizer", test, env_here, limit, only, wrapper, label, silent_s=600)
            else:
                command = [*wrapper, check.bin / "tern", "train", "--model", "lenet", "--data", "digits", "--limit", "512", "--epochs", "1", "--device",
                           "cuda:0", "--out", fresh_folder(check, label)]
                result = part_of(label, check.program("sanitizer", label, command, env, limit), test="tern train")
            yield with_findings(result, log)
            if refuses(said(log)):
                return
            left -= share


def said(log):
    """What the sanitizer wrote itself."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return [line.strip("= ") for line in lines if line.startswith("=========")]


def refuses(lines):
    """Whether it can not work on this device: every kernel then fails, which tells nothing about the kernel."""
    return any("not supported" in line for line in lines) and not findings(lines)


def findings(lines):
    return [line for line in lines if re.search(r"\bInvalid\b|hazard|Race reported|Misaligned|out of bounds", line) and "SUMMARY" not in line]


def with_findings(result, log):
    """The result with what the sanitizer says in the log."""
    lines = said(log)
    if refuses(lines):
        return part(result["name"], "skipped", seconds=result.get("seconds", 0), reason=f"the sanitizer can not work here: {' '.join(lines[:5])}")
    counts = [int(n) for line in lines for n in re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", line)]
    found = findings(lines)
    if count := max(sum(counts), len(found)):
        result.update(status="failed", reason=f"{count} findings: {'; '.join(found[:3])}")
    elif result["status"] == "incomplete":
        result["reason"] += "; no finding until then" if lines else ""
    elif not counts:
        result.update(status="failed", reason=f"the sanitizer gave no summary: {' '.join(lines[-5:])}")
    else:
        result["reason"] = "; ".join(filter(None, [result.get("reason"), "no finding"]))
    return result


STAGES = (
    Stage("facts", "the machine", facts, 120),
    Stage("cuda", "the backend's own tests", cuda, 240),
    Stage("operators", "the operator table and random cases against PyTorch on the CPU", operators, 900),
    Stage("rooms", "every room's tests with all tensors on the GPU", rooms, 600),
    Stage("lenet", "LeNet: loss and accuracy of the CPU", lenet, 300),
    Stage("soak", "memory over many steps", soak, 200),
    Stage("parallel", "DataParallel on logical GPUs", parallel, 300),
    Stage("bench", "benchmarks beside PyTorch", bench, 600),
    Stage("operator_bench", "every operator beside PyTorch, alone and with its gradients", operator_bench, 300),
    Stage("device", "devices, kernels and the program", device, 200),
    Stage("examples", "the examples", examples, 240),
    Stage("python", "the Python module's tests with all tensors on the GPU", python, 300),
    Stage("checkpoints", "checkpoints between GPU, CPU and PyTorch", checkpoints, 300),
    Stage("sanitizer", "compute-sanitizer: memcheck and racecheck", sanitizer, 900),
)
