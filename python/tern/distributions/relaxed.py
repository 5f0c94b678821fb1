"""Continuous relaxations of Bernoulli and OneHotCategorical: Maddison et al., "The concrete distribution", 2017."""

import math

import tern
from tern.distributions import constraints
from tern.distributions.categorical import OverCategories
from tern.distributions.distribution import ProbsOrLogits, Size
from tern.distributions.transformed import TransformedDistribution, of_base
from tern.distributions.transforms import ExpTransform, SigmoidTransform
from tern.distributions.utils import broadcast_all, clamp_probs, uniform


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The log odds of RelaxedBernoulli's samples."""

    support = constraints.real
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._begin(validate_args, **self._given(probs, logits))

    def rsample(self, sample_shape=Size()):
        probs, noise = clamp_probs(self.probs), clamp_probs(uniform(self._extended_shape(sample_shape), self._param))
        return (noise.log() - (-noise).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        self._check(value)
        difference = self.logits - value * self.temperature
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class ExpRelaxedCategorical(OverCategories):
    """The logarithms of RelaxedOneHotCategorical's samples."""

    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape=Size()):
        noise = clamp_probs(uniform(self._extended_shape(sample_shape), self._param))
        return tern.log_softmax((self.logits - (-noise.log()).log()) / self.temperature, -1)

    def log_prob(self, value):
        self._check(value)
        count = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        scores = tern.log_softmax(logits - value * self.temperature, -1).sum(-1)
        return scores + math.lgamma(count) + (count - 1) * self.temperature.log()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1) that near 0 and 1 as the temperature falls."""

    arg_constraints = LogitRelaxedBernoulli.arg_constraints
    support = constraints.unit_interval
    temperature, probs, logits = map(of_base, ("temperature", "probs", "logits"))

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args)


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of a simplex that near its corners as the temperature falls."""

    arg_constraints = ExpRelaxedCategorical.arg_constraints
    support = constraints.simplex
    temperature, probs, logits = map(of_base, ("temperature", "probs", "logits"))

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits), ExpTransform(), validate_args=validate_args)
