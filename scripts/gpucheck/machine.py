"""Where everything is on the machine of the check on a GPU, how programs are started there, and the facts about it."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from . import run
from .report import processor
from .run import part

# What is left of the time must be longer, or nothing is started.
LEAST_S = 5
TOOLS = ("operator", "copy", "module", "resume", "logits")
# Tests of files that lie in the build's own folders, which a bundle does not have; they need no GPU.
NOT_IN_BUNDLE = {
    "test_backends_cuda": "CudaPlugin.HasEveryKernel:CudaPlugin.CarriesItsVersion:CudaPlugin.OpensNothing*:CudaPlugin.AnswersWithoutAGpu",
    "test_ops": "Print.EqualsPyTorch",
    "test_device": "Plugin.MustFitTheLibrary:Plugin.SaysWhyItHasNoGpu",
    "test_cli": "Doctor.TextFitsTheTerminal",  # long paths do not
}
# Tests that make simulated GPUs of their own, which can not be while real ones are in use.
ONLY_SIMULATED = {
    "test_parallel": "DataParallelTest.TheSameBitsWithJitterAndOtherStreams:DataParallelTest.WithoutAGpuItIsAPlainCall:"
                     "DataParallelTest.GoesOnAfterAFailedDevice:SyncBatchNormTest.TheSameBitsInEveryRun:Soak.*",
}
TORCH_VERSIONS = """
import torch
print("torch", torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), torch.cuda.is_available())
"""
# Prints the versions of the libraries that are named, of those that are found.
LIBRARY_VERSIONS = """
import ctypes, sys
for name in sys.argv[1:]:
    try:
        library = ctypes.CDLL(name)
        if "nccl" in name:
            version = ctypes.c_int()
            library.ncclGetVersion(ctypes.byref(version))
            print(name, version.value)
        else:
            version = library.cublasLtGetVersion if "cublas" in name else library.cudnnGetVersion
            version.restype = ctypes.c_size_t
            print(name, version())
    except (OSError, AttributeError):
        pass
"""
# Has a CUDA context until its input ends.
HOLD_CONTEXT = """
import ctypes, sys
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
if cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0:
    sys.stdin.read()
"""


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
        # Errors that cuBLASLt and cuDNN tell nobody else. The former would go to stdout, where programs answer.
        self.library_logs = {"CUBLASLT_LOG_LEVEL": "1", "CUBLASLT_LOG_FILE": f"{self.logs}/cublaslt-%i.log",
                             "CUDNN_LOGLEVEL_DBG": "1", "CUDNN_LOGDEST_DBG": "stderr"}
        self.end = 0.0  # of the stage at hand, on time.monotonic()
        shared = next((p for p in (root / "shared", root.parent / "shared") if p.is_dir()), None)
        mnist = pathlib.Path(options.mnist) if options.mnist else shared / "data/mnist" if shared else None
        self.mnist = mnist if mnist and mnist.is_dir() else None
        self.base = {k: v for k, v in os.environ.items() if not k.startswith("TERN_") and k != "LD_LIBRARY_PATH"}
        self.base.update(TERN_PROGRAM=str(self.bin / "tern"), PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1")
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
        """Where Tern's programs find cuBLASLt, cuDNN, cuFFT, cuSOLVER and NCCL: PyTorch's own, so that both sides use the same, else the toolkit's. The
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
        names = set(re.findall(rb"lib(?:cublasLt|cudnn|cufft|cusolver|nccl)\.so\.\d+", plugin.read_bytes())) if plugin.exists() else set()
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
        made = {**self.base, **({} if stage in ("", "bench", "operator_bench", "device", "examples") else self.library_logs), **more}
        return {key: value for key, value in made.items() if value is not None}

    def gpus(self, count):
        """The environment with so many GPUs: logical parts of the real one, or simulated."""
        return {"TERN_SIM_GPUS": str(count)} if self.simulated else {"TERN_LOGICAL_GPUS": str(count)}

    def on_gpu(self):
        """The environment of tests that put every tensor on the GPU; some want two."""
        # Each process that a test kills has woken the GPU.
        return {"TERN_TEST_DEVICE": "cuda:0", "TERN_TEST_KILLS": "5", **self.gpus(2)}

    def left(self, limit_s=1e9):
        """Seconds that something may take now."""
        return max(0.0, min(limit_s, self.end - time.monotonic()))

    def log(self, stage, name):
        return self.logs / f"{stage}-{name}.log"

    def pattern(self, program, only="*"):
        """The filter of a test program, without the tests that can not run here."""
        chosen, _, without = only.partition("-")
        without = [without, NOT_IN_BUNDLE.get(program, "") if self.bundle else "", "" if self.simulated else ONLY_SIMULATED.get(program, "")]
        without = ":".join(filter(None, without))
        return f"{chosen}-{without}" if without else chosen

    def tests(self, stage, name, env, limit_s=1e9, only="*", wrapper=(), label="", silent_s=60):
        program, left = f"test_{name}", self.left(limit_s)
        if left < LEAST_S:
            return part(label or name, "incomplete", reason=f"not started: {left:.0f} s were left")
        return run.run_tests(label or name, self.bin / program, self.log(stage, label or name), self.env(stage, **env), left,
                             self.pattern(program, only), wrapper, silent_s)

    def program(self, stage, name, command, env, limit_s=1e9, hang_s=1e9, cwd=None):
        """Runs a program for `limit_s` of what is left at most. One that takes `hang_s` hangs, however much is left."""
        left = self.left(limit_s)
        if left < LEAST_S:
            return run.Outcome(None, f"not started: {left:.0f} s were left", 0, "", out_of_time=True)
        outcome = run.run(command, self.log(stage, name), self.env(stage, **env), min(left, hang_s), cwd=cwd)
        outcome.out_of_time &= left <= hang_s
        return outcome

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
    check.facts["gpu"] = [dict(zip(query.split(","), (word.strip() for word in line.split(",")))) for line in card.splitlines()]
    check.hold_context(True)
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    with concurrent.futures.ThreadPoolExecutor() as pool:  # from a cold disk each of these takes long
        asked = {name: pool.submit(*call) for name, call in {
            "torch": (versions, check, TORCH_VERSIONS), "libraries": (versions, check), "devices": (check.json_of, "devices"),
            "doctor": (check.json_of, "doctor"), "tern": (printed, [check.bin / "tern", "--version"], check.env()),
            "nvcc": (printed, [nvcc, "--version"])}.items()}
        found = {name: answer.result() for name, answer in asked.items()}
    devices, torch = found["devices"], found["torch"].pop("torch", None)
    check.facts = {
        "date": time.strftime("%Y-%m-%d"),
        "gpu": check.facts["gpu"],
        "driver": devices.get("driver_version"),
        "cuda_of_driver": devices.get("cuda_driver_version"),
        "cuda_of_tern": devices.get("cuda_runtime_version"),
        "toolkit": (re.findall(r"release ([\d.]+)", found["nvcc"]) or [None])[0],
        "torch": dict(zip(("version", "cuda", "cudnn", "sees_gpu"), torch)) if torch else None,
        "python": sys.version.split()[0],
        "libraries_of": "PyTorch" if any("site-packages" in folder for folder in check.library_folders) else
                        "the toolkit" if check.library_folders else "the system",
        "libraries": {side: {name: version for name, (version,) in of.items()}
                      for side, of in (("Tern", found["libraries"]), ("PyTorch", found["torch"])) if of},
        "tern": found["tern"],
        "commit": packed_commit(check),
        "build": library_hashes(check.build / "lib"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": operating_system(),
        "devices": [{key: each.get(key) for key in ("device", "name", "backend", "simulated", "memory_bytes", "compute_capability")}
                    for each in devices.get("devices", [])],
        "doctor": found["doctor"].get("conclusion", ""),
    }
    check.facts["version"] = version_of(check.facts)


def versions(check, prepare=""):
    """{file name: [version]} of cuBLASLt, cuDNN and NCCL as programs find them, in Python after `prepare`, which may print such a line too."""
    lines = printed([check.python, "-c", prepare + LIBRARY_VERSIONS, *check.library_names], check.env(), 180).splitlines()
    return {words[0]: words[1:] for words in map(str.split, lines) if words and words[0] in ("torch", *check.library_names)}


def packed_commit(check):
    if check.bundle:
        return json.loads((check.root / "bundle.json").read_text()).get("commit", "")
    return printed(["git", "-C", check.root, "describe", "--always", "--dirty"])


def library_hashes(folder):
    """{file name: start of the hash} of the library and the plugin in a folder."""
    found = {name: sorted(folder.glob(f"{name}*")) for name in ("libtern.so", "libtern_cuda.so")}
    return {name: hashlib.sha256(paths[0].read_bytes()).hexdigest()[:12] for name, paths in found.items() if paths}


def version_of(facts):
    """The commit; where files had been changed since, with the hashes of what was built of them."""
    if facts["commit"] and not facts["commit"].endswith("-dirty"):
        return facts["commit"]
    return f"{facts['commit']} ({', '.join(f'{name} {start}' for name, start in facts['build'].items())})"
