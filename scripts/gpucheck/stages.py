"""The stages of the check on a GPU, in their order: what matters most comes first, since time may end. Each is a function of the
Check that gives a list of parts (run.part) and may put figures into `check.figures`."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from typing import Callable

from . import run
from .run import failure, part

# Rooms whose tests run with every tensor on the GPU: rooms_on_sim of tests/CMakeLists.txt.
ROOMS = ("core", "autograd", "ops", "nn", "optim", "data", "io", "train", "errors")
FAMILIES = ("pointwise", "network", "reduce", "shape", "index", "method", "creation")
TOOLS = ("operator", "copy", "module", "resume", "logits")
# Tests of files that lie in the build's own folders, which a bundle does not have; they need no GPU.
NOT_IN_BUNDLE = {
    "test_backends_cuda": "CudaPlugin.HasEveryKernel:CudaPlugin.CarriesItsVersion:CudaPlugin.OpensNothing*:CudaPlugin.AnswersWithoutAGpu",
    "test_ops": "Print.EqualsPyTorch",
    "test_device": "Plugin.MustFitTheLibrary:Plugin.SaysWhyItHasNoGpu",
}
# Tests that make simulated GPUs of their own, which can not be while real ones are in use.
ONLY_SIMULATED = {
    "test_parallel": "DataParallelTest.TheSameBitsWithJitterAndOtherStreams:DataParallelTest.WithoutAGpuItIsAPlainCall:"
                     "DataParallelTest.GoesOnAfterAFailedDevice:SyncBatchNormTest.TheSameBitsInEveryRun:Soak.*",
}
# The subset for compute-sanitizer: kernels with shared memory, indices and pieces, each a few times.
SANITIZED_OPS = ("Reduce.*:ReduceGradient.*:Softmax.*:SoftmaxGradient.*:Sort.*:SortAndScan.*:Scan.*:Index.*:Masks.*:Scatter.*:Gather.*:Take.*:"
                 "Where.*:Embedding.*:Conv2d.*:MaxPool2d.*:AvgPool2d.*:BatchNorm.*:LayerNorm.*:GroupNorm.*:RmsNorm.*:CrossEntropy.*:Losses.*:"
                 "Matmul.*:Linear.*:Random.*:Nonzero.*")
SANITIZED = (("test_backends_cuda", "Gpu.*"), ("test_ops", SANITIZED_OPS), ("test_optim", "OptimizerState.*:ClipGradNorm.*"))


@dataclasses.dataclass
class Stage:
    name: str
    what: str
    run: Callable
    limit_s: float


class Check:
    """Where everything is, and how programs are started."""

    def __init__(self, root, options):
        self.root, self.options, self.simulated = root, options, options.simulate
        self.bundle = (root / "bundle.json").exists()
        self.build = root if self.bundle else pathlib.Path(options.build or root / "build").resolve()
        self.bin = self.build / "bin"
        self.logs = pathlib.Path(options.output).resolve() / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.figures, self.facts = {}, {}
        self.end = 0.0  # of the stage at hand, on time.monotonic()
        shared = next((p for p in (root / "shared", root.parent / "shared") if p.is_dir()), None)
        mnist = pathlib.Path(options.mnist) if options.mnist else shared / "data/mnist" if shared else None
        self.mnist = mnist if mnist and mnist.is_dir() else None
        self.base = {k: v for k, v in os.environ.items() if not k.startswith("TERN_") and k != "LD_LIBRARY_PATH"}
        self.base.update(TERN_PROGRAM=str(self.bin / "tern"), PYTHONDONTWRITEBYTECODE="1")
        self.base.update({f"TERN_{tool.upper()}_TOOL": str(self.bin / f"{tool}_tool") for tool in TOOLS})
        if shared:
            self.base["TERN_SHARED_DIR"] = str(shared)
        if self.simulated:
            self.base["TERN_SIM_GPUS"] = "2"
        self.python = options.python or sys.executable
        self.jobs = options.jobs or max(1, min(4, (os.cpu_count() or 1) // 4))
        self._set_library_path()

    def _set_library_path(self):
        """Where Tern's programs find cuBLASLt and cuDNN: PyTorch's own, so that both sides use the same, else the toolkit's. The
        packed C++ runtime is taken where the machine's is older."""
        outer = [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
        self.base["LD_LIBRARY_PATH"] = ":".join(outer)
        runtime = self.root / "lib/c++"
        if self.bundle and runtime.is_dir():
            tried = subprocess.run([self.bin / "tern", "--version"], capture_output=True, text=True, env=self.base)
            if tried.returncode != 0 and "libstdc++" in tried.stderr + tried.stdout:
                outer.insert(0, str(runtime))
        query = "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))"
        asked = subprocess.run([self.python, "-c", query], capture_output=True, text=True)
        places = [pathlib.Path(asked.stdout.strip(), "nvidia")] if asked.returncode == 0 else []
        places += sorted(pathlib.Path("/usr/local").glob("cuda*"), reverse=True)
        plugin = self.build / "lib/libtern_cuda.so"
        names = set(re.findall(rb"lib(?:cublasLt|cudnn)\.so\.\d+", plugin.read_bytes())) if plugin.exists() else set()
        folders = []
        for name in sorted(each.decode() for each in names):
            found = [path.parent for place in places for pattern in ("*/lib", "lib64") for path in sorted(place.glob(f"{pattern}/{name}"))]
            folders += [folder for folder in found[:1] if folder not in folders]
        self.base["LD_LIBRARY_PATH"] = ":".join([*outer, *map(str, folders)])
        if not self.base["LD_LIBRARY_PATH"]:
            del self.base["LD_LIBRARY_PATH"]
        self.library_folders = [str(folder) for folder in folders]

    def env(self, **more):
        """The environment of programs; a variable that is None is taken out."""
        made = {**self.base, **more}
        return {key: value for key, value in made.items() if value is not None}

    def gpus(self, count):
        """The environment with so many GPUs: logical parts of the real one, or simulated."""
        return {"TERN_SIM_GPUS": str(count)} if self.simulated else {"TERN_LOGICAL_GPUS": str(count)}

    def left(self, limit_s=1e9):
        """Seconds that something may take now."""
        return max(1.0, min(limit_s, self.end - time.monotonic()))

    def log(self, stage, name):
        return self.logs / f"{stage}-{name}.log"

    def pattern(self, program, only="*"):
        """The filter of a test program, without the tests that can not run here."""
        without = [NOT_IN_BUNDLE.get(program, "")] if self.bundle else []
        if not self.simulated:
            without.append(ONLY_SIMULATED.get(program, ""))
        without = ":".join(filter(None, without))
        return f"{only}-{without}" if without else only

    def tests(self, stage, name, env, limit_s=1e9, only="*", wrapper=(), label="", silent_s=180):
        program = f"test_{name}"
        return run.run_tests(label or name, self.bin / program, self.log(stage, label or name), self.env(**env), self.left(limit_s),
                             self.pattern(program, only), wrapper, silent_s)

    def program(self, stage, name, command, env, limit_s=1e9, cwd=None):
        return run.run(command, self.log(stage, name), self.env(**env), self.left(limit_s), cwd=cwd)

    def side_by_side(self, works):
        """Calls the functions, `jobs` at a time; their results in order."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return [done.result() for done in [pool.submit(work) for work in works]]

    def json_of(self, *command):
        try:
            answer = subprocess.run([self.bin / "tern", *command, "--json"], capture_output=True, text=True, env=self.env(), timeout=120)
            return json.loads(answer.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return {}


def first_line(command, env=None):
    try:
        answer = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
        return answer.stdout.strip() if answer.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        return ""


def operating_system():
    try:
        with open("/etc/os-release") as file:
            return next((line.split("=", 1)[1].strip().strip('"') for line in file if line.startswith("PRETTY_NAME=")), "")
    except OSError:
        return ""


def gather_facts(check):
    sys.path.insert(0, str(check.root / "bench"))
    from peers import processor

    query = "name,driver_version,memory.total,compute_cap,pcie.link.gen.max,pcie.link.width.max,clocks.max.sm,power.limit"
    card = first_line(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"])
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    torch = first_line([check.python, "-c", "import torch; print(torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), "
                                            "torch.cuda.is_available())"])
    devices = check.json_of("devices")
    check.facts = {
        "date": time.strftime("%Y-%m-%d"),
        "gpu": [dict(zip(query.split(","), (word.strip() for word in line.split(",")))) for line in card.splitlines()],
        "driver": devices.get("driver_version"),
        "cuda_of_driver": devices.get("cuda_driver_version"),
        "cuda_of_tern": devices.get("cuda_runtime_version"),
        "toolkit": (re.findall(r"release ([\d.]+)", first_line([nvcc, "--version"])) or [None])[0],
        "torch": dict(zip(("version", "cuda", "cudnn", "sees_gpu"), torch.split())) if torch else None,
        "python": sys.version.split()[0],
        "libraries_of": "PyTorch" if any("site-packages" in folder for folder in check.library_folders) else
                        "the toolkit" if check.library_folders else "the system",
        "tern": first_line([check.bin / "tern", "--version"], check.env()),
        "commit": packed_commit(check),
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": operating_system(),
        "devices": [{key: each.get(key) for key in ("device", "name", "backend", "simulated", "memory_bytes", "compute_capability")}
                    for each in devices.get("devices", [])],
        "doctor": check.json_of("doctor").get("conclusion", ""),
    }


def packed_commit(check):
    if check.bundle:
        return json.loads((check.root / "bundle.json").read_text()).get("commit", "")
    return first_line(["git", "-C", check.root, "describe", "--always", "--dirty"])


def facts(check):
    outcome = check.program("facts", "doctor", [check.bin / "tern", "doctor"], {}, 120)
    check.program("facts", "nvidia-smi", ["nvidia-smi", "-q"], {}, 60)
    doctor = part("tern doctor", "passed" if outcome.ok or check.simulated else "failed", reason="" if outcome.ok else outcome.how())
    torch = check.facts["torch"]
    if not torch:
        return [doctor, part("PyTorch", "skipped", reason=f"{check.python} imports no torch: the parts that need it are left out")]
    sees = torch["sees_gpu"] == "True" or check.simulated
    return [doctor, part("PyTorch", "passed" if sees else "failed", reason="" if sees else "it sees no GPU")]


def cuda(check):
    # On simulated GPUs these skip themselves.
    return [check.tests("cuda", "backends_cuda", {})]


def rooms(check):
    on_gpu = {"TERN_TEST_DEVICE": "cuda:0"}
    return check.side_by_side([lambda room=room: check.tests("rooms", room, on_gpu) for room in ROOMS])


def operators(check):
    if not check.facts["torch"]:
        return [part("operator table", "skipped", reason="there is no PyTorch")]
    script = check.root / "tests/ops/operator_table.py"

    def family(name, title=None, env=None):
        title = title or name
        command = [check.python, script, "--on", "simulated" if check.simulated else "gpu", "--family", name]
        outcome = check.program("operators", title.replace(" ", "-"), command, env or {})
        counts = re.search(r"(\d+) passed, (\d+) failed", outcome.text)
        found = [failure(*line[len("FAILED on "):].split(": ", 1)) for line in outcome.text.splitlines() if line.startswith("FAILED on ")]
        found = [failure(each["text"].split("(")[0], each["text"]) for each in found]
        if outcome.code == 77 or (not counts and not outcome.stopped):
            return part(title, "skipped" if outcome.code == 77 else "failed", reason=outcome.last_lines())
        left_out = [line for line in outcome.text.splitlines() if line.startswith("left out: ")]
        if not counts:
            return part(title, "failed", reason=outcome.how(), failures=found, seconds=outcome.seconds)
        return part(title, "passed" if outcome.ok else "failed", passed=int(counts[1]), failed=int(counts[2]), failures=found,
                    seconds=outcome.seconds, reason="; ".join(left_out) if outcome.ok else outcome.how())

    # Small float32 products and convolutions have kernels of their own; so that those of the libraries are seen too.
    libraries = {"TERN_CUDA_CONV": "cudnn", "TERN_CUDA_MATMUL": "cublas"}
    return check.side_by_side([lambda name=name: family(name) for name in FAMILIES] +
                              [lambda: family("network", "network by libraries", libraries)])


def metrics_of(folder):
    """(loss of the first step, test accuracy of the last epoch) of a run of `tern train`."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line.get("type") == "step"]
    epochs = [line for line in lines if line.get("type") == "epoch"]
    return steps[0]["loss"], epochs[-1].get("test_accuracy", epochs[-1].get("accuracy"))


def train(check, stage, name, folder, *arguments, limit_s=1e9, **env):
    data = f"mnist:{check.mnist}" if check.mnist else "digits"
    small = ["--limit", "2000"] if check.simulated else []
    command = [check.bin / "tern", "train", "--model", "lenet", "--data", data, "--seed", "7", "--log-every", "1", "--out", folder, *small, *arguments]
    return check.program(stage, name, command, env, limit_s)


def fresh_folder(check, name):
    folder = check.logs.parent / "runs" / name
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
            parts.append(part(f"training on {device}", "passed", seconds=outcome.seconds))
        else:
            parts.append(part(f"training on {device}", "failed", reason=outcome.how(), failures=[failure("tern train", outcome.last_lines())]))
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
    report = check.logs.parent / "bench.json"
    report.unlink(missing_ok=True)
    limit = check.left()
    command = [sys.executable, check.root / "bench/gpu_compare.py", "--tern", check.bin / "gpu_peer", "--json", report, "--log",
               check.log("bench", "peers"), "--budget", f"{max(10.0, limit - 60):.0f}"]
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
        return [part("benchmarks", "failed", reason=outcome.how(), failures=[failure("gpu_compare.py", outcome.last_lines())])]
    bars = [bar for row in found["rows"] for bar in row["bars"]]
    met, missed = sum(bar["met"] is True for bar in bars), sum(bar["met"] is False for bar in bars)
    measured = sum("tern" in row["nanoseconds"] for row in found["rows"])
    reason = f"{measured} cases measured; {met} bars met, {missed} missed, {len(bars) - met - missed} without figures"
    if not outcome.ok:
        reason += f"; {outcome.how()}"
    # Missed bars are figures, not faults: they stand in the table.
    return [part("benchmarks", "passed" if outcome.ok and measured else "failed", reason=reason, seconds=outcome.seconds)]


def soak(check):
    """Memory stays flat over many steps."""
    if not (check.bin / "gpu_peer").exists():
        return [part("memory", "skipped", reason="gpu_peer is not there (TERN_BUILD_BENCH)")]
    steps = 200 if check.simulated else 10000
    outcome = check.program("soak", "steps", [check.bin / "gpu_peer", "soak", steps], {})
    samples = [json.loads(line) for line in outcome.text.splitlines() if line.startswith("{")]
    if not outcome.ok or len(samples) < 3:
        return [part("memory", "failed", reason=outcome.how(), failures=[failure("gpu_peer soak", outcome.last_lines())])]
    first, last = samples[0], samples[-1]
    check.figures["soak"] = {"steps": steps, "first": first, "last": last}
    flat = last["allocated"] <= first["allocated"] and last["reserved"] <= first["reserved"]
    grown = last["resident"] - first["resident"]
    text = f"GPU: {first['allocated']} bytes in tensors after {first['step']} steps, {last['allocated']} after {last['step']}; " \
           f"reserved {first['reserved']} and {last['reserved']}; the process grew by {grown / (1 << 20):.1f} MiB on the host"
    return [judged("memory", flat and grown < 32 << 20, text)]


def parallel(check):
    parts = [check.tests("parallel", "parallel", check.gpus(4))]
    folders = {name: fresh_folder(check, f"parallel-{name}") for name in ("one", "two")}
    two = check.gpus(2)
    one = train(check, "parallel", "train-one", folders["one"], "--epochs", "1", "--batch-size", "256", "--device", "cuda:0", **two)
    both = train(check, "parallel", "train-two", folders["two"], "--epochs", "1", "--batch-size", "256", "--devices", "cuda:0,cuda:1", **two)
    for name, outcome in (("tern train on one GPU", one), ("tern train on two", both)):
        parts.append(part(name, "passed" if outcome.ok else "failed", seconds=outcome.seconds, reason="" if outcome.ok else outcome.how(),
                          failures=[] if outcome.ok else [failure("tern train", outcome.last_lines())]))
    if one.ok and both.ok:
        (loss_one, right_one), (loss_two, right_two) = metrics_of(folders["one"]), metrics_of(folders["two"])
        check.figures["parallel"] = {"first_loss_one": loss_one, "first_loss_two": loss_two, "accuracy_one": right_one, "accuracy_two": right_two}
        parts.append(judged("first loss of both", abs(loss_one - loss_two) <= 1e-4, f"{loss_one:.6f} and {loss_two:.6f}; bar: within 1e-4"))
    return parts


def device(check):
    # These make the GPUs that they want, or start programs that are told where to run.
    return [check.tests("device", name, {"TERN_SIM_GPUS": None}) for name in ("device", "kernels", "cli")]


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
            outcome = check.program("examples", name.replace(" ", "-"), [program], check.gpus(count), 120, cwd=folder)
            expected = check.root / f"tests/examples/expected/{program.name}.{count}.txt"
            if not outcome.ok:
                parts.append(part(name, "failed", reason=outcome.how(), failures=[failure(name, outcome.last_lines())]))
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
        parts.append(part(name, "passed" if outcome.ok else "failed", seconds=outcome.seconds, reason="" if outcome.ok else outcome.how(),
                          failures=[] if outcome.ok else [failure(name, outcome.last_lines())]))
        if not outcome.ok:
            break
    if not check.facts["torch"]:
        return parts + [part("with PyTorch", "skipped", reason="there is no PyTorch")]
    if all(each["status"] == "passed" for each in parts):
        outcome = check.program("checkpoints", "torch", [check.python, "-c", OPEN_IN_TORCH, folder / "lenet.pt"], {})
        parts.append(judged("opens in PyTorch", outcome.ok, outcome.last_lines()))
    runner = check.root / "tests/support/run_python_test.py"
    for script in ("io/torch_roundtrip", "train/module_roundtrip", "train/resume_in_torch"):
        outcome = check.program("checkpoints", script.replace("/", "-"), [check.python, runner, check.root / f"tests/{script}.py"],
                                {"TERN_TEST_DEVICE": "cuda:0"})
        status = "passed" if outcome.ok else "skipped" if outcome.code == 77 else "failed"
        parts.append(part(script, status, seconds=outcome.seconds, reason="" if outcome.ok else outcome.how(),
                          failures=[failure(script, outcome.last_lines())] if status == "failed" else []))
    return parts


def sanitizer(check):
    if check.simulated:
        return [part("compute-sanitizer", "skipped", reason="the GPUs are simulated")]
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.path.exists(program):
        return [part("compute-sanitizer", "skipped", reason="it is not on this machine")]
    parts = []
    # A test that asks for more memory than there is gets a CUDA error on purpose: only what kernels do counts.
    for tool, extra in (("memcheck", ["--report-api-errors", "no"]), ("racecheck", [])):
        for i, (test, only) in enumerate(SANITIZED):
            label = f"{tool}-{test.removeprefix('test_')}"
            wrapper = [program, "--tool", tool, "--print-limit", "20", "--error-exitcode", "99", *extra]
            limit = check.left() / (2 * len(SANITIZED) - len(parts)) * 1.5
            environment = {"TERN_TEST_DEVICE": "cuda:0" if i else None, "TERN_NO_CUDA_MEMORY_CACHING": "1" if tool == "memcheck" else None}
            result = check.tests("sanitizer", test.removeprefix("test_"), environment, limit, only, wrapper, label, silent_s=600)
            text = check.log("sanitizer", label).read_text(errors="replace")
            counts = [int(n) for n in re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", text)]
            findings = [line.strip("= ") for line in text.splitlines() if line.startswith("=========") and ("Invalid" in line or "hazard" in line or "Error" in line)]
            if not counts:
                result.update(status="skipped" if "not supported" in text else "failed", reason="the sanitizer gave no summary: " + " ".join(text.split()[-40:]))
            elif sum(counts):
                result.update(status="failed", reason=f"{sum(counts)} findings: {'; '.join(findings[:3])}")
            else:
                result["reason"] = "; ".join(filter(None, [result.get("reason"), "no finding"]))
            parts.append(result)
    return parts


STAGES = (
    Stage("facts", "the machine", facts, 120),
    Stage("cuda", "the backend's own tests", cuda, 240),
    Stage("operators", "the operator table against PyTorch on the CPU", operators, 900),
    Stage("rooms", "every room's tests with all tensors on the GPU", rooms, 600),
    Stage("lenet", "LeNet: loss and accuracy of the CPU", lenet, 300),
    Stage("bench", "benchmarks beside PyTorch", bench, 600),
    Stage("soak", "memory over many steps", soak, 200),
    Stage("parallel", "DataParallel on logical GPUs", parallel, 300),
    Stage("device", "devices, kernels and the program", device, 200),
    Stage("examples", "the examples", examples, 240),
    Stage("checkpoints", "checkpoints between GPU, CPU and PyTorch", checkpoints, 300),
    Stage("sanitizer", "compute-sanitizer: memcheck and racecheck", sanitizer, 900),
)
