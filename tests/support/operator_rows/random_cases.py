# Arguments of operators drawn at random: sizes around those at which kernels take other ways (registers, blocks, caches), in any
# layout. `draw(seed, count, largest, families)` gives rows; the function in PyTorch and the tolerances are those of the operator table.

import dataclasses
import math
import random

import torch

from . import driver, index, inputs, loss as losses, network, pointwise, reduce, shape

TABLE = {row.name: row for family in (network, losses, reduce, index, shape, pointwise) for row in family.ROWS}
DTYPES = (*[torch.float32] * 6, torch.float64, torch.bfloat16, torch.float16)


class Draw:
    """Random sizes and tensors. Cases have at most `largest` multiplications, and tensors a few times a fiftieth of that in elements."""

    def __init__(self, seed, largest):
        self.random, self.largest, self.elements = random.Random(seed), largest, largest // 50
        self.generator = torch.Generator()

    def chance(self, probability):
        return self.random.random() < probability

    def one_of(self, *choices):
        return self.random.choice(choices)

    def up_to(self, most):
        return self.random.randint(1, most)

    def dtype(self):
        return self.random.choice(DTYPES)

    def seeded(self):
        return self.generator.manual_seed(self.random.randrange(1 << 40))

    def size(self, most):
        """1, small, next to a multiple of what registers and blocks hold, or any."""
        near = self.one_of(8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024) + self.random.randint(-2, 2)
        small, middle, large = self.up_to(min(most, 20)), min(most, near), self.up_to(most)
        return self.one_of(1, *[small] * 5, *[middle] * 2, *[large] * 2)

    def sizes(self, *most):
        while True:
            sizes = [self.size(m) for m in most]
            if math.prod(sizes) <= self.elements:
                return sizes

    def any_sizes(self, least=1):
        dims = self.random.randint(least, 4)
        return self.sizes(*[2000 if dims < 3 else 200] * dims)

    def dense(self, sizes, dtype, low=-2.0, high=2.0):
        values = torch.rand(sizes, generator=self.seeded(), dtype=torch.float64) * (high - low) + low
        return (values if dtype.is_floating_point else values.round()).to(dtype)

    def tensor(self, sizes, dtype, low=-2.0, high=2.0):
        """Mostly dense; else turned, a part of a larger one, every other element, or one element again and again."""
        layout = self.one_of(*["dense"] * 14, *["turned"] * 2, *["part"] * 2, "apart", "expanded") if sizes else "dense"
        dim = self.random.randrange(len(sizes)) if sizes else 0
        if layout == "turned":
            order = self.random.sample(range(len(sizes)), len(sizes))
            return self.dense([sizes[i] for i in order], dtype, low, high).permute([order.index(i) for i in range(len(sizes))])
        wide = list(sizes)
        if layout == "part":
            wide[dim] += self.up_to(5)
            return self.dense(wide, dtype, low, high).narrow(dim, self.random.randint(0, wide[dim] - sizes[dim]), sizes[dim])
        if layout == "apart":
            wide[dim] *= 2
            return self.dense(wide, dtype, low, high).unflatten(dim, (sizes[dim], 2)).select(dim + 1, self.random.randint(0, 1))
        if layout == "expanded":
            wide[dim] = 1
            return self.dense(wide, dtype, low, high).expand(sizes)
        return self.dense(wide, dtype, low, high)

    def maybe(self, probability, *arguments):
        return self.dense(*arguments) if self.chance(probability) else None

    def distinct(self, sizes):
        return inputs.distinct(sizes, seed=self.random.randrange(1 << 40))

    def indices(self, sizes, bound):
        return inputs.integers(sizes, 0, bound, seed=self.random.randrange(1 << 40))


# Each function below gives the name and the arguments of one case, or None where the drawn sizes do not fit.

def convolution(d):
    dtype, groups = d.dtype(), d.one_of(1, 1, 1, 1, 2, 4, "all")
    n, c, o, h, w = d.size(40), d.size(300), d.size(300), d.size(60), d.size(60)
    if groups == "all":
        groups, o = c, c * d.one_of(1, 1, 1, 2)
    elif groups > 1:
        c, o = groups * d.size(40), groups * d.size(40)
    kh = d.one_of(1, 1, 2, 3, 3, 3, 5, 7)
    kw = kh if d.chance(0.7) else d.one_of(1, 2, 3, 5)
    stride, dilation = [d.one_of(1, 1, 1, 2, 2, 3)] * 2, [d.one_of(1, 1, 1, 1, 2, 3)] * 2
    padding = [kh // 2, kw // 2] if d.chance(0.5) else [d.random.randint(0, kh // 2 + 1), d.random.randint(0, kw // 2 + 1)]
    out = [(size + 2 * p - dilation[0] * (k - 1) - 1) // stride[0] + 1 for size, p, k in zip((h, w), padding, (kh, kw))]
    if min(out) < 1 or n * o * math.prod(out) * (c // groups) * kh * kw > d.largest:
        return None
    if max(n * c * h * w, n * o * math.prod(out)) > 4 * d.elements:
        return None
    rest = (stride, padding, dilation, groups)
    if d.chance(0.25):  # a sum next to zero would decide differently for ReLU, and no way to compute it gives all bits
        x, weight = d.dense([n, c, h, w], torch.float32).round(), d.dense([o, c // groups, kh, kw], torch.float32).round()
        if d.chance(0.6):
            bias = d.dense([o], torch.float32).round() + 0.5
        else:
            x, weight, bias = x.abs() + 1, (weight.abs() + 1) * (1 - 2 * (torch.arange(o) % 2)).view(o, 1, 1, 1), None
        return "conv2d_relu", (x, weight, bias, *rest)
    return "conv2d", (d.tensor([n, c, h, w], dtype), d.dense([o, c // groups, kh, kw], dtype), d.maybe(0.6, [o], dtype), *rest)


def transposed_convolution(d):
    dtype, groups = d.dtype(), d.one_of(1, 1, 1, 2)
    if dtype == torch.bfloat16 and driver.VERSION < (2, 0):  # PyTorch 1.13 does not take it on some processors
        return None
    n, c, o, h, w = d.size(16), groups * d.size(64), d.size(64), d.size(24), d.size(24)
    kernel, stride, dilation = d.up_to(5), d.one_of(1, 2, 2, 3), d.one_of(1, 1, 2)
    padding, more = d.random.randint(0, kernel // 2), d.random.randint(0, stride - 1)
    if min(h, w) * stride - stride - 2 * padding + dilation * (kernel - 1) + more < 0 or n * c * h * w * o * kernel * kernel > d.largest:
        return None
    return "conv_transpose2d", (d.tensor([n, c, h, w], dtype), d.dense([c, o, kernel, kernel], dtype), d.maybe(0.6, [groups * o], dtype),
                                [stride] * 2, [padding] * 2, [more] * 2, groups, [dilation] * 2)


def product(d):
    dtype, batch = d.dtype(), d.size(64)
    m, k, n = d.one_of(d.size(700), d.up_to(9)), d.size(1100), d.one_of(d.size(700), d.size(700), d.up_to(9))
    name = d.one_of("mm", "mm", "linear", "linear", "addmm", "bmm", "matmul", "mv")
    if m * k * n * (batch if name in ("bmm", "matmul") else 1) > d.largest:
        return None
    if name in ("bmm", "matmul"):
        shared = name == "matmul" and d.chance(0.5)
        return name, (d.tensor([batch, m, k], dtype), d.tensor([k, n] if shared else [batch, k, n], dtype))
    if name == "linear":
        return name, (d.tensor([m, k], dtype), d.tensor([n, k], dtype), d.maybe(0.7, [n], dtype))
    if name == "addmm":
        return name, (d.tensor(d.one_of([m, n], [n]), dtype), d.tensor([m, k], dtype), d.tensor([k, n], dtype), *d.one_of((), (0.5, 2.0)))
    return name, (d.tensor([m, k], dtype), d.tensor([k] if name == "mv" else [k, n], dtype))


def weight_and_bias(d, size, dtype):
    """A bias only beside a weight: PyTorch 1.13 has no group norm with a bias alone."""
    weight = d.maybe(0.7, [size], dtype)
    return weight, d.maybe(0.7, [size], dtype) if weight is not None else None


def normalization(d):
    # Of few numbers, or equal ones, a difference next to nothing is divided by another.
    dtype, name = d.dtype(), d.one_of("layer_norm", "rms_norm", "group_norm", "batch_norm")
    if name in ("layer_norm", "rms_norm"):
        rows, size = d.sizes(3000, 1500)
        if size < 8:
            return None
        weight, bias = weight_and_bias(d, size, dtype)
        return name, (d.dense([rows, size], dtype), [size], weight, *([bias] if name == "layer_norm" else []))
    if name == "group_norm":
        groups = d.one_of(1, 2, 3, 4, 8)
        sizes = [d.size(20), groups * d.size(40), d.size(40), d.size(40)]
        if math.prod(sizes) > d.elements or math.prod(sizes[1:]) < 8 * groups:
            return None
        return name, (d.dense(sizes, dtype), groups, *weight_and_bias(d, sizes[1], dtype))
    sizes = d.one_of(d.sizes(40, 300, 40, 40), d.sizes(400, 600))
    if sizes[0] * math.prod(sizes[2:]) < 8:
        return None
    running = (d.dense([sizes[1]], dtype), d.dense([sizes[1]], dtype, 0.5, 2.0)) if d.chance(0.7) else (None, None)
    training = running[0] is None or d.chance(0.7)
    return name, (d.dense(sizes, dtype), *running, *weight_and_bias(d, sizes[1], dtype), training)


def reduction(d):
    name = d.one_of("sum", "mean", "amax", "amin", "logsumexp", "var", "std", "var_mean", "norm", "prod", "any", "count_nonzero", "softmax",
                    "log_softmax", "cumsum", "cumprod", "argmax", "argmin", "max", "min", "median", "sort", "topk")
    dtype, sizes = d.dtype(), d.any_sizes()
    dim, keepdim = d.random.randrange(len(sizes)), d.chance(0.5)
    if name in ("argmax", "argmin", "max", "min", "median", "sort", "topk"):
        x = d.distinct(sizes)
        if name == "topk":
            return name, (x, d.random.randint(0, sizes[dim]), dim, d.chance(0.5), True)
        return name, (x, dim, keepdim)  # of sort: descending
    x = d.tensor(sizes, dtype, *((0.8, 1.2) if name in ("prod", "cumprod") else ()))
    dims = d.random.sample(range(len(sizes)), d.up_to(len(sizes)))
    if name in ("var", "std", "var_mean"):
        if math.prod(sizes[i] for i in dims) < 8:
            return None
        return name, (d.dense(sizes, dtype), dims, d.random.randint(0, 1), keepdim)
    if name == "norm":
        return name, (x, d.one_of(2.0, 2.0, 1.0, 3.0, math.inf, 0.0), dims, keepdim)
    if name == "prod":
        return name, (x, dim, keepdim)
    if name == "count_nonzero":
        return name, (x, dims)
    return name, (x, dim) if name in ("softmax", "log_softmax", "cumsum", "cumprod") else (x, dims, keepdim)


def indexing(d):
    name = d.one_of("gather", "scatter_add", "take_along_dim", "index_select", "index_add", "index_copy", "index", "index_put", "embedding",
                    "masked_select", "masked_fill", "where", "nonzero")
    dtype = d.one_of(*DTYPES, torch.int64, torch.int32, torch.uint8)
    sizes = d.any_sizes()
    dim, x = d.random.randrange(len(sizes)), d.tensor(sizes, dtype, 0.0, 50.0)
    part = list(sizes)
    if name in ("gather", "scatter_add", "take_along_dim"):
        if name != "take_along_dim" and d.chance(0.5):
            part = [d.up_to(size) for size in sizes]
        if name != "scatter_add":
            part[dim] = d.size(100)
        if math.prod(part) > d.elements:
            return None
        indices = d.indices(part, sizes[dim])
        if name == "take_along_dim":
            return name, (x, indices, dim)
        return name, (x, dim, indices, *([d.tensor(part, dtype, 0.0, 5.0)] if name == "scatter_add" else []))
    if name in ("index_select", "index_add", "index_copy"):
        part[dim] = d.up_to(sizes[dim]) if name == "index_copy" else d.size(100)
        if math.prod(part) > d.elements:
            return None
        indices = torch.randperm(sizes[dim], generator=d.seeded())[:part[dim]] if name == "index_copy" else d.indices([part[dim]], sizes[dim])
        return name, (x, dim, indices, *([] if name == "index_select" else [d.tensor(part, dtype, 0.0, 5.0)]))
    if name in ("index", "index_put"):
        shape_of = d.one_of([d.size(50)], [d.size(10), d.size(10)])
        count = d.up_to(len(sizes))
        if math.prod(shape_of) * math.prod(sizes[count:]) > d.elements:
            return None
        indices = [d.indices(shape_of, sizes[i]) for i in range(count)]
        return name, (x, indices) if name == "index" else (x, indices, d.dense([*shape_of, *sizes[count:]], dtype, 0.0, 5.0), True)
    if name == "embedding":
        rows, size = d.sizes(500, 200)
        return name, (d.indices([d.size(60), d.size(20)], rows), d.tensor([rows, size], d.dtype()), *d.one_of((), (rows - 1,)))
    mask = d.dense(sizes, torch.float32) > d.one_of(-1, 0, 1, 1.9)
    # PyTorch 1.13 puts the gradient of a turned tensor into another order.
    return {"masked_select": (name, (x if driver.VERSION >= (2, 0) else x.contiguous(), mask)),
            "masked_fill": (name, (x, mask, 3)), "nonzero": (name, (x,)), "where": (name, (mask, x, d.tensor(sizes, dtype, 0.0, 5.0)))}[name]


def moving(d):
    name = d.one_of("cat", "cat", "stack", "roll", "flip", "repeat", "repeat_interleave", "contiguous")
    dtype, sizes = d.one_of(*DTYPES, torch.int64, torch.uint8), d.any_sizes()
    dim = d.random.randrange(len(sizes))
    if name in ("cat", "stack"):
        parts = [[*sizes[:dim], d.size(60) if name == "cat" else sizes[dim], *sizes[dim + 1:]] for _ in range(d.up_to(6))]
        return (name, ([d.tensor(part, dtype, 0.0, 50.0) for part in parts], dim)) if sum(map(math.prod, parts)) <= 2 * d.elements else None
    x = d.tensor(sizes, dtype, 0.0, 50.0)
    if name == "repeat":
        times = [d.up_to(3) for _ in sizes]
        return (name, (x, times)) if math.prod(times) * math.prod(sizes) <= 2 * d.elements else None
    return {"roll": (name, (x, [d.random.randint(-30, 30)], [dim])), "flip": (name, (x, d.random.sample(range(len(sizes)), d.up_to(len(sizes))))),
            "repeat_interleave": (name, (x, d.up_to(4), dim)), "contiguous": (name, (x,))}[name]


def pooling(d):
    name, sizes = d.one_of("max_pool2d", "max_pool2d_with_indices", "avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d"), d.sizes(20, 64, 64, 64)
    x = d.distinct(sizes) if "max" in name else d.tensor(sizes, d.dtype())
    if name.startswith("adaptive"):
        return name, (x, [d.up_to(9), d.up_to(9)] if d.chance(0.8) else [1, 1])
    kernel = [d.up_to(min(5, sizes[2])), d.up_to(min(5, sizes[3]))]
    given = (x, kernel, d.one_of(None, [1, 1], [2, 2], [d.up_to(3), d.up_to(3)]), [d.random.randint(0, k // 2) for k in kernel])
    return name, (*given, d.chance(0.3), d.chance(0.5)) if name == "avg_pool2d" else (*given, d.one_of(1, [1, 1]), d.chance(0.3))


def elementwise(d):
    dtype, sizes = d.dtype(), d.any_sizes(least=0)
    if d.chance(0.4):
        def operand(*limits):
            part = [1 if d.chance(0.3) else size for size in sizes]
            return d.tensor(part[d.random.randint(0, len(part)):] if d.chance(0.3) else part, dtype, *limits)
        return d.one_of("add", "sub", "mul", "div", "maximum", "minimum", "atan2"), (operand(), operand(0.5, 3.0))
    name = d.one_of("exp", "expm1", "log", "log1p", "sigmoid", "tanh", "gelu", "silu", "relu", "abs", "sqrt", "rsqrt", "square", "erf", "sin", "cos",
                    "softplus", "elu", "leaky_relu", "mish", "hardswish", "hardsigmoid", "selu", "softsign", "pow", "clamp")
    if name == "clamp" and dtype in (torch.bfloat16, torch.float16) and driver.VERSION < (2, 15):  # the gradient at a bound was 1 before
        return None
    x = d.tensor(sizes, dtype, 0.1 if name in ("log", "log1p", "sqrt", "rsqrt", "pow") else -5.0, 5.0)
    more = {"pow": (d.one_of(2, 0.5, 3.0, -1.5),), "clamp": (-1.0, 2.0), "gelu": (d.one_of("none", "tanh"),)}
    return name, (x, *more.get(name, ()))


def loss(d):
    dtype, (n, classes), how = d.dtype(), d.sizes(1000, 1500), d.one_of("mean", "sum", "none")
    name = d.one_of("cross_entropy", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
                    "binary_cross_entropy_with_logits")
    x = d.tensor([n, classes], dtype)
    if name in ("cross_entropy", "nll_loss"):
        target = d.indices([n], classes)
        target[1:2] = -100
        given = (x, target, d.maybe(0.4, [classes], dtype, 0.5, 2.0), -100, how)
        return name, (*given, d.one_of(0.0, 0.1)) if name == "cross_entropy" else given
    if name == "binary_cross_entropy_with_logits":
        return name, (x, d.tensor([n, classes], dtype, 0.0, 1.0), None, None, how)
    return name, (x, d.tensor([n, classes], dtype), how)


FAMILIES = {"convolution": convolution, "transposed": transposed_convolution, "product": product, "normalization": normalization,
            "reduction": reduction, "index": indexing, "moving": moving, "pooling": pooling, "elementwise": elementwise, "loss": loss}


def draw(seed, count, largest, families):
    """Rows with `count` cases in all, the same for the same arguments."""
    d, cases = Draw(seed, largest), {}
    while count:
        drawn = FAMILIES[d.random.choice(families)](d)
        if drawn:
            cases.setdefault(drawn[0], []).append(drawn[1])
            count -= 1
    return [dataclasses.replace(TABLE[name], cases=lambda those=those: those) for name, those in cases.items()]
