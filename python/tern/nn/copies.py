"""Copies of modules that are written in Python, and of those that are added to layers; pickles of all modules."""

import copy

from tern import _C, serialization


def blank(cls):
    """A module of the class without fields, whose __init__ was not called."""
    module = _C.Module.__new__(cls)
    _C.Module.__init__(module)
    return module


def _structure(module, child, copied):
    """A module of the same class, with the tensors of `module`, and of each module below what `child` gives; without attributes."""
    result = blank(type(module))
    copied[id(module)] = result
    result._init_as(module)
    for name, below in module._modules_below():
        result.add_module(name, None if below is None else child(below))
    return result


def replica(module, copied=None):
    """The same structure with the same tensors."""
    copied = {} if copied is None else copied
    if id(module) in copied:
        return copied[id(module)]
    if module._is_python():
        result = _structure(module, lambda below: replica(below, copied), copied)
        result.__dict__.update(module.__dict__)
    else:
        result = copied[id(module)] = copy.copy(module)
        _replicate_added(result, copied)
    return result


def _replicate_added(layer, copied):
    """What Python added to a copied layer, and to those that it is made of, is still the first one's."""
    added = dict(layer._modules_added())
    for name, below in layer._modules_below():
        if name not in added:
            _replicate_added(below, copied)
        elif below is not None:
            layer.add_module(name, replica(below, copied))


def _attributes(module):
    """A module's attributes, or what its class keeps of them by a __getstate__ of its own."""
    keep = getattr(type(module), "__getstate__", None)
    return vars(module) if keep in (None, getattr(object, "__getstate__", None)) else keep(module)


def _take_attributes(module, attributes):
    """The other way: by the class's own __setstate__ if there is one."""
    if type(module).__setstate__ is set_state:
        vars(module).update(attributes)
    else:
        module.__setstate__(attributes)


def deep_copy(module, memo):
    """The same structure with tensors and attributes of its own."""
    if id(module) in memo:
        return memo[id(module)]
    result = _structure(module, lambda below: copy.deepcopy(below, memo), memo)
    attributes = copy.deepcopy(_attributes(module), memo)
    for name, kind in module._tensor_fields():
        tensor = getattr(module, name)
        if tensor is None:
            continue
        if kind == "parameter":
            result.register_parameter(name, copy.deepcopy(tensor, memo))
        else:
            result.register_buffer(name, copy.deepcopy(tensor, memo), kind == "buffer")
    _take_attributes(result, attributes)
    result._copy_hooks(memo)
    return result


def _made(cls, settings):
    """A module of the class with any numbers, whose __init__ was not called."""
    if settings is None:
        return blank(cls)
    return _C._layer_from_bytes(settings, serialization._layer_of(cls))._as(cls)


def _own(module):
    """A module, and the layers of C++ that it is made of as one."""
    added = dict(module._modules_added())
    yield module
    for name, below in module._modules_below():
        if name not in added:
            yield from _own(below)


def _fields(module):
    """What a module, or a layer inside of one, has: its mode, its own tensors, and what Python added."""
    own = module._own_tensors()
    return (module.training, [(name, getattr(module, name)) for name in own],
            [(name, kind, getattr(module, name)) for name, kind in module._tensor_fields() if name not in own], module._modules_added())


def _give(module, training, own, tensors, modules):
    module.training = training
    for name, tensor in own:
        module._set_tensor(name, tensor)
    for name, kind, tensor in tensors:
        if kind == "parameter":
            module.register_parameter(name, tensor)
        else:
            module.register_buffer(name, tensor, kind == "buffer")
    for name, below in modules:
        module.add_module(name, below)


def reduce(self, protocol):
    """For pickle and multiprocessing. Hooks are not in it."""
    without = serialization._COMMON.union(getattr(self, "_not_saved", ()))
    attributes = _attributes(self)
    if isinstance(attributes, dict):
        attributes = {name: value for name, value in attributes.items() if name not in without}
    for module in _own(self):
        serialization._check_whole(module)
    settings = None if self._is_python() else _C._layer_to_bytes(self)
    return _made, (type(self), settings), ([_fields(module) for module in _own(self)], attributes), None, None, restore


def restore(module, state):
    """Gives a new module what reduce() has found."""
    fields, attributes = state
    for below, its in zip(list(_own(module)), fields):
        _give(below, *its)
    _take_attributes(module, attributes)


def set_state(self, state):
    """nn.Module.__setstate__: of the attributes, which classes may change before."""
    vars(self).update(state)
