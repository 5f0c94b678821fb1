"""The cases of the comparison, in PyTorch from Python. The same cases are in tern_peer.cpp and libtorch_peer.cpp."""

import sys
import time

import torch
from torch import nn
import torch.nn.functional as F


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.output = nn.Linear(20, 256), nn.Linear(256, 10)

    def forward(self, x):
        return self.output(F.relu(self.hidden(x)))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        shortcut = self.downsample(x) if self.downsample else x
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + shortcut)


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64)
        widths = [64, 64, 128, 256, 512]
        self.blocks = nn.Sequential(
            *(block for i in range(4) for block in (BasicBlock(widths[i], widths[i + 1], 2 if i else 1), BasicBlock(widths[i + 1], widths[i + 1], 1)))
        )
        self.fc = nn.Linear(512, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, stride=2, padding=1)
        return self.fc(F.adaptive_avg_pool2d(self.blocks(x), 1).flatten(1))


def training_step(net, optimizer, x, y):
    def step():
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()

    return step


def lenet_step(batch):
    net = LeNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    return training_step(net, optimizer, torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,)))


def resnet18_forward():
    net, x = ResNet18().eval(), torch.randn(1, 3, 224, 224)

    def step():
        with torch.no_grad():
            net(x)

    return step


def resnet18_step(batch):
    net = ResNet18()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    return training_step(net, optimizer, torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,)))


def mlp_adam_step():
    net = Perceptron()
    return training_step(net, torch.optim.Adam(net.parameters()), torch.randn(2, 20), torch.randint(0, 10, (2,)))


def mlp_forward(grad):
    net, x = Perceptron(), torch.randn(2, 20)

    def step():
        with torch.set_grad_enabled(grad):
            net(x)

    return (lambda: net(x)) if grad else step


def small_add():
    a, b = torch.randn(2, 3), torch.randn(2, 3)
    return lambda: torch.add(a, b)


def large(op):
    x = torch.randn(16 << 20)
    return lambda: op(x)


def large_add():
    y = torch.randn(16 << 20)
    return large(lambda x: x + y)


def matmul_of(n):
    a, b = torch.randn(n, n), torch.randn(n, n)
    return lambda: a @ b


def products(norm_each):
    a = torch.randn(100, 100)

    def each():
        return sum(torch.norm(a @ a).item() for _ in range(1000))

    def once():
        total = torch.zeros(())
        for _ in range(1000):
            total += torch.norm(a @ a)
        return total.item()

    return each if norm_each else once


CASES = {
    "add_small": small_add,
    "mlp_forward_b2": lambda: mlp_forward(True),
    "mlp_forward_b2_no_grad": lambda: mlp_forward(False),
    "mlp_adam_step_b2": mlp_adam_step,
    "lenet_step_b1": lambda: lenet_step(1),
    "lenet_step_b32": lambda: lenet_step(32),
    "lenet_step_b256": lambda: lenet_step(256),
    "resnet18_forward_b1": resnet18_forward,
    "resnet18_step_b8": lambda: resnet18_step(8),
    "relu_16m": lambda: large(torch.relu),
    "exp_16m": lambda: large(torch.exp),
    "gelu_16m": lambda: large(F.gelu),
    "add_16m": large_add,
    "softmax_16m": lambda: large(lambda x: torch.softmax(x.view(16384, 1024), 1)),
    "sum_16m": lambda: large(torch.sum),
    "transpose_copy_16m": lambda: large(lambda x: x.view(4096, 4096).t().contiguous()),
    **{f"matmul_{n}": (lambda n=n: matmul_of(n)) for n in (100, 256, 512, 1024, 2048, 4096)},
    "storage_64": lambda: lambda: torch.UntypedStorage(64),
    "storage_1m": lambda: lambda: torch.UntypedStorage(1 << 20),
    "products_1000_norm_each": lambda: products(True),
    "products_1000_norm_once": lambda: products(False),
}


def time_step(step, seconds, wait=lambda: None):
    """Nanoseconds for one iteration; `wait` is called after the last one: where steps are only queued, it waits for them."""

    def run(count):
        start = time.perf_counter()
        for _ in range(count):
            step()
        wait()
        return time.perf_counter() - start

    step()
    wait()
    count, taken = 1, run(1)
    while taken < seconds:
        count = max(count + 1, int(count * min(10.0, 1.2 * seconds / max(taken, 1e-9))))
        taken = run(count)
    return taken / count * 1e9


def main():
    torch.manual_seed(0)
    print(f"PyTorch {torch.__version__}", flush=True)
    current, step = None, None
    for line in sys.stdin:
        name, threads, seconds = line.split()
        torch.set_num_threads(int(threads))
        if (name, threads) != current:
            step = None
            current, step = (name, threads), CASES[name]()
        print(time_step(step, float(seconds)), flush=True)


if __name__ == "__main__":
    main()
