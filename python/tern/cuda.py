"""GPUs, real and simulated: which there are, their memory, streams and events."""

import contextlib as _contextlib
import types as _types

from tern import _C
from tern import amp as _amp
from tern._C import Event, OutOfMemoryError, Stream, simulate_gpus  # noqa: F401

for _name in dir(_C):
    if _name.startswith("cuda_"):
        globals()[_name[len("cuda_"):]] = getattr(_C, _name)
manual_seed_all = manual_seed  # noqa: F821: one generator for all devices
get_rng_state, set_rng_state = (lambda device=None: _C.get_rng_state()), (lambda new_state, device=None: _C.set_rng_state(new_state))


def init():
    """Does nothing: GPUs are there when they are used."""


def is_initialized():
    return is_available()  # noqa: F821


def get_device_capability(device=None):
    properties = get_device_properties(device)  # noqa: F821
    return properties.major, properties.minor


def is_bf16_supported():
    return is_available()  # noqa: F821

amp = _types.SimpleNamespace(
    GradScaler=_amp.GradScaler, custom_fwd=_amp.custom_fwd, custom_bwd=_amp.custom_bwd,
    autocast=lambda enabled=True, dtype=None, cache_enabled=True: _amp.autocast("cuda", dtype, enabled, cache_enabled))


class device:
    """In this context `cuda` means this GPU: its number or a device; None and negative numbers change nothing."""

    def __init__(self, device):
        index = device.index if isinstance(device, _C.device) else _C.device(device).index if isinstance(device, str) else device
        self.index = -1 if index is None else index

    def __enter__(self):
        self.before = _C.cuda_current_device() if self.index >= 0 else None
        if self.index >= 0:
            _C.cuda_set_device(self.index)

    def __exit__(self, *_):
        if self.before is not None:
            _C.cuda_set_device(self.before)


class device_of(device):
    """In this context `cuda` means the GPU of the tensor, if it is on one."""

    def __init__(self, obj):
        super().__init__(obj.get_device())


class stream:
    """In this context operators on the stream's device use it; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        self.before = self.stream._set() if self.stream is not None else None

    def __exit__(self, *_):
        if self.before is not None:
            self.before._set()


StreamContext = stream


class CUDAGraph:
    """A step that is recorded between capture_begin() and capture_end() and done again by replay(), on the same tensors; on the CPU and
    simulated GPUs too. See tern.capture() for a step that is one function."""

    _step = _capture = None

    def capture_begin(self, pool=None, capture_error_mode="global"):
        self._step, self._capture = None, _C._StepCapture()

    def capture_end(self):
        if self._capture is None:
            raise _C.CaptureError("capture_end: nothing is being recorded: call capture_begin() first")
        capture, self._capture = self._capture, None
        self._step = capture.end()

    def replay(self):
        if self._step is None:
            raise _C.CaptureError("replay: nothing has been recorded")
        self._step.replay()

    def reset(self):
        """Gives the memory of the step back."""
        self._step = self._capture = None

    def pool(self):
        """Each step has memory of its own."""
        return (0, 0)


class graph:
    """What is done in this context is recorded in the graph."""

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        self.cuda_graph, self.stream = cuda_graph, globals()["stream"](stream)

    def __enter__(self):
        if is_available():  # noqa: F821
            _C.cuda_synchronize()
        self.stream.__enter__()
        self.cuda_graph.capture_begin()

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph.reset()
        finally:
            self.stream.__exit__()


def graph_pool_handle():
    return (0, 0)


def _measured(what, device, *names):
    found = _C._cuda_measured(device)
    if any(found.get(name) is None for name in names):
        raise _C.DeviceError(f"{what}: the driver does not tell: {found['reason'] or 'not of this model'}")
    return found[names[0]] if len(names) == 1 else [found[name] for name in names]


def utilization(device=None):
    """The share of time in which the GPU was at work, in percent."""
    return _measured("utilization", device, "utilization_percent")


def temperature(device=None):
    """In degrees Celsius."""
    return _measured("temperature", device, "temperature_celsius")


def power_draw(device=None):
    """In milliwatts."""
    return round(1000 * _measured("power_draw", device, "power_watts"))


def memory_usage(device=None):
    """The share of its memory that is in use by all programs, in percent."""
    used, total = _measured("memory_usage", device, "memory_used", "memory_total")
    return round(100 * used / total)


def list_gpu_processes(device=None):
    """The processes on the GPU, a line each."""
    lines = [f"process {pid:>10d} uses {(size or 0) / 2**20:>12.3f} MB GPU memory"
             for pid, size in _measured("list_gpu_processes", device, "processes").items()]
    return "\n".join(lines or ["no processes are running"])


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats  # noqa: F821
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved  # noqa: F821


def can_device_access_peer(device, peer_device):
    """Whether copies between the two need not go through the host; that they do is the driver's affair."""
    return _C.device(device) != _C.device(peer_device)


def ipc_collect():
    """Memory of GPUs is not shared between processes."""


def get_rng_state_all():
    return [_C.get_rng_state()] * max(device_count(), 1)  # noqa: F821: one generator for all devices


def set_rng_state_all(new_states):
    _C.set_rng_state(new_states[0])


def initial_seed():
    return _C.initial_seed()


def is_tf32_supported():
    return is_available() and get_device_capability() >= (8, 0)


nvtx = _types.SimpleNamespace(range_push=lambda msg: -1, range_pop=lambda: -1, mark=lambda msg: None, range=_contextlib.nullcontext)
