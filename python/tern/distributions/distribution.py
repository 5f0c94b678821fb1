"""Distribution, the base of all; and the bases of those that are given by a place and a scale or by probabilities or logits."""

import warnings

import tern
from tern.distributions import constraints
from tern.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

Size = tern.Size


class Distribution:
    """Random tensors of shape `event_shape`, a batch of them of shape `batch_shape`.

    Derived classes have `arg_constraints` (of parameters by name), `support`, sample() or rsample(), log_prob() and what else they can.
    Parameters and samples are checked unless `validate_args` is False.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Whether distributions that are not told check their arguments."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected True or False, not {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=Size(), event_shape=Size(), validate_args=None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()

    def _begin(self, validate_args, **parameters):
        """__init__() with parameters that broadcast to the shape of the batch."""
        values = broadcast_all(*parameters.values())
        vars(self).update(zip(parameters, values))
        Distribution.__init__(self, values[0].shape, validate_args=validate_args)

    def _validate_parameters(self):
        try:
            given = self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `arg_constraints`: set it to {{}}, or give validate_args=False")
            return
        for name, constraint in given.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in vars(self) and isinstance(getattr(type(self), name, None), lazy_property):
                continue  # follows from another
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                                 f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}")

    def _check(self, value):
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value):
        """Raises ValueError for what cannot be a sample."""
        if not tern.is_tensor(value):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, full = tuple(value.shape), self._batch_shape + self._event_shape
        if shape[len(shape) - len(self._event_shape):] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}.")
        if any(i != 1 and j != 1 and i != j for i, j in zip(shape[::-1], full[::-1])):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {full}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `support`: set it, or give validate_args=False")
            return
        if not support.check(value).all():
            raise ValueError(f"Expected value argument ({type(value).__name__} of shape {shape}) to be within the support ({support!r}) of "
                             f"the distribution {self!r}, but found invalid values:\n{value}")

    def _lacks(self, what):
        return NotImplementedError(f"{type(self).__name__} has no {what}")

    def _extended_shape(self, sample_shape=()):
        return Size(sample_shape) + self._batch_shape + self._event_shape

    @property
    def batch_shape(self):
        return self._batch_shape

    @property
    def event_shape(self):
        return self._event_shape

    @property
    def arg_constraints(self):
        raise self._lacks("arg_constraints")

    @property
    def support(self):
        raise self._lacks("support")

    @property
    def mean(self):
        raise self._lacks("mean")

    @property
    def mode(self):
        raise self._lacks("mode")

    @property
    def variance(self):
        raise self._lacks("variance")

    @property
    def stddev(self):
        return self.variance.sqrt()

    def sample(self, sample_shape=Size()):
        """Samples without gradients."""
        with tern.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=Size()):
        """Samples through which gradients flow to the parameters."""
        raise self._lacks("rsample()")

    def sample_n(self, n):
        return self.sample((n,))

    def log_prob(self, value):
        """The logarithm of the density or probability, summed over the event."""
        raise self._lacks("log_prob()")

    def cdf(self, value):
        raise self._lacks("cdf()")

    def icdf(self, value):
        raise self._lacks("icdf()")

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution along a new first dimension."""
        raise self._lacks("enumerate_support()")

    def entropy(self):
        raise self._lacks("entropy()")

    def perplexity(self):
        return self.entropy().exp()

    def _enumerated(self, values, expand):
        """Values along a new first dimension, for each distribution of the batch."""
        values = values.reshape((-1,) + (1,) * len(self._batch_shape) + self._event_shape)
        return values.expand((-1,) + self._batch_shape + self._event_shape) if expand else values

    def expand(self, batch_shape, _instance=None):
        """The same for a larger batch: parameters, and distributions that are attributes, are expanded."""
        new = self._get_checked_instance(type(self), _instance)
        vars(new).update({**vars(self), "_batch_shape": Size(batch_shape)})
        for name, value in vars(self).items():
            if isinstance(value, Distribution):
                setattr(new, name, value.expand(self._part_shape(name, Size(batch_shape))))
            elif name in self.arg_constraints:
                setattr(new, name, value.expand(new._batch_shape + value.shape[value.dim() - self.arg_constraints[name].event_dim:]))
        return new

    def _part_shape(self, name, batch_shape):
        """The shape of the batch of an attribute that is a distribution, when that of the whole is `batch_shape`."""
        return batch_shape

    def _get_checked_instance(self, cls, _instance=None):
        """An empty object of this class, for expand(), unless one is given."""
        return type(self).__new__(type(self)) if _instance is None else _instance

    def __repr__(self):
        given = {name: vars(self)[name] for name in self.arg_constraints if name in vars(self)}
        shown = (f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in given.items())
        return f"{type(self).__name__}({', '.join(shown)})"


class LocScale(Distribution):
    """loc + scale * z, where z has a standard distribution: its methods and constants begin with `_z`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _z_mean = 0.0

    def __init__(self, loc, scale, validate_args=None):
        self._begin(validate_args, loc=loc, scale=scale)

    def rsample(self, sample_shape=Size()):
        return self.loc + self._z_sample(self._extended_shape(sample_shape)) * self.scale

    def log_prob(self, value):
        self._check(value)
        return self._z_log_prob((value - self.loc) / self.scale) - self.scale.log()

    def cdf(self, value):
        self._check(value)
        return self._z_cdf((value - self.loc) / self.scale)

    def icdf(self, value):
        return self.loc + self.scale * self._z_icdf(value)

    def entropy(self):
        return self.scale.log() + self._z_entropy

    @property
    def mean(self):
        return self.loc + self.scale * self._z_mean if self._z_mean else self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self.scale.square() * self._z_variance

    @property
    def stddev(self):
        return self.scale * self._z_variance ** 0.5


class ProbsOrLogits(Distribution):
    """Given by either `probs` or `logits`; the other follows."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    _is_binary = True

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, self._is_binary)

    def _given(self, probs, logits):
        """The one that is given, by its name."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._name = "logits" if probs is None else "probs"
        return {self._name: logits if probs is None else probs}

    @property
    def _param(self):
        return vars(self)[self._name]

    @property
    def param_shape(self):
        return self._param.size()
