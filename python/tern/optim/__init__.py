"""Optimizers, with the classes of torch.optim."""

import collections.abc

from tern._C import (  # noqa: F401
    ASGD, Adadelta, Adagrad, Adam, AdamW, Adamax, LBFGS, NAdam, Optimizer, RAdam, RMSprop, Rprop, SGD)
from tern.optim import lr_scheduler, swa_utils  # noqa: F401


class ParamGroup(collections.abc.MutableMapping):
    """The options of a group of parameters as a dict; what is assigned holds from the next step on."""

    def __init__(self, optimizer, index):
        self._optimizer = optimizer
        self._index = index

    def _items(self):
        return {"params": self._optimizer._params(self._index), **self._optimizer._options(self._index)}

    def __getitem__(self, name):
        return self._items()[name]

    def __setitem__(self, name, value):
        if name == "params":
            raise TypeError("the parameters of a group stay: make a new optimizer, or add a group")
        self._optimizer._change_options(self._index, {name: value})

    def __delitem__(self, name):
        raise TypeError("the options of a group can be changed, but not taken away")

    def __iter__(self):
        return iter(self._items())

    def __len__(self):
        return len(self._items())

    def __repr__(self):
        return repr(self._items())


def _param_groups(optimizer):
    """A list of groups that are like dicts: `for g in optimizer.param_groups: g['lr'] = 0.01`."""
    return [ParamGroup(optimizer, index) for index in range(optimizer._num_groups)]


def _state(optimizer):
    """What the optimizer keeps of each parameter, as a dict from parameters to dicts."""
    state = optimizer.state_dict()["state"]
    params = (param for group in optimizer.param_groups for param in group["params"])
    return {param: state[number] for number, param in enumerate(params) if number in state}


def _repr(optimizer):
    lines = []
    for index, group in enumerate(optimizer.param_groups):
        lines.append(f"\nParameter Group {index}")
        lines += [f"    {name}: {value or 0 if type(value) is float else value}"
                  for name, value in sorted(group.items()) if name != "params"]
    return f"{type(optimizer).__name__} (" + "\n".join(lines) + "\n)"


Optimizer.param_groups = property(_param_groups)
Optimizer.state = property(_state)
Optimizer.__repr__ = _repr
