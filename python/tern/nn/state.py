"""State dicts of modules some of which have their own way: methods of PyTorch's names written anew, extra state, hooks.

All others are read and written by C++ at once.
"""

import collections
import itertools

from tern import _C

Module = _C.Module
_load = Module.load_state_dict
_EXTRA = "_extra_state"
_numbers = itertools.count()


class Handle:
    """Takes a hook away again with remove()."""

    def __init__(self, hooks, number):
        self._hooks, self._number = hooks, number

    def remove(self):
        self._hooks.pop(self._number, None)


def _adds(kind):
    def register(self, hook):
        hooks = self.__dict__.setdefault(kind, collections.OrderedDict())
        number = next(_numbers)
        hooks[number] = hook
        return Handle(hooks, number)

    return register


def _hooks(module, kind):
    return list(module.__dict__.get(kind, {}).values())


def _is_own_way(module, methods, hooks):
    cls = type(module)
    return (any(getattr(cls, name) is not getattr(Module, name) for name in methods)
            or any(module.__dict__.get(kind) for kind in hooks))


_SAVING = ("_save_to_state_dict", "get_extra_state", "_version"), ("_state_dict_hooks", "_state_dict_pre_hooks")
_LOADING = (("_load_from_state_dict", "set_extra_state"),
            ("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"))


def _any_own_way(module, methods, hooks, of_those_below):
    return any(_is_own_way(below, methods if below is module else methods + of_those_below, hooks)
               for _, below in module._named_modules(True))


def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
    """Names and tensors of all parameters and of the buffers that are saved."""
    if args:
        destination, prefix, keep_vars = (args + (prefix, keep_vars)[len(args) - 1:])[:3]
    own_way = _any_own_way(self, *_SAVING, ("state_dict",))
    if destination is None or not hasattr(destination, "_metadata"):
        destination = collections.OrderedDict() if destination is None else destination
        if isinstance(destination, collections.OrderedDict):
            destination._metadata = collections.OrderedDict()
    metadata = getattr(destination, "_metadata", {})
    if not own_way:
        entries = self._state_dict(prefix)
        if keep_vars:
            tensors = dict(self.named_parameters(remove_duplicate=False)) | dict(self.named_buffers(remove_duplicate=False))
            for name in entries:
                entries[name] = tensors.get(name[len(prefix):], entries[name])
        if _C._rank_of_shards(self) is not None:
            from tern.distributed import _pieces
            _pieces.mark(self, entries, prefix)
        destination.update(entries)
        metadata.update(entries._metadata)
        return destination
    metadata[prefix[:-1]] = local = {"version": self._version}
    for hook in _hooks(self, "_state_dict_pre_hooks"):
        hook(self, prefix, keep_vars)
    self._save_to_state_dict(destination, prefix, keep_vars)
    for name, module in self._modules_below():
        if module is not None:
            module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in _hooks(self, "_state_dict_hooks"):
        result = hook(self, destination, prefix, local)
        destination = destination if result is None else result
    return destination


def _save_to_state_dict(self, destination, prefix, keep_vars):
    """Adds the module's own entries, those of the modules below not."""
    for name, kind in self._tensor_fields():
        tensor = getattr(self, name)
        if tensor is not None and kind != "not saved":
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
    if type(self).get_extra_state is not Module.get_extra_state:
        destination[prefix + _EXTRA] = self.get_extra_state()


def load_state_dict(self, state_dict, strict=True, assign=False, prefix="", on_mismatch="error"):
    if not _any_own_way(self, *_LOADING, ()):
        return _load(self, state_dict, strict, assign, prefix, on_mismatch)
    if not hasattr(state_dict, "items"):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    if prefix == "auto" or on_mismatch != "error":
        raise NotImplementedError("load_state_dict: prefix='auto' and on_mismatch are for modules without hooks and methods of their own")
    metadata = getattr(state_dict, "_metadata", None) or {}
    metadata = {path[len(prefix):]: entry for path, entry in metadata.items()}
    state_dict = collections.OrderedDict((name.removeprefix(prefix), value) for name, value in state_dict.items())
    missing, unexpected, errors = [], [], []

    def load(module, entries, path):
        local = dict(metadata.get(path[:-1], {}))
        if assign:
            local["assign_to_params_buffers"] = True
        module._load_from_state_dict(entries, path, local, True, missing, unexpected, errors)
        for name, below in module._modules_below():
            if below is not None:
                inner = f"{path}{name}."
                load(below, {key: value for key, value in entries.items() if key.startswith(inner)}, inner)
        for hook in _hooks(module, "_load_state_dict_post_hooks"):
            hook(module, _C.IncompatibleKeys(missing, unexpected))

    load(self, state_dict, "")

    def names(keys):
        return ", ".join(f'"{key}"' for key in keys)

    if strict and unexpected:
        errors.insert(0, f"Unexpected key(s) in state_dict: {names(unexpected)}. ")
    if strict and missing:
        errors.insert(0, f"Missing key(s) in state_dict: {names(missing)}. ")
    if errors:
        raise _C.CheckpointError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
    return _C.IncompatibleKeys(missing, unexpected)


def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
    """Takes the module's own entries out of those whose names begin with `prefix`."""
    for hook in _hooks(self, "_load_state_dict_pre_hooks"):
        hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    own = {name for name, kind in self._tensor_fields() if kind != "not saved" and getattr(self, name) is not None}
    entries = collections.OrderedDict((name, state_dict[prefix + name]) for name in own if prefix + name in state_dict)
    entries._metadata = {"": local_metadata}
    found = _load(self, entries, False, local_metadata.get("assign_to_params_buffers", False), "", "skip")
    error_msgs += [reason.replace(name, prefix + name, 1) for name, reason in zip(found.mismatched, found.reasons)]
    if not strict:
        return
    missing_keys += [prefix + name for name in found.missing_keys if name in own]
    if type(self).set_extra_state is not Module.set_extra_state:
        own.add(_EXTRA)
        if prefix + _EXTRA in state_dict:
            self.set_extra_state(state_dict[prefix + _EXTRA])
        else:
            missing_keys.append(prefix + _EXTRA)
    below = {name for name, module in self._modules_below() if module is not None}
    for key in state_dict:
        if key.startswith(prefix):
            name = key[len(prefix):]
            if name not in own and not any(name.startswith(f"{path}.") for path in below):
                unexpected_keys.append(key)


def get_extra_state(self):
    """Written anew: what is saved beside the tensors, as '_extra_state'."""
    raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")


def set_extra_state(self, state):
    """Written anew: takes what get_extra_state() gave."""
    raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")


def _register_load_pre_hook(self, hook, with_module=False):
    """`hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`, before the
    module takes its entries; with_module: after the module."""
    return _add_load_pre_hook(self, hook if with_module else lambda _, *args: hook(*args))


def _register_state_dict_post_hook(self, hook):
    """`hook(module, state_dict, prefix, local_metadata)`, after the entries of the module and of those below are there."""
    def run(*args):
        if hook(*args) is not None:
            raise RuntimeError("state_dict post-hook must return None")

    return _add_state_dict_hook(self, run)


_add_load_pre_hook = _adds("_load_state_dict_pre_hooks")
_add_state_dict_hook = _adds("_state_dict_hooks")
for _method in (state_dict, load_state_dict, _save_to_state_dict, _load_from_state_dict, get_extra_state, set_extra_state):
    setattr(Module, _method.__name__, _method)
load_state_dict.__doc__ = _load.__doc__
Module._register_state_dict_hook = _add_state_dict_hook
Module.register_state_dict_post_hook = _register_state_dict_post_hook
Module.register_state_dict_pre_hook = _adds("_state_dict_pre_hooks")
Module._register_load_state_dict_pre_hook = _register_load_pre_hook
Module.register_load_state_dict_pre_hook = _add_load_pre_hook
Module.register_load_state_dict_post_hook = _adds("_load_state_dict_post_hooks")
