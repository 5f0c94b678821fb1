"""Transforms of pictures, with torchvision's names and arguments.

Pictures are tensors [channels, height, width], uint8 or float32; arrays of NumPy [height, width, channels] and pictures of PIL are
taken too, and what comes out is a tensor. Sets of pictures (tern.datasets) and the DataLoader call those of the extension without
Python.
"""

from tern._C import (
    AugMix, AutoAugment, CenterCrop, ColorJitter, CutMix, ElasticTransform, FiveCrop, GaussianBlur, Grayscale, MixUp, Normalize, Pad,
    RandAugment, RandomAdjustSharpness, RandomAffine, RandomAutocontrast, RandomCrop, RandomEqualize, RandomErasing, RandomGrayscale,
    RandomHorizontalFlip, RandomInvert, RandomPerspective, RandomPosterize, RandomResizedCrop, RandomRotation, RandomSolarize,
    RandomVerticalFlip, Resize, TenCrop, ToTensor, TrivialAugmentWide)
from tern.transforms import functional  # noqa: F401
from tern.transforms.compose import Compose, Lambda, RandomApply, RandomChoice, RandomOrder
from tern.transforms.pictures import AutoAugmentPolicy, ConvertImageDtype, InterpolationMode, PILToTensor, ToPILImage

__all__ = [
    "AugMix", "AutoAugment", "AutoAugmentPolicy", "CenterCrop", "ColorJitter", "Compose", "ConvertImageDtype", "CutMix",
    "ElasticTransform", "FiveCrop", "GaussianBlur", "Grayscale", "InterpolationMode", "Lambda", "MixUp", "Normalize", "PILToTensor",
    "Pad", "RandAugment", "RandomAdjustSharpness", "RandomAffine", "RandomApply", "RandomAutocontrast", "RandomChoice", "RandomCrop",
    "RandomEqualize", "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip", "RandomInvert", "RandomOrder", "RandomPerspective",
    "RandomPosterize", "RandomResizedCrop", "RandomRotation", "RandomSolarize", "RandomVerticalFlip", "Resize", "TenCrop",
    "ToPILImage", "ToTensor", "TrivialAugmentWide", "functional"]
