"""Layers and losses of networks that find things in pictures."""

import tern
from tern import nn
from tern.models._misc import MLP, Conv2dNormActivation, Permute, SqueezeExcitation  # noqa: F401


class FrozenBatchNorm2d(nn.Module):
    """Batch normalization by fixed numbers."""

    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, tern.full([num_features], value))

    def _load_from_state_dict(self, state_dict, prefix, *args):
        state_dict.pop(f"{prefix}num_batches_tracked", None)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x):
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def __repr__(self):
        return f"{type(self).__name__}({len(self.weight)}, eps={self.eps})"


def sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2, reduction="none"):
    """Binary cross entropy that counts what is well classified less (Lin et al., 2017, equation 5)."""
    p = tern.sigmoid(inputs)
    entropy = nn.functional.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    loss = entropy * (1 - (p * targets + (1 - p) * (1 - targets))) ** gamma
    if alpha >= 0:
        loss = loss * (alpha * targets + (1 - alpha) * (1 - targets))
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"sigmoid_focal_loss: reduction is none, mean or sum, got {reduction!r}")
    return loss if reduction == "none" else getattr(loss, reduction)()
