"""Optimizer: the base of those that are written in Python, and what those of C++ have beside their steps."""

import collections
import collections.abc
import copy

from tern import _C

Optimizer = _C.Optimizer
_init = Optimizer.__init__
required = object()  # as the default of an option that groups must give


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


def _native_groups(optimizer):
    """A list of groups that are like dicts: `for g in optimizer.param_groups: g['lr'] = 0.01`."""
    return [ParamGroup(optimizer, index) for index in range(optimizer._num_groups)]


def _native_state(optimizer):
    """What the optimizer keeps of each parameter, as a dict from parameters to dicts."""
    state = optimizer.state_dict()["state"]
    params = (param for group in optimizer.param_groups for param in group["params"])
    return {param: state[number] for number, param in enumerate(params) if number in state}


_native = {value for value in vars(_C).values() if isinstance(value, type) and issubclass(value, Optimizer)} - {Optimizer}
for _class in _native:
    _class.param_groups, _class.state = property(_native_groups), property(_native_state)


# ---- written in Python

def _begin(self, params, defaults):
    """`params` is an iterable of tensors, of names and tensors, or of dicts with 'params' and options;
    `defaults` the options of groups that do not say otherwise. Derived classes write step()."""
    if isinstance(params, _C.Tensor):
        raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                        "a tensor: put it into a list")
    _init(self, type(self).__name__)
    self.defaults = dict(defaults)
    self.state = collections.defaultdict(dict)
    self.param_groups = []
    groups = list(params)
    if not groups:
        raise ValueError("optimizer got an empty parameter list")
    for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
        self.add_param_group(group)


def _add_param_group(self, param_group):
    """One more group, a dict with 'params' and options."""
    if not isinstance(param_group, dict):
        raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
    group = dict(param_group)
    params = group["params"]
    if isinstance(params, (set, frozenset)):
        raise TypeError("optimizer parameters need to be organized in ordered collections, but the ordering of tensors "
                        "in sets will change between runs. Please use a list instead.")
    params = [params] if isinstance(params, _C.Tensor) else list(params)
    if params and all(isinstance(param, tuple) for param in params):
        group["param_names"] = [name for name, _ in params]
        params = [param for _, param in params]
    for param in params:
        if not isinstance(param, _C.Tensor):
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}")
    group["params"] = params
    for name, default in self.defaults.items():
        if default is required and name not in group:
            raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        group.setdefault(name, default)
    self._add(params)  # checks them
    self.param_groups.append(group)


def _zero_grad(self, set_to_none=True):
    """Takes the gradients away, or fills them with zeros."""
    for group in self.param_groups:
        for param in group["params"]:
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                param.grad = _C.zeros_like(param.grad)


def _step(self, closure=None):
    """Written anew by each class."""
    raise NotImplementedError(f"{type(self).__name__}: a class derived from Optimizer has a method step()")


def _state_dict(self):
    """{'state': ..., 'param_groups': ...}, with the parameters' numbers in their places."""
    numbers = {}
    for group in self.param_groups:
        for param in group["params"]:
            numbers.setdefault(param, len(numbers))
    groups = [{**{name: value for name, value in group.items() if name != "params"},
               "params": [numbers[param] for param in group["params"]]} for group in self.param_groups]
    state = {"state": {numbers.get(key, key): value for key, value in self.state.items()}, "param_groups": groups}
    if any(map(_C._is_divided, numbers)):
        from tern.distributed import _pieces
        _pieces.mark_state(self, state)
    return state


def _as_param(value, param, name=None):
    """Saved values of a parameter, on its device and of its dtype; the counter 'step' stays what it is."""
    if isinstance(value, _C.Tensor):
        if name == "step":
            return value.clone()
        return value.to(param.device, param.dtype, copy=True) if param.is_floating_point() else value.to(param.device, copy=True)
    if isinstance(value, dict):
        return {key: _as_param(entry, param, key) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_as_param(entry, param) for entry in value)
    return copy.deepcopy(value)


def _load_state_dict(self, state_dict):
    """Takes copies of what state_dict() gave; parameters are matched by their place in the groups."""
    saved, own = state_dict["param_groups"], self.param_groups
    if len(saved) != len(own):
        raise ValueError("loaded state dict has a different number of parameter groups")
    if any(len(group["params"]) != len(mine["params"]) for group, mine in zip(saved, own)):
        raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
    params = {number: param for group, mine in zip(saved, own) for number, param in zip(group["params"], mine["params"])}
    state = collections.defaultdict(dict)
    for key, value in state_dict["state"].items():
        state[params.get(key, key)] = _as_param(value, params[key]) if key in params else copy.deepcopy(value)
    self.state = state
    self.param_groups = [{**copy.deepcopy({name: value for name, value in group.items() if name != "params"}),
                          "params": mine["params"]} for group, mine in zip(saved, own)]


def _repr(optimizer):
    lines = []
    for index, group in enumerate(optimizer.param_groups):
        lines.append(f"\nParameter Group {index}")
        lines += [f"    {name}: {value or 0 if type(value) is float else value}"
                  for name, value in sorted(group.items()) if name != "params"]
    return f"{type(optimizer).__name__} (" + "\n".join(lines) + "\n)"


def _made(cls, groups):
    optimizer = cls.__new__(cls)
    if groups is None:
        _init(optimizer, cls.__name__)
    else:
        _native_base(cls).__init__(optimizer, groups)
    return optimizer


def _native_base(cls):
    return next(base for base in cls.__mro__ if base in _native)


def _reduce(self, protocol):
    """For pickle and copies."""
    if not isinstance(self, tuple(_native)):
        return _made, (type(self), None), dict(vars(self))
    return (_made, (type(self), [dict(group) for group in self.param_groups]),
            {"attributes": dict(vars(self)), "state_dict": _native_base(type(self)).state_dict(self)})


def _set_state(self, state):
    if isinstance(self, tuple(_native)):
        _native_base(type(self)).load_state_dict(self, state["state_dict"])
        vars(self).update(state["attributes"])
        return
    vars(self).update(state)
    for group in self.param_groups:
        self._add(group["params"])


Optimizer.__reduce_ex__, Optimizer.__setstate__ = _reduce, _set_state
Optimizer.__init__, Optimizer.__repr__ = _begin, _repr
Optimizer.add_param_group, Optimizer.zero_grad, Optimizer.step = _add_param_group, _zero_grad, _step
Optimizer.state_dict, Optimizer.load_state_dict = _state_dict, _load_state_dict
