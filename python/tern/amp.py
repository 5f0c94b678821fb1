"""Mixed precision: autocast and the scaler of gradients."""

import functools

from tern import _C
from tern.utils import _pytree

try:
    from tern._C import GradScaler  # noqa: F401
except ImportError:
    pass


class autocast:
    """Operators that gain by it compute in 16 bits, in this context or in the function that it decorates."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.arguments = (_C.device(device_type), dtype, enabled, cache_enabled)
        self.guards = []

    def __enter__(self):
        self.guards.append(_C._AutocastGuard(*self.arguments))

    def __exit__(self, *_):
        self.guards.pop()

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return inside


def is_autocast_available(device_type):
    return _C.device(device_type).type in ("cpu", "cuda")


def custom_fwd(fwd=None, *, device_type="cuda", cast_inputs=None):
    """For the forward() of an autograd.Function: under autocast its tensors of floats on such a device are cast to `cast_inputs`, and
    autocast is off in it; without a dtype it stays as it is. custom_bwd lets backward() run as forward() did."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def inside(ctx, *args, **kwargs):
        ctx._dtype = _C.get_autocast_dtype(device_type)
        ctx._autocast = _C.is_autocast_enabled(device_type)
        if cast_inputs is None or not ctx._autocast:
            return fwd(ctx, *args, **kwargs)
        ctx._autocast = False

        def cast(x):
            is_cast = isinstance(x, _C.Tensor) and x.is_floating_point() and x.device.type == device_type and x.dtype != _C.float64
            return x.to(cast_inputs) if is_cast else x

        with autocast(device_type, enabled=False):
            return fwd(ctx, *_pytree.tree_map(cast, args), **_pytree.tree_map(cast, kwargs))

    return inside


def custom_bwd(bwd=None, *, device_type="cuda"):
    """See custom_fwd."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def inside(ctx, *args):
        with autocast(device_type, ctx._dtype, enabled=ctx._autocast):
            return bwd(ctx, *args)

    return inside
