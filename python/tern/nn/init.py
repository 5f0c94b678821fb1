"""Numbers that parameters begin with: each function fills a tensor and returns it."""

import math

from tern import _C
from tern.autograd import no_grad
from tern.nn.old_names import under_old_name

globals().update({name[len("init_"):]: value for name, value in vars(_C).items() if name.startswith("init_")})


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal numbers, of which that share of each column of a matrix is 0 (Martens, 2010)."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows = tensor.size(0)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(tensor.size(1)):
            tensor[_C.randperm(rows)[:math.ceil(sparsity * rows)], column] = 0
    return tensor


def dirac_(tensor, groups=1):
    """Weights of a convolution that gives its input: ones in the middle, zeros elsewhere."""
    if not 3 <= tensor.dim() <= 5:
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups:
        raise ValueError("dim 0 must be divisible by groups")
    middle = [size // 2 for size in tensor.shape[2:]]
    own = tensor.size(0) // groups
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(own, tensor.size(1))):
                tensor[(group * own + channel, channel, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    """The numbers that go into one output of a weight, and those that one input goes into."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor, mode):
    modes = ("fan_in", "fan_out")
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {', '.join(modes)}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


for _name in "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal orthogonal sparse".split():
    if f"{_name}_" in globals():
        globals()[_name] = under_old_name(_name, globals()[f"{_name}_"])
