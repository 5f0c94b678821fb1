"""The vision transformer."""

import math
from functools import partial
from typing import Callable, NamedTuple

from tern import _C, nn
from tern.models._api import define, fixed
from tern.models._misc import MLP, Conv2dNormActivation, initialise_mlp
from tern.nn import functional as F

_LayerNorm = partial(nn.LayerNorm, eps=1e-6)


class ConvStemConfig(NamedTuple):
    """A convolution of a stem that stands in the place of patches."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: Callable[..., nn.Module] = nn.BatchNorm2d
    activation_layer: Callable[..., nn.Module] = nn.ReLU


class MLPBlock(MLP):
    """The layers of each token."""

    _version = 2

    def __init__(self, in_dim, mlp_dim, dropout):
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, dropout=dropout)
        initialise_mlp(self)

    def _load_from_state_dict(self, state_dict, prefix, *more):
        """The layers 0 and 3 are linear_1 and linear_2 in files of version 1."""
        for old, new in (("linear_1", "0"), ("linear_2", "3")):
            for kind in ("weight", "bias"):
                if f"{prefix}{old}.{kind}" in state_dict:
                    state_dict[f"{prefix}{new}.{kind}"] = state_dict.pop(f"{prefix}{old}.{kind}")
        super()._load_from_state_dict(state_dict, prefix, *more)


class EncoderBlock(nn.Module):
    """Attention of the tokens, then layers of each, both beside the identity."""

    def __init__(self, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer=_LayerNorm):
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input):
        x = self.ln_1(input)
        x = self.dropout(self.self_attention(x, x, x, need_weights=False)[0]) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Places are added to tokens; then the blocks."""

    def __init__(self, seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer=_LayerNorm):
        super().__init__()
        self.pos_embedding = nn.Parameter(_C.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential({
            f"encoder_layer_{place}": EncoderBlock(num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer)
            for place in range(num_layers)})
        self.ln = norm_layer(hidden_dim)

    def forward(self, input):
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


def _stem(settings, hidden_dim):
    stem, channels = nn.Sequential(), 3
    for place, each in enumerate(settings):
        stem.add_module(f"conv_bn_relu_{place}", Conv2dNormActivation(
            channels, each.out_channels, each.kernel_size, each.stride, norm_layer=each.norm_layer, activation_layer=each.activation_layer))
        channels = each.out_channels
    stem.add_module("conv_last", nn.Conv2d(channels, hidden_dim, kernel_size=1))
    return stem


class VisionTransformer(nn.Module):
    """Dosovitskiy et al., 2021, "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale"."""

    def __init__(self, image_size, patch_size, num_layers, num_heads, hidden_dim, mlp_dim, dropout=0.0, attention_dropout=0.0,
                 num_classes=1000, representation_size=None, norm_layer=_LayerNorm, conv_stem_configs=None):
        super().__init__()
        if image_size % patch_size != 0:
            raise ValueError(f"Input shape indivisible by patch size! Got pictures of {image_size} and patches of {patch_size}")
        self.image_size, self.patch_size, self.hidden_dim, self.mlp_dim = image_size, patch_size, hidden_dim, mlp_dim
        self.attention_dropout, self.dropout, self.num_classes = attention_dropout, dropout, num_classes
        self.representation_size = representation_size
        patches = conv_stem_configs is None
        self.conv_proj = nn.Conv2d(3, hidden_dim, patch_size, stride=patch_size) if patches else _stem(conv_stem_configs, hidden_dim)
        self.class_token = nn.Parameter(_C.zeros(1, 1, hidden_dim))
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer)
        heads = {}
        if representation_size is not None:
            heads = {"pre_logits": nn.Linear(hidden_dim, representation_size), "act": nn.Tanh()}
        self.heads = nn.Sequential({**heads, "head": nn.Linear(representation_size or hidden_dim, num_classes)})
        if patches:
            nn.init.trunc_normal_(self.conv_proj.weight, std=math.sqrt(1 / (3 * patch_size ** 2)))
            nn.init.zeros_(self.conv_proj.bias)
        else:
            nn.init.normal_(self.conv_proj.conv_last.weight, std=math.sqrt(2 / hidden_dim))
            nn.init.zeros_(self.conv_proj.conv_last.bias)
        if heads:
            nn.init.trunc_normal_(self.heads.pre_logits.weight, std=math.sqrt(1 / hidden_dim))
            nn.init.zeros_(self.heads.pre_logits.bias)
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)

    def forward(self, x):
        if x.shape[2:] != (self.image_size, self.image_size):
            raise _C.ShapeError(f"Wrong image height or width! Expected {self.image_size} but got {list(x.shape[2:])}")
        x = _C.flatten(self.conv_proj(x), 2).permute(0, 2, 1)
        x = _C.cat([self.class_token.expand(x.size(0), -1, -1), x], dim=1)
        return self.heads(self.encoder(x)[:, 0])


def interpolate_embeddings(image_size, patch_size, model_state, interpolation_mode="bicubic", reset_heads=False):
    """A state dict for pictures of another size: the embeddings of places are resized, and with `reset_heads` the heads left out."""
    places = model_state["encoder.pos_embedding"]
    if places.size(0) != 1:
        raise ValueError(f"Unexpected position embedding shape: {places.shape}")
    old, new = math.isqrt(places.size(1) - 1), image_size // patch_size
    if old ** 2 != places.size(1) - 1:
        raise ValueError(f"seq_length is not a perfect square! There are {places.size(1) - 1} patches")
    if old == new:
        return model_state
    grid = places[:, 1:].permute(0, 2, 1).reshape(1, -1, old, old)
    grid = F.interpolate(grid, size=(new, new), mode=interpolation_mode, align_corners=True)
    model_state["encoder.pos_embedding"] = _C.cat([places[:, :1], _C.flatten(grid, 2).permute(0, 2, 1)], dim=1)
    return {name: tensor for name, tensor in model_state.items() if not name.startswith("heads")} if reset_heads else model_state


def _vit(patch_size, num_layers, num_heads, hidden_dim, mlp_dim, image_size=224, **options):
    return VisionTransformer(image_size, patch_size, num_layers, num_heads, hidden_dim, mlp_dim, **options)


def _loaded(make, state, entry, options):
    net = make(**(fixed(options, image_size=entry.transforms.keywords["crop_size"]) if entry else options))
    net.load_state_dict(state)
    return net


__all__ = ["VisionTransformer", *define(globals(), _vit, {
    "vit_b_16": (16, 12, 12, 768, 3072),
    "vit_b_32": (32, 12, 12, 768, 3072),
    "vit_l_16": (16, 24, 16, 1024, 4096),
    "vit_l_32": (32, 24, 16, 1024, 4096),
    "vit_h_14": (14, 32, 16, 1280, 5120),
}, _loaded)]
