"""Linear algebra under PyTorch's names: factorisations, systems of equations, eigenvalues, singular values, norms."""

from tern import _C

LinAlgError = _C.LinAlgError

globals().update({name: value for name, value in vars(_C._linalg).items() if not name.startswith("_")})
