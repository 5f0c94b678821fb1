# Rows of tern/ops/attention.h. Before PyTorch 2.5 there was no attention that gives 0 for rows that see no key: there the row
# is written with softmax.

import math

import torch
from torch.nn import functional as F

from .driver import VERSION, Row
from .inputs import FLOATS, INF, WIDE, make


def by_softmax(q, k, v, mask, causal, scale, gqa):
    if gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = torch.matmul(q, k.transpose(-2, -1)) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    shape = scores.shape
    if causal:
        if mask is not None:
            raise RuntimeError("Explicit attn_mask should not be set when is_causal=True")
        mask = torch.ones(shape[-2:], dtype=torch.bool).tril()
    if mask is None:
        return torch.matmul(F.softmax(scores, -1), v)
    if mask.dtype == torch.bool:
        dead = ~mask.any(-1, keepdim=True)
        scores = scores.masked_fill(~mask & ~dead, -INF)
    elif mask.is_floating_point():
        dead = mask.amax(-1, keepdim=True) == -INF
        scores = scores + mask.masked_fill(dead, 0)
    else:
        raise RuntimeError("Expected attn_mask dtype to be bool or float")
    if scores.shape != shape:
        raise RuntimeError("the mask has more dimensions than the scores")
    return torch.matmul(F.softmax(scores, -1), v).masked_fill(dead, 0)


def attention(q, k, v, mask=None, dropout_p=0.0, causal=False, scale=None, gqa=False):
    if VERSION >= (2, 5):
        return F.scaled_dot_product_attention(q, k, v, mask, dropout_p, causal, scale=scale, enable_gqa=gqa)
    return by_softmax(q, k, v, mask, causal, scale, gqa)


def three(q, k, v, dtype=torch.float32):
    return make(q, dtype, 1), make(k, dtype, 2), make(v, dtype, 3)


def visible(shape):
    """A mask with a row that sees nothing, if it has rows."""
    mask = make(shape, torch.bool, 4).clone()
    mask[..., 0] = True
    if shape[-2] > 1:
        mask[..., 1, :] = False
    return mask


def hiding(shape, dtype):
    mask = make(shape, dtype, 5).clone()
    mask[..., -1] = -INF
    if shape[-2] > 1:
        mask[..., 1, :] = -INF
    return mask


def attentions():
    for dtype in FLOATS:
        heads = three((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7), dtype)
        yield heads
        yield three((4, 5), (6, 5), (6, 7), dtype)
        yield three((3, 4, 5), (3, 6, 5), (3, 6, 7), dtype)
        for shape in ((4, 6), (2, 1, 1, 6), (2, 3, 4, 6), (3, 1, 6)):
            yield *heads, visible(shape)
            yield *heads, hiding(shape, dtype)
        yield *heads, None, 0.0, True
        yield *heads, None, 0.0, False, 0.3
        yield *three((2, 4, 6, 5), (2, 2, 6, 5), (2, 2, 6, 7), dtype), None, 0.0, True, None, True
        yield *three((1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), dtype), None, 0.0, True
    for dtype in WIDE:
        long = three((2, 600, 8), (2, 700, 8), (2, 700, 8), dtype)
        yield long
        yield *long, None, 0.0, True
        yield *long, hiding((600, 700), dtype)
        yield *long, visible((2, 1, 700))
        yield *three((1, 2, 900, 8), (1, 2, 400, 8), (1, 2, 400, 8), dtype), None, 0.0, True
        yield *(x.transpose(1, 2) for x in three((2, 4, 3, 5), (2, 6, 3, 5), (2, 6, 3, 7), dtype)), visible((4, 6))
        yield *three((2, 3, 4, 5), (3, 6, 5), (1, 1, 6, 7), dtype), make((4, 1), dtype)
        yield *three((4, 2, 6, 5), (4, 1, 6, 5), (4, 1, 6, 7), dtype), visible((4, 2, 6, 6)), 0.0, False, None, True
        yield three((0, 4, 5), (0, 6, 5), (0, 6, 7), dtype)
        yield three((2, 0, 5), (2, 6, 5), (2, 6, 7), dtype)
    yield three((2, 4, 5), (2, 6, 4), (2, 6, 7))
    yield three((2, 4, 5), (2, 6, 5), (2, 5, 7))
    yield three((2, 4, 5), (3, 6, 5), (3, 6, 7))
    yield make((4, 5)), make((6, 5), torch.float64), make((6, 7))
    yield make((4, 5)), make((6, 5)), make((6, 7)), make((4, 6), torch.int64)
    yield make((4, 5)), make((6, 5)), make((6, 7)), make((3, 6), torch.bool)
    yield make((4, 5)), make((6, 5)), make((6, 7)), make((4, 6), torch.bool), 0.0, True


ROWS = [
    Row("scaled_dot_product_attention", attention, attentions, scale="tensor", zero_sign=False, tolerance=4, grad_tolerance=8),
]
