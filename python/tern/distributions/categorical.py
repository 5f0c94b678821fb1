"""Distributions over categories, as integers and as one-hot vectors."""

import math

import tern
from tern.distributions import constraints
from tern.distributions.distribution import Distribution, ProbsOrLogits, Size


class Categorical(ProbsOrLogits):
    """Integers from 0 with these relative weights, or logarithms of weights, along the last dimension."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False

    def __init__(self, probs=None, logits=None, validate_args=None):
        (name, given), = self._given(probs, logits).items()
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    def _nan(self):
        return tern.full(self._extended_shape(), math.nan, dtype=self._param.dtype, device=self._param.device)

    mean = property(_nan)
    variance = property(_nan)

    @property
    def mode(self):
        return self.probs.argmax(-1)

    def sample(self, sample_shape=Size()):
        sample_shape = Size(sample_shape)
        with tern.no_grad():
            drawn = tern.multinomial(self.probs.reshape(-1, self._num_events), sample_shape.numel(), True)
            return drawn.t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        self._check(value)
        shape = tern.broadcast_shapes(value.shape, self._batch_shape)
        return self.logits.expand(shape + (-1,)).gather(-1, value.long().expand(shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self):
        return -(self.logits.clamp(min=tern.finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        return self._enumerated(tern.arange(self._num_events, device=self._param.device), expand)


class OverCategories(Distribution):
    """Vectors of a number for each category, with the parameters of a Categorical."""

    arg_constraints = Categorical.arg_constraints

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    _param = property(lambda self: self._categorical._param)
    param_shape = property(lambda self: self._categorical.param_shape)


class OneHotCategorical(OverCategories):
    """The one-hot vectors of Categorical."""

    support = constraints.one_hot
    has_enumerate_support = True
    mean = OverCategories.probs

    @property
    def mode(self):
        return self._vectors(self._categorical.mode)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def _vectors(self, indices):
        return tern.nn.functional.one_hot(indices, self._event_shape[0]).to(self._param.dtype)

    def sample(self, sample_shape=Size()):
        return self._vectors(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        self._check(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        count = self._event_shape[0]
        values = tern.eye(count, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((count,) + (1,) * len(self._batch_shape) + (count,))
        return values.expand((count,) + self._batch_shape + (count,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same; gradients pass through samples to the probabilities (Bengio et al., "Estimating or propagating gradients", 2013)."""

    has_rsample = True

    def rsample(self, sample_shape=Size()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
