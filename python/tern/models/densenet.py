"""DenseNet."""

import re

from tern import _C, nn
from tern.models._api import define
from tern.models._utils import initialise
from tern.nn import functional as F
from tern.utils.checkpoint import checkpoint


class _DenseLayer(nn.Module):
    """New features of all that were there before."""

    def __init__(self, num_input_features, growth_rate, bn_size, drop_rate, memory_efficient=False):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, bn_size * growth_rate, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, kernel_size=3, padding=1, bias=False)
        self.drop_rate, self.memory_efficient = float(drop_rate), memory_efficient

    def bn_function(self, inputs):
        return self.conv1(self.relu1(self.norm1(_C.cat(inputs, 1))))

    def forward(self, input):
        inputs = [input] if isinstance(input, _C.Tensor) else input
        if self.memory_efficient and any(each.requires_grad for each in inputs):
            narrow = checkpoint(lambda *each: self.bn_function(list(each)), *inputs, use_reentrant=False)
        else:
            narrow = self.bn_function(inputs)
        new = self.conv2(self.relu2(self.norm2(narrow)))
        return F.dropout(new, p=self.drop_rate, training=self.training) if self.drop_rate > 0 else new


class _DenseBlock(nn.ModuleDict):
    """Layers that see all features, and whose own are added to them."""

    _version = 2

    def __init__(self, num_layers, num_input_features, bn_size, growth_rate, drop_rate, memory_efficient=False):
        super().__init__()
        for place in range(num_layers):
            self.add_module(f"denselayer{place + 1}", _DenseLayer(num_input_features + place * growth_rate, growth_rate, bn_size, drop_rate,
                                                                  memory_efficient))

    def forward(self, init_features):
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return _C.cat(features, 1)


class _Transition(nn.Sequential):
    """Fewer features of half the size."""

    def __init__(self, num_input_features, num_output_features):
        super().__init__()
        self.norm = nn.BatchNorm2d(num_input_features)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, kernel_size=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    """Huang et al., 2017, "Densely Connected Convolutional Networks"."""

    def __init__(self, growth_rate=32, block_config=(6, 12, 24, 16), num_init_features=64, bn_size=4, drop_rate=0, num_classes=1000,
                 memory_efficient=False):
        super().__init__()
        features = num_init_features
        self.features = nn.Sequential({
            "conv0": nn.Conv2d(3, features, kernel_size=7, stride=2, padding=3, bias=False), "norm0": nn.BatchNorm2d(features),
            "relu0": nn.ReLU(inplace=True), "pool0": nn.MaxPool2d(kernel_size=3, stride=2, padding=1)})
        for place, layers in enumerate(block_config, 1):
            self.features.add_module(f"denseblock{place}", _DenseBlock(layers, features, bn_size, growth_rate, drop_rate, memory_efficient))
            features += layers * growth_rate
            if place < len(block_config):
                self.features.add_module(f"transition{place}", _Transition(features, features // 2))
                features //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(features))
        self.classifier = nn.Linear(features, num_classes)
        initialise(self, nn.init.kaiming_normal_)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x):
        x = F.relu(self.features(x), inplace=True)
        return self.classifier(_C.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


_OLD_NAME = re.compile(r"(.*denselayer\d+\.(?:norm|relu|conv))\.([12]\..*)")


def _loaded(make, state, entry, options):
    """Files of earlier years have names like denselayer1.norm.1.weight."""
    net = make(**options)
    net.load_state_dict({_OLD_NAME.sub(r"\1\2", name): tensor for name, tensor in state.items()})
    return net


__all__ = ["DenseNet", *define(globals(), DenseNet, {
    "densenet121": (32, (6, 12, 24, 16), 64),
    "densenet161": (48, (6, 12, 36, 24), 96),
    "densenet169": (32, (6, 12, 32, 32), 64),
    "densenet201": (32, (6, 12, 48, 32), 64),
}, _loaded)]
