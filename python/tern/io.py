"""Reading and writing of pictures, as torchvision.io: uint8 tensors [channels, height, width] of PNG and JPEG files."""

import enum

from tern import _C


class ImageReadMode(enum.Enum):
    """Which channels a picture has; transparency is dropped."""
    UNCHANGED = 0
    GRAY = 1
    RGB = 3


def _channels(mode):
    if isinstance(mode, str):
        if mode.upper() not in ImageReadMode.__members__:
            raise ValueError(f"mode {mode!r}: there are {', '.join(ImageReadMode.__members__)}")
        mode = ImageReadMode[mode.upper()]
    return ImageReadMode(mode).value


def read_image(path, mode=ImageReadMode.UNCHANGED):
    """The picture of a PNG or JPEG file; what it is is told by its content."""
    return _C._read_image(str(path), _channels(mode))


def decode_image(input, mode=ImageReadMode.UNCHANGED):
    """The picture of a file's bytes, a uint8 tensor with one dimension; or of a path."""
    return _C._decode_image(input, _channels(mode)) if isinstance(input, _C.Tensor) else read_image(input, mode)


decode_png = decode_jpeg = decode_image


def encode_png(input, compression_level=6):
    """The bytes of a PNG file, as a uint8 tensor; floats from 0 to 1 become bytes."""
    return _C._encode_png(input)


def write_png(input, filename, compression_level=6):
    """Writes a picture as a PNG file."""
    _C._write_png(input, str(filename))


def read_file(path):
    """The bytes of a file."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    return _C.frombuffer(data, dtype=_C.uint8) if data else _C.empty(0, dtype=_C.uint8)


def write_file(filename, data):
    """Writes the bytes of a uint8 tensor to a file."""
    with open(filename, "wb") as file:
        file.write(_C._bytes_of(data))
