"""Settings of PyTorch that programs make and ask for, where Tern has none, or has them elsewhere."""

import types

from tern import _C, tensor_types

_chosen = {"deterministic": False, "warn_only": False}


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Changes nothing but what is answered: results are the same in every run."""
    _chosen.update(deterministic=bool(mode), warn_only=bool(mode and warn_only))


def are_deterministic_algorithms_enabled():
    return _chosen["deterministic"]


def is_deterministic_algorithms_warn_only_enabled():
    return _chosen["warn_only"]


def set_deterministic_debug_mode(debug_mode):
    words = ("default", "warn", "error")
    level = debug_mode if isinstance(debug_mode, int) else words.index(debug_mode) if debug_mode in words else -1
    if level not in (0, 1, 2):
        raise ValueError(f"set_deterministic_debug_mode: expected 0, 1, 2 or one of {', '.join(words)}, got {debug_mode!r}")
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


def get_deterministic_debug_mode():
    return _chosen["deterministic"] + (_chosen["deterministic"] and not _chosen["warn_only"])


def is_autocast_cpu_enabled():
    return _C.is_autocast_enabled("cpu")


def get_autocast_cpu_dtype():
    return _C.get_autocast_dtype("cpu")


def get_autocast_gpu_dtype():
    return _C.get_autocast_dtype("cuda")


def set_flush_denormal(mode):
    """False: the numbers next to 0 are never flushed to it."""
    return False


def set_num_interop_threads(number):
    """Operators are called by the threads of the program alone."""


def get_num_interop_threads():
    return 1


def set_default_tensor_type(t):
    """The dtype and the place of new tensors: a class as torch.cuda.FloatTensor, or its name."""
    names = {f"torch.{'cuda.' if place == 'cuda' else ''}{name}": kind
             for place in ("cpu", "cuda") for name, kind in tensor_types.types_of(place).items()}
    kind = names.get(t, t)
    if not hasattr(kind, "place"):
        raise TypeError(f"set_default_tensor_type: invalid type object {t!r}")
    _C.set_default_dtype(kind.dtype)
    _C.set_default_device(kind.place)


def set_warn_always(b):
    """Python's own filters decide."""


def _without_devices(name):
    return types.SimpleNamespace(is_available=lambda: False, device_count=lambda: 0, __name__=name)


xpu, mps, mtia = _without_devices("torch.xpu"), _without_devices("torch.mps"), _without_devices("torch.mtia")
__all__ = [name for name in dir() if not name.startswith("_") and name not in ("types", "tensor_types")]
