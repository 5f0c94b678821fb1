"""MNASNet."""

from functools import partial

from tern import nn
from tern.models._api import define
from tern.models._utils import _make_divisible, he_normal, initialise

_BN_MOMENTUM = 1 - 0.9997


def _conv(before, behind, kernel, stride=1, groups=1, relu=True, momentum=_BN_MOMENTUM):
    return [nn.Conv2d(before, behind, kernel, stride, padding=kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(behind, momentum=momentum), *([nn.ReLU(inplace=True)] if relu else [])]


class _InvertedResidual(nn.Module):
    """More channels, each with a convolution of its own, and few again, beside the identity."""

    def __init__(self, in_ch, out_ch, kernel_size, stride, expansion_factor, bn_momentum=0.1):
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        if kernel_size not in (3, 5):
            raise ValueError(f"kernel_size should be 3 or 5 instead of {kernel_size}")
        mid, conv = in_ch * expansion_factor, partial(_conv, momentum=bn_momentum)
        self.apply_residual = in_ch == out_ch and stride == 1
        self.layers = nn.Sequential(*conv(in_ch, mid, 1), *conv(mid, mid, kernel_size, stride, mid), *conv(mid, out_ch, 1, relu=False))

    def forward(self, input):
        return self.layers(input) + input if self.apply_residual else self.layers(input)


def _stack(in_ch, out_ch, kernel_size, stride, exp_factor, repeats, bn_momentum):
    if repeats < 1:
        raise ValueError(f"repeats should be >= 1, instead got {repeats}")
    return nn.Sequential(
        _InvertedResidual(in_ch, out_ch, kernel_size, stride, exp_factor, bn_momentum),
        *(_InvertedResidual(out_ch, out_ch, kernel_size, 1, exp_factor, bn_momentum) for _ in range(1, repeats)))


class MNASNet(nn.Module):
    """Tan et al., 2019, "MnasNet: Platform-Aware Neural Architecture Search for Mobile"."""

    _version = 2

    def __init__(self, alpha, num_classes=1000, dropout=0.2):
        super().__init__()
        if alpha <= 0.0:
            raise ValueError(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha, self.num_classes = alpha, num_classes
        stem, *depths = (_make_divisible(depth * alpha, 8) for depth in (32, 16, 24, 40, 80, 96, 192, 320))
        stages = [(3, 2, 3, 3), (5, 2, 3, 3), (5, 2, 6, 3), (3, 1, 6, 2), (5, 2, 6, 4), (3, 1, 6, 1)]  # kernel, stride, expansion, repeats
        self.layers = nn.Sequential(
            *_conv(3, stem, 3, stride=2), *_conv(stem, stem, 3, groups=stem), *_conv(stem, depths[0], 1, relu=False),
            *(_stack(before, behind, *stage, _BN_MOMENTUM) for before, behind, stage in zip(depths, depths[1:], stages)),
            *_conv(depths[-1], 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(1280, num_classes))
        initialise(self, he_normal, partial(nn.init.kaiming_uniform_, mode="fan_out", nonlinearity="sigmoid"))

    def forward(self, x):
        return self.classifier(self.layers(x).mean([2, 3]))


__all__ = ["MNASNet", *define(
    globals(), MNASNet, {"mnasnet0_5": (0.5,), "mnasnet0_75": (0.75,), "mnasnet1_0": (1.0,), "mnasnet1_3": (1.3,)})]
