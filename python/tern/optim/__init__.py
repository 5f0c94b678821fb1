"""Optimizers, with the classes of torch.optim."""

from tern._C import (  # noqa: F401
    ASGD, Adadelta, Adagrad, Adam, AdamW, Adamax, LBFGS, Muon, NAdam, Optimizer, RAdam, RMSprop, Rprop, SGD)
from tern.optim import lr_scheduler, optimizer, swa_utils  # noqa: F401
