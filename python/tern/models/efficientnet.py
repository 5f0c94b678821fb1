"""EfficientNet and EfficientNetV2."""

import copy
import dataclasses
import math
from functools import partial
from typing import Callable

from tern import _C, nn
from tern.models._api import define
from tern.models._misc import Conv2dNormActivation, SqueezeExcitation
from tern.models._stochastic_depth import StochasticDepth
from tern.models._utils import _make_divisible, he_normal, initialise


@dataclasses.dataclass
class _MBConvConfig:
    """What the blocks of a stage are like."""

    expand_ratio: float
    kernel: int
    stride: int
    input_channels: int
    out_channels: int
    num_layers: int
    block: Callable[..., nn.Module]

    @staticmethod
    def adjust_channels(channels, width_mult, min_value=None):
        return _make_divisible(channels * width_mult, 8, min_value)


class MBConvConfig(_MBConvConfig):
    """A stage of MBConv, wider and deeper by the factors."""

    def __init__(self, expand_ratio, kernel, stride, input_channels, out_channels, num_layers, width_mult=1.0, depth_mult=1.0, block=None):
        super().__init__(expand_ratio, kernel, stride, self.adjust_channels(input_channels, width_mult),
                         self.adjust_channels(out_channels, width_mult), self.adjust_depth(num_layers, depth_mult), block or MBConv)

    @staticmethod
    def adjust_depth(num_layers, depth_mult):
        return int(math.ceil(num_layers * depth_mult))


class FusedMBConvConfig(_MBConvConfig):
    """A stage of FusedMBConv."""

    def __init__(self, expand_ratio, kernel, stride, input_channels, out_channels, num_layers, block=None):
        super().__init__(expand_ratio, kernel, stride, input_channels, out_channels, num_layers, block or FusedMBConv)


class _Residual(nn.Module):
    """Layers beside the identity, if they change no sizes."""

    def __init__(self, cnf, stochastic_depth_prob, layers):
        super().__init__()
        if not 1 <= cnf.stride <= 2:
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.out_channels

    def forward(self, input):
        result = self.block(input)
        if self.use_res_connect:
            result = self.stochastic_depth(result)
            result += input
        return result


class MBConv(_Residual):
    """More channels, each with a convolution of its own, weighted, and few again."""

    def __init__(self, cnf, stochastic_depth_prob, norm_layer, se_layer=SqueezeExcitation):
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        before, expanded = cnf.input_channels, cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        super().__init__(cnf, stochastic_depth_prob, [
            *([conv(before, expanded, kernel_size=1)] if expanded != before else []),
            conv(expanded, expanded, kernel_size=cnf.kernel, stride=cnf.stride, groups=expanded),
            se_layer(expanded, max(1, before // 4), activation=partial(nn.SiLU, inplace=True)),
            conv(expanded, cnf.out_channels, kernel_size=1, activation_layer=None)])


class FusedMBConv(_Residual):
    """More channels by a whole convolution, and few again."""

    def __init__(self, cnf, stochastic_depth_prob, norm_layer):
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        before, expanded = cnf.input_channels, cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        whole = partial(conv, kernel_size=cnf.kernel, stride=cnf.stride)
        super().__init__(cnf, stochastic_depth_prob, [whole(before, cnf.out_channels)] if expanded == before else [
            whole(before, expanded), conv(expanded, cnf.out_channels, kernel_size=1, activation_layer=None)])


class EfficientNet(nn.Module):
    """Tan and Le, 2019, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks"; 2021, "EfficientNetV2: Smaller Models
    and Faster Training"."""

    def __init__(self, inverted_residual_setting, dropout, stochastic_depth_prob=0.2, num_classes=1000, norm_layer=None, last_channel=None):
        super().__init__()
        settings = inverted_residual_setting
        if not settings:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not all(isinstance(each, _MBConvConfig) for each in settings):
            raise TypeError("The inverted_residual_setting should be List[MBConvConfig]")
        norm_layer = norm_layer or nn.BatchNorm2d
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        layers, blocks, total = [conv(3, settings[0].input_channels, stride=2)], 0, sum(each.num_layers for each in settings)
        for setting in settings:
            stage, each = [], copy.copy(setting)
            for _ in range(setting.num_layers):
                stage.append(each.block(each, stochastic_depth_prob * blocks / total, norm_layer))
                each.input_channels, each.stride = each.out_channels, 1
                blocks += 1
            layers.append(nn.Sequential(*stage))
        channels = settings[-1].out_channels
        last_channel = 4 * channels if last_channel is None else last_channel
        self.features = nn.Sequential(*layers, conv(channels, last_channel, kernel_size=1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(last_channel, num_classes))
        reach = 1 / math.sqrt(num_classes)
        initialise(self, he_normal, partial(nn.init.uniform_, a=-reach, b=reach))

    def forward(self, x):
        return self.classifier(_C.flatten(self.avgpool(self.features(x)), 1))


# Stages: expansion, kernel, stride, channels before and behind, blocks.
_V1 = [(1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3), (6, 5, 1, 80, 112, 3),
       (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1)]
_S = [(1, 3, 1, 24, 24, 2), (4, 3, 2, 24, 48, 4), (4, 3, 2, 48, 64, 4), (4, 3, 2, 64, 128, 6), (6, 3, 1, 128, 160, 9),
      (6, 3, 2, 160, 256, 15)]
_M = [(1, 3, 1, 24, 24, 3), (4, 3, 2, 24, 48, 5), (4, 3, 2, 48, 80, 5), (4, 3, 2, 80, 160, 7), (6, 3, 1, 160, 176, 14),
      (6, 3, 2, 176, 304, 18), (6, 3, 1, 304, 512, 5)]
_L = [(1, 3, 1, 32, 32, 4), (4, 3, 2, 32, 64, 7), (4, 3, 2, 64, 96, 7), (4, 3, 2, 96, 192, 10), (6, 3, 1, 192, 224, 19),
      (6, 3, 2, 224, 384, 25), (6, 3, 1, 384, 640, 7)]


def _v1(width_mult, depth_mult, usual_dropout, norm={}, **options):
    settings = [MBConvConfig(*stage, width_mult=width_mult, depth_mult=depth_mult) for stage in _V1]
    return _efficientnet(settings, usual_dropout, norm, **options)


def _v2(stages, usual_dropout, **options):
    settings = [(FusedMBConvConfig if place < 3 else MBConvConfig)(*stage) for place, stage in enumerate(stages)]
    return _efficientnet(settings, usual_dropout, {"eps": 0.001}, last_channel=1280, **options)


def _efficientnet(settings, usual_dropout, norm, **options):
    return EfficientNet(settings, **{"dropout": usual_dropout, "norm_layer": partial(nn.BatchNorm2d, **norm), **options})


_NORM = {"eps": 0.001, "momentum": 0.01}

__all__ = [
    "EfficientNet",
    *define(globals(), _v1, {
        "efficientnet_b0": (1.0, 1.0, 0.2), "efficientnet_b1": (1.0, 1.1, 0.2), "efficientnet_b2": (1.1, 1.2, 0.3),
        "efficientnet_b3": (1.2, 1.4, 0.3), "efficientnet_b4": (1.4, 1.8, 0.4), "efficientnet_b5": (1.6, 2.2, 0.4, _NORM),
        "efficientnet_b6": (1.8, 2.6, 0.5, _NORM), "efficientnet_b7": (2.0, 3.1, 0.5, _NORM)}),
    *define(globals(), _v2, {
        "efficientnet_v2_s": (_S, 0.2), "efficientnet_v2_m": (_M, 0.3), "efficientnet_v2_l": (_L, 0.4)})]
