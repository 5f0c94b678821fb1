"""Normal and other families with a place and a scale; halves of those; normal numbers after a function."""

import math

import tern
from tern.distributions import constraints
from tern.distributions.distribution import Distribution, LocScale, Size
from tern.distributions.gamma import Chi2
from tern.distributions.transformed import TransformedDistribution, of_base
from tern.distributions.transforms import AbsTransform, ExpTransform, StickBreakingTransform
from tern.distributions.utils import EULER, eps, lbeta, normal, tiny, uniform

LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)


class Normal(LocScale):
    """log p(z) = -z^2 / 2 - log sqrt(2 pi)."""

    _z_entropy = 0.5 + LOG_ROOT_TWO_PI
    _z_variance = 1.0

    def sample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        with tern.no_grad():
            return tern.normal(self.loc.expand(shape), self.scale.expand(shape))

    def _z_sample(self, shape):
        return normal(shape, self.loc)

    def _z_log_prob(self, z):
        return -0.5 * z.square() - LOG_ROOT_TWO_PI

    def _z_cdf(self, z):
        return 0.5 * (1 + tern.erf(z / math.sqrt(2)))

    def _z_icdf(self, p):
        return tern.erfinv(2 * p - 1) * math.sqrt(2)


class Laplace(LocScale):
    """log p(z) = -|z| - log 2."""

    _z_entropy = 1 + math.log(2)
    _z_variance = 2.0

    def _z_sample(self, shape):
        u = tern.empty(shape, dtype=self.loc.dtype, device=self.loc.device).uniform_(eps(self.loc) - 1, 1)
        return -u.sign() * (-u.abs()).log1p()

    def _z_log_prob(self, z):
        return -z.abs() - math.log(2)

    def _z_cdf(self, z):
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def _z_icdf(self, p):
        return -(p - 0.5).sign() * (-2 * (p - 0.5).abs()).log1p()


class Cauchy(LocScale):
    """p(z) = 1 / (pi (1 + z^2)); without moments."""

    _z_entropy = math.log(4 * math.pi)
    mean = property(lambda self: tern.full_like(self.loc, math.nan))
    variance = stddev = property(lambda self: tern.full_like(self.loc, math.inf))

    def _z_sample(self, shape):
        u = tern.rand(shape, dtype=tern.float64, device=self.loc.device)  # PyTorch draws doubles for all dtypes
        return self._z_icdf(u).to(self.loc.dtype)

    def _z_log_prob(self, z):
        return -z.square().log1p() - math.log(math.pi)

    def _z_cdf(self, z):
        return z.atan() / math.pi + 0.5

    def _z_icdf(self, p):
        return (math.pi * (p - 0.5)).tan()


class Gumbel(LocScale):
    """The largest of many: P(Z < z) = exp(-exp(-z))."""

    _z_mean = EULER
    _z_entropy = 1 + EULER
    _z_variance = math.pi ** 2 / 6

    def _z_sample(self, shape):
        low = tiny(self.loc)
        return self._z_icdf(low + uniform(shape, self.loc) * (1 - eps(self.loc) - low))

    def _z_log_prob(self, z):
        return -z - (-z).exp()

    def _z_cdf(self, z):
        return (-(-z).exp()).exp()

    def _z_icdf(self, p):
        return -(-p.log()).log()


class StudentT(LocScale):
    """A normal number over the root of the mean of `df` squares of such: log p(z) = -(df + 1) / 2 log(1 + z^2 / df) + constant."""

    arg_constraints = {"df": constraints.positive, **LocScale.arg_constraints}
    cdf, icdf = Distribution.cdf, Distribution.icdf  # not in closed form

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self._begin(validate_args, df=df, loc=loc, scale=scale)
        self._chi2 = Chi2(self.df, validate_args=False)

    def _z_sample(self, shape):
        z = normal(shape, self.loc)
        return z * (self._chi2.rsample(shape[:len(shape) - len(self._batch_shape)]) / self.df).rsqrt()

    def _log_norm(self):
        return 0.5 * self.df.log() + lbeta(0.5 * self.df, tern.full_like(self.df, 0.5))

    def _z_log_prob(self, z):
        return -0.5 * (self.df + 1) * (z.square() / self.df).log1p() - self._log_norm()

    @property
    def _z_entropy(self):
        half = 0.5 * self.df
        return (half + 0.5) * (tern.digamma(half + 0.5) - tern.digamma(half)) + self._log_norm()

    @property
    def _z_variance(self):
        variance = tern.where(self.df > 2, self.df / (self.df - 2), math.inf)
        return tern.where(self.df > 1, variance, math.nan)

    @property
    def mean(self):
        return tern.where(self.df > 1, self.loc, math.nan)


class _Half(TransformedDistribution):
    """|x|, where x is symmetric around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    scale = of_base("scale")

    def __init__(self, scale, validate_args=None):
        super().__init__(self._base(0.0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mode(self):
        return tern.zeros_like(self.scale)

    def log_prob(self, value):
        self._check(value)
        return tern.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value):
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value):
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """|x| of Normal(0, scale)."""

    _base = Normal

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.square() * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """|x| of Cauchy(0, scale)."""

    _base = Cauchy
    variance = of_base("variance")

    @property
    def mean(self):
        return tern.full_like(self.scale, math.inf)


class LogNormal(TransformedDistribution):
    """exp(x) of Normal(loc, scale)."""

    arg_constraints = LocScale.arg_constraints
    support = constraints.positive
    loc, scale = of_base("loc"), of_base("scale")

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args=validate_args)

    @property
    def mean(self):
        return (self.loc + 0.5 * self.scale.square()).exp()

    @property
    def mode(self):
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self):
        return self.scale.square().expm1() * (2 * self.loc + self.scale.square()).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Normal(loc, scale), of independent parts, broken to a point of a simplex."""

    arg_constraints = LocScale.arg_constraints
    support = constraints.simplex
    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)
