"""RegNet."""

import itertools
import math

from tern import _C, nn
from tern.models._api import define
from tern.models._misc import Conv2dNormActivation, SqueezeExcitation
from tern.models._utils import _make_divisible, small_normal


class SimpleStemIN(Conv2dNormActivation):
    """The first convolution."""

    def __init__(self, width_in, width_out, norm_layer, activation_layer):
        super().__init__(width_in, width_out, kernel_size=3, stride=2, norm_layer=norm_layer, activation_layer=activation_layer)


class BottleneckTransform(nn.Sequential):
    """Three convolutions, of which the one in the middle is of groups, with squeeze-excitation in the y family."""

    def __init__(self, width_in, width_out, stride, norm_layer, activation_layer, group_width, bottleneck_multiplier, se_ratio):
        width = int(round(width_out * bottleneck_multiplier))
        how = {"norm_layer": norm_layer, "activation_layer": activation_layer}
        layers = {"a": Conv2dNormActivation(width_in, width, kernel_size=1, **how),
                  "b": Conv2dNormActivation(width, width, stride=stride, groups=width // group_width, **how)}
        if se_ratio:
            layers["se"] = SqueezeExcitation(width, int(round(se_ratio * width_in)), activation=activation_layer)
        layers["c"] = Conv2dNormActivation(width, width_out, kernel_size=1, norm_layer=norm_layer, activation_layer=None)
        super().__init__(layers)


class ResBottleneckBlock(nn.Module):
    """These beside the identity, or beside a convolution that makes it fit."""

    def __init__(self, width_in, width_out, stride, norm_layer, activation_layer, group_width=1, bottleneck_multiplier=1.0, se_ratio=None):
        super().__init__()
        self.proj = None
        if width_in != width_out or stride != 1:
            self.proj = Conv2dNormActivation(width_in, width_out, 1, stride, norm_layer=norm_layer, activation_layer=None)
        self.f = BottleneckTransform(width_in, width_out, stride, norm_layer, activation_layer, group_width, bottleneck_multiplier,
                                     se_ratio)
        self.activation = activation_layer(inplace=True)

    def forward(self, x):
        return self.activation((x if self.proj is None else self.proj(x)) + self.f(x))


class AnyStage(nn.Sequential):
    """Blocks of one width, the first with the stride."""

    def __init__(self, width_in, width_out, stride, depth, block_constructor, norm_layer, activation_layer, group_width,
                 bottleneck_multiplier, se_ratio=None, stage_index=0):
        super().__init__()
        for place in range(depth):
            sizes = (width_out, width_out, 1) if place else (width_in, width_out, stride)
            self.add_module(f"block{stage_index}-{place}", block_constructor(*sizes, norm_layer, activation_layer, group_width,
                                                                             bottleneck_multiplier, se_ratio))


class BlockParams:
    """Depths, widths and so on of all stages."""

    def __init__(self, depths, widths, group_widths, bottleneck_multipliers, strides, se_ratio=None):
        self.depths, self.widths, self.group_widths = depths, widths, group_widths
        self.bottleneck_multipliers, self.strides, self.se_ratio = bottleneck_multipliers, strides, se_ratio

    @classmethod
    def from_init_params(cls, depth, w_0, w_a, w_m, group_width, bottleneck_multiplier=1.0, se_ratio=None):
        """Widths grow by w_a from block to block, rounded to powers of w_m times w_0, and those to multiples of 8; blocks of one width are
        a stage. Then its groups have to fit."""
        if w_a < 0 or w_0 <= 0 or w_m <= 1 or w_0 % 8 != 0:
            raise ValueError("Invalid RegNet settings")
        powers = [round(math.log((w_0 + w_a * block) / w_0) / math.log(w_m)) for block in range(depth)]
        stages = [(width, len(list(same))) for width, same in itertools.groupby(8 * round(w_0 * w_m ** power / 8) for power in powers)]
        widths, groups = [], []
        for width, _ in stages:
            bottleneck = int(width * bottleneck_multiplier)
            groups.append(min(group_width, bottleneck))
            widths.append(int(_make_divisible(bottleneck, groups[-1]) / bottleneck_multiplier))
        return cls([count for _, count in stages], widths, groups, [bottleneck_multiplier] * len(stages), [2] * len(stages), se_ratio)


class RegNet(nn.Module):
    """Radosavovic et al., 2020, "Designing Network Design Spaces"."""

    def __init__(self, block_params, num_classes=1000, stem_width=32, stem_type=None, block_type=None, norm_layer=None, activation=None):
        super().__init__()
        norm_layer, activation, block = norm_layer or nn.BatchNorm2d, activation or nn.ReLU, block_type or ResBottleneckBlock
        self.stem = (stem_type or SimpleStemIN)(3, stem_width, norm_layer, activation)
        before, stages, p = stem_width, {}, block_params
        for place, (width, stride, depth, group_width, multiplier) in enumerate(
                zip(p.widths, p.strides, p.depths, p.group_widths, p.bottleneck_multipliers), 1):
            stages[f"block{place}"] = AnyStage(before, width, stride, depth, block, norm_layer, activation, group_width, multiplier,
                                               p.se_ratio, place)
            before = width
        self.trunk_output = nn.Sequential(stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(before, num_classes)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.normal_(layer.weight, std=math.sqrt(2 / (math.prod(layer.kernel_size) * layer.out_channels)))
        small_normal(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        return self.fc(_C.flatten(self.avgpool(self.trunk_output(self.stem(x))), 1))


def _regnet(depth, w_0, w_a, w_m, group_width, se_ratio=None, **options):
    return RegNet(BlockParams.from_init_params(depth, w_0, w_a, w_m, group_width, se_ratio=se_ratio), **options)


__all__ = ["RegNet", *define(globals(), _regnet, {
    "regnet_y_400mf": (16, 48, 27.89, 2.09, 8, 0.25),
    "regnet_y_800mf": (14, 56, 38.84, 2.4, 16, 0.25),
    "regnet_y_1_6gf": (27, 48, 20.71, 2.65, 24, 0.25),
    "regnet_y_3_2gf": (21, 80, 42.63, 2.66, 24, 0.25),
    "regnet_y_8gf": (17, 192, 76.82, 2.19, 56, 0.25),
    "regnet_y_16gf": (18, 200, 106.23, 2.48, 112, 0.25),
    "regnet_y_32gf": (20, 232, 115.89, 2.53, 232, 0.25),
    "regnet_y_128gf": (27, 456, 160.83, 2.52, 264, 0.25),
    "regnet_x_400mf": (22, 24, 24.48, 2.54, 16),
    "regnet_x_800mf": (16, 56, 35.73, 2.28, 16),
    "regnet_x_1_6gf": (18, 80, 34.01, 2.25, 24),
    "regnet_x_3_2gf": (25, 88, 26.31, 2.25, 48),
    "regnet_x_8gf": (23, 80, 49.56, 2.88, 120),
    "regnet_x_16gf": (22, 216, 55.59, 2.1, 128),
    "regnet_x_32gf": (23, 320, 69.86, 2.0, 168),
})]
