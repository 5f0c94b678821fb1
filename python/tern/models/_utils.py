"""What the families share: widths, initialisation, and the layers of a network that someone looks into."""

from tern import nn


def he_normal(weight):
    """As most convolutions begin here (He et al., 2015, "Delving Deep into Rectifiers")."""
    nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")


def small_normal(weight):
    """As most last layers begin."""
    nn.init.normal_(weight, mean=0.0, std=0.01)


def _make_divisible(v, divisor, min_value=None):
    """The multiple of `divisor` that is next to v, at least `min_value` and no more than a tenth below v."""
    rounded = max(min_value or divisor, int(v + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * v else rounded


def initialise(net, conv=None, linear=None):
    """Fills the weights of convolutions and of linear layers by a function, in the order of modules, and their biases by zeros."""
    for layer in net.modules():
        fill = conv if isinstance(layer, nn.Conv2d) else linear if isinstance(layer, nn.Linear) else None
        if fill:
            fill(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class IntermediateLayerGetter(nn.ModuleDict):
    """The first layers of a network, up to the last one named in `return_layers`: their outputs by the names given there."""

    def __init__(self, model, return_layers):
        missing = set(return_layers) - {name for name, _ in model.named_children()}
        if missing:
            raise ValueError("return_layers are not present in model")
        layers, left = {}, set(map(str, return_layers))
        for name, layer in model.named_children():
            if left:
                layers[name] = layer
                left.discard(name)
        super().__init__(layers)
        self.return_layers = {str(name): str(key) for name, key in return_layers.items()}

    def forward(self, x):
        outputs = {}
        for name, layer in self.items():
            x = layer(x)
            if name in self.return_layers:
                outputs[self.return_layers[name]] = x
        return outputs
