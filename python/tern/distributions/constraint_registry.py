"""Transforms from real numbers to constraints: biject_to(constraint) is bijective, transform_to(constraint) need not be."""

from tern.distributions import constraints
from tern.distributions import transforms as t


class ConstraintRegistry:
    """Functions that make a transform for each class of constraints."""

    def __init__(self):
        self._factories = {}

    def register(self, constraint, factory=None):
        """Sets what is called for a class of constraints, or for one's class; without `factory` it decorates."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        constraint = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(constraint, type) and issubclass(constraint, constraints.Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._factories[constraint] = factory
        return factory

    def __call__(self, constraint):
        if type(constraint) not in self._factories:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return self._factories[type(constraint)](constraint)


def _from_below(constraint):
    return _moved(t.ExpTransform(), constraint.lower_bound, 1.0)


def _interval(constraint):
    return _moved(t.SigmoidTransform(), constraint.lower_bound, constraint.upper_bound - constraint.lower_bound)


def _moved(transform, loc, scale):
    is_identity = isinstance(loc, (int, float)) and isinstance(scale, (int, float)) and (loc, scale) == (0, 1)
    return transform if is_identity else t.ComposeTransform([transform, t.AffineTransform(loc, scale)])


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()
for registry in (biject_to, transform_to):
    registry.register(constraints.real, lambda _: t.identity_transform)
    registry.register(constraints.independent, lambda constraint, each=registry: t.IndependentTransform(
        each(constraint.base_constraint), constraint.reinterpreted_batch_ndims))
    registry.register(constraints.greater_than, _from_below)
    registry.register(constraints.greater_than_eq, _from_below)
    registry.register(constraints.less_than, lambda constraint: _moved(t.ExpTransform(), constraint.upper_bound, -1.0))
    registry.register(constraints.interval, _interval)
    registry.register(constraints.half_open_interval, _interval)
transform_to.register(constraints.lower_cholesky, lambda _: t.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda _: t.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda _: t.PositiveDefiniteTransform())
biject_to.register(constraints.simplex, lambda _: t.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: t.SoftmaxTransform())
