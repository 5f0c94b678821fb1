"""Copies of modules that are written in Python."""

import copy

from tern import _C


def blank(cls):
    """A module of the class without fields, whose __init__ was not called."""
    module = _C.Module.__new__(cls)
    _C.Module.__init__(module)
    return module


def _structure(module, child, copied):
    """A module of the same class, with the attributes and tensors of `module`, and of each module below what `child` gives."""
    if id(module) in copied:
        return copied[id(module)]
    result = blank(type(module))
    copied[id(module)] = result
    result.__dict__.update(module.__dict__)
    result._init_as(module)
    for name, below in module._modules_below():
        result.add_module(name, None if below is None else child(below))
    return result


def replica(module, copied=None):
    """The same structure with the same tensors."""
    copied = {} if copied is None else copied
    if not module._is_python():
        if id(module) not in copied:
            copied[id(module)] = copy.copy(module)
        return copied[id(module)]
    return _structure(module, lambda below: replica(below, copied), copied)


def deep_copy(module, memo):
    """The same structure with tensors and attributes of its own."""
    if id(module) in memo:
        return memo[id(module)]
    result = _structure(module, lambda below: copy.deepcopy(below, memo), memo)
    for name, value in module.__dict__.items():
        result.__dict__[name] = copy.deepcopy(value, memo)
    for name, kind in module._tensor_fields():
        tensor = getattr(module, name)
        if tensor is None:
            continue
        if kind == "parameter":
            result.register_parameter(name, copy.deepcopy(tensor, memo))
        else:
            result.register_buffer(name, copy.deepcopy(tensor, memo), kind == "buffer")
    return result
