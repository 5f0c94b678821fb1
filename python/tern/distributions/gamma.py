"""Gamma and what is made of gamma numbers: Chi2, InverseGamma, FisherSnedecor, Dirichlet, Beta; and Exponential."""

import math

import tern
from tern.distributions import constraints
from tern.distributions.distribution import Distribution, Size
from tern.distributions.transformed import TransformedDistribution, of_base
from tern.distributions.transforms import PowerTransform
from tern.distributions.utils import broadcast_all, eps, exponential, lbeta, tiny


class Exponential(Distribution):
    """The time until an event of this rate: log p(x) = log rate - rate x."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        self._begin(validate_args, rate=rate)

    @property
    def mean(self):
        return 1 / self.rate

    @property
    def mode(self):
        return tern.zeros_like(self.rate)

    @property
    def variance(self):
        return self.rate ** -2

    def rsample(self, sample_shape=Size()):
        return exponential(self._extended_shape(sample_shape), self.rate) / self.rate

    def log_prob(self, value):
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._check(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value):
        return -(-value).log1p() / self.rate

    def entropy(self):
        return 1 - self.rate.log()


class Gamma(Distribution):
    """log p(x) = a log rate + (a - 1) log x - rate x - log gamma(a), where a is the concentration."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        self._begin(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape=Size()):
        value = tern._standard_gamma(self.concentration.expand(self._extended_shape(sample_shape))) / self.rate
        return value.clamp(min=tiny(value))

    def log_prob(self, value):
        self._check(value)
        return (tern.xlogy(self.concentration, self.rate) + tern.xlogy(self.concentration - 1, value) - self.rate * value
                - tern.lgamma(self.concentration))

    def cdf(self, value):
        self._check(value)
        return tern.special.gammainc(self.concentration, self.rate * value)

    def entropy(self):
        return (self.concentration - self.rate.log() + tern.lgamma(self.concentration)
                + (1 - self.concentration) * tern.digamma(self.concentration))


class Chi2(Gamma):
    """The sum of `df` squares of standard normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = property(lambda self: 2 * self.concentration)

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        new.concentration, new.rate = self.concentration.expand(batch_shape), self.rate.expand(batch_shape)
        return new


class InverseGamma(TransformedDistribution):
    """1 / x of Gamma(concentration, rate)."""

    arg_constraints = Gamma.arg_constraints
    support = constraints.positive
    concentration, rate = of_base("concentration"), of_base("rate")

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-tern.ones((), dtype=base.rate.dtype, device=base.rate.device)), validate_args=validate_args)

    @property
    def mean(self):
        return tern.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        variance = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return tern.where(self.concentration > 2, variance, math.inf)

    def entropy(self):
        return (self.concentration + self.rate.log() + tern.lgamma(self.concentration)
                - (1 + self.concentration) * tern.digamma(self.concentration))


class FisherSnedecor(Distribution):
    """The ratio of the means of df1 and of df2 squares of standard normal numbers."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = (Gamma(0.5 * df, df, validate_args=False) for df in (self.df1, self.df2))
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self):
        return tern.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self):
        return tern.where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self):
        variance = 2 * self.mean.square() * (self.df1 + self.df2 - 2) / (self.df1 * (self.df2 - 4))
        return tern.where(self.df2 > 4, variance, math.nan)

    def rsample(self, sample_shape=Size()):
        value = self._gamma1.rsample(sample_shape) / self._gamma2.rsample(sample_shape)
        return value.clamp(min=tiny(value))

    def log_prob(self, value):
        self._check(value)
        half1, half2, ratio = 0.5 * self.df1, 0.5 * self.df2, self.df1 / self.df2
        return (half1 * ratio.log() + (half1 - 1) * value.log() - (half1 + half2) * (ratio * value).log1p() - lbeta(half1, half2))


class Dirichlet(Distribution):
    """Points of a simplex: log p(x) = sum((a - 1) log x) - log B(a), where a is the concentration."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self):
        above = (self.concentration - 1).clamp(min=0)
        corner = tern.zeros_like(above)
        corner[..., 0] = 1  # where the density has no maximum, as PyTorch has it
        return tern.where((self.concentration < 1).all(-1, keepdim=True), corner, above / above.sum(-1, keepdim=True))

    @property
    def variance(self):
        mean, total = self.mean, self.concentration.sum(-1, keepdim=True)
        return mean * (1 - mean) / (total + 1)

    def rsample(self, sample_shape=Size()):
        """Gamma numbers over their sums, in float64 so that few are 0."""
        gammas = tern._standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)).double())
        value = (gammas / gammas.sum(-1, keepdim=True)).to(self.concentration.dtype)
        return value.clamp(min=tiny(value), max=1 - eps(value) / 2)

    def log_prob(self, value):
        self._check(value)
        return tern.xlogy(self.concentration - 1, value).sum(-1) - self._log_norm()

    def _log_norm(self):
        return tern.lgamma(self.concentration).sum(-1) - tern.lgamma(self.concentration.sum(-1))

    def entropy(self):
        total = self.concentration.sum(-1)
        return (self._log_norm() + (total - self.concentration.shape[-1]) * tern.digamma(total)
                - ((self.concentration - 1) * tern.digamma(self.concentration)).sum(-1))


class Beta(Distribution):
    """The first number of Dirichlet([concentration1, concentration0])."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self._dirichlet = Dirichlet(tern.stack(broadcast_all(concentration1, concentration0), -1), validate_args=False)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(lambda self: self._dirichlet.mean[..., 0])
    mode = property(lambda self: self._dirichlet.mode[..., 0])
    variance = property(lambda self: self._dirichlet.variance[..., 0])

    def rsample(self, sample_shape=Size()):
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value):
        self._check(value)
        return self._dirichlet.log_prob(tern.stack([value, 1 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()
