"""MobileNetV3."""

from functools import partial

from tern import _C, nn
from tern.models._api import define
from tern.models._misc import Conv2dNormActivation, SqueezeExcitation
from tern.models._utils import _make_divisible, he_normal, initialise, small_normal


class InvertedResidualConfig:
    """What a block is like."""

    def __init__(self, input_channels, kernel, expanded_channels, out_channels, use_se, activation, stride, dilation, width_mult):
        self.input_channels, self.expanded_channels, self.out_channels = (
            self.adjust_channels(channels, width_mult) for channels in (input_channels, expanded_channels, out_channels))
        self.kernel, self.use_se, self.use_hs, self.stride, self.dilation = kernel, use_se, activation == "HS", stride, dilation

    @staticmethod
    def adjust_channels(channels, width_mult):
        return _make_divisible(channels * width_mult, 8)


class InvertedResidual(nn.Module):
    """More channels, each with a convolution of its own, weighted, and few again, beside the identity."""

    def __init__(self, cnf, norm_layer, se_layer=partial(SqueezeExcitation, scale_activation=nn.Hardsigmoid)):
        super().__init__()
        if not 1 <= cnf.stride <= 2:
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        expanded, layers = cnf.expanded_channels, []
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.Hardswish if cnf.use_hs else nn.ReLU)
        if expanded != cnf.input_channels:
            layers.append(conv(cnf.input_channels, expanded, kernel_size=1))
        layers.append(conv(expanded, expanded, kernel_size=cnf.kernel, stride=1 if cnf.dilation > 1 else cnf.stride, dilation=cnf.dilation,
                           groups=expanded))
        if cnf.use_se:
            layers.append(se_layer(expanded, _make_divisible(expanded // 4, 8)))
        layers.append(conv(expanded, cnf.out_channels, kernel_size=1, activation_layer=None))
        self.block = nn.Sequential(*layers)
        self.out_channels = cnf.out_channels

    def forward(self, input):
        result = self.block(input)
        if self.use_res_connect:
            result += input
        return result


class MobileNetV3(nn.Module):
    """Howard et al., 2019, "Searching for MobileNetV3"."""

    def __init__(self, inverted_residual_setting, last_channel, num_classes=1000, block=None, norm_layer=None, dropout=0.2):
        super().__init__()
        if not inverted_residual_setting:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not all(isinstance(each, InvertedResidualConfig) for each in inverted_residual_setting):
            raise TypeError("The inverted_residual_setting should be List[InvertedResidualConfig]")
        block, norm_layer = block or InvertedResidual, norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.Hardswish)
        channels = inverted_residual_setting[-1].out_channels
        self.features = nn.Sequential(
            conv(3, inverted_residual_setting[0].input_channels, stride=2),
            *(block(each, norm_layer) for each in inverted_residual_setting), conv(channels, 6 * channels, kernel_size=1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Linear(6 * channels, last_channel), nn.Hardswish(inplace=True),
                                        nn.Dropout(dropout, inplace=True), nn.Linear(last_channel, num_classes))
        initialise(self, he_normal, small_normal)

    def forward(self, x):
        return self.classifier(_C.flatten(self.avgpool(self.features(x)), 1))


# Channels, kernel, channels within and behind, squeeze-excitation, activation, stride; the last three blocks are the tail.
_LARGE = [
    (16, 3, 16, 16, False, "RE", 1), (16, 3, 64, 24, False, "RE", 2), (24, 3, 72, 24, False, "RE", 1), (24, 5, 72, 40, True, "RE", 2),
    (40, 5, 120, 40, True, "RE", 1), (40, 5, 120, 40, True, "RE", 1), (40, 3, 240, 80, False, "HS", 2), (80, 3, 200, 80, False, "HS", 1),
    (80, 3, 184, 80, False, "HS", 1), (80, 3, 184, 80, False, "HS", 1), (80, 3, 480, 112, True, "HS", 1),
    (112, 3, 672, 112, True, "HS", 1), (112, 5, 672, 160, True, "HS", 2), (160, 5, 960, 160, True, "HS", 1),
    (160, 5, 960, 160, True, "HS", 1)]
_SMALL = [
    (16, 3, 16, 16, True, "RE", 2), (16, 3, 72, 24, False, "RE", 2), (24, 3, 88, 24, False, "RE", 1), (24, 5, 96, 40, True, "HS", 2),
    (40, 5, 240, 40, True, "HS", 1), (40, 5, 240, 40, True, "HS", 1), (40, 5, 120, 48, True, "HS", 1), (48, 5, 144, 48, True, "HS", 1),
    (48, 5, 288, 96, True, "HS", 2), (96, 5, 576, 96, True, "HS", 1), (96, 5, 576, 96, True, "HS", 1)]


def _mobilenet_v3(rows, last_channel, width_mult=1.0, reduced_tail=False, dilated=False, **options):
    divider, settings = 1 + reduced_tail, []
    for place, (before, kernel, within, behind, se, activation, stride) in enumerate(rows, 3 - len(rows)):
        if place > 0:
            before, within = before // divider, within // divider
        if place >= 0:
            behind //= divider
        settings.append(InvertedResidualConfig(before, kernel, within, behind, se, activation, stride, 1 + (dilated and place >= 0),
                                               width_mult))
    return MobileNetV3(settings, InvertedResidualConfig.adjust_channels(last_channel // divider, width_mult), **options)


__all__ = ["MobileNetV3", *define(
    globals(), _mobilenet_v3, {"mobilenet_v3_large": (_LARGE, 1280), "mobilenet_v3_small": (_SMALL, 1024)})]
