"""What transforms do, as functions of a picture: torchvision.transforms.functional."""

from tern import _C
from tern.transforms.pictures import ConvertImageDtype, InterpolationMode, ToPILImage, as_tensor  # noqa: F401


pil_to_tensor = as_tensor


def to_tensor(pic):
    return _C.ToTensor()(pic)


def to_pil_image(pic, mode=None):
    return ToPILImage(mode)(pic)


def convert_image_dtype(image, dtype=_C.float32):
    return ConvertImageDtype(dtype)(image)


def normalize(tensor, mean, std, inplace=False):
    return _C.Normalize(mean, std)(tensor)


def resize(img, size, interpolation="bilinear", max_size=None, antialias=True):
    return _C.Resize(size, interpolation, max_size, antialias)(img)


def pad(img, padding, fill=0, padding_mode="constant"):
    return _C.Pad(padding, fill, padding_mode)(img)


def center_crop(img, output_size):
    return _C.CenterCrop(output_size)(img)


def crop(img, top, left, height, width):
    """The rectangle; what is outside the picture is 0."""
    picture = as_tensor(img)
    rows, columns = picture.size(-2), picture.size(-1)
    inside = picture[..., max(top, 0):max(top + height, 0), max(left, 0):max(left + width, 0)]
    sides = (max(-left, 0), max(-top, 0), max(left + width - columns, 0), max(top + height - rows, 0))
    return _C.Pad(sides)(inside) if any(sides) else inside


def resized_crop(img, top, left, height, width, size, interpolation="bilinear", antialias=True):
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def five_crop(img, size):
    return tuple(_C.FiveCrop(size)(img))


def ten_crop(img, size, vertical_flip=False):
    return tuple(_C.TenCrop(size, vertical_flip)(img))


def hflip(img):
    return as_tensor(img).flip(-1)


def vflip(img):
    return as_tensor(img).flip(-2)


def rotate(img, angle, interpolation="nearest", expand=False, center=None, fill=0):
    return _C.RandomRotation((angle, angle), interpolation, expand, center, fill)(img)


def erase(img, i, j, h, w, v, inplace=False):
    picture = img if inplace else img.clone()
    picture[..., i:i + h, j:j + w] = v
    return picture


def rgb_to_grayscale(img, num_output_channels=1):
    return _C.Grayscale(num_output_channels)(img)


def gaussian_blur(img, kernel_size, sigma=None):
    if sigma is None:
        sizes = [kernel_size] if isinstance(kernel_size, int) else list(kernel_size)
        sigma = 0.3 * ((sizes[0] - 1) * 0.5 - 1) + 0.8
    return _C.GaussianBlur(kernel_size, sigma)(img)


def adjust_brightness(img, brightness_factor):
    return _C.ColorJitter(brightness=(brightness_factor, brightness_factor))(img)


def adjust_contrast(img, contrast_factor):
    return _C.ColorJitter(contrast=(contrast_factor, contrast_factor))(img)


def adjust_saturation(img, saturation_factor):
    return _C.ColorJitter(saturation=(saturation_factor, saturation_factor))(img)


def adjust_hue(img, hue_factor):
    return _C.ColorJitter(hue=(hue_factor, hue_factor))(img)


def adjust_sharpness(img, sharpness_factor):
    return _C.RandomAdjustSharpness(sharpness_factor, p=1)(img)


def invert(img):
    return _C.RandomInvert(p=1)(img)


def posterize(img, bits):
    return _C.RandomPosterize(bits, p=1)(img)


def solarize(img, threshold):
    return _C.RandomSolarize(threshold, p=1)(img)


def autocontrast(img):
    return _C.RandomAutocontrast(p=1)(img)


def equalize(img):
    return _C.RandomEqualize(p=1)(img)


def get_dimensions(img):
    """Channels, height and width."""
    return list(as_tensor(img).shape[-3:])


def get_image_size(img):
    """Width and height."""
    return get_dimensions(img)[:0:-1]


def get_image_num_channels(img):
    return get_dimensions(img)[0]
