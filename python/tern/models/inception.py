"""Inception v3, and what it shares with GoogLeNet."""

import collections
import functools

from tern import _C, nn
from tern.models._api import define
from tern.nn import functional as F

InceptionOutputs = _InceptionOutputs = collections.namedtuple("InceptionOutputs", ["logits", "aux_logits"])


class BasicConv2d(nn.Module):
    """A convolution, a batch norm and a ReLU."""

    def __init__(self, in_channels, out_channels, **kwargs):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)), inplace=True)


class _Branches(nn.Module):
    """Branches side by side, whose channels come one after the other."""

    def __init__(self, conv_block, **convolutions):
        """Of each convolution: channels before and behind, kernel, and stride, without which pictures keep their size."""
        super().__init__()
        for name, (before, behind, kernel, *stride) in convolutions.items():
            height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
            how = {"stride": stride[0]} if stride else {"padding": (height // 2, width // 2)}
            self.add_module(name, (conv_block or BasicConv2d)(before, behind, kernel_size=kernel, **how))

    def forward(self, x):
        return _C.cat(self._forward(x), 1)

    def _chain(self, prefix, count, x):
        for place in range(1, count + 1):
            x = getattr(self, f"{prefix}_{place}")(x)
        return x

    def _pooled(self, x):
        return self.branch_pool(F.avg_pool2d(x, kernel_size=3, stride=1, padding=1))


class InceptionA(_Branches):
    """Branches of 1x1, 5x5 and two 3x3."""

    def __init__(self, in_channels, pool_features, conv_block=None):
        super().__init__(
            conv_block, branch1x1=(in_channels, 64, 1), branch5x5_1=(in_channels, 48, 1), branch5x5_2=(48, 64, 5),
            branch3x3dbl_1=(in_channels, 64, 1), branch3x3dbl_2=(64, 96, 3), branch3x3dbl_3=(96, 96, 3),
            branch_pool=(in_channels, pool_features, 1))

    def _forward(self, x):
        return [self.branch1x1(x), self._chain("branch5x5", 2, x), self._chain("branch3x3dbl", 3, x), self._pooled(x)]


class InceptionB(_Branches):
    """Half the size, after branches of 3x3."""

    def __init__(self, in_channels, conv_block=None):
        super().__init__(conv_block, branch3x3=(in_channels, 384, 3, 2), branch3x3dbl_1=(in_channels, 64, 1), branch3x3dbl_2=(64, 96, 3),
                         branch3x3dbl_3=(96, 96, 3, 2))

    def _forward(self, x):
        return [self.branch3x3(x), self._chain("branch3x3dbl", 3, x), F.max_pool2d(x, kernel_size=3, stride=2)]


class InceptionC(_Branches):
    """Branches of 7x7 in parts of one row or column."""

    def __init__(self, in_channels, channels_7x7, conv_block=None):
        c, row, column = channels_7x7, (1, 7), (7, 1)
        super().__init__(
            conv_block, branch1x1=(in_channels, 192, 1),
            branch7x7_1=(in_channels, c, 1), branch7x7_2=(c, c, row), branch7x7_3=(c, 192, column),
            branch7x7dbl_1=(in_channels, c, 1), branch7x7dbl_2=(c, c, column), branch7x7dbl_3=(c, c, row), branch7x7dbl_4=(c, c, column),
            branch7x7dbl_5=(c, 192, row), branch_pool=(in_channels, 192, 1))

    def _forward(self, x):
        return [self.branch1x1(x), self._chain("branch7x7", 3, x), self._chain("branch7x7dbl", 5, x), self._pooled(x)]


class InceptionD(_Branches):
    """Half the size, after branches of 3x3 and 7x7."""

    def __init__(self, in_channels, conv_block=None):
        super().__init__(
            conv_block, branch3x3_1=(in_channels, 192, 1), branch3x3_2=(192, 320, 3, 2), branch7x7x3_1=(in_channels, 192, 1),
            branch7x7x3_2=(192, 192, (1, 7)), branch7x7x3_3=(192, 192, (7, 1)), branch7x7x3_4=(192, 192, 3, 2))

    def _forward(self, x):
        return [self._chain("branch3x3", 2, x), self._chain("branch7x7x3", 4, x), F.max_pool2d(x, kernel_size=3, stride=2)]


class InceptionE(_Branches):
    """Branches that end in a row and a column side by side."""

    def __init__(self, in_channels, conv_block=None):
        row, column = (384, 384, (1, 3)), (384, 384, (3, 1))
        super().__init__(
            conv_block, branch1x1=(in_channels, 320, 1), branch3x3_1=(in_channels, 384, 1), branch3x3_2a=row, branch3x3_2b=column,
            branch3x3dbl_1=(in_channels, 448, 1), branch3x3dbl_2=(448, 384, 3), branch3x3dbl_3a=row, branch3x3dbl_3b=column,
            branch_pool=(in_channels, 192, 1))

    def _forward(self, x):
        once, twice = self.branch3x3_1(x), self._chain("branch3x3dbl", 2, x)
        return [self.branch1x1(x), self.branch3x3_2a(once), self.branch3x3_2b(once), self.branch3x3dbl_3a(twice),
                self.branch3x3dbl_3b(twice), self._pooled(x)]


class InceptionAux(nn.Module):
    """Classes as they can be told half way."""

    def __init__(self, in_channels, num_classes, conv_block=None):
        super().__init__()
        conv_block = conv_block or BasicConv2d
        self.conv0 = conv_block(in_channels, 128, kernel_size=1)
        self.conv1 = conv_block(128, 768, kernel_size=5)
        self.fc = nn.Linear(768, num_classes)
        self.fc.stddev = 0.001

    def forward(self, x):
        x = self.conv1(self.conv0(F.avg_pool2d(x, kernel_size=5, stride=3)))
        return self.fc(_C.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


class WithHeads(nn.Module):
    """A trunk of layers one after the other, and further heads behind some of them, which speak in training alone. `_HEADS` has the
    head behind a layer, `_OUTPUTS` the class of all logits, of which the latest come first."""

    def forward(self, x):
        if self.transform_input:  # from what torchvision's weights take to numbers of -1 to 1
            channels = zip((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
            x = _C.stack([x[:, place] * (std / 0.5) + (mean - 0.5) / 0.5 for place, (mean, std) in enumerate(channels)], 1)
        speak, others = self.training and self.aux_logits, []
        for name in self._TRUNK:
            x = getattr(self, name)(x)
            if speak and name in self._HEADS:
                head = getattr(self, self._HEADS[name])
                others.insert(0, None if head is None else head(x))
        logits = self.fc(self.dropout(_C.flatten(self.avgpool(x), 1)))
        return self._OUTPUTS(logits, *others) if speak else logits

    def _initialise(self, std):
        for layer in self.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(layer.weight, mean=0.0, std=getattr(layer, "stddev", std), a=-2, b=2)


def heads_loaded(make, state, entry, options, heads, kept):
    """For weights with heads the model is built with them, and then goes without unless aux_logits asks for them (by default `kept`)."""
    kept = options.pop("aux_logits", kept)
    options = {"transform_input": entry is not None, "init_weights": False, **options}
    net = make(aux_logits=any(name.startswith(heads) for name in state), **options)
    net.load_state_dict(state)
    if not kept:
        net.aux_logits = False
        for head in heads:
            setattr(net, head, None)
    return net


class Inception3(WithHeads):
    """Szegedy et al., 2016, "Rethinking the Inception Architecture for Computer Vision"."""

    _TRUNK = ("Conv2d_1a_3x3 Conv2d_2a_3x3 Conv2d_2b_3x3 maxpool1 Conv2d_3b_1x1 Conv2d_4a_3x3 maxpool2 Mixed_5b Mixed_5c Mixed_5d Mixed_6a "
              "Mixed_6b Mixed_6c Mixed_6d Mixed_6e Mixed_7a Mixed_7b Mixed_7c").split()
    _HEADS, _OUTPUTS = {"Mixed_6e": "AuxLogits"}, InceptionOutputs

    def __init__(self, num_classes=1000, aux_logits=True, transform_input=False, inception_blocks=None, init_weights=None, dropout=0.5):
        super().__init__()
        blocks = inception_blocks or [BasicConv2d, InceptionA, InceptionB, InceptionC, InceptionD, InceptionE, InceptionAux]
        if len(blocks) != 7:
            raise ValueError(f"length of inception_blocks should be 7 instead of {len(blocks)}")
        conv, a, b, c, d, e, aux = blocks
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.Conv2d_1a_3x3 = conv(3, 32, kernel_size=3, stride=2)
        self.Conv2d_2a_3x3 = conv(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = conv(32, 64, kernel_size=3, padding=1)
        self.maxpool1 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Conv2d_3b_1x1 = conv(64, 80, kernel_size=1)
        self.Conv2d_4a_3x3 = conv(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Mixed_5b = a(192, pool_features=32)
        self.Mixed_5c = a(256, pool_features=64)
        self.Mixed_5d = a(288, pool_features=64)
        self.Mixed_6a = b(288)
        self.Mixed_6b = c(768, channels_7x7=128)
        self.Mixed_6c = c(768, channels_7x7=160)
        self.Mixed_6d = c(768, channels_7x7=160)
        self.Mixed_6e = c(768, channels_7x7=192)
        self.AuxLogits = aux(768, num_classes) if aux_logits else None
        self.Mixed_7a = d(768)
        self.Mixed_7b = e(1280)
        self.Mixed_7c = e(2048)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(2048, num_classes)
        if init_weights in (None, True):
            self._initialise(0.1)


__all__ = ["Inception3", "InceptionOutputs", "_InceptionOutputs", *define(
    globals(), Inception3, {"inception_v3": ()}, functools.partial(heads_loaded, heads=("AuxLogits",), kept=True))]
