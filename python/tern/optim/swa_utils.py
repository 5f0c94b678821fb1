"""Averages of a model's weights, with the names of torch.optim.swa_utils."""

import copy

from tern import _C
from tern._C import SWALR, get_ema_multi_avg_fn, get_swa_multi_avg_fn  # noqa: F401
from tern.autograd import no_grad


def get_ema_avg_fn(decay=0.999):
    return lambda averaged, current, _: decay * averaged + (1 - decay) * current


def get_swa_avg_fn():
    return lambda averaged, current, num_averaged: averaged + (current - averaged) / (num_averaged + 1)


class AveragedModel(_C.Module):
    """A copy of a model whose weights are averages over the model's at several times: equal ones, or what
    `avg_fn` (of two tensors and the number of models so far) or `multi_avg_fn` (of two lists, in place)
    makes of them. Buffers are averaged too with `use_buffers`, else copied."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: only one of avg_fn and multi_avg_fn can be given")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Takes one more model into the average; the first is copied."""
        average = self.multi_avg_fn
        if self.avg_fn is not None:
            average = self._average_each
        _C._update_average(self.module, model, self.n_averaged, average, self.use_buffers)

    def _average_each(self, averaged, current, num_averaged):
        for to, now in zip(averaged, current):
            to.copy_(self.avg_fn(to, now, num_averaged))


def update_bn(loader, model, device=None):
    """Collects the running statistics of the model's batch norm layers anew, in one pass over `loader`:
    tensors, or lists and tuples whose first item is the input."""
    collected = _C._CollectedStatistics(model)  # until it goes
    if collected.empty():
        return
    try:
        with no_grad():
            for batch in loader:
                inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(inputs if device is None else inputs.to(device))
    finally:
        del collected
