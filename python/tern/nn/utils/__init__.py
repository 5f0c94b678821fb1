"""Norms of gradients and of weights, parameters as one vector."""

import importlib as _importlib

from tern import _C
from tern._C import (  # noqa: F401
    clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, fuse_conv_bn_eval, fuse_linear_bn_eval, get_total_norm,
    remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm)
from tern.nn.utils import parametrizations, rnn  # noqa: F401


def parameters_to_vector(parameters):
    """All numbers of the parameters as one dimension."""
    return _C.cat([parameter.flatten() for parameter in parameters])


def vector_to_parameters(vector, parameters):
    """The numbers of the vector into the parameters."""
    start = 0
    for parameter in parameters:
        length = parameter.numel()
        parameter.data.copy_(vector.detach()[start:start + length].view(parameter.shape))
        start += length


def skip_init(module_cls, *args, **kwargs):
    """A layer of the class; its numbers are drawn all the same."""
    return module_cls(*args, **kwargs)


def __getattr__(name):
    if name in ("parametrize", "prune", "stateless"):
        return _importlib.import_module(f"tern.nn.utils.{name}")
    raise AttributeError(f"module 'tern.nn.utils' has no attribute '{name}'")
