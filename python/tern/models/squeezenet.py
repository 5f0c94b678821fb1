"""SqueezeNet."""

from tern import _C, nn
from tern.models._api import define
from tern.models._utils import initialise, small_normal


class Fire(nn.Module):
    """A narrow layer, and two side by side that look at it."""

    def __init__(self, inplanes, squeeze_planes, expand1x1_planes, expand3x3_planes):
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, kernel_size=1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, kernel_size=1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, kernel_size=3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.squeeze_activation(self.squeeze(x))
        return _C.cat([self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))], 1)


# First convolution (channels, kernel), and for each Fire its channels before and behind, by version; "M" is pooling.
_VERSIONS = {
    "1_0": ((96, 7), ["M", (16, 64), (16, 64), (32, 128), "M", (32, 128), (48, 192), (48, 192), (64, 256), "M", (64, 256)]),
    "1_1": ((64, 3), ["M", (16, 64), (16, 64), "M", (32, 128), (32, 128), "M", (48, 192), (48, 192), (64, 256), (64, 256)]),
}


class SqueezeNet(nn.Module):
    """Iandola et al., 2016, "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB model size"."""

    def __init__(self, version="1_0", num_classes=1000, dropout=0.5):
        super().__init__()
        if version not in _VERSIONS:
            raise ValueError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        self.num_classes = num_classes
        (channels, kernel), fires = _VERSIONS[version]
        layers = [nn.Conv2d(3, channels, kernel_size=kernel, stride=2), nn.ReLU(inplace=True)]
        for fire in fires:
            if fire == "M":
                layers.append(nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True))
            else:
                squeeze, expand = fire
                layers.append(Fire(channels, squeeze, expand, expand))
                channels = 2 * expand
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(512, num_classes, kernel_size=1)
        self.classifier = nn.Sequential(nn.Dropout(dropout), last, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)))
        initialise(self.features, nn.init.kaiming_uniform_)
        initialise(last, small_normal)

    def forward(self, x):
        return _C.flatten(self.classifier(self.features(x)), 1)


__all__ = ["SqueezeNet", *define(globals(), SqueezeNet, {"squeezenet1_0": ("1_0",), "squeezenet1_1": ("1_1",)})]
