"""Modes of recording, and gradients of functions."""

import functools

from tern import _C
from tern.autograd import functional  # noqa: F401
from tern.autograd.function import Function  # noqa: F401
from tern.autograd.gradcheck import gradcheck, gradgradcheck  # noqa: F401
from tern._C import backward, grad, is_grad_enabled  # noqa: F401


class set_grad_enabled:
    """Records, or does not, from now on; as a context until its end, as a decorator in the function."""

    def __init__(self, mode):
        self.mode = bool(mode)
        self.before = _C._set_grad_enabled(self.mode)

    def __enter__(self):
        pass

    def __exit__(self, *_):
        _C._set_grad_enabled(self.before)


class _Mode:
    mode = True

    def __enter__(self):
        self.before = _C._set_grad_enabled(self.mode)

    def __exit__(self, *_):
        _C._set_grad_enabled(self.before)

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with type(self)():
                return function(*args, **kwargs)

        return inside

    def __new__(cls, function=None):
        instance = super().__new__(cls)
        return instance if function is None else instance(function)


class no_grad(_Mode):
    """Nothing is recorded in this context, or in the function that it decorates."""

    mode = False


class inference_mode(no_grad):
    """As no_grad; inference_mode(False) records, even inside another."""

    def __new__(cls, mode=True):
        if isinstance(mode, bool):
            return _Mode.__new__(cls if mode else enable_grad)
        return _Mode.__new__(cls, mode)


class enable_grad(_Mode):
    """Records in this context, even inside no_grad."""


class detect_anomaly:
    """Backward ends at the first gradient with a NaN, and names the operator whose it is."""

    def __enter__(self):
        self.guard = _C._AnomalyGuard()

    def __exit__(self, *_):
        del self.guard


class set_detect_anomaly:
    """From now on, or as a context, what detect_anomaly does."""

    def __init__(self, mode):
        _anomaly.clear()
        if mode:
            _anomaly.append(_C._AnomalyGuard())

    def __enter__(self):
        pass

    def __exit__(self, *_):
        _anomaly.clear()


_anomaly = []


def Variable(data, requires_grad=False):
    """The tensor: PyTorch's name from before tensors had gradients."""
    return data.requires_grad_(requires_grad) if requires_grad else data
