"""MobileNetV2."""

from tern import _C, nn
from tern.models._api import define
from tern.models._misc import Conv2dNormActivation
from tern.models._utils import _make_divisible, he_normal, initialise, small_normal
from tern.nn import functional as F


class InvertedResidual(nn.Module):
    """More channels, each with a convolution of its own, and few again, beside the identity."""

    def __init__(self, inp, oup, stride, expand_ratio, norm_layer=None):
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        norm_layer = norm_layer or nn.BatchNorm2d
        hidden = int(round(inp * expand_ratio))
        how = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        layers = [Conv2dNormActivation(inp, hidden, kernel_size=1, **how)] if expand_ratio != 1 else []
        self.conv = nn.Sequential(*layers, Conv2dNormActivation(hidden, hidden, stride=stride, groups=hidden, **how),
                                  nn.Conv2d(hidden, oup, 1, bias=False), norm_layer(oup))
        self.stride, self.out_channels = stride, oup
        self.use_res_connect = stride == 1 and inp == oup

    def forward(self, x):
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """Sandler et al., 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks"."""

    def __init__(self, num_classes=1000, width_mult=1.0, inverted_residual_setting=None, round_nearest=8, block=None, norm_layer=None,
                 dropout=0.2):
        super().__init__()
        block, norm_layer = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        settings = inverted_residual_setting  # expansion, channels, repeats, stride
        if settings is None:
            settings = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2], [6, 320, 1, 1]]
        if len(settings) == 0 or len(settings[0]) != 4:
            raise ValueError(f"inverted_residual_setting should be non-empty or a 4-element list, got {settings}")
        how = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        channels = _make_divisible(32 * width_mult, round_nearest)
        self.last_channel = _make_divisible(1280 * max(1.0, width_mult), round_nearest)
        features = [Conv2dNormActivation(3, channels, stride=2, **how)]
        for expand_ratio, width, repeats, stride in settings:
            width = _make_divisible(width * width_mult, round_nearest)
            for place in range(repeats):
                features.append(block(channels, width, stride if place == 0 else 1, expand_ratio=expand_ratio, norm_layer=norm_layer))
                channels = width
        features.append(Conv2dNormActivation(channels, self.last_channel, kernel_size=1, **how))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(self.last_channel, num_classes))
        initialise(self, he_normal, small_normal)

    def forward(self, x):
        return self.classifier(_C.flatten(F.adaptive_avg_pool2d(self.features(x), (1, 1)), 1))


__all__ = ["MobileNetV2", *define(globals(), MobileNetV2, {"mobilenet_v2": ()})]
