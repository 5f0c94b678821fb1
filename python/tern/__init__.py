"""Tern: tensors, gradients, layers, data and checkpoints with PyTorch's names; `import tern as torch` runs PyTorch's tutorials.

The work is done in C++ by the extension `tern._C`; these files give its functions the places that PyTorch has for them.
"""

import importlib as _importlib
import math as _math

from tern import _C, _types
from tern._C import (
    CaptureError, CheckpointError, DTypeError, DataError, DeviceError, DistributedError, Error, LinAlgError, OutOfMemoryError, ShapeError,
    Tensor, __version__, device, dtype, Generator, memory_format)
from tern._types import Size
from tern.autograd import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from tern.serialization import Layout as layout, load, save
from tern import (
    accelerator, amp, autograd, backends, compiler, cuda, datasets, distributed, fft, hub, io, jit, linalg, nn, onnx, optim, profiler, random,
    serialization, special, testing, transforms, utils)
from tern.amp import autocast

# Every operator and dtype; classes have their places.
globals().update({name: value for name, value in vars(_C).items()
                  if not name.startswith(("_", "cuda_", "init_")) and (not isinstance(value, type) or issubclass(value, Exception))
                  and name not in globals()})

bool, float, double, half = _C.bool, _C.float32, _C.float64, _C.float16
int, long, short = _C.int32, _C.int64, _C.int16
cfloat, cdouble = _C.complex64, _C.complex128
inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None
strided, sparse_coo, sparse_csr = layout("torch.strided"), layout("torch.sparse_coo"), layout("torch.sparse_csr")
_standard_gamma = _C.standard_gamma


def __getattr__(name):
    if name in ("distributions", "func", "fx", "models", "multiprocessing"):  # which take longer to import than the rest of this package
        return _importlib.import_module(f"tern.{name}")
    if name == "vmap":
        return _importlib.import_module("tern.func").vmap
    raise AttributeError(f"module 'tern' has no attribute '{name}'")


def compile(model=None, **options):
    """The model or function itself: there is nothing to compile."""
    return model if model is not None else (lambda function: function)


def _enter_device(self):
    """In the context `with device(...)` tensors are made there."""
    _entered.append(_C.get_default_device())
    _C.set_default_device(self)
    return self


_entered = []
device.__enter__ = _enter_device
device.__exit__ = lambda self, *_: _C.set_default_device(_entered.pop())

_C._log_api_usage_once = lambda *_: None  # packages tell PyTorch that they are used; nobody is told here

# When all others are there.
from tern import _modules, foreach, functions, shared_memory, signatures, storage  # noqa: E402, F401
from tern.functions import *  # noqa: E402, F401, F403
from tern.settings import *  # noqa: E402, F401, F403
from tern.storage import TypedStorage, UntypedStorage, is_storage  # noqa: E402, F401

globals().update(foreach.functions)
for _name in functions.AS_METHODS:
    setattr(Tensor, _name, globals()[_name])
