"""Normal vectors, with a full covariance or one of low rank."""

import math

import tern
from tern.distributions import constraints
from tern.distributions.distribution import Distribution, Size
from tern.distributions.utils import lazy_property, normal


def times(matrix, vector):
    """The product of a batch of matrices with a batch of vectors."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def half_log_det(factor):
    """The sum of the logarithms of a triangular matrix's diagonal."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def squared_distance(factor, x):
    """x^T (L L^T)^-1 x for lower triangular factors L; one factor solves for a whole batch at once."""
    if factor.dim() == 2:
        return tern.linalg.solve_triangular(factor, x.reshape(-1, x.shape[-1]).t(), upper=False).square().sum(0).reshape(x.shape[:-1])
    return tern.linalg.solve_triangular(factor, x.unsqueeze(-1), upper=False).square().sum((-2, -1))


def identity(n, like):
    return tern.eye(n, dtype=like.dtype, device=like.device)


def precision_to_scale_tril(precision):
    """The lower triangular L with precision = (L L^T)^-1: the inverse of a triangular factor that is found from the last row up."""
    flipped = tern.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    return tern.linalg.solve_triangular(flipped, identity(precision.shape[-1], precision), upper=False)


class _Multivariate(Distribution):
    """What both have in common; _log_det() is that of the covariance, _squared_distance() x^T covariance^-1 x."""

    support = constraints.real_vector
    has_rsample = True
    mean = mode = property(lambda self: self.loc)

    def _of_batch(self, x, dims):
        """x, of `dims` dimensions for each event, for all distributions of the batch."""
        return x.expand(self._batch_shape + self._event_shape * dims)

    def log_prob(self, value):
        self._check(value)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + self._squared_distance(value - self.loc))

    def entropy(self):
        return 0.5 * (self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._of_batch(self._log_det(), 0))


class MultivariateNormal(_Multivariate):
    """Given by `loc` and one of covariance_matrix, precision_matrix (its inverse), scale_tril (its lower triangular factor)."""

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        matrices = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: matrix for name, matrix in matrices.items() if matrix is not None}
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        (name, matrix), = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = Size(tern.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        self.loc = loc.expand(batch + loc.shape[-1:])
        setattr(self, name, matrix.expand(batch + matrix.shape[-2:]))
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        self._factor = matrix if scale_tril is not None else (
            tern.linalg.cholesky(matrix) if covariance_matrix is not None else precision_to_scale_tril(matrix))

    @lazy_property
    def scale_tril(self):
        return self._of_batch(self._factor, 2)

    @lazy_property
    def covariance_matrix(self):
        return self._of_batch(self._factor @ self._factor.mT, 2)

    @lazy_property
    def precision_matrix(self):
        return self._of_batch(tern.cholesky_inverse(self._factor), 2)

    @property
    def variance(self):
        return self._of_batch(self._factor.square().sum(-1), 1)

    def rsample(self, sample_shape=Size()):
        return self.loc + times(self._factor, normal(self._extended_shape(sample_shape), self.loc))

    def _log_det(self):
        return 2 * half_log_det(self._factor)

    def _squared_distance(self, x):
        return squared_distance(self._factor, x)


class LowRankMultivariateNormal(_Multivariate):
    """With the covariance W W^T + diag(D), where W is cov_factor, of few columns, and D cov_diag: by the lemmas of Woodbury and of
    determinants only matrices of W's columns are factored."""

    arg_constraints = {"loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2 or cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        batch = Size(tern.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]))
        self.loc, self.cov_diag = loc.expand(batch + event), cov_diag.expand(batch + event)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self._factor, self._diagonal = cov_factor, cov_diag
        scaled = cov_factor.mT / cov_diag.unsqueeze(-2)
        self._capacitance = tern.linalg.cholesky(scaled @ cov_factor + identity(cov_factor.shape[-1], cov_factor))
        super().__init__(batch, event, validate_args=validate_args)

    @property
    def covariance_matrix(self):
        return self._of_batch(self._factor @ self._factor.mT + tern.diag_embed(self._diagonal), 2)

    @property
    def scale_tril(self):
        root = self._diagonal.sqrt().unsqueeze(-1)
        scaled = self._factor / root
        return self._of_batch(root * tern.linalg.cholesky(scaled @ scaled.mT + identity(self._event_shape[0], scaled)), 2)

    @property
    def precision_matrix(self):
        scaled = tern.linalg.solve_triangular(self._capacitance, self._factor.mT / self._diagonal.unsqueeze(-2), upper=False)
        return self._of_batch(tern.diag_embed(1 / self._diagonal) - scaled.mT @ scaled, 2)

    @property
    def variance(self):
        return self._of_batch(self._factor.square().sum(-1) + self._diagonal, 1)

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        along_factor = times(self._factor, normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc))
        return self.loc + along_factor + self._diagonal.sqrt() * normal(shape, self.loc)

    def _log_det(self):
        return 2 * half_log_det(self._capacitance) + self._diagonal.log().sum(-1)

    def _squared_distance(self, x):
        scaled = x / self._diagonal
        return (scaled * x).sum(-1) - squared_distance(self._capacitance, times(self._factor.mT, scaled))
