"""Distributions made of others: transformed ones, batches read as events, mixtures."""

import tern
from tern.distributions import constraints
from tern.distributions.categorical import Categorical
from tern.distributions.distribution import Distribution, Size
from tern.distributions.transforms import ComposeTransform, Transform
from tern.distributions.utils import sum_rightmost


def of_base(name):
    """A property that is the base distribution's."""
    return property(lambda self: getattr(self.base_dist, name))


class TransformedDistribution(Distribution):
    """Samples of `base_distribution` after one transform or a list of them."""

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not (isinstance(self.transforms, list) and all(isinstance(transform, Transform) for transform in self.transforms)):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        whole = ComposeTransform(self.transforms)
        needed, base_event = whole.domain.event_dim, len(base_distribution.event_shape)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(base_shape) < needed:
            raise ValueError(f"base_distribution needs to have shape with size at least {needed}, but got {base_distribution}.")
        shape = Size(whole.forward_shape(base_shape))
        expanded = Size(whole.inverse_shape(shape))
        if expanded != base_shape:
            base_distribution = base_distribution.expand(expanded[:len(expanded) - base_event])
        self.base_dist = Independent(base_distribution, needed - base_event) if needed > base_event else base_distribution
        batch_dims = len(shape) - whole.codomain.event_dim - max(base_event - needed, 0)
        super().__init__(shape[:batch_dims], shape[batch_dims:], validate_args=validate_args)

    def _part_shape(self, name, batch_shape):
        shape = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        return shape[:len(shape) - len(self.base_dist.event_shape)]

    has_rsample = of_base("has_rsample")

    @constraints.dependent_property
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        more = len(self.event_shape) - last.event_dim
        return constraints.independent(last, more) if more > 0 else last

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def _backward(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return value

    def sample(self, sample_shape=Size()):
        with tern.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=Size()):
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        self._check(value)
        event_dim, total = len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(transform.log_abs_det_jacobian(x, value), event_dim - transform.domain.event_dim)
            value = x
        return total + sum_rightmost(self.base_dist.log_prob(value), event_dim - len(self.base_dist.event_shape))

    def _monotone(self, probability):
        """One minus a probability if the transforms decrease."""
        sign = ComposeTransform(self.transforms).sign
        return probability if isinstance(sign, int) and sign == 1 else sign * (probability - 0.5) + 0.5

    def cdf(self, value):
        self._check(value)
        return self._monotone(self.base_dist.cdf(self._backward(value)))

    def icdf(self, value):
        return self._forward(self.base_dist.icdf(self._monotone(value)))


class Independent(Distribution):
    """The last `reinterpreted_batch_ndims` dimensions of a batch as dimensions of the event."""

    arg_constraints = {}

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError("Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                             f"actual {reinterpreted_batch_ndims} vs {len(batch)}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        cut = len(batch) - reinterpreted_batch_ndims
        super().__init__(batch[:cut], batch[cut:] + base_distribution.event_shape, validate_args=validate_args)

    def _part_shape(self, name, batch_shape):
        return batch_shape + self.event_shape[:self.reinterpreted_batch_ndims]

    has_rsample = of_base("has_rsample")
    has_enumerate_support = property(lambda self: self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support)
    mean, mode, variance = of_base("mean"), of_base("mode"), of_base("variance")

    @constraints.dependent_property
    def support(self):
        support = self.base_dist.support
        return constraints.independent(support, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else support

    def sample(self, sample_shape=Size()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=Size()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self):
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """Components along the last dimension of the batch of `component_distribution`, with the weights of a Categorical."""

    arg_constraints = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The mixture distribution must be a Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The component distribution must be a Distribution")
        batch, count = component_distribution.batch_shape, mixture_distribution.logits.shape[-1]
        if batch[-1:] != (count,):
            raise ValueError(f"{count} weights, but component_distribution.batch_shape is {batch}: its last size must be as many")
        if any(i != 1 and j != 1 and i != j for i, j in zip(mixture_distribution.batch_shape[::-1], batch[:-1][::-1])):
            raise ValueError(f"mixture_distribution.batch_shape ({mixture_distribution.batch_shape}) is not compatible with "
                             f"component_distribution.batch_shape ({batch})")
        event = component_distribution.event_shape
        self._along = -1 - len(event)  # the dimension of components in their samples
        super().__init__(batch[:-1], event, validate_args=validate_args)

    def _part_shape(self, name, batch_shape):
        return batch_shape + self.component_distribution.batch_shape[-1:] if name == "_component_distribution" else batch_shape

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def _average(self, values):
        weights = self.mixture_distribution.probs
        return (weights.reshape(weights.shape + (1,) * len(self.event_shape)) * values).sum(self._along)

    @property
    def mean(self):
        return self._average(self.component_distribution.mean)

    @property
    def variance(self):
        component = self.component_distribution
        return self._average(component.variance) + self._average((component.mean - self.mean.unsqueeze(self._along)).square())

    def cdf(self, value):
        return (self.component_distribution.cdf(value.unsqueeze(self._along)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value):
        self._check(value)
        each = self.component_distribution.log_prob(value.unsqueeze(self._along))
        return tern.logsumexp(each + tern.log_softmax(self.mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape=Size()):
        with tern.no_grad():
            drawn = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            samples = self.component_distribution.sample(sample_shape)
            drawn = drawn.reshape(drawn.shape + (1,) * -self._along)
            return samples.gather(self._along, drawn.expand(drawn.shape[:self._along] + (1,) + self.event_shape)).squeeze(self._along)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
