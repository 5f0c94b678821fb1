# Rows of tern/ops/recurrent.h.

import torch

from .driver import Row
from .inputs import FLOATS, WIDE, make

GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}


def weights(kind, inputs, hidden, dtype, bias=True):
    rows = GATES[kind] * hidden
    matrices = make((rows, inputs), dtype, 1, -0.6, 0.6), make((rows, hidden), dtype, 2, -0.6, 0.6)
    return *matrices, *((make((rows,), dtype, 3, -0.6, 0.6), make((rows,), dtype, 4, -0.6, 0.6)) if bias else (None, None))


def states(kind, rows, hidden, dtype):
    return make((rows, hidden), dtype, 5, -1, 1), make((rows, hidden), dtype, 6) if kind == "lstm" else None


def layer(kind, x, h, c, w_ih, w_hh, b_ih, b_hh, reverse=False):
    zeros = x.new_zeros(x.shape[1], w_hh.shape[1])
    parameters = [w for w in (w_ih, w_hh, b_ih, b_hh) if w is not None]
    x = x.flip(0) if reverse else x
    h, c = ((zeros if s is None else s).unsqueeze(0) for s in (h, c))
    run = getattr(torch._VF, kind)
    y, *last = run(x, [h, c] if kind == "lstm" else h, parameters, b_ih is not None, 1, 0.0, False, False, False)
    return [y.flip(0) if reverse else y] + [s.squeeze(0) for s in last]


def layers():
    for kind in GATES:
        for dtype in FLOATS:
            x = make((4, 3, 5), dtype)
            yield kind, x, *states(kind, 3, 6, dtype), *weights(kind, 5, 6, dtype)
            yield kind, x, None, None, *weights(kind, 5, 6, dtype), True
        for dtype in WIDE:
            yield kind, x.to(dtype), *states(kind, 3, 6, dtype), *weights(kind, 5, 6, dtype, bias=False), True
            yield kind, make((1, 2, 3), dtype), None, None, *weights(kind, 3, 4, dtype)
            yield kind, make((1, 2, 3), dtype), *states(kind, 2, 4, dtype), *weights(kind, 3, 4, dtype), True
            yield kind, make((3, 4, 5), dtype).transpose(0, 1), *(s if s is None else s.t() for s in states(kind, 6, 3, dtype)), *(
                w if w is None else w.t().contiguous().t() if w.dim() == 2 else w for w in weights(kind, 5, 6, dtype))
            yield kind, make((9, 40, 33), dtype), *states(kind, 40, 70, dtype), *weights(kind, 33, 70, dtype), True
        yield kind, make((3, 0, 5)), None, None, *weights(kind, 5, 6, torch.float32)
        yield kind, make((0, 3, 5)), None, None, *weights(kind, 5, 6, torch.float32)
        if kind != "lstm":  # oneDNN's reads beyond the input
            yield kind, make((4, 3, 4)), None, None, *weights(kind, 5, 6, torch.float32)
        yield kind, make((4, 3, 5), torch.float64), None, None, *weights(kind, 5, 6, torch.float32)


def cell(kind):
    def run(x, h, c, *weights):
        zeros = x.new_zeros(x.shape[0], weights[1].shape[1])
        h, c = (zeros if s is None else s for s in (h, c))
        return torch.lstm_cell(x, (h, c), *weights) if kind == "lstm" else getattr(torch, kind + "_cell")(x, h, *weights)
    return run


def cells(kind):
    def cases():
        for dtype in FLOATS:
            yield make((3, 5), dtype), *states(kind, 3, 6, dtype), *weights(kind, 5, 6, dtype)
            yield make((3, 5), dtype), None, None, *weights(kind, 5, 6, dtype)
        for dtype in WIDE:
            yield make((5, 3), dtype).t(), *states(kind, 3, 6, dtype), *weights(kind, 5, 6, dtype, bias=False)
            yield make((40, 33), dtype), *states(kind, 40, 600, dtype), *weights(kind, 33, 600, dtype)
        yield make((0, 5)), None, None, *weights(kind, 5, 6, torch.float32)
        yield make((3, 4)), None, None, *weights(kind, 5, 6, torch.float32)
        yield make((3, 5)), *states(kind, 2, 6, torch.float32), *weights(kind, 5, 6, torch.float32)
        yield make((3, 5)), *states(kind, 3, 5, torch.float32), *weights(kind, 5, 6, torch.float32)
    return cases


SUMS = {"scale": "tensor", "zero_sign": False, "tolerance": 4, "grad_tolerance": 8}
ROWS = [Row("recurrent_layer", layer, layers, **SUMS)] + [Row(kind + "_cell", cell(kind), cells(kind), **SUMS) for kind in GATES]
