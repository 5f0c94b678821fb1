"""Families on intervals, whose samples are simple functions of uniform or exponential numbers."""

import math

import tern
from tern.distributions import constraints
from tern.distributions.distribution import Distribution, ProbsOrLogits, Size
from tern.distributions.utils import EULER, clamp_probs, exponential, lbeta, uniform


class _ByQuantiles(Distribution):
    """Sampled by icdf() of uniform numbers."""

    has_rsample = True

    def rsample(self, sample_shape=Size()):
        return self.icdf(uniform(self._extended_shape(sample_shape), next(filter(tern.is_tensor, vars(self).values()))))


class Uniform(_ByQuantiles):
    """Any number in [low, high)."""

    def __init__(self, low, high, validate_args=None):
        self._begin(validate_args, low=low, high=high)

    @property
    def arg_constraints(self):
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def mode(self):
        return math.nan * self.high

    @property
    def variance(self):
        return (self.high - self.low).square() / 12

    def log_prob(self, value):
        self._check(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value):
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value):
        return self.low + value * (self.high - self.low)

    def entropy(self):
        return (self.high - self.low).log()


class Kumaraswamy(Distribution):
    """P(X < x) = 1 - (1 - x^a)^b with a = concentration1, b = concentration0 (Kumaraswamy, 1980)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self._begin(validate_args, concentration1=concentration1, concentration0=concentration0)

    def rsample(self, sample_shape=Size()):
        u = uniform(self._extended_shape(sample_shape), self.concentration0)
        return (1 - u ** (1 / self.concentration0)) ** (1 / self.concentration1)

    def _moment(self, n):
        a, b = self.concentration1, self.concentration0
        return b * lbeta(1 + n / a, b).exp()

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        return tern.where((a < 1) | (b < 1), math.nan, ((a - 1) / (a * b - 1)) ** (1 / a))

    @property
    def variance(self):
        return self._moment(2) - self.mean.square()

    def log_prob(self, value):
        self._check(value)
        a, b = self.concentration1, self.concentration0
        return a.log() + b.log() + (a - 1) * value.log() + (b - 1) * (-value ** a).log1p()

    def cdf(self, value):
        self._check(value)
        return 1 - (1 - value ** self.concentration1) ** self.concentration0

    def icdf(self, value):
        return (1 - (1 - value) ** (1 / self.concentration0)) ** (1 / self.concentration1)

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        return 1 - 1 / b + (1 - 1 / a) * (tern.digamma(b + 1) + EULER) - a.log() - b.log()


class ContinuousBernoulli(_ByQuantiles, ProbsOrLogits):
    """p(x) = C probs^x (1 - probs)^(1 - x) on [0, 1] (Loaiza-Ganem and Cunningham, 2019); near 1/2, between `lims`, by Taylor series."""

    support = constraints.unit_interval

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._lims = lims
        self._begin(validate_args, **self._given(probs, logits))
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    def _split(self, exact, near):
        """exact(probs), or near(probs - 1/2) between the limits."""
        is_near = (self.probs > self._lims[0]) & (self.probs <= self._lims[1])
        return tern.where(is_near, near(self.probs - 0.5), exact(tern.where(is_near, self._lims[0], self.probs)))

    def _log_norm(self):
        def exact(p):
            below = tern.where(p <= 0.5, p, 0.0), tern.where(p > 0.5, p, 1.0)
            log_difference = tern.where(p <= 0.5, (-2 * below[0]).log1p(), (2 * below[1] - 1).log())
            return ((-p).log1p() - p.log()).abs().log() - log_difference

        return self._split(exact, lambda x: math.log(2) + (4 / 3 + 104 / 45 * x.square()) * x.square())

    @property
    def mean(self):
        return self._split(lambda p: p / (2 * p - 1) + 1 / ((-p).log1p() - p.log()), lambda x: 0.5 + (1 / 3 + 16 / 45 * x.square()) * x)

    @property
    def variance(self):
        return self._split(lambda p: p * (p - 1) / (1 - 2 * p).square() + 1 / ((-p).log1p() - p.log()).square(),
                           lambda x: 1 / 12 - (1 / 15 - 128 / 945 * x.square()) * x.square())

    def log_prob(self, value):
        self._check(value)
        return value * self.logits - tern.nn.functional.softplus(self.logits) + self._log_norm()

    def cdf(self, value):
        self._check(value)
        inner = self._split(lambda p: (p ** value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1), lambda _: value)
        return tern.where(value <= 0, 0.0, tern.where(value >= 1, 1.0, inner))

    def icdf(self, value):
        return self._split(lambda p: ((value * (2 * p - 1) - p).log1p() - (-p).log1p()) / (p.log() - (-p).log1p()), lambda _: value)

    def entropy(self):
        p = self.probs
        return self.mean * ((-p).log1p() - p.log()) - self._log_norm() - (-p).log1p()


class Pareto(Distribution):
    """P(X > x) = (scale / x)^alpha."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, scale, alpha, validate_args=None):
        self._begin(validate_args, scale=scale, alpha=alpha)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self):
        alpha = self.alpha.clamp(min=1)
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self):
        return self.scale

    @property
    def variance(self):
        alpha = self.alpha.clamp(min=2)
        return self.scale.square() * alpha / ((alpha - 1).square() * (alpha - 2))

    def rsample(self, sample_shape=Size()):
        return self.scale * (exponential(self._extended_shape(sample_shape), self.alpha) / self.alpha).exp()

    def log_prob(self, value):
        self._check(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def cdf(self, value):
        self._check(value)
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value):
        return self.scale * (1 - value) ** (-1 / self.alpha)

    def entropy(self):
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha


class Weibull(Distribution):
    """P(X > x) = exp(-(x / scale)^concentration)."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale, concentration, validate_args=None):
        self._begin(validate_args, scale=scale, concentration=concentration)

    def _moment(self, n):
        return self.scale ** n * tern.lgamma(1 + n / self.concentration).exp()

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        return self.scale * ((self.concentration - 1) / self.concentration) ** (1 / self.concentration)

    @property
    def variance(self):
        return self._moment(2) - self.mean.square()

    def rsample(self, sample_shape=Size()):
        return self.scale * exponential(self._extended_shape(sample_shape), self.scale) ** (1 / self.concentration)

    def log_prob(self, value):
        self._check(value)
        z, k = value / self.scale, self.concentration
        return (k / self.scale).log() + (k - 1) * z.log() - z ** k

    def cdf(self, value):
        self._check(value)
        return -(-(value / self.scale) ** self.concentration).expm1()

    def icdf(self, value):
        return self.scale * (-(-value).log1p()) ** (1 / self.concentration)

    def entropy(self):
        return EULER * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1


class GeneralizedPareto(_ByQuantiles):
    """P(X > x) = (1 + k z)^(-1 / k) with z = (x - loc) / scale and k = concentration; exp(-z) where k is 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}

    def __init__(self, loc, scale, concentration, validate_args=None):
        self._begin(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        upper = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, tern.where(self.concentration < 0, upper, math.inf))

    def _split(self, exact, at_zero):
        is_zero = tern.isclose(self.concentration, tern.zeros_like(self.concentration))
        return tern.where(is_zero, at_zero, exact(tern.where(is_zero, 1.0, self.concentration)))

    def _log_survival(self, value):
        z = (value - self.loc) / self.scale
        return self._split(lambda k: -(k * z).log1p() / k, -z)

    @property
    def mean(self):
        k = self.concentration
        return tern.where(k < 1, self.loc + self.scale / (1 - k), math.nan)

    @property
    def variance(self):
        k = self.concentration
        return tern.where(k < 0.5, self.scale.square() / ((1 - k).square() * (1 - 2 * k)), math.nan)

    @property
    def mode(self):
        return self.loc

    def log_prob(self, value):
        self._check(value)
        z = (value - self.loc) / self.scale
        return self._split(lambda k: -(1 + 1 / k) * (k * z).log1p(), -z) - self.scale.log()

    def cdf(self, value):
        self._check(value)
        return -self._log_survival(value).expm1()

    def icdf(self, value):
        log_survival = (-value).log1p()
        return self.loc + self.scale * self._split(lambda k: (-k * log_survival).expm1() / k, -log_survival)

    def entropy(self):
        return self.scale.log() + self.concentration + 1
