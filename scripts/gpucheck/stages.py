"""The stages of the check on a GPU, in their order: what matters most comes first, since time may end. Each is a function of the
Check that gives parts (run.part), all together or one at a time, and may put figures into `check.figures`."""

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
from .report import gpu_compare, processor
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
# For compute-sanitizer: kernels with shared memory, indices and pieces, each a few times. {name: (test program, tests, share of the
# time)}. Random.Permutations and Losses.Gradients start more kernels than all others together.
SANITIZED = {
    "cuda": ("backends_cuda", "Gpu.*", 1),
    "reduce": ("ops", "Reduce.*:ReduceGradient.*", 5),
    "matmul": ("ops", "Matmul.*:Linear.*", 3),
    "network": ("ops", "Conv2d.*:MaxPool2d.*:AvgPool2d.*:BatchNorm.*:LayerNorm.*:GroupNorm.*:RmsNorm.*:CrossEntropy.*:Losses.Pairs:Losses.LargeSums:"
                       "Random.Numbers*:Random.KnownNumbers:Random.Layout*:Random.Distributions:Random.Ranges:Random.Multinomial:Random.Dropout", 4),
    "index": ("ops", "Softmax.*:SoftmaxGradient.*:Sort.*:SortAndScan.*:Scan.*:Index.*:Masks.*:Scatter.*:Gather.*:Take.*:Where.*:Embedding.*:"
                     "Nonzero.*", 3),
    "optim": ("optim", "GradScaler.*:All/Optimizers.*:OptimizerState.*:ClipGrad*", 2),
}
# Errors that cuBLASLt and cuDNN tell nobody else.
LIBRARY_LOGS = {"CUBLASLT_LOG_LEVEL": "1", "CUDNN_LOGLEVEL_DBG": "1", "CUDNN_LOGDEST_DBG": "stderr"}
# Prints the versions of the libraries that are named.
LIBRARY_VERSIONS = """
import ctypes, sys
for name in sys.argv[1:]:
    library = ctypes.CDLL(name)
    version = library.cublasLtGetVersion if "cublas" in name else library.cudnnGetVersion
    version.restype = ctypes.c_size_t
    print(name, version())
"""
# Has a CUDA context until its input ends.
HOLD_CONTEXT = """
import ctypes, sys
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
if cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0:
    sys.stdin.read()
"""


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
        self.build = pathlib.Path(options.build).resolve()
        self.bin = self.build / "bin"
        self.output, self.work = pathlib.Path(options.output).resolve(), pathlib.Path(options.work)
        self.logs = self.work / "logs"
        self.logs.mkdir(parents=True)
        self.figures, self.facts, self.holder = {}, {}, None
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
        self.shared_cores = {"TERN_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // self.jobs))}  # of programs side by side
        self._set_library_path()

    def _set_library_path(self):
        """Where Tern's programs find cuBLASLt and cuDNN: PyTorch's own, so that both sides use the same, else the toolkit's. The
        packed C++ runtime is taken where the machine's is older."""
        outer = [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
        self.base["LD_LIBRARY_PATH"] = ":".join(outer)
        first, runtime = [], self.root / "lib/c++"
        if self.bundle and runtime.is_dir():
            tried = subprocess.run([self.bin / "tern", "--version"], capture_output=True, text=True, env=self.base)
            if tried.returncode != 0 and "libstdc++" in tried.stderr + tried.stdout:
                first = [str(runtime)]
        query = "import importlib.util, os; print(os.path.dirname(os.path.dirname(importlib.util.find_spec('torch').origin)))"
        asked = subprocess.run([self.python, "-c", query], capture_output=True, text=True)
        places = [pathlib.Path(asked.stdout.strip(), "nvidia")] if asked.returncode == 0 else []
        places += sorted(pathlib.Path("/usr/local").glob("cuda*"), reverse=True)
        plugin = self.build / "lib/libtern_cuda.so"
        names = set(re.findall(rb"lib(?:cublasLt|cudnn)\.so\.\d+", plugin.read_bytes())) if plugin.exists() else set()
        self.library_names = sorted(each.decode() for each in names)
        folders = []
        for name in self.library_names:
            found = [path.parent for place in places for pattern in ("*/lib", "lib64") for path in sorted(place.glob(f"{pattern}/{name}"))]
            folders += [folder for folder in found[:1] if folder not in folders]
        self.base["LD_LIBRARY_PATH"] = ":".join([*first, *map(str, folders), *outer])
        if not self.base["LD_LIBRARY_PATH"]:
            del self.base["LD_LIBRARY_PATH"]
        self.library_folders = [str(folder) for folder in folders]

    def env(self, stage="", **more):
        """The environment of programs; a variable that is None is taken out. The libraries write nothing in measurements, nor where
        output is compared."""
        made = {**self.base, **({} if stage in ("", "bench", "device", "examples") else LIBRARY_LOGS), **more}
        return {key: value for key, value in made.items() if value is not None}

    def gpus(self, count):
        """The environment with so many GPUs: logical parts of the real one, or simulated."""
        return {"TERN_SIM_GPUS": str(count)} if self.simulated else {"TERN_LOGICAL_GPUS": str(count)}

    def on_gpu(self):
        """The environment of tests that put every tensor on the GPU; some want two."""
        return {"TERN_TEST_DEVICE": "cuda:0", **self.gpus(2)}

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

    def tests(self, stage, name, env, limit_s=1e9, only="*", wrapper=(), label="", silent_s=60):
        program = f"test_{name}"
        return run.run_tests(label or name, self.bin / program, self.log(stage, label or name), self.env(stage, **env), self.left(limit_s),
                             self.pattern(program, only), wrapper, silent_s)

    def program(self, stage, name, command, env, limit_s=1e9, cwd=None):
        return run.run(command, self.log(stage, name), self.env(stage, **env), self.left(limit_s), cwd=cwd)

    def side_by_side(self, works):
        """Calls the functions, `jobs` at a time; gives their results in order, as they come."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for done in [pool.submit(work) for work in works]:
                yield done.result()

    def hold_context(self, wanted):
        """Starts or ends a process that has a CUDA context: while there is none, a driver without persistence mode puts the GPU to
        sleep, and the next program waits for seconds."""
        if wanted and not self.holder and any(card.get("compute_mode") == "Default" for card in self.facts["gpu"]):
            self.holder = subprocess.Popen([sys.executable, "-c", HOLD_CONTEXT], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        elif self.holder and not wanted:
            self.holder.kill()
            self.holder.communicate()
            self.holder = None

    def json_of(self, *command):
        try:
            answer = subprocess.run([self.bin / "tern", *command, "--json"], capture_output=True, text=True, env=self.env(), timeout=120)
            return json.loads(answer.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return {}


def printed(command, env=None, timeout_s=60):
    """What a command prints; nothing where it fails."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, env=env, timeout=timeout_s)
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
    query = "name,driver_version,memory.total,compute_cap,pcie.link.gen.max,pcie.link.width.max,clocks.max.sm,power.limit,compute_mode"
    card = printed(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"])
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    # The first import from a cold disk takes long.
    torch = printed([check.python, "-c", "import torch; print(torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), "
                                         "torch.cuda.is_available())"], timeout_s=180)
    devices = check.json_of("devices")
    check.facts = {
        "date": time.strftime("%Y-%m-%d"),
        "gpu": [dict(zip(query.split(","), (word.strip() for word in line.split(",")))) for line in card.splitlines()],
        "driver": devices.get("driver_version"),
        "cuda_of_driver": devices.get("cuda_driver_version"),
        "cuda_of_tern": devices.get("cuda_runtime_version"),
        "toolkit": (re.findall(r"release ([\d.]+)", printed([nvcc, "--version"])) or [None])[0],
        "torch": dict(zip(("version", "cuda", "cudnn", "sees_gpu"), torch.split())) if torch else None,
        "python": sys.version.split()[0],
        "libraries_of": "PyTorch" if any("site-packages" in folder for folder in check.library_folders) else
                        "the toolkit" if check.library_folders else "the system",
        "libraries": {side: found for side, found in (("Tern", library_versions(check, "")),
                                                      ("PyTorch", library_versions(check, "import torch") if torch else {})) if found},
        "tern": printed([check.bin / "tern", "--version"], check.env()),
        "commit": packed_commit(check),
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": operating_system(),
        "devices": [{key: each.get(key) for key in ("device", "name", "backend", "simulated", "memory_bytes", "compute_capability")}
                    for each in devices.get("devices", [])],
        "doctor": check.json_of("doctor").get("conclusion", ""),
    }


def library_versions(check, prepare):
    """{file name: version} of cuBLASLt and cuDNN as programs find them, in Python after `prepare`."""
    lines = printed([check.python, "-c", prepare + LIBRARY_VERSIONS, *check.library_names], check.env(), 180).splitlines()
    return dict(line.split() for line in lines)


def packed_commit(check):
    if check.bundle:
        return json.loads((check.root / "bundle.json").read_text()).get("commit", "")
    return printed(["git", "-C", check.root, "describe", "--always", "--dirty"])


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
    on_gpu = {**check.on_gpu(), **check.shared_cores}
    return check.side_by_side([lambda room=room: check.tests("rooms", room, on_gpu) for room in ROOMS])


def operators(check):
    if not check.facts["torch"]:
        return [part("operator table", "skipped", reason="there is no PyTorch")]
    script = check.root / "tests/ops/operator_table.py"

    def family(name, title=None, env=None):
        title = title or name
        command = [check.python, script, "--on", "simulated" if check.simulated else "gpu", "--family", name]
        outcome = check.program("operators", title.replace(" ", "-"), command, {**check.shared_cores, **(env or {})})
        counts = re.search(r"(\d+) passed, (\d+) failed", outcome.text)
        faults = [line.partition(": ")[2] for line in outcome.text.splitlines() if line.startswith("FAILED on ")]
        found = [failure(fault.split("(")[0], fault) for fault in faults]
        if outcome.code == 77 or (not counts and not outcome.stopped):
            return part(title, "skipped" if outcome.code == 77 else "failed", reason=outcome.last_lines())
        left_out = [line for line in outcome.text.splitlines() if line.startswith("left out: ")]
        if not counts:
            status = "incomplete" if outcome.out_of_time and not found else "failed"
            return part(title, status, reason=outcome.how(), failures=found, seconds=outcome.seconds)
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
    report = check.output / "bench.json"
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
    measured = any("tern" in row["nanoseconds"] for row in found["rows"])
    reason = gpu_compare.summary(found) + ("" if outcome.ok else f"; {outcome.how()}")
    # Missed bars are figures, not faults: they stand in the table.
    return [part("benchmarks", "passed" if outcome.ok and measured else "failed", reason=reason, seconds=outcome.seconds)]


def soak(check):
    """Memory stays flat over many steps."""
    if not (check.bin / "gpu_peer").exists():
        return [part("memory", "skipped", reason="gpu_peer is not there (TERN_BUILD_BENCH)")]
    steps, parts = 200 if check.simulated else 10000, []
    for name, figure, more in (("memory", "soak", []), ("memory, captured", "soak_captured", ["--captured"])):
        outcome = check.program("soak", figure, [check.bin / "gpu_peer", "soak", steps, *more], {})
        samples = [json.loads(line) for line in outcome.text.splitlines() if line.startswith("{")]
        if not outcome.ok or len(samples) < 3:
            parts.append(part(name, "failed", reason=outcome.how(), failures=[failure("gpu_peer soak", outcome.last_lines())]))
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
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if check.simulated or not os.path.exists(program):
        yield part("compute-sanitizer", "skipped", reason="the GPUs are simulated" if check.simulated else "it is not on this machine")
        return
    # A test that asks for more memory than there is gets a CUDA error on purpose: only what kernels do counts.
    tools = (("memcheck", ["--report-api-errors", "no"], {"TERN_NO_CUDA_MEMORY_CACHING": "1"}), ("racecheck", [], {}))
    left = 2 * (1 + sum(share for _, _, share in SANITIZED.values()))
    for tool, extra, env in tools:
        wrapper = [program, "--tool", tool, "--print-limit", "20", "--error-exitcode", "99", *extra]
        for name, (test, only, share) in SANITIZED.items():
            label, limit = f"{tool}-{name}", check.left() * share / left
            env_here = env if test == "backends_cuda" else {**env, **check.on_gpu()}
            result = check.tests("sanitizer", test, env_here, limit, only, wrapper, label, silent_s=600)
            yield with_findings(result, check.log("sanitizer", label))
            left -= share
        label, limit = f"{tool}-train", check.left() / left
        command = [*wrapper, check.bin / "tern", "train", "--model", "lenet", "--data", "digits", "--limit", "512", "--epochs", "1", "--device", "cuda:0",
                   "--out", fresh_folder(check, label)]
        outcome = check.program("sanitizer", label, command, env, limit)
        status, reason = ("passed", "") if outcome.ok else ("incomplete", f"cut short after {limit:.0f} s") if outcome.out_of_time else \
            ("failed", outcome.how())
        yield with_findings(part(label, status, reason=reason, seconds=outcome.seconds), check.log("sanitizer", label))
        left -= 1


def with_findings(result, log):
    """The result with what the sanitizer says in the log."""
    lines = [line.strip("= ") for line in log.read_text(errors="replace").splitlines() if line.startswith("=========")]
    counts = [int(n) for line in lines for n in re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", line)]
    found = [line for line in lines if re.search(r"\bInvalid\b|hazard|Race reported|Misaligned|out of bounds", line) and "SUMMARY" not in line]
    if count := max(sum(counts), len(found)):
        result.update(status="failed", reason=f"{count} findings: {'; '.join(found[:3])}")
    elif result["status"] == "incomplete":
        result["reason"] += "; no finding until then"
    elif not counts:
        unsupported = any("not supported" in line for line in lines)
        result.update(status="skipped" if unsupported else "failed", reason=f"the sanitizer gave no summary: {' '.join(lines[-5:])}")
    else:
        result["reason"] = "; ".join(filter(None, [result.get("reason"), "no finding"]))
    return result


STAGES = (
    Stage("facts", "the machine", facts, 120),
    Stage("cuda", "the backend's own tests", cuda, 240),
    Stage("operators", "the operator table against PyTorch on the CPU", operators, 900),
    Stage("rooms", "every room's tests with all tensors on the GPU", rooms, 600),
    Stage("lenet", "LeNet: loss and accuracy of the CPU", lenet, 300),
    Stage("soak", "memory over many steps", soak, 200),
    Stage("parallel", "DataParallel on logical GPUs", parallel, 300),
    Stage("bench", "benchmarks beside PyTorch", bench, 600),
    Stage("device", "devices, kernels and the program", device, 200),
    Stage("examples", "the examples", examples, 240),
    Stage("checkpoints", "checkpoints between GPU, CPU and PyTorch", checkpoints, 300),
    Stage("sanitizer", "compute-sanitizer: memcheck and racecheck", sanitizer, 900),
)
