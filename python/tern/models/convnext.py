"""ConvNeXt."""

import dataclasses
from functools import partial
from typing import Optional

from tern import _C, nn
from tern.models._api import define
from tern.models._misc import Conv2dNormActivation, Permute
from tern.models._stochastic_depth import StochasticDepth
from tern.models._utils import initialise
from tern.nn import functional as F


class LayerNorm2d(nn.LayerNorm):
    """LayerNorm over the channels of pictures."""

    def forward(self, x):
        x = F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """A wide convolution of each channel, then layers of each pixel, beside the identity."""

    def __init__(self, dim, layer_scale, stochastic_depth_prob, norm_layer=None):
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim), Permute([0, 2, 3, 1]), norm_layer(dim),
            nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), Permute([0, 3, 1, 2]))
        self.layer_scale = nn.Parameter(_C.ones(dim, 1, 1) * layer_scale)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input):
        result = self.stochastic_depth(self.layer_scale * self.block(input))
        result += input
        return result


@dataclasses.dataclass
class CNBlockConfig:
    """What a stage is like."""

    input_channels: int
    out_channels: Optional[int]
    num_layers: int


class ConvNeXt(nn.Module):
    """Liu et al., 2022, "A ConvNet for the 2020s"."""

    def __init__(self, block_setting, stochastic_depth_prob=0.0, layer_scale=1e-6, num_classes=1000, block=None, norm_layer=None):
        super().__init__()
        if not block_setting:
            raise ValueError("The block_setting should not be empty")
        if not all(isinstance(each, CNBlockConfig) for each in block_setting):
            raise TypeError("The block_setting should be List[CNBlockConfig]")
        block, norm_layer = block or CNBlock, norm_layer or partial(LayerNorm2d, eps=1e-6)
        layers = [Conv2dNormActivation(3, block_setting[0].input_channels, kernel_size=4, stride=4, padding=0, norm_layer=norm_layer,
                                       activation_layer=None, bias=True)]
        blocks, total = 0, sum(each.num_layers for each in block_setting)
        for stage in block_setting:
            probabilities = [stochastic_depth_prob * each / (total - 1.0) for each in range(blocks, blocks + stage.num_layers)]
            layers.append(nn.Sequential(*(block(stage.input_channels, layer_scale, probability) for probability in probabilities)))
            blocks += stage.num_layers
            if stage.out_channels is not None:
                layers.append(nn.Sequential(norm_layer(stage.input_channels),
                                            nn.Conv2d(stage.input_channels, stage.out_channels, kernel_size=2, stride=2)))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        last = stage.input_channels if stage.out_channels is None else stage.out_channels
        self.classifier = nn.Sequential(norm_layer(last), nn.Flatten(1), nn.Linear(last, num_classes))
        small = partial(nn.init.trunc_normal_, std=0.02)
        initialise(self, small, small)

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)))


def _convnext(width, depths, usual_probability, stochastic_depth_prob=None, **options):
    widths = [width * 2 ** place for place in range(len(depths))]
    probability = usual_probability if stochastic_depth_prob is None else stochastic_depth_prob
    return ConvNeXt([*map(CNBlockConfig, widths, [*widths[1:], None], depths)], probability, **options)


__all__ = ["ConvNeXt", *define(globals(), _convnext, {
    "convnext_tiny": (96, [3, 3, 9, 3], 0.1),
    "convnext_small": (96, [3, 3, 27, 3], 0.4),
    "convnext_base": (128, [3, 3, 27, 3], 0.5),
    "convnext_large": (192, [3, 3, 27, 3], 0.5),
})]
