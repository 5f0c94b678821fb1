"""Blocks of several families: those of torchvision.ops.misc."""

from tern import nn


class Conv2dNormActivation(nn.Sequential):
    """A convolution, a normalisation and an activation; by default a picture keeps its size, but for the stride."""

    def __init__(self, in_channels, out_channels, kernel_size=3, stride=1, padding=None, groups=1, norm_layer=nn.BatchNorm2d,
                 activation_layer=nn.ReLU, dilation=1, inplace=True, bias=None):
        if padding is None:
            kernels, dilations = ((x, x) if isinstance(x, int) else x for x in (kernel_size, dilation))
            padding = tuple((kernel - 1) // 2 * each for kernel, each in zip(kernels, dilations))
        layers = [nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups,
                            bias=norm_layer is None if bias is None else bias)]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**_inplace(inplace)))
        super().__init__(*layers)
        self.out_channels = out_channels


def _inplace(inplace):
    return {} if inplace is None else {"inplace": inplace}


class SqueezeExcitation(nn.Module):
    """Channels weighted by what the whole picture has in them (Hu et al., 2018, "Squeeze-and-Excitation Networks")."""

    def __init__(self, input_channels, squeeze_channels, activation=nn.ReLU, scale_activation=nn.Sigmoid):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input):
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input))))) * input


class MLP(nn.Sequential):
    """Linear layers with normalisations, activations and dropout."""

    def __init__(self, in_channels, hidden_channels, norm_layer=None, activation_layer=nn.ReLU, inplace=None, bias=True, dropout=0.0):
        layers = []
        for place, width in enumerate(hidden_channels, 1):
            layers.append(nn.Linear(in_channels, width, bias=bias))
            if place < len(hidden_channels):
                layers += [norm_layer(width)] if norm_layer else []
                layers.append(activation_layer(**_inplace(inplace)))
            layers.append(nn.Dropout(dropout, **_inplace(inplace)))
            in_channels = width
        super().__init__(*layers)


def initialise_mlp(mlp):
    """As transformers of pictures begin."""
    for layer in mlp.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.normal_(layer.bias, std=1e-6)


class Permute(nn.Module):
    """Dimensions in another order."""

    def __init__(self, dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return x.permute(self.dims)
