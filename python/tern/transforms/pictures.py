"""Pictures of NumPy and PIL as tensors and back, and changes of dtype."""

import enum

from tern import _C


class InterpolationMode(enum.Enum):
    """What a new pixel is made of; each transform says which of these it has."""
    NEAREST = "nearest"
    NEAREST_EXACT = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


class AutoAugmentPolicy(enum.Enum):
    """The pictures that AutoAugment's operations were found with."""
    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# Channels of PIL's modes of 8 bits.
_CHANNELS = {"L": 1, "LA": 2, "RGB": 3, "YCbCr": 3, "HSV": 3, "RGBA": 4, "CMYK": 4}


def as_tensor(picture):
    """A picture as a tensor [channels, height, width]: of an array [height, width] or [height, width, channels], or of PIL."""
    if isinstance(picture, _C.Tensor):
        return picture
    if hasattr(picture, "tobytes") and hasattr(picture, "mode") and hasattr(picture, "convert"):
        if picture.mode == "1":
            picture = picture.convert("L")
        if picture.mode not in _CHANNELS:
            raise TypeError(f"a PIL picture of mode {picture.mode!r} can not be a tensor; convert it: picture.convert('RGB')")
        pixels = _C.frombuffer(bytearray(picture.tobytes()), dtype=_C.uint8)
        pixels = pixels.reshape(picture.height, picture.width, _CHANNELS[picture.mode])
    elif hasattr(picture, "__array__") and hasattr(picture, "dtype"):
        pixels = _C.as_tensor(picture, device="cpu")
        if pixels.dim() not in (2, 3):
            raise ValueError(f"a picture is an array [height, width] or [height, width, channels], got {pixels.dim()} dimensions")
        if pixels.dim() == 2:
            pixels = pixels[:, :, None]
    else:
        raise TypeError(f"a picture is a tensor, an array of NumPy or a picture of PIL, not {type(picture).__name__}")
    return pixels.permute(2, 0, 1).contiguous()


class PILToTensor:
    """A picture of PIL or an array as a tensor, its numbers as they are."""

    def __call__(self, picture):
        return as_tensor(picture)

    def __repr__(self):
        return "PILToTensor()"

    def _extension_steps(self):
        return []


class ToPILImage:
    """A picture as PIL has it: uint8, or floats of which 0 to 1 are black to white."""

    def __init__(self, mode=None):
        self.mode = mode

    def __call__(self, picture):
        import PIL.Image
        picture = as_tensor(picture)
        if picture.dim() == 2:
            picture = picture[None]
        if picture.is_floating_point():
            picture = (picture * 255).to(_C.uint8)
        if picture.dim() != 3 or picture.dtype != _C.uint8 or picture.size(0) not in (1, 2, 3, 4):
            raise ValueError("ToPILImage: expects uint8 or floats [1 to 4 channels, height, width], got "
                             f"{picture.dtype} {list(picture.shape)}")
        mode = self.mode or {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[picture.size(0)]
        return PIL.Image.frombytes(mode, (picture.size(2), picture.size(1)), _C._bytes_of(picture.permute(1, 2, 0)))

    def __repr__(self):
        return f"ToPILImage({'' if self.mode is None else f'mode={self.mode}'})"


class ConvertImageDtype:
    """Another dtype, with the values scaled: bytes are 0 to 255, floats 0 to 1."""

    def __init__(self, dtype):
        if dtype != _C.uint8 and not dtype.is_floating_point:
            raise NotImplementedError(f"ConvertImageDtype: pictures are uint8 or floats, not {dtype}")
        self.dtype = dtype

    def __call__(self, picture):
        picture = as_tensor(picture)
        if picture.dtype == self.dtype:
            return picture
        if picture.is_floating_point():
            return (picture * (256 - 1e-3)).to(_C.uint8) if self.dtype == _C.uint8 else picture.to(self.dtype)
        return _C.ToTensor()(picture).to(self.dtype)

    def __repr__(self):
        return f"ConvertImageDtype({self.dtype})"

    def _extension_steps(self):
        return [_C.ToTensor()] if self.dtype == _C.float32 else None
