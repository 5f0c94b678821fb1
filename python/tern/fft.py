"""Discrete Fourier transforms under PyTorch's names."""

from tern import _C

globals().update({name: value for name, value in vars(_C._fft).items() if not name.startswith("_")})
