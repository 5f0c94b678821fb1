"""Branches that are left out at random: torchvision.ops.stochastic_depth."""

from tern import _C, nn


def stochastic_depth(input, p, mode, training=True):
    """Zeros for the whole batch (`mode` "batch") or for samples ("row") with probability p, and 1 / (1 - p) of the others."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}")
    if mode not in ("batch", "row"):
        raise ValueError(f"mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0.0:
        return input
    kept = _C.empty([input.size(0) if mode == "row" else 1] + [1] * (input.dim() - 1), dtype=input.dtype, device=input.device)
    kept.bernoulli_(1.0 - p)
    return input * (kept / (1.0 - p) if p < 1.0 else kept)


class StochasticDepth(nn.Module):
    """Leaves out the branch that it ends (Huang et al., 2016, "Deep Networks with Stochastic Depth")."""

    def __init__(self, p, mode):
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input):
        return stochastic_depth(input, self.p, self.mode, self.training)

    def extra_repr(self):
        return f"p={self.p}, mode={self.mode}"
