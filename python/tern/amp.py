"""Mixed precision: autocast and the scaler of gradients."""

import functools

from tern import _C

try:
    from tern._C import GradScaler  # noqa: F401
except ImportError:
    pass


class autocast:
    """Operators that gain by it compute in 16 bits, in this context or in the function that it decorates."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.arguments = (_C.device(device_type), dtype, enabled)

    def __enter__(self):
        self.guard = _C._AutocastGuard(*self.arguments)

    def __exit__(self, *_):
        del self.guard

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return inside
