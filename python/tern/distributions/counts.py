"""Distributions of counts and of single trials."""

import math

import tern
from tern.distributions import constraints
from tern.distributions.categorical import OverCategories
from tern.distributions.distribution import Distribution, ProbsOrLogits, Size
from tern.distributions.gamma import Gamma
from tern.distributions.utils import broadcast_all, tiny


def _cross_entropy(logits, probs):
    """Of Bernoulli trials: -probs log sigmoid(logits) - (1 - probs) log sigmoid(-logits)."""
    logits, probs = broadcast_all(logits, probs)
    return tern.nn.functional.binary_cross_entropy_with_logits(logits, probs, reduction="none")


class Bernoulli(ProbsOrLogits):
    """1 with the probability `probs`, else 0."""

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._begin(validate_args, **self._given(probs, logits))

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return tern.where(self.probs == 0.5, math.nan, (self.probs > 0.5).to(self.probs.dtype))

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):
        with tern.no_grad():
            return tern.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._check(value)
        return -_cross_entropy(self.logits, value)

    def entropy(self):
        return _cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand=True):
        return self._enumerated(tern.arange(2, dtype=self._param.dtype, device=self._param.device), expand)


class Geometric(ProbsOrLogits):
    """The number of failures before the first success."""

    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._begin(validate_args, **self._given(probs, logits))
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(f"Expected parameter probs of distribution {self!r} to be positive but found invalid values:\n{self.probs}")

    @property
    def mean(self):
        return 1 / self.probs - 1

    @property
    def mode(self):
        return tern.zeros_like(self.probs)

    @property
    def variance(self):
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape=Size()):
        with tern.no_grad():
            u = tern.empty(self._extended_shape(sample_shape), dtype=self._param.dtype, device=self._param.device)
            return (u.uniform_(tiny(u), 1).log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        never = (probs == 1) & (value == 0)
        return value * (-tern.where(never, 0.0, probs)).log1p() + self.probs.log()

    def entropy(self):
        return _cross_entropy(self.logits, self.probs) / self.probs


class Binomial(ProbsOrLogits):
    """The number of successes among `total_count` trials."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **ProbsOrLogits.arg_constraints}
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        (name, given), = self._given(probs, logits).items()
        total_count, given = broadcast_all(total_count, given)
        self._begin(validate_args, **{"total_count": total_count.to(given.dtype), name: given})

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        with tern.no_grad():
            return tern.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        self._check(value)
        ways = tern.lgamma(self.total_count + 1) - tern.lgamma(value + 1) - tern.lgamma(self.total_count - value + 1)
        return ways + value * self.logits - self.total_count * tern.logaddexp(self.logits, tern.zeros_like(self.logits))

    def _count(self, what):
        count = int(self.total_count.max())
        if not int(self.total_count.min()) == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count

    def entropy(self):
        self._count("entropy")
        log_probs = self.log_prob(self.enumerate_support(False))
        return -(log_probs.exp() * log_probs).sum(0)

    def enumerate_support(self, expand=True):
        count = self._count("enumerate_support")
        return self._enumerated(tern.arange(1 + count, dtype=self._param.dtype, device=self._param.device), expand)


class NegativeBinomial(ProbsOrLogits):
    """The number of successes, each with probability `probs`, before `total_count` failures."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        (name, given), = self._given(probs, logits).items()
        total_count, given = broadcast_all(total_count, given)
        self._begin(validate_args, **{"total_count": total_count.to(given.dtype), name: given})

    @property
    def mean(self):
        return self.total_count * self.logits.exp()

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self):
        return self.mean / tern.sigmoid(-self.logits)

    def sample(self, sample_shape=Size()):
        with tern.no_grad():
            return tern.poisson(Gamma(self.total_count, (-self.logits).exp(), validate_args=False).sample(sample_shape))

    def log_prob(self, value):
        self._check(value)
        log_sigmoid = tern.nn.functional.logsigmoid
        ways = tern.lgamma(self.total_count + value) - tern.lgamma(value + 1) - tern.lgamma(self.total_count)
        ways = tern.where(self.total_count + value == 0, 0.0, ways)
        return self.total_count * log_sigmoid(-self.logits) + value * log_sigmoid(self.logits) + ways


class Poisson(Distribution):
    """The number of events in a unit of time: log p(x) = x log rate - rate - log x!."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        self._begin(validate_args, rate=rate)

    @property
    def mean(self):
        return self.rate

    @property
    def mode(self):
        return self.rate.floor()

    @property
    def variance(self):
        return self.rate

    def sample(self, sample_shape=Size()):
        with tern.no_grad():
            return tern.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._check(value)
        return tern.xlogy(value, self.rate) - self.rate - tern.lgamma(value + 1)


class Multinomial(OverCategories):
    """How often each category comes up among `total_count` draws."""

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):
        drawn = self._categorical.sample((self.total_count,) + Size(sample_shape))
        drawn = drawn.permute(*range(1, drawn.dim()), 0)
        counts = tern.zeros(self._extended_shape(sample_shape), dtype=self._param.dtype, device=self._param.device)
        return counts.scatter_add_(-1, drawn, tern.ones_like(drawn, dtype=counts.dtype))

    def log_prob(self, value):
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = tern.where((value == 0) & (logits == -math.inf), 0.0, logits)
        return tern.lgamma(value.sum(-1) + 1) + (logits * value - tern.lgamma(value + 1)).sum(-1)

    def entropy(self):
        """That of independent draws, less the mean logarithm of how many orders give the same counts."""
        each = Binomial(self.total_count, self.probs)
        counts = each.enumerate_support(False)
        orders = (each.log_prob(counts).exp() * tern.lgamma(counts + 1)).sum((0, -1))
        return self.total_count * self._categorical.entropy() - math.lgamma(self.total_count + 1) + orders
