"""AlexNet."""

from tern import _C, nn
from tern.models._api import define


class AlexNet(nn.Module):
    """Krizhevsky, 2014, "One weird trick for parallelizing convolutional neural networks"."""

    def __init__(self, num_classes=1000, dropout=0.5):
        super().__init__()
        layers, channels = [], 3
        for width, kernel, stride, padding, pooled in [(64, 11, 4, 2, True), (192, 5, 1, 2, True), (384, 3, 1, 1, False),
                                                       (256, 3, 1, 1, False), (256, 3, 1, 1, True)]:
            layers += [nn.Conv2d(channels, width, kernel, stride, padding), nn.ReLU(inplace=True)]
            layers += [nn.MaxPool2d(3, stride=2)] if pooled else []
            channels = width
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True),
            nn.Dropout(dropout), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, num_classes))

    def forward(self, x):
        return self.classifier(_C.flatten(self.avgpool(self.features(x)), 1))


__all__ = ["AlexNet", *define(globals(), AlexNet, {"alexnet": ()})]
