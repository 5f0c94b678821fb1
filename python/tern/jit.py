"""Programs that ask for TorchScript run as they are: nothing is compiled. Scripts are read (tern.load
gives their parameters), not written."""

import contextlib
from typing import Final  # noqa: F401

from tern import _C


def script(obj=None, *args, **options):
    """The function, class or model itself."""
    return obj


def trace(func, example_inputs=None, **options):
    """The function or model itself, of which nothing is recorded."""
    return func


trace_module = trace


def _itself(function=None, *args, **options):
    return function if callable(function) else (lambda decorated: decorated)


script_if_tracing = _overload = _overload_method = ignore = unused = export = interface = script_method = _itself


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """The model itself."""
    return mod


def optimize_for_inference(mod, other_methods=None):
    """The model itself."""
    return mod


def fork(func, *args, **kwargs):
    """The result, which wait() gives: the function is called at once."""
    return func(*args, **kwargs)


def wait(future):
    return future


def set_fusion_strategy(strategy):
    """Nothing is fused by the compiler of scripts."""


optimized_execution = fuser = contextlib.nullcontext


def Attribute(value, type):
    """The value."""
    return value


def annotate(the_type, the_value):
    """The value."""
    return the_value


ScriptModule = _C.Module
ScriptFunction = type(_itself)


def is_scripting():
    return False


is_tracing = is_scripting


def save(m, f, **options):
    raise NotImplementedError("jit.save: Tern writes no TorchScript: save(m.state_dict(), path), or save(m, path) for the whole model")


def load(f, map_location=None, **options):
    raise NotImplementedError("jit.load: Tern does not run TorchScript: load(path) gives its parameters as a state dict")
