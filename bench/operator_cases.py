"""The cases of operators.py: (group, operator of tests/support/operator_rows, arguments), where numbers are seldom round."""

import torch

MILLION = 1000000


def cases(scale=1):
    """One list for each group. Made anew for each process, from one seed. What is large has `scale` times as many elements, but for the
    operands of matrix products."""
    torch.manual_seed(0)
    f = torch.randn
    many, lines = MILLION * scale, 1000 * scale
    x, y = f(many), f(many)
    positive, mask = x.abs() + 0.1, f(many) > 0
    whole = torch.randint(-100, 100, (many,))
    m, other = f(lines, 1000), f(lines, 1000)
    square, second = f(1000, 1000), f(1000, 1000)
    groups = {}

    def add(group, op, *arguments):
        groups.setdefault(group, []).append((op, arguments))

    for op in ("neg", "abs", "exp", "expm1", "sin", "tanh", "sigmoid", "relu", "gelu", "silu", "erf", "round", "square", "reciprocal",
               "softplus", "elu", "leaky_relu", "logsigmoid", "relu6", "hardswish", "hardsigmoid", "mish", "selu", "softsign", "glu", "isnan",
               "erfc", "exp2", "atan", "sinh", "asinh", "sinc", "nan_to_num"):
        add("one operand", op, x)
    for op in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt"):
        add("one operand", op, positive)
    for op in ("asin", "acos", "atanh", "logit"):
        add("one operand", op, torch.rand(many))
    add("one operand", "clamp", x, -1.0, 1.0)
    for exponent in (2, 3, 0.5, 2.7):
        add("one operand", "pow", positive, exponent)
    for op in ("add", "mul", "div", "maximum", "atan2", "fmod", "remainder", "floor_divide", "lt", "logical_and"):
        add("two operands", op, x, y)
    for op in ("logaddexp", "hypot", "copysign"):
        add("two operands", op, x, y)
    add("two operands", "xlogy", x, positive)
    add("two operands", "lerp", x, y, 0.3)
    for op in ("lerp", "addcmul", "addcdiv"):
        add("three operands", op, x, y, positive)
    add("two operands", "pow", positive, y)
    add("two operands", "where", mask, x, y)
    add("two operands", "masked_fill", x, mask, 0.0)
    for a, b in ((m, f(1000)), (m, f(lines, 1)), (m, f(1000, lines).t()), (x, 2.0)):
        add("two operands", "add", a, b)
    for op in ("add", "mul", "floor_divide", "eq", "bitwise_and"):
        add("two operands", op, whole, whole.abs() + 1)
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        x_there, y_there, m_there = x.to(dtype), y.to(dtype), m.to(dtype)
        for op in ("exp", "tanh", "gelu"):
            add("other dtypes", op, x_there)
        for op in ("add", "mul", "div"):
            add("other dtypes", op, x_there, y_there)
        add("other dtypes", "sum", x_there)
        add("other dtypes", "softmax", m_there, 1)
        add("other dtypes", "matmul", *(each.to(dtype)[:512, :512].contiguous() for each in (square, second)))

    wide = positive.double()
    for op in ("sin", "log1p", "expm1", "log2", "softplus"):
        add("other dtypes", op, wide)
    for values in (mask, whole.to(torch.uint8), whole.short()):
        add("other dtypes", "sum", values)
    add("other dtypes", "bitwise_not", mask)
    add("other dtypes", "one_hot", torch.randint(0, 10, (100 * lines,)), 10)

    for op in ("sum", "mean", "var", "norm", "amax", "max", "argmax", "all"):
        add("reductions", op, x)
    for dims in ([0], [1]):
        for op in ("sum", "var", "amax", "logsumexp"):
            add("reductions", op, m, dims)
    for dim in (0, 1):
        for op in ("argmax", "softmax", "log_softmax", "cumsum"):
            add("reductions", op, m, dim)
    cube = f(100 * scale, 100, 100)
    for op in ("sum", "amax"):
        add("reductions", op, cube, [2])
    for op in ("prod", "softmax", "log_softmax", "cumprod"):
        add("reductions", op, cube, 2)
    for n in (2, 3, 8, 16, 32):
        rows = many // n
        short = f(rows, n)
        for b in (f(n), f(rows, 1), f(n, rows).t()):
            add("short rows", "add", short, b)
        add("short rows", "add", f(rows, 2 * n)[:, :n], short)
        for op in ("sum", "amax"):
            add("short rows", op, short, [1])
        for op in ("argmax", "softmax", "cumsum"):
            add("short rows", op, short, 1)
        add("short rows", "index_select", short, 0, torch.randint(0, rows, (rows,)))
        add("short rows", "contiguous", f(n, rows).t())
        add("short rows", "cat", [short, short], 1)
        add("short rows", "cross_entropy", short, torch.randint(0, n, (rows,)))

    add("moving", "contiguous", m.t())
    add("moving", "contiguous", f(64 * scale, 3, 64, 64).permute(0, 2, 3, 1))
    add("moving", "contiguous", f(64 * scale, 64, 64, 3).permute(0, 3, 1, 2))
    add("moving", "contiguous", f(32 * scale, 64, 8, 32).transpose(1, 2))
    add("moving", "cat", [m, other], 1)
    add("moving", "stack", [x, y], 1)
    add("moving", "flip", m, [1])
    add("moving", "repeat_interleave", x, 2)
    add("moving", "index_select", x, 0, torch.randperm(many))
    for dim in (0, 1):
        add("moving", "gather", m, dim, torch.randint(0, 1000, (lines, 1000)))
        add("moving", "scatter_add", m, dim, torch.randint(0, 1000, (lines, 1000)), other)
    add("moving", "masked_select", x, mask)
    add("moving", "nonzero", mask)
    add("moving", "embedding", torch.randint(0, 1000, (lines,)), square)
    for values in (x, whole, m):
        add("moving", "sort", values)
    add("moving", "topk", m, 5, 1)
    for dim in (0, 1):
        for op in ("cummax", "logcumsumexp"):
            add("order", op, m, dim)
    places = torch.randint(0, 1000, (lines, 1000))
    add("order", "scatter_reduce", m, 1, places, other, "amax")
    add("order", "scatter_reduce", m, 0, places.clamp(max=lines - 1), other, "amax", False)
    for values in (x, torch.randint(0, 1000, (many,))):
        add("order", "unique", values, False, False)
        add("order", "unique", values, True, True)
        add("order", "isin", values, values[:1000])
    add("order", "bincount", torch.randint(0, 1000, (many,)))
    add("order", "bincount", torch.randint(0, 1000, (many,)), x)
    add("order", "histc", x, 100, -2.0, 2.0)
    add("order", "quantile", x, 0.3)
    add("order", "quantile", m, 0.3, 1)
    add("order", "kthvalue", m, 500, 1)
    add("order", "nansum", x)
    for p in (2.0, 1.0, 3.0):
        add("order", "cdist", f(lines, 64), f(1000, 64), p)
    add("order", "kron", f(30, 30), f(lines // 30, 30))
    add("order", "diff", m)
    for op, arguments in (("rand", ([many],)), ("randn", ([many],)), ("randint", (0, 100, [many])), ("randperm", (many,))):
        add("moving", op, *arguments)

    for a, b in ((square, second), (square.t(), second), (square, second.t()), (f(1, 1024), f(1024, 1024)), (f(1024, 1), f(1, 1024)), (f(8, 1024), f(1024, 4096)),
                 (square, f(1000)), (f(8, 4, 128, 64), f(8, 4, 64, 128))):
        add("products", "matmul", a, b)
    add("products", "bmm", f(512, 16, 16), f(512, 16, 16))
    add("products", "linear", f(64, 784), f(256, 784), f(256))
    add("products", "linear", f(1, 512), f(512, 512), f(512))
    for heads in ((8, 8, 128, 64), (1, 8, 1024, 64)):
        add("products", "scaled_dot_product_attention", f(*heads), f(*heads), f(*heads))
        add("products", "scaled_dot_product_attention", f(*heads), f(*heads), f(*heads), None, 0.0, True)

    # Images, channels in and out, kernel, stride, padding, groups.
    for n, size, inputs, outputs, kernel, stride, padding, shared in (
            (8, 56, 64, 64, 3, 1, 1, 1), (8, 28, 128, 128, 3, 1, 1, 1), (8, 14, 256, 256, 3, 1, 1, 1), (8, 7, 512, 512, 3, 1, 1, 1),
            (8, 56, 64, 128, 3, 2, 1, 1), (8, 56, 64, 256, 1, 1, 0, 1), (8, 56, 256, 64, 1, 1, 0, 1), (4, 224, 3, 64, 7, 2, 3, 1),
            (8, 56, 96, 96, 3, 1, 1, 96), (8, 56, 96, 96, 5, 2, 2, 96), (64, 28, 1, 6, 5, 1, 2, 1), (32, 32, 3, 16, 3, 1, 1, 1),
            (16, 28, 64, 128, 3, 1, 1, 4)):
        add("convolutions", "conv2d", f(n * scale, inputs, size, size), f(outputs, inputs // shared, kernel, kernel), f(outputs), stride, padding, 1, shared)
    add("convolutions", "conv1d", f(16 * scale, 64, 256), f(128, 64, 3), f(128), 1, 1, 1, 1)
    add("convolutions", "conv_transpose1d", f(16 * scale, 64, 128), f(64, 32, 4), f(32), 2, 1, 0, 1, 1)
    add("convolutions", "conv_transpose2d", f(8 * scale, 64, 14, 14), f(64, 32, 4, 4), f(32), 2, 1, 0, 1, 1)
    add("convolutions", "conv3d", f(2 * scale, 16, 16, 28, 28), f(32, 16, 3, 3, 3), f(32), 1, 1, 1, 1)
    add("convolutions", "conv_transpose3d", f(2 * scale, 32, 8, 14, 14), f(32, 16, 2, 2, 2), f(16), 2, 0, 0, 1, 1)
    # bfloat16, as autocast gives it.
    for op, *arguments in (("matmul", f(256, 256), f(256, 256)), ("matmul", f(1024, 1024), f(1024, 1024)), ("matmul", f(1024, 1024), f(1024, 1024).t()),
                           ("matmul", f(8, 4, 128, 64), f(8, 4, 64, 128)), ("linear", f(256, 784), f(128, 784), f(128)),
                           ("linear", f(1, 1024), f(1024, 1024), f(1024)), ("linear", f(16, 1024), f(1024, 1024), f(1024)),
                           ("conv2d", f(8 * scale, 64, 56, 56), f(64, 64, 3, 3), f(64), 1, 1, 1, 1), ("conv2d", f(8 * scale, 256, 14, 14), f(256, 256, 3, 3), f(256), 1, 1, 1, 1),
                           ("conv2d", f(8 * scale, 64, 56, 56), f(128, 64, 3, 3), f(128), 2, 1, 1, 1), ("conv2d", f(8 * scale, 64, 56, 56), f(256, 64, 1, 1), f(256), 1, 0, 1, 1),
                           ("conv2d", f(4 * scale, 3, 224, 224), f(64, 3, 7, 7), f(64), 2, 3, 1, 1), ("conv2d", f(64 * scale, 1, 28, 28), f(6, 1, 5, 5), f(6), 1, 2, 1, 1),
                           ("conv2d", f(64 * scale, 6, 14, 14), f(16, 6, 5, 5), f(16), 1, 0, 1, 1), ("conv2d", f(8 * scale, 96, 56, 56), f(96, 1, 3, 3), f(96), 1, 1, 1, 96)):
        add("bfloat16", op, *(x.bfloat16() if torch.is_tensor(x) else x for x in arguments))
    for heads in ((8, 8, 128, 64), (1, 8, 1024, 64), *([(4, 16, 2048, 64)] if scale > 1 else [])):
        for is_causal in (False, True):
            add("bfloat16", "scaled_dot_product_attention", *(f(*heads).bfloat16() for _ in range(3)), None, 0.0, is_causal)
    z, w = torch.complex(x, y), torch.complex(y, positive)
    table_of_z = z.reshape(lines, 1000)
    for op, *arguments in (("fft.fft", table_of_z), ("fft.fft", table_of_z, None, 0), ("fft.ifft", torch.complex(f(1 << 20), f(1 << 20))), ("fft.fft2", f(16 * scale, 256, 256)),
                           ("fft.rfft", f(4 * lines, 400)), ("fft.irfft", torch.complex(f(4 * lines, 201), f(4 * lines, 201))), ("fft.rfft", f(128 * scale, 8192)),
                           ("fft.rfft2", f(16 * scale, 32, 64, 64)), ("fft.fft", f(128 * scale, 1021)),
                           ("stft", f(16 * scale, 16000), 400, 160, None, torch.hann_window(400)),
                           ("add", z, w), ("mul", z, w), ("mul", z, x), ("div", z, w), ("exp", z), ("tanh", z), ("abs", z), ("angle", z), ("sum", z),
                           ("matmul", torch.complex(square, second)[:512, :512].contiguous(), torch.complex(second, square)[:512, :512].contiguous()),
                           ("bmm", z[:512 * 256].reshape(512, 16, 16), w[:512 * 256].reshape(512, 16, 16))):
        add("complex", op, *arguments)
    images = f(32 * scale, 64, 56, 56)
    add("layers", "max_pool2d", images, 2, 2, 0, 1, False)
    add("layers", "avg_pool2d", images, 2, 2, 0, False, True)
    add("layers", "max_pool2d", images, 3, 2, 1, 1, False)
    add("layers", "avg_pool2d", images, 3, 2, 1, False, True)
    for mode in ("constant", "reflect", "replicate", "circular"):
        add("layers", "pad", images, [1, 1, 1, 1], mode)
        add("layers", "pad", f(32 * scale, 64, 784), [3, 3], mode)
    add("layers", "pixel_shuffle", f(32 * scale, 64, 56, 56), 2)
    add("layers", "pixel_unshuffle", f(32 * scale, 16, 112, 112), 2)
    photo = f(scale, 3, 512, 512)
    for mode in ("nearest", "bilinear", "bicubic"):
        align = None if mode == "nearest" else False
        add("layers", "interpolate", f(8 * scale, 64, 56, 56), None, 2.0, mode, align)
        add("layers", "interpolate", photo, [224, 224], None, mode, align)
        add("layers", "interpolate", photo.contiguous(memory_format=torch.channels_last), [224, 224], None, mode, align)
    add("layers", "interpolate", photo, [224, 224], None, "bilinear", False, False, True)
    add("layers", "interpolate", photo, [224, 224], None, "bicubic", False, False, True)
    # Turned, and a little larger or smaller than the whole.
    for images_there, batch in ((f(8 * scale, 64, 56, 56), 8 * scale), (f(4 * scale, 3, 224, 224), 4 * scale)):
        maps = torch.tensor([[0.9, -0.3, 0.1], [0.3, 0.9, -0.1]]).expand(batch, 2, 3) + 0.1 * f(batch, 2, 3)
        places = torch.nn.functional.affine_grid(maps, list(images_there.shape), align_corners=False)
        for mode in ("bilinear", "nearest", "bicubic"):
            add("layers", "grid_sample", images_there, places, mode)
    add("layers", "unfold_blocks", f(8 * scale, 64, 56, 56), 3, 1, 1)
    add("layers", "fold", f(8 * scale, 576, 3136), [56, 56], 3, 1, 1)
    add("layers", "instance_norm", images, None, None, f(64), f(64))
    add("layers", "normalize", m)
    add("layers", "cosine_similarity", m, other)
    add("layers", "pairwise_distance", m, other)
    volumes = f(4 * scale, 32, 16, 28, 28)
    add("layers", "max_pool3d", volumes, 2, 2, 0, 1, False)
    add("layers", "avg_pool3d", volumes, 2, 2, 0, False, True)
    add("layers", "max_unpool2d", *torch.nn.functional.max_pool2d(images, 2, return_indices=True), 2)
    add("layers", "local_response_norm", images, 5)
    add("layers", "bilinear", f(128, 64), f(128, 64), f(32, 64, 64), f(32))
    table, numbers, bags = f(100000, 64), torch.randint(0, 100000, (16 * lines,)), torch.arange(0, 16 * lines, 16)
    for mode in ("sum", "mean", "max"):
        add("layers", "embedding_bag", numbers, table, bags, mode)
    add("layers", "embedding_bag", numbers.reshape(lines, 16), table, None, "sum")
    for kind, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1)):
        for batch, size in ((32, 128), (1, 256)):
            add("layers", "recurrent_layer", kind, f(64, batch, size), None, None, *(f(gates * size, *more) for more in ((size,), (size,), (), ())))
    add("layers", "max_pool1d", f(32 * scale, 64, 784), 2, 2, 0, 1, False)
    add("layers", "batch_norm", f(7812 * scale, 128), torch.zeros(128), torch.ones(128), f(128), f(128), True, 0.1, 1e-5)
    add("layers", "batch_norm", images, torch.zeros(64), torch.ones(64), f(64), f(64), True, 0.1, 1e-5)
    add("layers", "group_norm", images, 8, f(64), f(64), 1e-5)
    add("layers", "layer_norm", f(2048 * scale, 768), [768], f(768), f(768), 1e-5)
    add("layers", "layer_norm", f(100 * lines, 10), [10], f(10), f(10), 1e-5)
    add("layers", "dropout", x, 0.5, True)
    logits = f(1024 * scale, 1000)
    add("layers", "cross_entropy", logits, torch.randint(0, 1000, (1024 * scale,)))
    add("layers", "nll_loss", logits, torch.randint(0, 1000, (1024 * scale,)))
    add("layers", "mse_loss", x, y)
    add("layers", "binary_cross_entropy_with_logits", x, mask.float())
    add("layers", "triplet_margin_loss", m, other, f(lines, 1000))
    add("layers", "ctc_loss", f(128, 16 * scale, 64).log_softmax(2), torch.randint(1, 64, (16 * scale, 32)), torch.full((16 * scale,), 128),
        torch.full((16 * scale,), 32))
    return groups
