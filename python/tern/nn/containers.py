"""Lists and dicts of modules and parameters."""

import collections
import itertools

from tern import _C
from tern._types import Parameter

Module = _C.Module


def _place(index, length):
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class TransformModule(Module):
    """A transform of pictures among modules, where torchvision's, which are modules, may stand."""

    def __init__(self, transform):
        super().__init__()
        self.transform = transform

    def forward(self, picture):
        return self.transform(picture)

    def __repr__(self):
        return repr(self.transform)


class _Numbered(Module):
    """Modules named 0, 1, 2 and so on."""

    def add_module(self, name, module):
        is_transform = isinstance(module, _C._Transform) or hasattr(module, "_extension_steps")
        super().add_module(name, TransformModule(module) if is_transform else module)

    def _below(self):
        return [module for _, module in self._modules_added()]

    def _replace_all(self, modules):
        for name, _ in self._modules_below():
            delattr(self, name)
        for place, module in enumerate(modules):
            self.add_module(str(place), module)

    def __len__(self):
        return len(self._modules_below())

    def __iter__(self):
        return iter(self._below())

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._of(self._modules_below()[index])
        return self._below()[_place(index, len(self))]

    def __add__(self, other):
        return self._of((str(place), module) for place, module in enumerate([*self, *other]))

    def __iadd__(self, modules):
        return self.extend(modules)

    def __setitem__(self, index, module):
        self.add_module(self._modules_below()[_place(index, len(self))][0], module)

    def __delitem__(self, index):
        modules = self._below()
        del modules[index]
        self._replace_all(modules)

    def pop(self, index=-1):
        module = self[index]
        del self[index]
        return module

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index, module):
        modules = self._below()
        modules.insert(index, module)
        self._replace_all(modules)
        return self


class Sequential(_Numbered):
    """Modules that are called one after the other; of an OrderedDict with its names."""

    def __init__(self, *modules):
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            self.extend(modules)

    def _of(self, named):
        return type(self)(collections.OrderedDict(named))

    def forward(self, input):
        for module in self._below():
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules, which a forward() goes through as it likes."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _of(self, named):
        return type(self)(module for _, module in named)

    def _group(self, children):
        """For the text: those in a row that are alike stand on one line."""
        groups = [list(group) for _, group in itertools.groupby(children, lambda child: child[1])]
        return [(names[0][0] if len(names) == 1 else f"{names[0][0]}-{names[-1][0]}",
                 (f"{len(names)} x " if len(names) > 1 else "") + names[0][1]) for names in groups]


class ModuleDict(Module):
    """Modules by names."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def update(self, modules):
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self[name] = module

    def __getitem__(self, name):
        return dict(self._modules_below())[name]

    def __setitem__(self, name, module):
        self.add_module(name, module)

    def __delitem__(self, name):
        delattr(self, name)

    def __len__(self):
        return len(self._modules_below())

    def __iter__(self):
        return iter(self.keys())

    def __contains__(self, name):
        return name in self.keys()

    def keys(self):
        return [name for name, _ in self._modules_below()]

    def values(self):
        return [module for _, module in self._modules_below()]

    def items(self):
        return self._modules_below()

    def pop(self, name):
        module = self[name]
        del self[name]
        return module

    def clear(self):
        for name in self.keys():
            del self[name]


def _as_parameter(value):
    return Parameter(value) if isinstance(value, _C.Tensor) and not isinstance(value, Parameter) else value


def _text(named):
    lines = []
    for name, value in named:
        if isinstance(value, _C.Tensor):
            place = f" ({value.device})" if value.is_cuda else ""
            lines.append(f"  ({name}): Parameter containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}{place}]")
        else:
            lines.append(f"  ({name}): Object of type: {type(value).__name__}")
    return lines


class ParameterList(Module):
    """A list of parameters; of other values too, such as lists of parameters."""

    _not_saved = ("_size",)

    def _also_saved(self):
        return {"_size": len(self)}

    def __init__(self, values=None):
        super().__init__()
        if values is not None:
            self.extend(values)

    def append(self, value):
        setattr(self, str(len(self)), _as_parameter(value))
        return self

    def extend(self, values):
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def __len__(self):
        return len(self._tensor_fields()) + len(self._modules_below()) + sum(name.isdigit() for name in self.__dict__)

    def __iter__(self):
        return (getattr(self, str(place)) for place in range(len(self)))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return ParameterList(list(self)[index])
        return getattr(self, str(_place(index, len(self))))

    def __setitem__(self, index, value):
        setattr(self, str(_place(index, len(self))), _as_parameter(value))

    def extra_repr(self):
        return "\n".join(_text(enumerate(self)))


class ParameterDict(Module):
    """Parameters by names; also lists and dicts of parameters, which come after them."""

    _not_saved = ("_keys",)

    def _also_saved(self):
        return {"_keys": dict.fromkeys(self.keys())}

    def __init__(self, parameters=None):
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def update(self, parameters):
        for name, value in parameters.items() if hasattr(parameters, "items") else parameters:
            self[name] = value

    def __getitem__(self, name):
        if name not in self:
            raise KeyError(name)
        return getattr(self, name)

    def __setitem__(self, name, value):
        if not isinstance(value, (_C.Tensor, Module)):
            raise TypeError(f"ParameterDict: '{name}' is a '{type(value).__name__}': expected a tensor, or a list or dict of parameters")
        setattr(self, name, _as_parameter(value))

    def __delitem__(self, name):
        delattr(self, name)

    def __len__(self):
        return len(self.keys())

    def __iter__(self):
        return iter(self.keys())

    def __contains__(self, name):
        return name in self.keys()

    def keys(self):
        return [name for name, _ in (*self._tensor_fields(), *self._modules_below())]

    def values(self):
        return [getattr(self, name) for name in self.keys()]

    def items(self):
        return [(name, getattr(self, name)) for name in self.keys()]

    def get(self, name, default=None):
        return self[name] if name in self else default

    def pop(self, name):
        value = self[name]
        del self[name]
        return value

    def clear(self):
        for name in self.keys():
            del self[name]

    def extra_repr(self):
        return "\n".join(_text(self.items()))
