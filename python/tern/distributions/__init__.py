"""Probability distributions: samples, densities, entropies and divergences, with the names of torch.distributions."""

import sys

from tern.distributions import (
    categorical, constraint_registry, constraints, counts, distribution, gamma, kl, multivariate_normal, normal, relaxed, transformed,
    transforms, uniform, utils)
from tern.distributions.categorical import Categorical, OneHotCategorical, OneHotCategoricalStraightThrough
from tern.distributions.constraint_registry import biject_to, transform_to
from tern.distributions.counts import Bernoulli, Binomial, Geometric, Multinomial, NegativeBinomial, Poisson
from tern.distributions.distribution import Distribution
from tern.distributions.gamma import Beta, Chi2, Dirichlet, Exponential, FisherSnedecor, Gamma, InverseGamma
from tern.distributions.kl import kl_divergence, register_kl
from tern.distributions.multivariate_normal import LowRankMultivariateNormal, MultivariateNormal
from tern.distributions.normal import (
    Cauchy, Gumbel, HalfCauchy, HalfNormal, Laplace, LogisticNormal, LogNormal, Normal, StudentT)
from tern.distributions.relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from tern.distributions.transformed import Independent, MixtureSameFamily, TransformedDistribution
from tern.distributions.transforms import (
    AbsTransform, AffineTransform, ComposeTransform, CumulativeDistributionTransform, ExpTransform, IndependentTransform,
    LowerCholeskyTransform, PositiveDefiniteTransform, PowerTransform, ReshapeTransform, SigmoidTransform, SoftmaxTransform,
    SoftplusTransform, StickBreakingTransform, TanhTransform, Transform, identity_transform)
from tern.distributions.uniform import ContinuousBernoulli, GeneralizedPareto, Kumaraswamy, Pareto, Uniform, Weibull

_MODULES = {  # PyTorch's modules, which are several to a file here
    categorical: ["one_hot_categorical"],
    counts: ["bernoulli", "binomial", "geometric", "multinomial", "negative_binomial", "poisson"],
    gamma: ["beta", "chi2", "dirichlet", "exponential", "fishersnedecor", "inverse_gamma"],
    multivariate_normal: ["lowrank_multivariate_normal"],
    normal: ["cauchy", "gumbel", "half_cauchy", "half_normal", "laplace", "log_normal", "logistic_normal", "studentT"],
    relaxed: ["relaxed_bernoulli", "relaxed_categorical"],
    transformed: ["independent", "mixture_same_family", "transformed_distribution"],
    uniform: ["continuous_bernoulli", "generalized_pareto", "kumaraswamy", "pareto", "weibull"],
}
for _module, _names in _MODULES.items():
    for _name in _names:
        sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _module

__all__ = [name for name, value in globals().items() if isinstance(value, type)] + [
    "biject_to", "identity_transform", "kl_divergence", "register_kl", "transform_to"]
