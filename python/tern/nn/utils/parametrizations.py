"""Weights that are computed from others before each call, with the names of torch.nn.utils.parametrizations in state dicts."""

from tern import _C


def weight_norm(module, name="weight", dim=0):
    """The weight as its norms times directions, which are learned in its place."""
    return _C.weight_norm(module, name, dim, parametrization=True)


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """The weight divided by its largest singular value."""
    return _C.spectral_norm(module, name, n_power_iterations, eps, dim, parametrization=True)


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """The weight, a matrix or a batch of them, with orthonormal columns, or rows where there are fewer of these. `orthogonal_map` is how it
    is made of what is learned: "matrix_exp", "cayley" or "householder", by default the first for square matrices and the last for others.
    With `use_trivialization` it is a product with the matrix that the weight was, so that learning begins there."""
    from tern.nn.utils._orthogonal import register
    return register(module, name, orthogonal_map, use_trivialization)
