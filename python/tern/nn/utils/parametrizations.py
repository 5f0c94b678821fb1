"""Weights that are computed from others before each call, with the names of torch.nn.utils.parametrizations in state dicts."""

from tern import _C


def weight_norm(module, name="weight", dim=0):
    """The weight as its norms times directions, which are learned in its place."""
    return _C.weight_norm(module, name, dim, parametrization=True)


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """The weight divided by its largest singular value."""
    return _C.spectral_norm(module, name, n_power_iterations, eps, dim, parametrization=True)
