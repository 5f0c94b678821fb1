"""Weights that torchvision's servers have: where each file is, and how pictures are made ready for it."""

import dataclasses
import enum
import functools
import os

from tern import _C, hub, transforms
from tern.serialization import load

URL = "https://download.pytorch.org/models/"

# The enumeration (ResNet18 is ResNet18_Weights, of the model resnet18), the number of parameters, and the members without IMAGENET1K_:
# name:file[:resize[:crop[:how[:number of parameters]]]]. A file -x or _x begins with the model's name. How: b is bicubic; h scales numbers
# to -1 to 1, f leaves them from 0 to 255.
_TABLE = """
AlexNet 61100840 V1:-owt-7be5be79
ConvNeXt_Base 88591464 V1:-6075fbad:232
ConvNeXt_Large 197767336 V1:-ea097f82:232
ConvNeXt_Small 50223688 V1:-0c510722:230
ConvNeXt_Tiny 28589128 V1:-983f1562:236
DenseNet121 7978856 V1:-a639ec97
DenseNet161 28681000 V1:-8d451a50
DenseNet169 14149480 V1:-b2777c0a
DenseNet201 20013928 V1:-c1103571
EfficientNet_B0 5288548 V1:_rwightman-7f5810bc:256:224:b
EfficientNet_B1 7794184 V1:_rwightman-bac287d4:256:240:b V2:-c27df63c:255:240
EfficientNet_B2 9109994 V1:_rwightman-c35c1473:288:288:b
EfficientNet_B3 12233232 V1:_rwightman-b3899882:320:300:b
EfficientNet_B4 19341616 V1:_rwightman-23ab8bcd:384:380:b
EfficientNet_B5 30389784 V1:_lukemelas-1a07897c:456:456:b
EfficientNet_B6 43040704 V1:_lukemelas-24a108a5:528:528:b
EfficientNet_B7 66347960 V1:_lukemelas-c5b4e57e:600:600:b
EfficientNet_V2_L 118515272 V1:-59c71312:480:480:bh
EfficientNet_V2_M 54139356 V1:-dc08266a:480:480
EfficientNet_V2_S 21458488 V1:-dd5fe13b:384:384
GoogLeNet 6624904 V1:-1378be20
Inception_V3 27161264 V1:_google-0cc3c7bd:342:299
MNASNet0_5 2218512 V1:mnasnet0.5_top1_67.823-3ffadce67e
MNASNet0_75 3170208 V1:-7090bc5f:232
MNASNet1_0 4383312 V1:mnasnet1.0_top1_73.512-f206786ef8
MNASNet1_3 6282256 V1:-a4c69d6f:232
MobileNet_V2 3504872 V1:-b0353104 V2:-7ebf99e0:232
MobileNet_V3_Large 5483032 V1:-8738ca79 V2:-5c1a4163:232
MobileNet_V3_Small 2542856 V1:-047dcff4
RegNet_X_16GF 54278536 V1:-2007eb11 V2:-ba3796d7:232
RegNet_X_1_6GF 9190136 V1:-e3633e7f V2:-a12f2b72:232
RegNet_X_32GF 107811560 V1:-9d47f8d0 V2:-6eb8fdc6:232
RegNet_X_3_2GF 15296552 V1:-f342aeae V2:-7071aa85:232
RegNet_X_400MF 5495976 V1:-adf1edd5 V2:-62229a5f:232
RegNet_X_800MF 7259656 V1:-ad17e45c V2:-94a99ebd:232
RegNet_X_8GF 39572648 V1:-03ceed89 V2:-2b70d774:232
RegNet_Y_128GF 644812894 SWAG_E2E_V1:_swag-c8ce3e52:384:384:b SWAG_LINEAR_V1:_lc_swag-cbe8ce12:224:224:b
RegNet_Y_16GF 83590140 V1:-9e6ed7dd V2:-3e4a00f9:232 SWAG_E2E_V1:_swag-43afe44d:384:384:b SWAG_LINEAR_V1:_lc_swag-f3ec0043:224:224:b
RegNet_Y_1_6GF 11202430 V1:-b11a554e V2:-0d7bc02a:232
RegNet_Y_32GF 145046770 V1:-4dee3f7a V2:-8db6d4b5:232 SWAG_E2E_V1:_swag-04fdfa75:384:384:b SWAG_LINEAR_V1:_lc_swag-e1583746:224:224:b
RegNet_Y_3_2GF 19436338 V1:-b5a9779c V2:-9180c971:232
RegNet_Y_400MF 4344144 V1:-c65dace8 V2:-e6988f5f:232
RegNet_Y_800MF 6432512 V1:-1b27b58c V2:-58fc7688:232
RegNet_Y_8GF 39381472 V1:-d0d0e4a8 V2:-dc2b1b54:232
ResNet101 44549160 V1:-63fe2227 V2:-cd907fc2:232
ResNet152 60192808 V1:-394f9c45 V2:-f82ba261:232
ResNet18 11689512 V1:-f37072fd
ResNet34 21797672 V1:-b627a593
ResNet50 25557032 V1:-0676ba61 V2:-11ad3fa6:232
ResNeXt101_32X8D 88791336 V1:-8ba56ff5 V2:-110c445d:232
ResNeXt101_64X4D 83455272 V1:-173b62eb:232
ResNeXt50_32X4D 25028904 V1:-7cdf4587 V2:-1a0047aa:232
ShuffleNet_V2_X0_5 1366792 V1:shufflenetv2_x0.5-f707e7126e
ShuffleNet_V2_X1_0 2278604 V1:shufflenetv2_x1-5666bf0f80
ShuffleNet_V2_X1_5 3503624 V1:shufflenetv2_x1_5-3c479a10:232
ShuffleNet_V2_X2_0 7393996 V1:shufflenetv2_x2_0-8be3c8ee:232
SqueezeNet1_0 1248424 V1:-b66bff10
SqueezeNet1_1 1235496 V1:-b8a52dc0
Swin_B 87768224 V1:-68c6b09e:238:224:b
Swin_S 49606258 V1:-5e29d889:246:224:b
Swin_T 28288354 V1:-704ceda3:232:224:b
Swin_V2_B 87930848 V1:-781e5279:272:256:b
Swin_V2_S 49737442 V1:-637d8ceb:260:256:b
Swin_V2_T 28351570 V1:-b137f0e2:260:256:b
VGG11 132863336 V1:-8a719046
VGG11_BN 132868840 V1:-6002323d
VGG13 133047848 V1:-19584684
VGG13_BN 133053736 V1:-abd245e5
VGG16 138357544 V1:-397923af FEATURES:_features-amdegroot-88682ab5:256:224:f
VGG16_BN 138365992 V1:-6c64b313
VGG19 143667240 V1:-dcbb9e9d
VGG19_BN 143678248 V1:-c79401a0
ViT_B_16 86567656 V1:-c867db91 SWAG_E2E_V1:_swag-9ac1b537:384:384:b:86859496 SWAG_LINEAR_V1:_lc_swag-4e70ced5:224:224:b
ViT_B_32 88224232 V1:-d86f8d99
ViT_H_14 633470440 SWAG_E2E_V1:_swag-80465313:518:518:b SWAG_LINEAR_V1:_lc_swag-c1eb923e:224:224:b:632045800
ViT_L_16 304326632 V1:-852ce7e3:242 SWAG_E2E_V1:_swag-4f3808c9:512:512:b:305174504 SWAG_LINEAR_V1:_lc_swag-4d563306:224:224:b
ViT_L_32 306535400 V1:-c7638314
Wide_ResNet101_2 126886696 V1:-32ee1156 V2:-d733dc28:232
Wide_ResNet50_2 68883240 V1:-95faca4d V2:-9ba9bcbe:232
"""

_NORMS = {"": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), "h": ((0.5,) * 3, (0.5,) * 3),
          "f": ((0.48235, 0.45882, 0.40784), (1 / 255,) * 3)}


def _classification(*, crop_size, resize_size=256, mean=_NORMS[""][0], std=_NORMS[""][1], interpolation="bilinear", antialias=True):
    """Pictures as a classifier takes them."""
    return transforms.Compose([
        transforms.Resize(resize_size, interpolation=interpolation, antialias=antialias), transforms.CenterCrop(crop_size),
        transforms.ConvertImageDtype(_C.float32), transforms.Normalize(mean, std)])


@dataclasses.dataclass
class Weights:
    """A file of weights: `transforms()` makes pictures ready for them, `meta` has the number of parameters."""

    url: str
    transforms: functools.partial
    meta: dict


class WeightsEnum(enum.Enum):
    """The weights that there are for a model. Nothing is downloaded: the files are looked for where PyTorch keeps them, too."""

    @classmethod
    def verify(cls, obj):
        """The member that is meant by itself or its name; None stays."""
        if isinstance(obj, str):
            return cls[obj.removeprefix(f"{cls.__name__}.")]
        if obj is not None and not isinstance(obj, cls):
            raise TypeError(f"Invalid Weight class provided; expected {cls.__name__} but received {type(obj).__name__}.")
        return obj

    url = property(lambda self: self.value.url)
    transforms = property(lambda self: self.value.transforms)
    meta = property(lambda self: self.value.meta)

    def get_state_dict(self, progress=True, check_hash=False, **options):
        """What is in the file."""
        name = self.url.rpartition("/")[2]
        folders = [os.environ.get("TERN_MODELS"), os.path.join(hub.get_dir(), "checkpoints"), os.getcwd()]
        for folder in filter(None, folders):
            if os.path.exists(path := os.path.join(folder, name)):
                return load(path, **options)
        told = f"{folders[0]} (TERN_MODELS)" if folders[0] else "the folder of the environment variable TERN_MODELS, which is not set"
        raise _C.DataError(f"the weights {self!r} are not here: no file {name} in {told}, {folders[1]} or {folders[2]}. Tern downloads "
                           f"nothing: put the file from {self.url} into one of these folders, or give weights=PATH")

    def __repr__(self):
        return f"{type(self).__name__}.{self.name}"


def _member(model, parameters, file, resize=256, crop=224, how="", own_parameters=None):
    mean, std = _NORMS[how.removeprefix("b")]
    return Weights(
        f"{URL}{model if file[0] in '-_' else ''}{file}.pth",
        functools.partial(_classification, crop_size=int(crop), resize_size=int(resize), mean=mean, std=std,
                          interpolation="bicubic" if how.startswith("b") else "bilinear"),
        {"num_params": int(own_parameters or parameters)})


_ROWS = {row.split()[0].lower(): row.split() for row in _TABLE.strip().splitlines()}


def weights_of(model, module):
    """The enumeration of the model's weights. By default they are the second ones, where there are such."""
    kind, parameters, *members = _ROWS[model]
    members = {f"IMAGENET1K_{name}": _member(model, parameters, *how) for name, *how in (member.split(":") for member in members)}
    members["DEFAULT"] = members.get("IMAGENET1K_V2") or next(iter(members.values()))
    return WeightsEnum(f"{kind}_Weights", members, module=module)
