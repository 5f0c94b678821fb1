"""Transforms: functions of tensors with inverses and the logarithms of Jacobians, with the names of torch.distributions.transforms."""

import math

import tern
from tern.distributions import constraints
from tern.distributions.transform import (  # noqa: F401
    ComposeTransform, IndependentTransform, ReshapeTransform, Transform, check_dims, identity_transform, with_event_dim)
from tern.distributions.utils import eps, sum_rightmost, tiny

Size = tern.Size


# ---- of numbers

class _Increasing(Transform):
    """A bijective function of each real number, which increases."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1


class ExpTransform(_Increasing):
    """y = exp(x)."""

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class SoftplusTransform(_Increasing):
    """y = log(1 + exp(x)); above 20 x itself."""

    def _call(self, x):
        return tern.nn.functional.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -tern.nn.functional.softplus(-x)


class SigmoidTransform(_Increasing):
    """y = 1 / (1 + exp(-x)), kept off 0 and 1."""

    codomain = constraints.unit_interval

    def _call(self, x):
        return tern.sigmoid(x).clamp(min=tiny(x), max=1 - eps(x))

    def _inverse(self, y):
        y = y.clamp(min=tiny(y), max=1 - eps(y))
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -tern.nn.functional.softplus(-x) - tern.nn.functional.softplus(x)


class TanhTransform(_Increasing):
    """y = tanh(x); the inverse of 1 is infinite: prefer a cache to the inverse."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - tern.nn.functional.softplus(-2.0 * x))  # log(1 - tanh(x)^2) without cancellation


class PowerTransform(Transform):
    """y = x ** exponent, of positive numbers."""

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self):
        return tern.as_tensor(self.exponent).sign()

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return tern.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """y = loc + scale * x, where the last `event_dim` dimensions belong together."""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)
    domain = codomain = constraints.dependent_property(lambda self: with_event_dim(constraints.real, self._event_dim))

    @property
    def sign(self):
        return self.scale.sign() if tern.is_tensor(self.scale) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale if tern.is_tensor(self.scale) else tern.full_like(x, self.scale)
        return sum_rightmost(scale.abs().log().expand(tern.broadcast_shapes(scale.shape, x.shape)), self._event_dim)

    def forward_shape(self, shape):
        return tern.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class AbsTransform(Transform):
    """y = |x|; the inverse is y itself."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class CumulativeDistributionTransform(Transform):
    """y = distribution.cdf(x)."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)


# ---- of vectors and matrices

class SoftmaxTransform(Transform):
    """y = softmax(x) of vectors; the inverse is the logarithm."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        return tern.softmax(x, -1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        check_dims(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """A vector of n numbers to a simplex of n + 1: each breaks a part, a sigmoid, off what is left of a stick of length 1."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _shifted(x):
        """Logits of the parts: zeros break the stick into equal pieces."""
        return x - tern.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x):
        part = tern.sigmoid(self._shifted(x)).clamp(min=tiny(x), max=1 - eps(x))
        one = tern.ones_like(part[..., :1])
        return tern.cat([part, one], -1) * tern.cat([one, (1 - part).cumprod(-1)], -1)

    def _inverse(self, y):
        left = (1 - y[..., :-1].cumsum(-1)).clamp(min=tiny(y))
        count = tern.arange(left.shape[-1], 0, -1, dtype=y.dtype, device=y.device)
        return y[..., :-1].log() - left.log() + count.log()

    def log_abs_det_jacobian(self, x, y):
        return (-self._shifted(x) + tern.nn.functional.logsigmoid(self._shifted(x)) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        check_dims(shape, 1)
        return Size(shape[:-1]) + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        check_dims(shape, 1)
        return Size(shape[:-1]) + (shape[-1] - 1,)


class LowerCholeskyTransform(Transform):
    """A matrix to a lower triangular one with a positive diagonal, the exponentials of its own."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + tern.diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y):
        return y.tril(-1) + tern.diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """y = L L^T, where L is the result of LowerCholeskyTransform."""

    codomain = constraints.positive_definite

    def _call(self, x):
        factor = super()._call(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return super()._inverse(tern.linalg.cholesky(y))
