"""The Swin transformers."""

import math
from functools import partial

from tern import _C, nn
from tern.models._api import define
from tern.models._misc import MLP, Permute, initialise_mlp
from tern.models._stochastic_depth import StochasticDepth
from tern.models._utils import initialise
from tern.nn import functional as F


class PatchMerging(nn.Module):
    """Four pixels become one of twice the channels."""

    _normed = 4  # the norm's channels, in those before

    def __init__(self, dim, norm_layer=nn.LayerNorm):
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(self._normed * dim)

    def forward(self, x):
        return self.reduction(self.norm(self._merged(x)))

    def _merged(self, x):
        x = F.pad(x, (0, 0, 0, x.size(-2) % 2, 0, x.size(-3) % 2))
        return _C.cat([x[..., row::2, column::2, :] for column in (0, 1) for row in (0, 1)], -1)


class PatchMergingV2(PatchMerging):
    """The same, with the norm at the end."""

    _normed = 2

    def forward(self, x):
        return self.norm(self.reduction(self._merged(x)))


def _windows(x, height, width):
    """[batch * windows, pixels of a window, channels] of pictures [batch, rows, columns, channels]."""
    batch, rows, columns, channels = x.shape
    x = x.reshape(batch, rows // height, height, columns // width, width, channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, height * width, channels)


def _pictures(x, batch, rows, columns, height, width):
    x = x.reshape(batch, rows // height, columns // width, height, width, -1)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(batch, rows, columns, -1)


class ShiftedWindowAttention(nn.Module):
    """Attention within windows, which may be shifted: what then comes around the border is not looked at."""

    def __init__(self, dim, window_size, shift_size, num_heads, qkv_bias=True, proj_bias=True, attention_dropout=0.0, dropout=0.0):
        super().__init__()
        if len(window_size) != 2 or len(shift_size) != 2:
            raise ValueError("window_size and shift_size must be of length 2")
        self.window_size, self.shift_size, self.num_heads = window_size, shift_size, num_heads
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        self._define_table()
        height, width = window_size
        rows, columns = (x.flatten() for x in _C.meshgrid(_C.arange(height), _C.arange(width), indexing="ij"))
        down, right = rows[:, None] - rows + height - 1, columns[:, None] - columns + width - 1
        self.register_buffer("relative_position_index", (down * (2 * width - 1) + right).flatten())

    def _define_table(self):
        height, width = self.window_size
        self.relative_position_bias_table = nn.Parameter(_C.zeros((2 * height - 1) * (2 * width - 1), self.num_heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def get_relative_position_bias(self):
        return self._bias_of(self.relative_position_bias_table)

    def _bias_of(self, table):
        size = self.window_size[0] * self.window_size[1]
        return table[self.relative_position_index].view(size, size, -1).permute(2, 0, 1)[None]

    def _projected(self, x):
        return self.qkv(x)

    def _scores(self, queries, keys):
        return (queries * queries.size(-1) ** -0.5) @ keys.transpose(-2, -1)

    def _mask(self, rows, columns, shifts, x):
        """-100 between pixels of a window that come from different sides of the border."""
        parts = [[*([0] * (size - window)), *([1] * (window - shift)), *([2] * shift)] if shift else [0] * size
                 for size, window, shift in zip((rows, columns), self.window_size, shifts)]
        down, right = (_C.tensor(each, dtype=x.dtype, device=x.device) for each in parts)
        kinds = _windows((down[:, None] * 3 + right)[None, :, :, None], *self.window_size)[:, :, 0]
        return (kinds[:, None] != kinds[:, :, None]).to(x.dtype) * -100.0

    def forward(self, x):
        batch, height, width, channels = x.shape
        window = self.window_size
        x = F.pad(x, (0, 0, 0, -width % window[1], 0, -height % window[0]))
        rows, columns = x.shape[1:3]
        shifts = [0 if size >= whole else shift for size, whole, shift in zip(window, (rows, columns), self.shift_size)]
        if any(shifts):
            x = _C.roll(x, shifts=(-shifts[0], -shifts[1]), dims=(1, 2))
        x = _windows(x, *window)
        count, size, _ = x.shape
        queries, keys, values = self._projected(x).reshape(count, size, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        scores = self._scores(queries, keys) + self.get_relative_position_bias()
        if any(shifts):
            mask = self._mask(rows, columns, shifts, x)[:, None]
            scores = (scores.view(batch, -1, self.num_heads, size, size) + mask).view(count, self.num_heads, size, size)
        attention = F.dropout(F.softmax(scores, dim=-1), p=self.attention_dropout, training=self.training)
        x = self.proj((attention @ values).transpose(1, 2).reshape(count, size, channels))
        x = _pictures(F.dropout(x, p=self.dropout, training=self.training), batch, rows, columns, *window)
        if any(shifts):
            x = _C.roll(x, shifts=tuple(shifts), dims=(1, 2))
        return x[:, :height, :width]


class ShiftedWindowAttentionV2(ShiftedWindowAttention):
    """Cosines in place of products, and a network that gives the biases of places."""

    def __init__(self, dim, window_size, shift_size, num_heads, qkv_bias=True, proj_bias=True, attention_dropout=0.0, dropout=0.0):
        super().__init__(dim, window_size, shift_size, num_heads, qkv_bias, proj_bias, attention_dropout, dropout)
        self.logit_scale = nn.Parameter(_C.log(10 * _C.ones(num_heads, 1, 1)))
        self.cpb_mlp = nn.Sequential(nn.Linear(2, 512), nn.ReLU(inplace=True), nn.Linear(512, num_heads, bias=False))
        if qkv_bias:
            nn.init.zeros_(self.qkv.bias[dim:2 * dim])

    def _define_table(self):
        down, right = (_C.arange(1.0 - size, size) / (size - 1) for size in self.window_size)
        table = 8 * _C.stack(_C.meshgrid(down, right, indexing="ij"), -1)[None]
        self.register_buffer("relative_coords_table", _C.sign(table) * _C.log2(_C.abs(table) + 1.0) / 3.0)

    def get_relative_position_bias(self):
        return 16 * _C.sigmoid(self._bias_of(self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)))

    def _projected(self, x):
        """Keys have no bias, whatever numbers stand there."""
        if self.qkv.bias is None:
            return self.qkv(x)
        queries, keys, values = self.qkv.bias.chunk(3)
        return F.linear(x, self.qkv.weight, _C.cat([queries, _C.zeros_like(keys), values]))

    def _scores(self, queries, keys):
        cosines = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).transpose(-2, -1)
        return cosines * _C.clamp(self.logit_scale, max=math.log(100.0)).exp()


class SwinTransformerBlock(nn.Module):
    """Attention within windows, then layers of each pixel, both beside the identity."""

    def __init__(self, dim, num_heads, window_size, shift_size, mlp_ratio=4.0, dropout=0.0, attention_dropout=0.0,
                 stochastic_depth_prob=0.0, norm_layer=nn.LayerNorm, attn_layer=ShiftedWindowAttention):
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = attn_layer(dim, window_size, shift_size, num_heads, attention_dropout=attention_dropout, dropout=dropout)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.norm2 = norm_layer(dim)
        self.mlp = MLP(dim, [int(dim * mlp_ratio), dim], activation_layer=nn.GELU, dropout=dropout)
        initialise_mlp(self.mlp)

    def forward(self, x):
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class SwinTransformerBlockV2(SwinTransformerBlock):
    """The same, with the norms behind."""

    def __init__(self, dim, num_heads, window_size, shift_size, mlp_ratio=4.0, dropout=0.0, attention_dropout=0.0,
                 stochastic_depth_prob=0.0, norm_layer=nn.LayerNorm, attn_layer=ShiftedWindowAttentionV2):
        super().__init__(dim, num_heads, window_size, shift_size, mlp_ratio, dropout, attention_dropout, stochastic_depth_prob, norm_layer,
                         attn_layer)

    def forward(self, x):
        x = x + self.stochastic_depth(self.norm1(self.attn(x)))
        return x + self.stochastic_depth(self.norm2(self.mlp(x)))


class SwinTransformer(nn.Module):
    """Liu et al., 2021, "Swin Transformer: Hierarchical Vision Transformer using Shifted Windows"; 2022, "Swin Transformer V2: Scaling Up
    Capacity and Resolution"."""

    def __init__(self, patch_size, embed_dim, depths, num_heads, window_size, mlp_ratio=4.0, dropout=0.0, attention_dropout=0.0,
                 stochastic_depth_prob=0.1, num_classes=1000, norm_layer=None, block=None, downsample_layer=PatchMerging):
        super().__init__()
        self.num_classes = num_classes
        block, norm_layer = block or SwinTransformerBlock, norm_layer or partial(nn.LayerNorm, eps=1e-5)
        layers = [nn.Sequential(nn.Conv2d(3, embed_dim, tuple(patch_size), stride=tuple(patch_size)), Permute([0, 2, 3, 1]),
                                norm_layer(embed_dim))]
        blocks, dim = 0, embed_dim
        for depth, heads in zip(depths, num_heads):
            if blocks:
                layers.append(downsample_layer(dim, norm_layer))
                dim *= 2
            stage = []
            for place in range(depth):
                stage.append(block(
                    dim, heads, window_size=window_size, shift_size=[size // 2 if place % 2 else 0 for size in window_size],
                    mlp_ratio=mlp_ratio, dropout=dropout, attention_dropout=attention_dropout,
                    stochastic_depth_prob=stochastic_depth_prob * blocks / (sum(depths) - 1), norm_layer=norm_layer))
                blocks += 1
            layers.append(nn.Sequential(*stage))
        self.features = nn.Sequential(*layers)
        self.norm = norm_layer(dim)
        self.permute = Permute([0, 3, 1, 2])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten(1)
        self.head = nn.Linear(dim, num_classes)
        initialise(self, linear=partial(nn.init.trunc_normal_, std=0.02))

    def forward(self, x):
        return self.head(self.flatten(self.avgpool(self.permute(self.norm(self.features(x))))))


def _swin(embed_dim, depths, num_heads, stochastic_depth_prob, **options):
    return SwinTransformer([4, 4], embed_dim, depths, num_heads, **{
        "window_size": [7, 7], "stochastic_depth_prob": stochastic_depth_prob, **options})


_T, _S, _B = (96, [2, 2, 6, 2], [3, 6, 12, 24]), (96, [2, 2, 18, 2], [3, 6, 12, 24]), (128, [2, 2, 18, 2], [4, 8, 16, 32])
_V2 = partial(_swin, window_size=[8, 8], block=SwinTransformerBlockV2, downsample_layer=PatchMergingV2)

__all__ = [
    "SwinTransformer", *define(globals(), _swin, {"swin_t": (*_T, 0.2), "swin_s": (*_S, 0.3), "swin_b": (*_B, 0.5)}),
    *define(globals(), _V2, {"swin_v2_t": (*_T, 0.2), "swin_v2_s": (*_S, 0.3), "swin_v2_b": (*_B, 0.5)})]
