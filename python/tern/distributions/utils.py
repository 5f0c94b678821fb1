"""What the families share: broadcasting of parameters, probabilities and their logits, properties that are computed once."""

import functools
import numbers

import tern

EULER = 0.5772156649015329  # the Euler-Mascheroni constant


def broadcast_all(*values):
    """Tensors and numbers as tensors of one shape; numbers take the dtype and device of the first tensor, else the default dtype."""
    if not all(tern.is_tensor(value) or isinstance(value, numbers.Number) for value in values):
        raise ValueError("parameters must be tensors or numbers, but are " + ", ".join(type(value).__name__ for value in values))
    first = next(filter(tern.is_tensor, values), None)
    options = {"dtype": tern.get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
    return tern.broadcast_tensors(*(value if tern.is_tensor(value) else tern.tensor(value, **options) for value in values))


def tiny(x):
    """The smallest positive normal number of a tensor's dtype."""
    return tern.finfo(x.dtype).tiny


def eps(x):
    return tern.finfo(x.dtype).eps


def uniform(shape, like):
    """Uniform numbers in [0, 1) of a tensor's dtype and device; normal() and exponential() have those of their names."""
    return tern.rand(shape, dtype=like.dtype, device=like.device)


def normal(shape, like):
    return tern.randn(shape, dtype=like.dtype, device=like.device)


def exponential(shape, like):
    return tern.empty(shape, dtype=like.dtype, device=like.device).exponential_()


def sum_rightmost(value, dim):
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:value.dim() - dim] + (-1,)).sum(-1)


def clamp_probs(probs):
    return probs.clamp(min=eps(probs), max=1 - eps(probs))


def logits_to_probs(logits, is_binary=False):
    """Probabilities of logits: log odds if binary, else logarithms up to a constant along the last dimension."""
    return tern.sigmoid(logits) if is_binary else tern.softmax(logits, -1)


def probs_to_logits(probs, is_binary=False):
    """The reverse, of probabilities that are kept off 0 and 1."""
    clamped = clamp_probs(probs)
    return clamped.log() - tern.log1p(-clamped) if is_binary else clamped.log()


def lbeta(a, b):
    """The logarithm of the beta function."""
    return tern.lgamma(a) + tern.lgamma(b) - tern.lgamma(a + b)


class lazy_property:
    """A property that becomes an attribute when it is first asked for; gradients are recorded even under no_grad."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with tern.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value
