"""Operators under the names of torch.nn.functional."""

from tern import _C

globals().update({name: value for name, value in vars(_C).items()
                  if not name.startswith(("_", "cuda_", "init_")) and callable(value) and not isinstance(value, type)})
