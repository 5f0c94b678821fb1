"""GPUs, real and simulated: which there are, their memory, streams and events."""

import types as _types

from tern import _C
from tern.amp import GradScaler as _GradScaler, autocast as _autocast
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
    GradScaler=_GradScaler,
    autocast=lambda enabled=True, dtype=None, cache_enabled=True: _autocast("cuda", dtype, enabled))


class device:
    """In this context `cuda` means this GPU."""

    def __init__(self, index):
        self.index = index

    def __enter__(self):
        self.before = _C.cuda_current_device()
        _C.cuda_set_device(self.index)

    def __exit__(self, *_):
        _C.cuda_set_device(self.before)


class stream:
    """In this context operators on the stream's device use it."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        self.before = self.stream._set()

    def __exit__(self, *_):
        self.before._set()
