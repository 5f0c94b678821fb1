"""Norms of gradients, parameters as one vector."""

from tern import _C
from tern.nn.utils import rnn  # noqa: F401

for _name in ("clip_grad_norm_", "clip_grad_value_"):
    if hasattr(_C, _name):
        globals()[_name] = getattr(_C, _name)


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
