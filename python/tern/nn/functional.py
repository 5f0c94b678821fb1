"""Operators under the names of torch.nn.functional."""

from tern import _C

globals().update({name: value for name, value in vars(_C).items()
                  if not name.startswith(("_", "cuda_", "init_")) and callable(value) and not isinstance(value, type)})


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """interpolate() under the name of earlier years."""
    return _C.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    return _C.interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    return _C.interpolate(input, size, scale_factor, "bilinear", True)
