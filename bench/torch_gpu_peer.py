"""The cases of the comparison on a GPU, in PyTorch. The same cases are in gpu_peer.cpp; bench/gpu_compare.py drives both.
Usage: torch_gpu_peer.py [--device cuda:0] [--compiled] [--small]; --compiled: training steps by torch.compile with
mode="reduce-overhead" (CUDA graphs). No input of a case without a training step requires a gradient."""

import argparse
import sys

import torch
from torch import nn
import torch.nn.functional as F

from torch_peer import LeNet, Perceptron, time_step

COLUMNS = 1024
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda:0")
parser.add_argument("--compiled", action="store_true")
parser.add_argument("--small", action="store_true")
options = parser.parse_args()
device = torch.device(options.device)
numel = 1 << 16 if options.small else 256 << 20
numel_copied = 1 << 16 if options.small else 64 << 20  # from the host
remarks = []  # on the case at hand


def wait():
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def large():
    return torch.randn(numel // COLUMNS, COLUMNS, device=device)


def on_large(op):
    x = large()
    return lambda: op(x)


def training_step(make_net, make_optimizer, x, y):
    x, y = x.to(device), y.to(device)

    def stepping(compiled):
        """The step of a new net; `compiled` makes what is to run of the loss and of the optimizer's step."""
        net = make_net().to(device)
        optimizer = make_optimizer(net.parameters())
        loss, update = compiled(lambda a, b: F.cross_entropy(net(a), b), optimizer.step)

        def step():
            if options.compiled:
                torch.compiler.cudagraph_mark_step_begin()
            optimizer.zero_grad()
            loss(x, y).backward()
            update()

        return step

    if not options.compiled:
        return stepping(lambda loss, update: (loss, update))
    for update_mode in ("reduce-overhead", "default"):
        # Without a reset the second net would be taken for the first one with another batch, and compiled for any.
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        step = stepping(lambda loss, update: (torch.compile(loss, mode="reduce-overhead", dynamic=False),
                                              torch.compile(lambda: update(), mode=update_mode, dynamic=False)))
        try:
            for _ in range(12):  # kernels are compiled and graphs recorded in the first steps
                step()
            wait()
            return step
        except Exception:  # gradients that lie in a graph's memory may not suit the graph of the update
            if update_mode == "default":
                raise
            remarks.append("the optimizer's step without CUDA graphs, which failed with them")


def lenet_step(batch):
    batch = 8 if options.small else batch
    return training_step(LeNet, lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), torch.randn(batch, 1, 28, 28),
                         torch.randint(0, 10, (batch,)))


def mlp_step(batch):
    return training_step(Perceptron, lambda p: torch.optim.Adam(p, lr=1e-3), torch.randn(batch, 20), torch.randint(0, 10, (batch,)))


def matmul_of(n, dtype, precision):
    n = n // 32 if options.small else n
    a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
    torch.set_float32_matmul_precision(precision)
    return lambda: a @ b


def bfloat16_step(shapes, forward):
    leaves = [torch.randn(*shape, device=device).bfloat16().requires_grad_() for shape in shapes]
    grad = torch.randn(*shapes[0], device=device).bfloat16()

    def step():
        for each in leaves:
            each.grad = None
        forward(*leaves).backward(grad)

    return step


def linear_step():
    n = 4096 // 32 if options.small else 4096
    return bfloat16_step(((n, n), (n, n), (n,)), F.linear)


def feed_forward_step():
    n = 4096 // 32 if options.small else 4096
    return bfloat16_step(((n, n // 4), (n, n // 4), (n,), (n // 4, n), (n // 4,)),
                         lambda x, v, b, w, c: F.linear(F.gelu(F.linear(x, v, b), approximate="tanh"), w, c))


def products(read_each):
    torch.set_float32_matmul_precision("highest")
    a = torch.randn(100, 100, device=device)

    def each():
        return sum(torch.norm(a @ a).item() for _ in range(1000))

    def kept():
        total = torch.zeros((), device=device)
        for _ in range(1000):
            total += torch.norm(a @ a)
        return total.item()

    return each if read_each else kept


def add_to(y):
    return on_large(lambda x: x + y)


def layer_norm():
    weight, bias = torch.ones(COLUMNS, device=device), torch.zeros(COLUMNS, device=device)
    return on_large(lambda x: F.layer_norm(x, (COLUMNS,), weight, bias))


def gradient_on_large(f, *others):
    wanting = [each.requires_grad_() for each in (large(), *others)]
    y = f(*wanting)
    g = torch.randn_like(y)
    return lambda: torch.autograd.grad(y, wanting, g, retain_graph=True)


def layer_norm_gradient():
    weight, bias = torch.ones(COLUMNS, device=device), torch.zeros(COLUMNS, device=device)
    return gradient_on_large(lambda x, w, b: F.layer_norm(x, (COLUMNS,), w, b), weight, bias)


def pinned_copy():
    x = torch.randn(numel_copied)
    x = x.pin_memory() if device.type == "cuda" else x
    return lambda: x.to(device, non_blocking=True, copy=True)


def device_copy():
    x, y = large(), large()
    return lambda: y.copy_(x)


CASES = {
    "lenet_step_b256": lambda: lenet_step(256),
    "mlp_step_b2": lambda: mlp_step(2),
    "copy": device_copy,
    "relu": lambda: on_large(torch.relu),
    "exp": lambda: on_large(torch.exp),
    "gelu": lambda: on_large(F.gelu),
    "add": lambda: add_to(large()),
    "add_row": lambda: add_to(torch.randn(COLUMNS, device=device)),
    "softmax": lambda: on_large(lambda x: torch.softmax(x, 1)),
    "log_softmax": lambda: on_large(lambda x: torch.log_softmax(x, 1)),
    "layer_norm": layer_norm,
    "sum": lambda: on_large(torch.sum),
    "sum_rows": lambda: on_large(lambda x: torch.sum(x, 1)),
    "sum_columns": lambda: on_large(lambda x: torch.sum(x, 0)),
    "amax_rows": lambda: on_large(lambda x: torch.amax(x, 1)),
    "norm": lambda: on_large(torch.norm),
    "softmax_gradient": lambda: gradient_on_large(lambda x: torch.softmax(x, 1)),
    "layer_norm_gradient": layer_norm_gradient,
    "norm_gradient": lambda: gradient_on_large(torch.norm),
    "linear_bfloat16": linear_step,
    "feed_forward_bfloat16": feed_forward_step,
    "products_each": lambda: products(True),
    "products_kept": lambda: products(False),
    "h2d_pinned": pinned_copy,
    **{f"matmul_{name}_{n}": (lambda n=n, d=dtype, p=precision: matmul_of(n, d, p)) for n in (1024, 2048, 4096, 8192, 16384)
       for name, dtype, precision in (("float32", torch.float32, "highest"), ("tf32", torch.float32, "high"),
                                      ("bfloat16", torch.bfloat16, "highest"))},
}


def remark():
    """Says so where torch.compile has left CUDA graphs out."""
    skips = torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] if options.compiled else 0
    said = [*remarks, *([f"CUDA graphs left out {skips} times"] if skips else [])]
    return f" # {'; '.join(said)}" if said else ""


def main():
    torch.manual_seed(0)
    # As Tern's: float32 is float32 in convolutions too, where PyTorch by itself would take TF32.
    torch.backends.cudnn.allow_tf32 = False
    if device.type == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_gpu_peer: this PyTorch sees no GPU")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU"
    print(f"PyTorch {torch.__version__} on {name}", flush=True)
    current, step = None, None
    for line in sys.stdin:
        name, threads, seconds = line.split()
        try:
            torch.set_num_threads(int(threads))
            if name != current:
                step = None
                if device.type == "cuda":
                    torch.cuda.empty_cache()
                if options.compiled:
                    torch._dynamo.utils.counters.clear()
                remarks.clear()
                current, step = name, CASES[name]()
            print(f"{time_step(step, float(seconds), wait)}{remark()}", flush=True)
        except Exception as error:  # one case must not end the others
            current = None
            print(f"error: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)


if __name__ == "__main__":
    main()
