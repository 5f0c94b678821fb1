"""Schedules of the learning rate, with the classes of torch.optim.lr_scheduler."""

from tern._C import (  # noqa: F401
    ChainedScheduler, ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, ExponentialLR,
    LRScheduler, LambdaLR, LinearLR, MultiStepLR, MultiplicativeLR, OneCycleLR, PolynomialLR,
    ReduceLROnPlateau, SequentialLR, StepLR)

_LRScheduler = LRScheduler  # its name before PyTorch 2
_init = LRScheduler.__init__


def _init_and_begin(self, optimizer, last_epoch=-1):
    """For classes derived in Python, whose method get_lr() gives a learning rate for each parameter group."""
    _init(self, optimizer, last_epoch)
    self._begin()


LRScheduler.__init__ = _init_and_begin
