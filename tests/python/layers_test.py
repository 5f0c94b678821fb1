"""Layers, losses and functions with options, beside PyTorch's: one row each.

A layer's row is made with the same arguments on both sides, gets PyTorch's numbers by its state dict, and must have the same names in
it, print the same text, have the arguments as attributes, and give the same results and gradients. Without PyTorch all is skipped.
"""

import copy
import gc
import inspect
import re
import unittest

import torch
import torch.nn.functional

import tern
import tern.nn.functional


VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])


class Ints:
    """An input of random integers below `high`."""

    def __init__(self, *shape, high, low=0):
        self.shape, self.high, self.low = shape, high, low

    def numbers(self):
        return torch.randint(self.low, self.high, self.shape)


class Floats:
    """One of uniform numbers, or of their logarithms."""

    def __init__(self, *shape, low=0.05, high=0.95, log=False):
        self.shape, self.low, self.high, self.log = shape, low, high, log

    def numbers(self):
        x = torch.rand(self.shape) * (self.high - self.low) + self.low
        return x.log() if self.log else x


class Signs(Ints):
    """1 and -1."""

    def numbers(self):
        return torch.randint(0, 2, self.shape) * 2 - 1


class Value:
    """A tensor of these numbers, made by either side."""

    def __init__(self, numbers):
        self.given = numbers

    def numbers(self):
        return torch.tensor(self.given)


class Row:
    def __init__(self, name, args=(), inputs=(), since=(1, 13), train=False, text=True, grad=True, call=None, **kwargs):
        self.name, self.args, self.inputs, self.since, self.kwargs = name, args, inputs, since, kwargs
        self.train, self.text, self.grad, self.call = train, text, grad, call or {}


def to_tern(x):
    """What PyTorch holds, as Tern's."""
    if torch.is_tensor(x):
        return tern.tensor(x.tolist(), dtype=getattr(tern, str(x.dtype).split(".")[1])).reshape(tuple(x.shape))
    if isinstance(x, (tuple, list)):
        return type(x)(to_tern(item) for item in x)
    if isinstance(x, dict):
        return {name: to_tern(item) for name, item in x.items()}
    return getattr(tern, str(x).split(".")[1]) if isinstance(x, torch.dtype) else x


def made(x):
    """Inputs of a row as PyTorch's: a tuple is the shape of normal numbers."""
    if isinstance(x, tuple):
        return torch.randn(x)
    return [made(item) for item in x] if isinstance(x, list) else made_argument(x)


def made_argument(x):
    return x.numbers() if hasattr(x, "numbers") else x


def made_arguments(named):
    return {name: made_argument(value) for name, value in named.items()}


def tensors(x):
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (tuple, list)):
        return [tensor for item in x for tensor in tensors(item)]
    return [x] if hasattr(x, "backward") else []


def is_number(x):
    return x.dtype in (torch.float32, torch.float64) if torch.is_tensor(x) else x.dtype in (tern.float32, tern.float64)


def plain(x):
    """An attribute as Python's own: numbers and tuples."""
    if isinstance(x, list):
        return tuple(x)
    return x.tolist() if hasattr(x, "tolist") else x


# ---- the rows

IMAGE = (2, 4, 6, 6)
VOLUME = (2, 4, 5, 4, 6)
SEQUENCE = (2, 4, 9)
FLAT = (5, 8)

LAYERS = [
    Row("Linear", (8, 3), [FLAT]),
    Row("Linear", (8, 3), [(2, 5, 8)], bias=False),
    Row("LazyLinear", (3,), [FLAT]),
    Row("Bilinear", (8, 4, 3), [FLAT, (5, 4)]),
    Row("Identity", (1, "two"), [FLAT], three=3),
    Row("Embedding", (10, 3), [Ints(2, 4, high=10)], padding_idx=2),
    Row("Embedding", (10, 3), [Ints(2, 4, high=10)], max_norm=1.0, scale_grad_by_freq=True, sparse=False),
    Row("EmbeddingBag", (10, 3), [Ints(2, 4, high=10)]),
    Row("EmbeddingBag", (10, 3), [Ints(6, high=10), Value([0, 2, 2])], mode="sum", padding_idx=1),
    Row("EmbeddingBag", (10, 3), [Ints(2, 4, high=10)], mode="max", sparse=False),
    Row("CosineSimilarity", (), [FLAT, FLAT]),
    Row("PairwiseDistance", (1.0,), [FLAT, FLAT], keepdim=True),

    Row("Conv1d", (4, 6, 3), [SEQUENCE]),
    Row("Conv1d", (4, 6, (3,)), [SEQUENCE], padding="same", dilation=2),
    Row("Conv2d", (4, 6, 3), [IMAGE], stride=2, padding=1, groups=2, padding_mode="zeros"),
    Row("Conv2d", (4, 6, (3, 1), (1, 2), (1, 0)), [IMAGE], bias=False),
    Row("Conv2d", (4, 6, 3), [IMAGE], padding="same"),
    Row("Conv2d", (4, 6, 3), [IMAGE], padding="valid"),
    Row("Conv3d", (4, 2, (3, 2, 3)), [VOLUME], padding=1),
    Row("ConvTranspose1d", (4, 6, 3), [SEQUENCE], stride=2, output_padding=1),
    Row("ConvTranspose2d", (4, 6, 3, 2, 1), [IMAGE], call={"output_size": [12, 12]}),
    Row("ConvTranspose2d", (4, 6, 2), [IMAGE], groups=2, dilation=(2, 1)),
    Row("ConvTranspose3d", (4, 2, 2), [VOLUME], stride=2),
    Row("LazyConv1d", (6, 3), [SEQUENCE]),
    Row("LazyConv2d", (6, 3), [IMAGE], padding=1),
    Row("LazyConv3d", (2, 2), [VOLUME]),
    Row("LazyConvTranspose1d", (6, 3), [SEQUENCE]),
    Row("LazyConvTranspose2d", (6, 3), [IMAGE]),
    Row("LazyConvTranspose3d", (2, 2), [VOLUME]),

    Row("MaxPool1d", (2,), [SEQUENCE]),
    Row("MaxPool2d", (2,), [IMAGE]),
    Row("MaxPool2d", (3, 2, 1), [IMAGE], return_indices=True),
    Row("MaxPool2d", ((3, 2),), [IMAGE], stride=(2, 1), padding=(1, 0), dilation=(1, 2), ceil_mode=True),
    Row("MaxPool3d", (2,), [VOLUME]),
    Row("MaxUnpool1d", (2,), [(2, 4, 3), Value([[[0, 3, 4]] * 4] * 2)]),
    Row("MaxUnpool2d", (2, 2), [(1, 1, 1, 2), Value([[[[1, 6]]]])]),
    Row("MaxUnpool2d", (2,), [(1, 1, 1, 2), Value([[[[1, 6]]]])], call={"output_size": (1, 1, 3, 4)}),
    Row("MaxUnpool3d", (2,), [(1, 1, 1, 1, 2), Value([[[[[1, 6]]]]])]),
    Row("AvgPool1d", (2,), [SEQUENCE], padding=1),
    Row("AvgPool2d", (3,), [IMAGE], stride=2, padding=1, count_include_pad=False),
    Row("AvgPool2d", (2,), [IMAGE], divisor_override=3),
    Row("AvgPool3d", (2,), [VOLUME]),
    Row("LPPool1d", (2, 3), [SEQUENCE]),
    Row("LPPool2d", (1.5, 2), [Floats(*IMAGE)], stride=1),
    Row("LPPool3d", (2, 2), [VOLUME], since=(2, 3)),
    Row("AdaptiveAvgPool1d", (3,), [SEQUENCE]),
    Row("AdaptiveAvgPool2d", ((3, 2),), [IMAGE]),
    Row("AdaptiveAvgPool2d", ((None, 2),), [IMAGE]),
    Row("AdaptiveAvgPool3d", (2,), [VOLUME]),
    Row("AdaptiveMaxPool1d", (3,), [SEQUENCE]),
    Row("AdaptiveMaxPool2d", (1,), [IMAGE]),
    Row("AdaptiveMaxPool3d", ((2, 1, 3),), [VOLUME]),

    Row("BatchNorm1d", (8,), [FLAT], train=True),
    Row("BatchNorm1d", (4,), [SEQUENCE], affine=False),
    Row("BatchNorm2d", (4,), [IMAGE], momentum=None, train=True),
    Row("BatchNorm2d", (4, 1e-3, 0.2), [IMAGE], track_running_stats=False),
    Row("BatchNorm3d", (4,), [VOLUME]),
    Row("LazyBatchNorm1d", (), [SEQUENCE], train=True),
    Row("LazyBatchNorm2d", (), [IMAGE]),
    Row("LazyBatchNorm3d", (), [VOLUME]),
    Row("SyncBatchNorm", (4,), [IMAGE], since=(2, 10)),
    Row("InstanceNorm1d", (4,), [SEQUENCE]),
    Row("InstanceNorm2d", (4,), [IMAGE], affine=True, track_running_stats=True, train=True),
    Row("InstanceNorm3d", (4,), [VOLUME]),
    Row("LazyInstanceNorm1d", (), [SEQUENCE], affine=True),
    Row("LazyInstanceNorm2d", (), [IMAGE], affine=True),
    Row("LazyInstanceNorm3d", (), [VOLUME], affine=True),
    Row("LayerNorm", (8,), [FLAT]),
    Row("LayerNorm", ((4, 9),), [SEQUENCE], elementwise_affine=False),
    Row("LayerNorm", ([9],), [SEQUENCE], bias=False, since=(2, 1)),
    Row("RMSNorm", (8,), [FLAT], since=(2, 4)),
    Row("GroupNorm", (2, 4), [IMAGE]),
    Row("LocalResponseNorm", (2,), [IMAGE]),

    Row("Tanh", (), [FLAT]),
    Row("Sigmoid", (), [FLAT]),
    Row("LogSigmoid", (), [FLAT]),
    Row("Softsign", (), [FLAT]),
    Row("Tanhshrink", (), [FLAT]),
    Row("Softmax2d", (), [IMAGE]),
    Row("ReLU", (), [FLAT]),
    Row("ReLU6", (), [FLAT]),
    Row("SiLU", (), [FLAT]),
    Row("Mish", (), [FLAT]),
    Row("SELU", (), [FLAT]),
    Row("Hardswish", (), [FLAT]),
    Row("Hardsigmoid", (), [FLAT]),
    Row("LeakyReLU", (0.2,), [FLAT]),
    Row("ELU", (), [FLAT]),
    Row("CELU", (), [FLAT], alpha=2.0),
    Row("Hardshrink", (), [FLAT]),
    Row("Softshrink", (), [FLAT]),
    Row("GELU", (), [FLAT], approximate="tanh"),
    Row("GLU", (), [FLAT]),
    Row("Softmax", (1,), [FLAT]),
    Row("Softmin", (), [FLAT], dim=1),
    Row("LogSoftmax", (), [FLAT], dim=-1),
    Row("Softplus", (2.0,), [FLAT]),
    Row("Threshold", (0.1, 20.0), [FLAT]),
    Row("RReLU", (), [FLAT]),
    Row("Hardtanh", (-2.0, 0.5), [FLAT]),
    Row("PReLU", (), [FLAT]),
    Row("PReLU", (4,), [IMAGE], init=0.1),
    Row("Dropout", (), [FLAT]),
    Row("Dropout1d", (0.2,), [SEQUENCE]),
    Row("Dropout2d", (), [IMAGE]),
    Row("Dropout3d", (), [VOLUME], p=0.3),
    Row("AlphaDropout", (), [FLAT]),
    Row("FeatureAlphaDropout", (), [IMAGE]),

    Row("ConstantPad1d", (2, 3.5), [SEQUENCE]),
    Row("ConstantPad2d", ((1, 2, 0, 1), 1), [IMAGE]),
    Row("ConstantPad3d", (1, 0.5), [VOLUME]),
    Row("ZeroPad1d", (1,), [SEQUENCE], since=(2, 1)),
    Row("ZeroPad2d", ((1, 2, 3, 0),), [IMAGE]),
    Row("ZeroPad3d", (1,), [VOLUME], since=(2, 1)),
    Row("ReflectionPad1d", ((1, 2),), [SEQUENCE]),
    Row("ReflectionPad2d", (1,), [IMAGE]),
    Row("ReflectionPad3d", (1,), [VOLUME]),
    Row("ReplicationPad1d", (1,), [SEQUENCE]),
    Row("ReplicationPad2d", ((1, 0, 2, 1),), [IMAGE]),
    Row("ReplicationPad3d", (1,), [VOLUME]),
    Row("CircularPad1d", (1,), [SEQUENCE], since=(2, 1)),
    Row("CircularPad2d", ((1, 0, 2, 1),), [IMAGE], since=(2, 1)),
    Row("CircularPad3d", (1,), [VOLUME], since=(2, 1)),
    Row("Upsample", (), [IMAGE], scale_factor=2),
    Row("Upsample", ((9, 3),), [IMAGE], mode="bilinear", align_corners=True),
    Row("Upsample", (7,), [SEQUENCE], mode="linear"),
    Row("UpsamplingNearest2d", (), [IMAGE], scale_factor=2),
    Row("UpsamplingBilinear2d", (5,), [IMAGE]),
    Row("Unfold", (2,), [IMAGE], padding=1),
    Row("Fold", (6, (2, 3)), [(2, 24, 4)], stride=(4, 3)),
    Row("Flatten", (), [IMAGE]),
    Row("Flatten", (1, 2), [IMAGE]),
    Row("Unflatten", (1, (2, 2)), [IMAGE]),
    Row("PixelShuffle", (2,), [IMAGE]),
    Row("PixelUnshuffle", (2,), [IMAGE]),
    Row("ChannelShuffle", (2,), [IMAGE], since=(2, 10)),

    Row("LSTM", (8, 6), [(3, 2, 8)]),
    Row("LSTM", (8, 6, 2), [(2, 3, 8), [(4, 2, 6), (4, 2, 6)]], batch_first=True, bidirectional=True, text=False),
    Row("LSTM", (8, 6), [(3, 2, 8)], proj_size=4),
    Row("GRU", (8, 6, 2), [(3, 2, 8)], bias=False),
    Row("GRU", (8, 6), [(3, 8), (2, 6)], bidirectional=True),
    Row("RNN", (8, 6), [(3, 2, 8), (1, 2, 6)]),
    Row("RNN", (8, 6, 2, "relu"), [(3, 2, 8)], batch_first=True, since=(2, 10)),
    Row("LSTMCell", (8, 6), [FLAT, [(5, 6), (5, 6)]]),
    Row("GRUCell", (8, 6), [FLAT], bias=False),
    Row("RNNCell", (8, 6), [FLAT, (5, 6)], nonlinearity="relu"),
    Row("MultiheadAttention", (8, 2), [(3, 2, 8), (4, 2, 8), (4, 2, 8)]),
    Row("MultiheadAttention", (8, 2), [(2, 3, 8), (2, 4, 5), (2, 4, 7)], kdim=5, vdim=7, batch_first=True, add_bias_kv=True,
        call={"average_attn_weights": False}),
    Row("MultiheadAttention", (8, 4), [(3, 8), (3, 8), (3, 8)], bias=False, call={"need_weights": False}),
    Row("TransformerEncoderLayer", (8, 2), [(3, 2, 8)], dim_feedforward=16, dropout=0.0, train=True),
    Row("TransformerEncoderLayer", (8, 2, 16, 0.1, "gelu"), [(2, 3, 8)], batch_first=True, norm_first=True,
        call={"src_mask": Value([[False, True, True], [False, False, True], [False, False, False]])}),
    Row("TransformerDecoderLayer", (8, 2, 16), [(3, 2, 8), (4, 2, 8)]),
    Row("Transformer", (8, 2, 2, 1, 16), [(3, 2, 8), (4, 2, 8)]),
]

LOSSES = [
    Row("MSELoss", (), [FLAT, FLAT]),
    Row("MSELoss", (), [FLAT, FLAT], reduction="sum"),
    Row("L1Loss", (), [FLAT, FLAT], reduction="none"),
    Row("SmoothL1Loss", (), [FLAT, FLAT], beta=0.5),
    Row("HuberLoss", ("sum", 0.7), [FLAT, FLAT]),
    Row("CrossEntropyLoss", (), [FLAT, Ints(5, high=8)]),
    Row("CrossEntropyLoss", (), [IMAGE, Ints(2, 6, 6, high=4)], label_smoothing=0.1, reduction="none", ignore_index=1),
    Row("CrossEntropyLoss", (), [FLAT, Ints(5, high=8)], weight=Floats(8)),
    Row("NLLLoss", (), [Floats(5, 8, log=True), Ints(5, high=8)], weight=Floats(8), ignore_index=3),
    Row("BCELoss", (), [Floats(5, 8), Floats(5, 8)], weight=Floats(8)),
    Row("BCEWithLogitsLoss", (), [FLAT, Floats(5, 8)], pos_weight=Floats(8)),
    Row("KLDivLoss", (), [Floats(5, 8, log=True), Floats(5, 8)], reduction="batchmean"),
    Row("KLDivLoss", (), [Floats(5, 8, log=True), Floats(5, 8, log=True)], reduction="sum", log_target=True),
    Row("PoissonNLLLoss", (), [FLAT, Floats(5, 8, high=4)], full=True),
    Row("PoissonNLLLoss", (False,), [Floats(5, 8), Floats(5, 8)], eps=1e-4),
    Row("GaussianNLLLoss", (), [FLAT, FLAT, Floats(5, 8)], full=True),
    Row("GaussianNLLLoss", (), [FLAT, FLAT, 0.5], since=(2, 6)),
    Row("CTCLoss", (), [Floats(6, 2, 5, log=True), Ints(2, 3, low=1, high=5), Value([6, 5]), Value([3, 2])]),
    Row("CTCLoss", (), [Floats(6, 2, 5, log=True), Ints(2, 3, low=1, high=5), Value([6, 5]), Value([3, 2])], blank=0,
        reduction="sum", zero_infinity=True),
    Row("MarginRankingLoss", (), [FLAT, FLAT, Signs(5, 8, high=2)], margin=0.3),
    Row("HingeEmbeddingLoss", (), [FLAT, Signs(5, 8, high=2)]),
    Row("CosineEmbeddingLoss", (0.1,), [FLAT, FLAT, Signs(5, high=2)]),
    Row("TripletMarginLoss", (2.0,), [FLAT, FLAT, FLAT], swap=True, p=1),
    Row("TripletMarginWithDistanceLoss", (), [FLAT, FLAT, FLAT], margin=2.0, text=False),
    Row("TripletMarginWithDistanceLoss", (), [FLAT, FLAT, FLAT], distance_function=lambda a, b: (a - b).abs().sum(1)),
    Row("MultiMarginLoss", (2, 0.5), [FLAT, Ints(5, high=8)], weight=Floats(8)),
    Row("MultiLabelMarginLoss", (), [FLAT, Value([[3, 1, -1, 0, 0, 0, 0, 0]] * 5)]),
    Row("MultiLabelSoftMarginLoss", (), [FLAT, Floats(5, 8)], weight=Floats(8)),
    Row("SoftMarginLoss", (), [FLAT, Signs(5, 8, high=2)]),
]

# Arguments in order, as inputs.
FUNCTIONS = [
    Row("conv1d", (), [SEQUENCE, (6, 4, 3), (6,)], padding="same"),
    Row("conv2d", (), [IMAGE, (6, 4, 3, 3)], stride=2, padding=(1, 0)),
    Row("conv2d", (), [IMAGE, (6, 2, 3, 3), (6,), 1, 1, 1, 2]),
    Row("conv3d", (), [VOLUME, (2, 4, 2, 2, 2)]),
    Row("conv_transpose1d", (), [SEQUENCE, (4, 3, 3)], stride=2),
    Row("conv_transpose2d", (), [IMAGE, (4, 3, 3, 3), (3,), 2, 1, 1]),
    Row("conv_transpose3d", (), [VOLUME, (4, 1, 2, 2, 2)]),
    Row("max_pool1d", (), [SEQUENCE, 2]),
    Row("max_pool2d", (), [IMAGE, 2]),
    Row("max_pool2d", (), [IMAGE, [3, 2]], stride=1, padding=1, return_indices=True),
    Row("max_pool3d", (), [VOLUME, 2]),
    Row("max_pool2d_with_indices", (), [IMAGE, 2]),
    Row("max_unpool2d", (), [(1, 1, 1, 2), Value([[[[1, 6]]]]), 2]),
    Row("avg_pool1d", (), [SEQUENCE, 3, 2]),
    Row("avg_pool2d", (), [IMAGE, 2, 1, 1], divisor_override=2),
    Row("avg_pool3d", (), [VOLUME, 2]),
    Row("lp_pool1d", (), [SEQUENCE, 2.0, 3]),
    Row("lp_pool2d", (), [IMAGE, 2, 3], stride=1),
    Row("adaptive_avg_pool1d", (), [SEQUENCE, 2]),
    Row("adaptive_avg_pool2d", (), [IMAGE, [None, 3]]),
    Row("adaptive_max_pool2d", (), [IMAGE, 2], return_indices=True),
    Row("adaptive_max_pool3d", (), [VOLUME, [2, 1, 2]]),
    Row("interpolate", (), [IMAGE], scale_factor=2),
    Row("interpolate", (), [IMAGE, [4, 9]], mode="bilinear", align_corners=False, antialias=True),
    Row("interpolate", (), [IMAGE], scale_factor=[1.5, 2.0], mode="bicubic", recompute_scale_factor=True),
    Row("pad", (), [IMAGE, [1, 2]]),
    Row("pad", (), [IMAGE, [1, 2, 0, 1], "constant", 0.5]),
    Row("pad", (), [IMAGE, [1, 2, 0, 1]], mode="reflect"),
    Row("grid_sample", (), [IMAGE, (2, 3, 5, 2)], align_corners=False),
    Row("grid_sample", (), [IMAGE, (2, 3, 5, 2), "nearest", "border", True]),
    Row("affine_grid", (), [(2, 2, 3), [2, 4, 3, 5]], align_corners=False),
    Row("unfold", (), [IMAGE, [2, 3]], dilation=2),
    Row("fold", (), [(2, 16, 9), [6, 6], 2], stride=2),
    Row("embedding", (), [Ints(2, 3, high=6), (6, 4)], padding_idx=1),
    Row("embedding_bag", (), [Ints(6, high=6), (6, 4), Value([0, 3])], mode="sum"),
    Row("batch_norm", (), [IMAGE, Floats(4), Floats(4)], training=False, grad=False),
    Row("layer_norm", (), [FLAT, [8], (8,), (8,)]),
    Row("rms_norm", (), [FLAT, [8]], since=(2, 4)),
    Row("group_norm", (), [IMAGE, 2], eps=1e-3),
    Row("instance_norm", (), [IMAGE]),
    Row("local_response_norm", (), [IMAGE, 3]),
    Row("normalize", (), [FLAT], dim=0),
    Row("scaled_dot_product_attention", (), [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7)], since=(2, 0)),
    Row("scaled_dot_product_attention", (), [(2, 4, 5), (2, 4, 5), (2, 4, 5)], is_causal=True, scale=0.3, since=(2, 1)),
    Row("dropout", (), [FLAT], training=False),
    Row("dropout2d", (), [IMAGE, 0.4, False]),
    Row("alpha_dropout", (), [FLAT, 0.5]),
    Row("feature_alpha_dropout", (), [IMAGE]),
    Row("relu", (), [FLAT]),
    Row("leaky_relu", (), [FLAT, 0.3]),
    Row("hardtanh", (), [FLAT], min_val=-0.5),
    Row("threshold", (), [FLAT, 0.1, 5.0]),
    Row("rrelu", (), [FLAT]),
    Row("softmax", (), [FLAT], dim=1),
    Row("log_softmax", (), [FLAT, 1]),
    Row("cross_entropy", (), [FLAT, Ints(5, high=8)], reduction="sum", label_smoothing=0.2),
    Row("nll_loss", (), [Floats(5, 8, log=True), Ints(5, high=8)], weight=Floats(8)),
    Row("mse_loss", (), [FLAT, FLAT], reduction="none"),
    Row("l1_loss", (), [FLAT, FLAT]),
    Row("smooth_l1_loss", (), [FLAT, FLAT], beta=2.0),
    Row("huber_loss", (), [FLAT, FLAT, "sum", 0.4]),
    Row("binary_cross_entropy", (), [Floats(5, 8), Floats(5, 8)]),
    Row("binary_cross_entropy_with_logits", (), [FLAT, Floats(5, 8)], pos_weight=Floats(8)),
    Row("kl_div", (), [Floats(5, 8, log=True), Floats(5, 8)], reduction="batchmean"),
    Row("poisson_nll_loss", (), [FLAT, Floats(5, 8)], log_input=True),
    Row("gaussian_nll_loss", (), [FLAT, FLAT, Floats(5, 8)], reduction="sum"),
    Row("ctc_loss", (), [Floats(6, 2, 5, log=True), Ints(2, 3, low=1, high=5), Value([6, 5]), Value([3, 2])]),
    Row("margin_ranking_loss", (), [FLAT, FLAT, Signs(5, 8, high=2), 0.2]),
    Row("hinge_embedding_loss", (), [FLAT, Signs(5, 8, high=2)], margin=0.8),
    Row("cosine_embedding_loss", (), [FLAT, FLAT, Signs(5, high=2)]),
    Row("triplet_margin_loss", (), [FLAT, FLAT, FLAT, 1.5, 2]),
    Row("multi_margin_loss", (), [FLAT, Ints(5, high=8)], p=2),
    Row("multilabel_margin_loss", (), [FLAT, Value([[3, 1, -1, 0, 0, 0, 0, 0]] * 5)]),
    Row("multilabel_soft_margin_loss", (), [FLAT, Floats(5, 8)]),
    Row("soft_margin_loss", (), [FLAT, Signs(5, 8, high=2)], reduction="sum"),
    Row("pairwise_distance", (), [FLAT, FLAT], p=1.0),
    Row("one_hot", (), [Ints(4, high=5), 6], grad=False),
]

# Arguments of PyTorch's that are left out: deprecated ones, and what is not there.
LEFT_OUT = {"size_average", "reduce", "min_value", "max_value"}
LEFT_OUT_OF = {"AdaptiveMaxPool1d": {"return_indices"}, "AdaptiveMaxPool2d": {"return_indices"},
               "AdaptiveMaxPool3d": {"return_indices"}}
# Arguments that are no attributes of Tern's layers, or others.
NOT_ATTRIBUTES = {"device", "dtype", "return_indices", "_weight", "_freeze", "sparse", "activation", "process_group", "dim_feedforward",
                  "layer_norm_eps", "custom_encoder", "custom_decoder", "num_encoder_layers", "num_decoder_layers", "nhead", "bias",
                  "kernel_size", "stride", "padding", "dilation", "dropout", "norm_type", "recompute_scale_factor", "distance_function"}


class BesidePyTorch(unittest.TestCase):
    def check_each(self, check, rows):
        for number, row in enumerate(rows):
            if VERSION >= row.since:
                torch.manual_seed(number)
                with self.subTest(f"{row.name}{row.args} {row.kwargs}"):
                    check(row)

    def assert_close(self, ours, theirs):
        ours, theirs = tensors(ours), tensors(theirs)
        self.assertEqual(len(ours), len(theirs))
        for a, b in zip(ours, theirs):
            self.assertEqual(tuple(a.shape), tuple(b.shape))
            self.assertEqual(str(a.dtype), str(b.dtype))
            a, b = torch.tensor(a.tolist(), dtype=b.dtype), b.detach()
            self.assertTrue(torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True), f"{a}\n{b}")

    def assert_same_calls(self, ours, theirs, inputs, named, with_grad):
        """Results, and gradients of all floating inputs."""
        inputs, named = made(inputs), made_arguments(named)
        our_inputs, our_named = to_tern(inputs), to_tern(named)
        for tensor in tensors(inputs) + tensors(our_inputs):
            if with_grad and is_number(tensor):
                tensor.requires_grad_()
        our_result, their_result = ours(*our_inputs, **our_named), theirs(*inputs, **named)
        self.assert_close(our_result, their_result)
        if not with_grad:
            return
        for result in (our_result, their_result):
            total = sum((tensor * tensor).sum() for tensor in tensors(result) if is_number(tensor))
            if total.requires_grad:
                total.backward()
        for a, b in zip(tensors(our_inputs), tensors(inputs)):
            self.assertEqual(a.grad is None, b.grad is None)
            if b.grad is not None:
                self.assert_close(a.grad, b.grad)

    def assert_same_arguments(self, name):
        theirs = getattr(torch.nn, name)
        given = re.search(r"__init__\(self: [\w.]+,? ?(.*)\) -> None", getattr(tern.nn, name).__init__.__doc__).group(1)
        ours = re.findall(r"(?:^|, )(\w+): ", given)
        theirs = [n for n in inspect.signature(theirs).parameters if n not in LEFT_OUT | LEFT_OUT_OF.get(name, set())]
        if theirs == ["args", "kwargs"] or VERSION < (2, 10):
            return
        self.assertEqual(ours, theirs)

    def assert_same_attributes(self, ours, theirs):
        for name in inspect.signature(type(theirs)).parameters:
            if hasattr(theirs, name) and name not in NOT_ATTRIBUTES | LEFT_OUT:
                self.assertEqual(plain(getattr(ours, name)), plain(getattr(theirs, name)), name)

    def both_layers(self, row):
        named = made_arguments(row.kwargs)
        theirs = getattr(torch.nn, row.name)(*row.args, **named).train(row.train)
        ours = getattr(tern.nn, row.name)(*row.args, **to_tern(named)).train(row.train)
        return ours, theirs

    def check_layer(self, row):
        ours, theirs = self.both_layers(row)
        if row.name.startswith("Lazy"):
            self.assertEqual(str(ours).split("(")[0], str(theirs).split("(")[0])
            inputs = made(row.inputs)
            ours(*to_tern(inputs)), theirs(*inputs)
        state = theirs.state_dict()
        self.assertEqual(list(ours.state_dict()), list(state))
        ours.load_state_dict(to_tern(state))
        if row.text and VERSION >= (2, 10):
            self.assertEqual(str(ours), str(theirs))
        self.assert_same_arguments(row.name)
        self.assert_same_attributes(ours, theirs)
        self.assert_same_calls(ours, theirs, row.inputs, row.call, row.grad)
        for (_, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters()):
            if b.grad is not None:
                self.assert_close(a.grad, b.grad)
        self.assert_close(dict(ours.state_dict()), dict(theirs.state_dict()))

    def check_function(self, row):
        ours, theirs = getattr(tern.nn.functional, row.name), getattr(torch.nn.functional, row.name)
        self.assert_same_calls(ours, theirs, row.inputs, row.kwargs, row.grad)

    def test_layers(self):
        self.check_each(self.check_layer, LAYERS)

    def test_losses(self):
        self.check_each(self.check_layer, LOSSES)

    def test_functions(self):
        self.check_each(self.check_function, FUNCTIONS)

    def test_stacks_of_transformers(self):
        for kind, inputs in (("Encoder", [(3, 2, 8)]), ("Decoder", [(3, 2, 8), (4, 2, 8)])):
            theirs, ours = (
                getattr(side.nn, f"Transformer{kind}")(
                    getattr(side.nn, f"Transformer{kind}Layer")(8, 2, 16, activation=side.nn.functional.gelu), num_layers=2,
                    norm=side.nn.LayerNorm(8)) for side in (torch, tern))
            ours.load_state_dict(to_tern(theirs.state_dict()))
            self.assert_same_calls(ours.eval(), theirs.eval(), inputs, {}, True)
            self.assertEqual(len(ours.layers), len(theirs.layers))
            self.assertEqual([type(layer).__name__ for layer in ours.layers], [type(layer).__name__ for layer in theirs.layers])

    def test_packed_sequences(self):
        theirs, ours = (side.nn.LSTM(4, 3, bidirectional=True) for side in (torch, tern))
        ours.load_state_dict(to_tern(theirs.state_dict()))
        x = torch.randn(5, 3, 4)

        def run(side, utils, layer, batch):
            for lengths in ([3, 5, 2], side.tensor([3, 5, 2])):
                packed = utils.pack_padded_sequence(batch, lengths, enforce_sorted=False)
                output, (h, c) = layer(packed)
                yield [packed.data, packed.batch_sizes, packed.sorted_indices, h, c, *utils.pad_packed_sequence(output, True)]
            some = [batch[:3, 0], batch[:2, 1]]
            yield [utils.pad_sequence(some, padding_value=-1.0), utils.pack_sequence(some).data]

        for a, b in zip(run(tern, tern.nn.utils.rnn, ours, to_tern(x)), run(torch, torch.nn.utils.rnn, theirs, x)):
            self.assert_close(a, b)

    def test_adaptive_softmax(self):
        theirs, ours = (side.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6]) for side in (torch, tern))
        ours.load_state_dict(to_tern(theirs.state_dict()))
        self.assert_same_calls(ours, theirs, [FLAT, Ints(5, high=10)], {}, True)
        x = torch.randn(FLAT)
        self.assert_close(ours.log_prob(to_tern(x)), theirs.log_prob(x))
        self.assertEqual(ours(to_tern(x), tern.zeros(5, dtype=tern.int64)).loss.shape, ())

    def test_unique(self):
        x = torch.tensor([3, 1, 3, 3, 2])
        for named in ({}, {"return_inverse": True}, {"return_counts": True, "return_inverse": True}, {"dim": 0}):
            self.assert_close(tern.unique(to_tern(x), **named), torch.unique(x, **named))
            self.assert_close(tern.unique_consecutive(to_tern(x), **named), torch.unique_consecutive(x, **named))


class Alone(unittest.TestCase):
    def test_arguments_that_must_have_their_default(self):
        with self.assertRaisesRegex(NotImplementedError, "padding_mode"):
            tern.nn.ConvTranspose2d(1, 1, 3, padding_mode="reflect")
        with self.assertRaisesRegex(NotImplementedError, "sparse"):
            tern.nn.Embedding(3, 2, sparse=True)
        with self.assertRaisesRegex(ValueError, "middle"):
            tern.nn.MSELoss(reduction="middle")
        with self.assertRaises(TypeError):
            tern.nn.Linear(3, 4)(None)

    def test_in_place(self):
        functional = tern.nn.functional
        x = tern.tensor([-1.0, 2.0])
        self.assertIs(functional.relu(x, inplace=True), x)
        self.assertIs(functional.leaky_relu_(x), x)
        self.assertEqual(x.tolist(), [0, 2])
        leaf = tern.tensor([1.0, -3.0], requires_grad=True)
        y = leaf * 2
        functional.silu(y, inplace=True).sum().backward()
        other = tern.tensor([1.0, -3.0], requires_grad=True)
        functional.silu(other * 2).sum().backward()
        self.assertEqual(leaf.grad.tolist(), other.grad.tolist())

    def test_fields_keep_their_layers_alive(self):
        linear = tern.nn.TransformerEncoderLayer(8, 2, 16).linear1
        gc.collect()
        self.assertEqual(linear(tern.ones(1, 8)).shape, (1, 16))

    def test_weights_of_recurrent_layers(self):
        lstm = tern.nn.LSTM(4, 3, 2)
        self.assertIsInstance(lstm.weight_ih_l1, tern.nn.Parameter)
        self.assertEqual(lstm.weight_ih_l1.shape, (12, 3))
        lstm.weight_hh_l0 = tern.nn.Parameter(tern.zeros(12, 3))
        self.assertEqual(lstm.weight_hh_l0.sum().item(), 0)
        self.assertEqual([len(weights) for weights in lstm.all_weights], [4, 4])
        with self.assertRaises(AttributeError):
            lstm.weight_ih_l2

    def test_copies(self):
        class Scaled(tern.nn.Linear):
            def forward(self, x):
                return super().forward(x) * self.factor

        layer = Scaled(3, 2)
        layer.factor = 2
        shallow, deep = copy.copy(layer), copy.deepcopy(layer)
        x = tern.ones(1, 3)
        for each in (shallow, deep):
            self.assertIs(type(each), Scaled)
            self.assertEqual(each(x).tolist(), layer(x).tolist())
        with tern.no_grad():
            layer.weight.fill_(0)
        self.assertEqual(shallow.weight.sum().item(), 0)
        self.assertNotEqual(deep.weight.sum().item(), 0)
        self.assertTrue(deep.weight.requires_grad)
        stack = tern.nn.TransformerEncoder(tern.nn.TransformerEncoderLayer(8, 2, 16), 2)
        self.assertEqual(list(copy.deepcopy(stack).state_dict()), list(stack.state_dict()))
        lazy = copy.deepcopy(tern.nn.LazyLinear(3))
        self.assertEqual(lazy(x).shape, (1, 3))

    def test_pretrained_tables(self):
        table = tern.nn.Embedding.from_pretrained(tern.eye(3))
        self.assertFalse(table.weight.requires_grad)
        self.assertEqual(table(tern.tensor([2])).tolist(), [[0, 0, 1]])
        bags = tern.nn.EmbeddingBag.from_pretrained(tern.eye(3), freeze=False, mode="sum")
        self.assertEqual(bags(tern.tensor([[0, 2]])).tolist(), [[1, 0, 1]])

    def test_derivatives(self):
        functional = tern.autograd.functional
        x = tern.tensor([1.0, 2.0])
        self.assertEqual(functional.jacobian(lambda x: x * x, x).tolist(), [[2, 0], [0, 4]])
        self.assertEqual(len(functional.jacobian(lambda a, b: a * b, (x, x))), 2)
        self.assertEqual(functional.hessian(lambda x: (x * x * x).sum(), x).tolist(), [[6, 0], [0, 12]])
        self.assertEqual(functional.vjp(lambda x: x.sum(), x)[1].tolist(), [1, 1])
        with self.assertRaises(ZeroDivisionError):
            functional.jacobian(lambda x: 1 / 0, x)

    def test_print_options(self):
        tern.set_printoptions(precision=2)
        self.assertEqual(str(tern.tensor([1.23456], device="cpu")), "tensor([1.23])")
        tern.set_printoptions(profile="default")
        self.assertEqual(str(tern.tensor([1.23456], device="cpu")), "tensor([1.2346])")


if __name__ == "__main__":
    unittest.main()
