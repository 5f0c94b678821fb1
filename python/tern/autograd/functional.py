"""Jacobians, Hessians, and their products with vectors, of functions of tensors."""

from tern._C import hessian, hvp, jacobian, jvp, vjp  # noqa: F401
