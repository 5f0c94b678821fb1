"""The names of torchvision.transforms.v2 that differ: `from tern.transforms import v2`."""

from tern.transforms import *  # noqa: F401,F403
from tern.transforms import ConvertImageDtype, PILToTensor

ToImage = PILToTensor


class ToDtype:
    """Another dtype; with `scale` bytes are 0 to 255 and floats 0 to 1."""

    def __init__(self, dtype, scale=False):
        self.dtype, self.scale = dtype, scale
        self._scaled = ConvertImageDtype(dtype) if scale else None

    def __call__(self, picture):
        return self._scaled(picture) if self.scale else PILToTensor()(picture).to(self.dtype)

    def __repr__(self):
        return f"ToDtype({self.dtype}, scale={self.scale})"

    def _extension_steps(self):
        return self._scaled._extension_steps() if self.scale else None
