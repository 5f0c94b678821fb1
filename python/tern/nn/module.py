"""What Module has that is shorter in Python: its text, walks over the modules below, and what classes may write anew."""

from tern import _C

Module = _C.Module


def _get_name(self):
    return type(self).__name__ if type(self) is not Module or self._is_python() else self._class_name()


def _repr(self):
    if not self._is_python() and type(self).__module__ == Module.__module__ and not self._modules_added():
        return self._str()  # a layer, with nothing inside that Python could have changed
    extra = self.extra_repr()
    children = [(name, repr(child).replace("\n", "\n  ")) for name, child in self._modules_below()]
    if hasattr(self, "_group"):
        children = self._group(children)
    lines = [f"({name}): {text}" for name, text in children]
    if extra and not lines and "\n" not in extra:
        return f"{self._get_name()}({extra})"
    lines = (extra.split("\n") if extra else []) + lines
    return f"{self._get_name()}({''.join(f'{chr(10)}  {line}' for line in lines)}{chr(10) if lines else ''})"


def _named_modules(self, memo=None, prefix="", remove_duplicate=True):
    """This module and all below, with their paths; each once."""
    for path, module in self._named_modules(remove_duplicate):
        if memo is not None:
            if module in memo:
                continue
            memo.add(module)
        yield prefix + ("." if prefix and path else "") + path, module


def _modules(self):
    return (module for _, module in self._named_modules(True))


def _named_children(self):
    return iter(self._named_children())


def _children(self):
    return (module for _, module in self._named_children())


def _train(self, mode=True):
    """Sets the mode of this module and all below (dropout, batch norm)."""
    if not isinstance(mode, bool):
        raise ValueError("training mode is expected to be boolean")
    if any(type(module).train is not Module.train for _, module in self._named_modules(True) if module is not self):
        self.training = mode
        for module in self.children():
            module.train(mode)
    else:
        self._train_all(mode)
    return self


def _eval(self):
    """As train(False)."""
    return self.train(False)


def _apply(self, fn):
    """Calls fn with every module, those below before the one above."""
    for module in self.children():
        module.apply(fn)
    fn(self)
    return self


def _get_submodule(self, target):
    """The module of this path."""
    module = self
    for name in target.split(".") if target else ():
        module = getattr(module, name, None)
        if not isinstance(module, Module):
            raise AttributeError(f"{self._get_name()} has no module '{target}': '{name}' is none")
    return module


def _get_tensor(self, target, kinds, what):
    path, _, name = target.rpartition(".")
    module = self.get_submodule(path)
    if (name, True) not in [(own, kind in kinds) for own, kind in module._tensor_fields()]:
        raise AttributeError(f"{module._get_name()} has no {what} '{name}'")
    return getattr(module, name)


def _set_submodule(self, target, module):
    """Puts a module into the place of the one of this path."""
    path, _, name = target.rpartition(".")
    setattr(self.get_submodule(path), name, module)


def _duplicates(native, kinds):
    """`native`, and with remove_duplicate=False all names of a tensor."""
    def named(self, prefix="", recurse=True, remove_duplicate=True):
        if remove_duplicate:
            yield from native(self, recurse=recurse) if not prefix else (
                (f"{prefix}.{name}", tensor) for name, tensor in native(self, recurse=recurse))
            return
        for path, module in self.named_modules(prefix=prefix, remove_duplicate=False) if recurse else [(prefix, self)]:
            for name, tensor in _tensors(module, kinds).items():
                if tensor is not None:
                    yield (f"{path}.{name}" if path else name), tensor

    named.__doc__ = native.__doc__
    return named


def _type(self, dst_type):
    """Converts floating-point parameters and buffers."""
    return self.to(dst_type)


_move = Module.to


def _to(self, *args, **kwargs):
    """Moves parameters and buffers, or converts those that are floating point. To "meta", where PyTorch's have no numbers, they stay as
    they are."""
    if any(isinstance(place, str) and place == "meta" for place in (*args, kwargs.get("device"))):
        return self
    return _move(self, *args, **kwargs)


def _pruning_hooks(self):
    """Methods of nn.utils.prune by numbers; hooks of other kinds are in C++ and not shown."""
    from tern.nn.utils import prune
    return prune._hooks(self)


def _to_empty(self, *, device, recurse=True):
    """As to(device): the numbers may be any."""
    return self.to(device)


class Entries(dict):
    """Fields of a module by name, as in PyTorch; what is set or removed here is there."""

    def __init__(self, module, entries, set_entry):
        super().__init__(entries)
        self._module, self._set_entry = module, set_entry

    def __setitem__(self, name, value):
        if name in self:
            delattr(self._module, name)
        self._set_entry(name, value)
        super().__setitem__(name, value)

    def __delitem__(self, name):
        super().__delitem__(name)
        delattr(self._module, name)

    def pop(self, name, *default):
        value = super().pop(name, *default)
        if name in dict(self._module._modules_below()) or name in dict(self._module._tensor_fields()):
            delattr(self._module, name)
        return value


def _tensors(module, kinds):
    return {name: getattr(module, name) for name, kind in module._tensor_fields() if kind in kinds}


def _modules_of(self):
    return Entries(self, self._modules_below(), self.add_module)


Module.__repr__ = _repr
Module._get_name = _get_name
Module.named_modules, Module.modules = _named_modules, _modules
Module.named_children, Module.children = _named_children, _children
Module.named_parameters = _duplicates(Module.named_parameters, {"parameter"})
Module.named_buffers = _duplicates(Module.named_buffers, {"buffer", "not saved"})
Module.train, Module.eval, Module.apply = _train, _eval, _apply
Module.compile = lambda self, *args, **options: None  # there is nothing to compile
Module.get_submodule, Module.set_submodule = _get_submodule, _set_submodule
Module.get_parameter = lambda self, target: _get_tensor(self, target, {"parameter"}, "parameter")
Module.get_buffer = lambda self, target: _get_tensor(self, target, {"buffer", "not saved"}, "buffer")
Module.type, Module.to, Module.to_empty = _type, _to, _to_empty
Module._forward_pre_hooks = property(_pruning_hooks)
Module._modules = property(_modules_of)
Module._parameters = property(lambda self: Entries(self, _tensors(self, {"parameter"}), self.register_parameter))
Module._buffers = property(lambda self: Entries(self, _tensors(self, {"buffer", "not saved"}), self.register_buffer))
