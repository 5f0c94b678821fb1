"""Calls of a module with other tensors in the place of its parameters and buffers."""

import contextlib

from tern import _C

_MISSING = object()


class _Slot:
    """A place in a module where a tensor stands: `put` takes any."""

    __slots__ = ("module", "name", "kind", "before")

    def __init__(self, module, name, kind, before):
        self.module, self.name, self.kind, self.before = module, name, kind, before

    def put(self, tensor):
        if self.kind == "field" or self.kind == "parameter":
            self.module._set_tensor(self.name, tensor)
        else:
            setattr(self.module, self.name, tensor)

    def now(self):
        return getattr(self.module, self.name)

    def restore(self):
        if self.before is _MISSING:
            delattr(self.module, self.name)
            return
        self.put(self.before)
        if self.kind == "field":
            self.now()  # the layer holds the parameter's own object again


def _slots(root):
    """The slots of all parameters and buffers by their full names, in all places where they stand, and the modules by their paths."""
    found, modules = {}, dict(root.named_modules(remove_duplicate=False))
    for path, module in modules.items():
        own = () if module._is_python() else module._own_tensors()
        for name, kind in module._tensor_fields():
            found[f"{path}.{name}" if path else name] = _Slot(module, name, "field" if name in own else kind, getattr(module, name))
    return found, modules


def _other_slot(modules, name):
    """Of what is neither a parameter nor a buffer: another tensor among the attributes, or a new one."""
    path, _, own = name.rpartition(".")
    if path not in modules:
        raise AttributeError(f"functional_call: '{name}': the module has no module '{path}'")
    module = modules[path]
    if isinstance(getattr(type(module), own, None), property) and hasattr(type(module), "_before_parametrizations"):
        raise ValueError(f"functional_call: '{name}' is computed by a parametrization: replace "
                         f"'{path + '.' if path else ''}parametrizations.{own}.original'")
    before = getattr(module, own, _MISSING)
    if before is not _MISSING and not isinstance(before, _C.Tensor):
        what = "None" if before is None else type(before).__name__
        raise TypeError(f"functional_call: '{name}' is {what}, in whose place no tensor can be put")
    is_field = not module._is_python() and own in module._own_tensors()
    return _Slot(module, own, "field" if is_field else "attribute", before)


def _tied(slots):
    """For each slot's name the names of all slots with the same tensor, where there are several."""
    names = {}
    for name, slot in slots.items():
        if slot.before is not None:
            names.setdefault(id(slot.before), []).append(name)
    return {name: group for group in names.values() if len(group) > 1 for name in group}


def _with_tied(given, slots):
    """The given tensors, also under the other names of what they replace."""
    tied = _tied(slots)
    if not tied:
        return given
    result = dict(given)
    for name, tensor in given.items():
        for other in tied.get(name, ()):
            if other in given and given[other] is not tensor:
                raise ValueError(f"functional_call got multiple values for keys {sorted(tied[name])}, which are tied. Consider using "
                                 "tie_weights=False")
            result[other] = tensor
    return result


def _check_strict(given, slots):
    unexpected = [name for name in given if name not in slots]
    missing = [name for name, slot in slots.items() if name not in given and slot.before is not None]
    kinds = ("Unexpected", unexpected), ("Missing", missing)
    parts = [f"{what} key(s): {', '.join(map(repr, names))}." for what, names in kinds if names]
    if parts:
        raise RuntimeError("Error(s) in functional_call with strict=True:\n\t" + "\n\t".join(parts))


@contextlib.contextmanager
def _replaced(module, given, tie_weights, strict):
    """In this context the module has the given tensors; afterwards its own, whatever happens."""
    for name, tensor in given.items():
        if not isinstance(tensor, _C.Tensor):
            raise TypeError(f"functional_call: '{name}' must be a tensor, got '{type(tensor).__name__}'")
    slots, modules = _slots(module)
    tensors = _with_tied(given, slots) if tie_weights else given
    if strict:
        _check_strict(tensors, slots)
    chosen = {name: slots.get(name) or _other_slot(modules, name) for name in tensors}
    done = []
    try:
        for name, slot in chosen.items():
            done.append((name, slot))
            slot.put(tensors[name])
        yield
    finally:
        for name, slot in done:
            if slot.kind != "field" and name in given:  # forward() may have assigned another
                now = getattr(slot.module, slot.name, None)
                if isinstance(now, _C.Tensor) and now is not given[name]:
                    given[name] = now
        for _, slot in reversed(done):
            slot.restore()


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """What the module gives for these arguments with the tensors of the dict in the place of its parameters and buffers of their names.
    Gradients flow to the tensors given. The module's own are in their places again afterwards, also after an exception. With
    `tie_weights` a tensor takes all places that share the one that it replaces; with `strict` the dict must have all names and no others.

    Meanwhile no other thread may use the module. What forward() changes in place is changed in the tensors given.
    """
    if not isinstance(module, _C.Module):
        raise TypeError(f"functional_call: expected an nn.Module, got '{type(module).__name__}'")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))
