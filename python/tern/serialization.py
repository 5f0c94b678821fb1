"""save and load, with the arguments of torch.save and torch.load. Loading a file never runs code from it."""

import os
import sys

from tern import _C


def save(obj, f, *, pickle_protocol=2, compact=False, _use_new_zipfile_serialization=True):
    """Writes what PyTorch's load opens, too: tensors, numbers, texts, lists, dicts, state dicts, and whole
    models, whose classes PyTorch's pickle finds by their names. `f` is a path, where the file appears whole
    or not at all, or has write(). With `compact` a view takes the room of what it shows, not of the tensor
    that it is of."""
    legacy = not _use_new_zipfile_serialization
    if hasattr(f, "write"):
        f.write(_C._save_to_bytes(obj, compact, legacy))
    else:
        _C._save(obj, os.fspath(f), compact, legacy)


def load(f, map_location=None, *, weights_only=True, mmap=None):
    """Reads what save, torch.save and others wrote: PyTorch's files of any age, safetensors, .npy and .npz,
    sharded and distributed checkpoints. `f` is a path, or has read(). `map_location` is a device, a dict
    from one location to another, a function of a storage and its location, or 'auto': what was on GPUs that
    are not here comes to those that are, or to the CPU. A file that names classes is refused unless
    `weights_only` is False: then modules of PyTorch's classes, and of those derived from nn.Module that the
    program has defined or imported, are made, without a call of their __init__; everything else becomes Inert.
    With `mmap` the numbers stay in the file until they are looked at."""
    if callable(map_location):
        map_location = _location_function(map_location)
    weights_only = weights_only and not _safe
    if hasattr(f, "read"):
        if mmap:
            raise ValueError("load: mmap=True needs the path of a file")
        data = f.read()
        if isinstance(data, str):
            raise TypeError("load: the file is open for text: open it with mode 'rb'")
        return _C._load_from_bytes(data, map_location, weights_only)
    os.stat(f)  # raises what Python raises for a file that is not there
    return _C._load(os.fspath(f), map_location, weights_only, bool(mmap))


_safe = []


class safe_globals:
    """In this context load(weights_only=True) takes files that name classes. It makes what weights_only=False makes: the classes are not
    looked at, since no file can run anything."""

    def __init__(self, safe_globals):
        self.globals = list(safe_globals)

    def __enter__(self):
        _safe.extend(self.globals)

    def __exit__(self, *_):
        del _safe[len(_safe) - len(self.globals):]


def add_safe_globals(safe_globals):
    """What the context safe_globals does, from now on."""
    _safe.extend(safe_globals)


def get_safe_globals():
    return list(_safe)


def clear_safe_globals():
    _safe.clear()


class _Storage:
    """What functions given as map_location get: it can be moved, and says where it is."""

    def __init__(self, device="cpu"):
        self.device = _C.device(device)

    def cpu(self):
        return _Storage("cpu")

    def cuda(self, device=None):
        return _Storage(_C.device("cuda") if device is None else device)

    def to(self, *, device):
        return _Storage(device)


def _location_function(function):
    def device_for(location):
        place = function(_Storage(), location)
        return getattr(place, "device", place)

    return device_for


# Where classes that are written in Python here are in PyTorch.
_PLACES = {"torch.nn.modules.container": "tern.nn.containers", "torch.nn.parallel.data_parallel": "tern.nn.parallel",
           "torch.nn.parallel.distributed": "tern.nn.distributed",
           "torchvision.ops.misc": "tern.models._misc", "torchvision.ops.stochastic_depth": "tern.models._stochastic_depth",
           **{f"torchvision.models.{family}": f"tern.models.{family}" for family in (
               "alexnet convnext densenet efficientnet googlenet inception mnasnet mobilenetv2 mobilenetv3 regnet resnet shufflenetv2 "
               "squeezenet swin_transformer vgg vision_transformer").split()}}
_LAYERS = {value for value in vars(_C).values() if isinstance(value, type) and issubclass(value, _C.Module)} - {_C.Module}
# Attributes that every module of PyTorch has.
_COMMON = set("""training _parameters _buffers _non_persistent_buffers_set _modules _backward_pre_hooks _backward_hooks
    _is_full_backward_hook _forward_hooks _forward_hooks_with_kwargs _forward_hooks_always_called _forward_pre_hooks
    _forward_pre_hooks_with_kwargs _state_dict_hooks _state_dict_pre_hooks _load_state_dict_pre_hooks
    _load_state_dict_post_hooks""".split())


def _module_class(module, name):
    """The class of this name, if it is derived from nn.Module in Python; nothing is imported for it, and nothing run."""
    if module.startswith("torchvision."):
        import tern.models  # noqa: F401: Tern's own
    place = sys.modules.get(_PLACES.get(module, module))
    for part in name.split("."):
        place = getattr(place, "__dict__", {}).get(part)
    is_written = isinstance(place, type) and issubclass(place, _C.Module) and not _is_layer(place)
    return place if is_written and place is not _C.Module else None


def _is_layer(cls):
    return cls in _LAYERS


def _layer_of(cls):
    """The layer that the class is derived from; None where it is derived from nn.Module alone."""
    return next(filter(_is_layer, cls.__mro__), None)


def _name_of_module_class(cls):
    """(module, name) in files; None for a class that is in no module."""
    if hasattr(cls, "_before_parametrizations"):
        raise RuntimeError(f"{cls.__name__} cannot be saved whole: a parametrized module is saved by its state_dict()")
    if "<locals>" in cls.__qualname__:
        return None
    pytorchs = {here: there for there, here in _PLACES.items()}
    return pytorchs.get(cls.__module__, cls.__module__), cls.__qualname__


def _is_attribute(cls, name):
    return name not in _COMMON and name not in getattr(cls, "_not_saved", ()) and not hasattr(_layer_of(cls), name)


def _check_whole(module):
    """Of a pruned module a file or a pickle would keep the parts without what puts them together."""
    for name, _ in module._tensor_fields():
        if name.endswith("_orig") and "_pruning" in vars(getattr(module, name)):
            raise RuntimeError(f"{type(module).__name__} cannot be saved whole: '{name.removesuffix('_orig')}' is pruned: save its "
                               "state_dict(), or call nn.utils.prune.remove() before")


def _attributes_of(module):
    """Those that a file keeps beside parameters, buffers, modules, and the settings of layers."""
    _check_whole(module)
    own = {name: value for name, value in vars(module).items() if _is_attribute(type(module), name)}
    return {**own, **getattr(module, "_also_saved", dict)()}


class Name:
    """The name of a class or function in a file, which is neither looked up nor called."""

    __slots__ = ("module", "name")

    def __init__(self, module, name):
        self.module = module
        self.name = name

    def __str__(self):
        return f"{self.module}.{self.name}"

    def __repr__(self):
        return f"<name {self}>"

    def __eq__(self, other):
        return isinstance(other, Name) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


class Layout(str):
    """How the numbers of a tensor lie, by PyTorch's name: torch.strided, torch.sparse_coo and so on."""

    __slots__ = ()


class Inert:
    """An object of a class that Tern has not: what a file says of it, and no class that was run. Its
    attributes can be read, of modules also their parameters, buffers and modules; `tensors` are all tensors
    in it by their paths, `elements` and `entries` what it holds as a list or dict. It can be saved
    again."""

    __slots__ = ("_parts", "__weakref__")

    @property
    def class_name(self):
        callee = self._parts["callee"]
        if str(callee) == "copyreg._reconstructor":
            callee = self._parts["args"][0]
        return callee.class_name if isinstance(callee, Inert) else str(callee)

    @property
    def args(self):
        return self._parts["args"]

    @property
    def elements(self):
        return self._parts["elements"]

    @property
    def entries(self):
        return dict(self._parts["entries"])

    @property
    def tensors(self):
        return _C._tensors_in(self)

    def _attributes(self):
        """What the state has: a dict of attributes, or a pair of it and of those that have slots."""
        state = self._parts.get("state")
        parts = state if isinstance(state, tuple) else (state,)
        return [part for part in parts if isinstance(part, dict)]

    def __getattr__(self, name):
        if name == "_parts" or name.startswith("__"):
            raise AttributeError(name)
        for attributes in self._attributes():
            if name in attributes:
                return attributes[name]
            for kind in ("_parameters", "_buffers", "_modules"):
                if name in (attributes.get(kind) or ()):
                    return attributes[kind][name]
        raise AttributeError(f"the inert object of {self.class_name} has no attribute '{name}'")

    def __dir__(self):
        return [*super().__dir__(), *(name for attributes in self._attributes() for name in attributes)]

    def __repr__(self):
        return f"<inert {self.class_name}>"


def save_npy(tensor, path):
    _C._save_npy(tensor, os.fspath(path))


def load_npy(path, device=None):
    return _C._load_npy(os.fspath(path), device)


def save_npz(tensors, path):
    """A dict of tensors as an archive of arrays."""
    _C._save_npz(tensors, os.fspath(path))


def load_npz(path, device=None):
    return _C._load_npz(os.fspath(path), device)
