"""kl_divergence(p, q) = E_p[log p(x) - log q(x)], in closed forms.

Pairs of one family have formulas of their own. For others the divergence is -H(p) - E_p[log q], where the mean of log q needs few
moments of p: the mean and variance, E log x, E log(1 - x), or E exp(-t x).
"""

import functools
import math

import tern
from tern.distributions.categorical import Categorical, OneHotCategorical
from tern.distributions.counts import Bernoulli, Binomial, Geometric, Poisson
from tern.distributions.distribution import Distribution
from tern.distributions.gamma import Beta, Dirichlet, Exponential, Gamma
from tern.distributions.multivariate_normal import (
    LowRankMultivariateNormal, MultivariateNormal, half_log_det, squared_distance)
from tern.distributions.normal import LOG_ROOT_TWO_PI, Cauchy, Gumbel, HalfNormal, Laplace, Normal
from tern.distributions.transformed import Independent, TransformedDistribution
from tern.distributions.uniform import ContinuousBernoulli, Pareto, Uniform
from tern.distributions.utils import EULER, lbeta, sum_rightmost

_registered = {}


def register_kl(type_p, type_q):
    """Decorates the function for distributions of these classes and of classes derived from them."""
    if not all(isinstance(each, type) and issubclass(each, Distribution) for each in (type_p, type_q)):
        raise TypeError(f"Expected two subclasses of Distribution but got {type_p} and {type_q}")

    def decorated(function):
        _registered[type_p, type_q] = function
        _function_for.cache_clear()
        return function

    return decorated


@functools.cache
def _function_for(type_p, type_q):
    """What is registered for the nearest base classes, p's first."""
    return next((_registered[p, q] for p in type_p.__mro__ for q in type_q.__mro__ if (p, q) in _registered), None)


def kl_divergence(p, q):
    """How much worse q codes what p draws, in nats, for each of the batch."""
    function = _function_for(type(p), type(q))
    if function is None:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")
    return function(p, q)


def _infinite(p, q):
    return tern.full_like(p.mean, math.inf)


def _infinite_outside(kl, inside):
    return tern.where(inside, kl, math.inf)


# ---- within a family

@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    softplus = tern.nn.functional.softplus
    success = tern.where(p.probs == 0, 0.0, p.probs * (softplus(-q.logits) - softplus(-p.logits)))
    failure = tern.where(p.probs == 1, 0.0, (1 - p.probs) * (softplus(q.logits) - softplus(p.logits)))
    success = tern.where((q.probs == 0) & (p.probs > 0), math.inf, success)
    return success + tern.where((q.probs == 1) & (p.probs < 1), math.inf, failure)


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    return _infinite_outside(p.total_count * _bernoulli(p, q), p.total_count <= q.total_count)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    each = p.probs * (p.logits - q.logits)
    each = tern.where(q.probs == 0, math.inf, each)
    return tern.where(p.probs == 0, 0.0, each).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    return p.mean * (p.logits - q.logits) + p._log_norm() + (-p.probs).log1p() - q._log_norm() - (-q.probs).log1p()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    return q._log_norm() - p._log_norm() + ((a - b) * (tern.digamma(a) - tern.digamma(a.sum(-1, keepdim=True)))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b, ratio = p.concentration, q.concentration, q.rate / p.rate
    return tern.lgamma(b) - tern.lgamma(a) - b * ratio.log() + (a - b) * tern.digamma(a) + a * (ratio - 1)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - ratio.log() - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    return ((p.scale + q.scale).square() + (p.loc - q.loc).square()).log() - (4 * p.scale * q.scale).log()


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    return _infinite_outside(q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1, p.scale >= q.scale)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL of vectors of different sizes: {p.event_shape} and {q.event_shape}")
    p_factor, q_factor = p.scale_tril, q.scale_tril
    trace = tern.linalg.solve_triangular(q_factor, p_factor, upper=False).square().sum((-2, -1))
    distance = squared_distance(q_factor, q.loc - p.loc)
    return half_log_det(q_factor) - half_log_det(p_factor) + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL of distributions that are transformed in different ways")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL of distributions that have different numbers of dimensions reinterpreted")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---- between families: E_p[log q] by q, of the moments of p

def _mean_log(p):
    """E log x."""
    if isinstance(p, Beta):
        return tern.digamma(p.concentration1) - tern.digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Exponential):
        return -p.rate.log() - EULER
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    return (tern.xlogy(p.high, p.high) - tern.xlogy(p.low, p.low)) / (p.high - p.low) - 1  # Uniform


def _mean_exp(p, t):
    """E exp(-t x)."""
    if isinstance(p, Exponential):
        return p.rate / (p.rate + t)
    if isinstance(p, Gamma):
        return (-p.concentration * (t / p.rate).log1p()).exp()
    if isinstance(p, Normal):
        return (0.5 * (p.scale * t).square() - p.loc * t).exp()
    return ((-p.low * t).exp() - (-p.high * t).exp()) / (t * (p.high - p.low))  # Uniform


def _log_of_normal(p, q):
    return -0.5 * (p.variance + (p.mean - q.loc).square()) / q.scale.square() - q.scale.log() - LOG_ROOT_TWO_PI


def _log_of_exponential(p, q):
    return q.rate.log() - q.rate * p.mean


def _log_of_gamma(p, q):
    return q.concentration * q.rate.log() - tern.lgamma(q.concentration) + (q.concentration - 1) * _mean_log(p) - q.rate * p.mean


def _log_of_gumbel(p, q):
    return (q.loc - p.mean) / q.scale - (q.loc / q.scale).exp() * _mean_exp(p, 1 / q.scale) - q.scale.log()


def _log_of_laplace(p, q):
    """Of Normal: E |x - m| is that of a folded normal number."""
    z = (p.loc - q.loc) / p.scale
    distance = p.scale * math.sqrt(2 / math.pi) * (-0.5 * z.square()).exp() + (p.loc - q.loc) * tern.erf(z / math.sqrt(2))
    return -distance / q.scale - (2 * q.scale).log()


def _log_of_continuous_bernoulli(p, q):
    return p.mean * q.logits + (-q.probs).log1p() + q._log_norm()


def _log_of_beta(p, q):
    """Of Uniform: 1 - x is uniform too."""
    a, b = q.concentration1, q.concentration0
    return (a - 1) * _mean_log(p) + (b - 1) * _mean_log(Uniform(1 - p.high, 1 - p.low, validate_args=False)) - lbeta(a, b)


def _log_of_uniform(p, q):
    return -(q.high - q.low).log()


def _log_of_pareto(p, q):
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)


def _log_of_poisson(p, q):
    """Of Bernoulli: log x! is 0."""
    return p.probs * q.rate.log() - q.rate


def _always(p, q):
    return None


def _in_unit_interval(p, q):
    return (p.low >= 0) & (p.high <= 1)


def _not_negative(p, q):
    return p.low >= 0


def _unit_interval_in(p, q):
    return (q.low <= 0) & (q.high >= 1)


_FINITE = [  # E_p[log q], where p's support is in q's, classes of p, q
    (_log_of_normal, _always, (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform), Normal),
    (_log_of_exponential, _always, (Beta, ContinuousBernoulli, Gamma, Pareto), Exponential),
    (_log_of_exponential, _not_negative, (Uniform,), Exponential),
    (_log_of_gamma, _always, (Beta, Exponential, Pareto), Gamma),
    (_log_of_gamma, _not_negative, (Uniform,), Gamma),
    (_log_of_gumbel, _always, (Exponential, Gamma, Normal, Uniform), Gumbel),
    (_log_of_laplace, _always, (Normal,), Laplace),
    (_log_of_continuous_bernoulli, _always, (Beta,), ContinuousBernoulli),
    (_log_of_continuous_bernoulli, _in_unit_interval, (Uniform,), ContinuousBernoulli),
    (_log_of_beta, _in_unit_interval, (Uniform,), Beta),
    (_log_of_uniform, _unit_interval_in, (Beta, ContinuousBernoulli), Uniform),
    (_log_of_uniform, lambda p, q: (p.low >= q.low) & (p.high <= q.high), (Uniform,), Uniform),
    (_log_of_pareto, lambda p, q: p.low >= q.scale, (Uniform,), Pareto),
    (_log_of_poisson, _always, (Bernoulli,), Poisson),
]

_INFINITE = [  # p's support is in none of q's
    ((Beta, ContinuousBernoulli), (Pareto,)),
    ((Exponential, Gamma), (Beta, ContinuousBernoulli, Pareto, Uniform)),
    ((Gumbel, Laplace, Normal), (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    ((Pareto,), (Beta, ContinuousBernoulli, Uniform)),
    ((Poisson,), (Bernoulli, Binomial)),
]


def _register_finite(mean_log_q, is_inside, type_p, type_q):
    def kl(p, q):
        result, inside = -p.entropy() - mean_log_q(p, q), is_inside(p, q)
        return result if inside is None else _infinite_outside(result, inside)

    register_kl(type_p, type_q)(kl)


for _mean, _inside, _types, _type_q in _FINITE:
    for _type_p in _types:
        _register_finite(_mean, _inside, _type_p, _type_q)
for _types_p, _types_q in _INFINITE:
    for _type_p in _types_p:
        for _type_q in _types_q:
            register_kl(_type_p, _type_q)(_infinite)


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return -ratio.log() - 1 - EULER - shift + EULER * ratio + (shift + tern.lgamma(1 + ratio)).exp()
