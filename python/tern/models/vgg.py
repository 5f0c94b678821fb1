"""VGG."""

from tern import _C, nn
from tern.models._api import define
from tern.models._utils import he_normal, initialise, small_normal


class VGG(nn.Module):
    """Simonyan and Zisserman, 2015, "Very Deep Convolutional Networks for Large-Scale Image Recognition"."""

    def __init__(self, features, num_classes=1000, init_weights=True, dropout=0.5):
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(True), nn.Dropout(dropout),
            nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(dropout), nn.Linear(4096, num_classes))
        if init_weights:
            initialise(self, he_normal, small_normal)

    def forward(self, x):
        return self.classifier(_C.flatten(self.avgpool(self.features(x)), 1))


def make_layers(cfg, batch_norm=False):
    """Convolutions of these widths, with pooling where "M" stands."""
    layers, channels = [], 3
    for width in cfg:
        if width == "M":
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            continue
        layers.append(nn.Conv2d(channels, width, kernel_size=3, padding=1))
        layers += [nn.BatchNorm2d(width)] if batch_norm else []
        layers.append(nn.ReLU(inplace=True))
        channels = width
    return nn.Sequential(*layers)


def _config(*repeats):
    widths = zip((64, 128, 256, 512, 512), repeats)
    return [layer for width, repeat in widths for layer in [width] * repeat + ["M"]]


cfgs = {"A": _config(1, 1, 2, 2, 2), "B": _config(2, 2, 2, 2, 2), "D": _config(2, 2, 3, 3, 3), "E": _config(2, 2, 4, 4, 4)}


def _vgg(cfg, batch_norm, **options):
    return VGG(make_layers(cfgs[cfg], batch_norm), **options)


def _loaded(make, state, entry, options):
    net = make(**{"init_weights": False, **options})
    net.load_state_dict(state)
    return net


__all__ = ["VGG", *define(globals(), _vgg, {
    f"vgg{depth}{'_bn' * batch_norm}": (cfg, batch_norm)
    for depth, cfg in ((11, "A"), (13, "B"), (16, "D"), (19, "E")) for batch_norm in (False, True)}, _loaded)]
