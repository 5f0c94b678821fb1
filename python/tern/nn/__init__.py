"""Layers and networks."""

import inspect as _inspect
import types as _types

from tern import _C
from tern._C import Module
from tern._types import Parameter
from tern.nn import attention, copies, functional, init, module, parallel, state, utils  # noqa: F401
from tern.nn.containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from tern.nn.parallel import DataParallel

# The layers: all classes of the extension that are modules.
_layers = {name: layer for name, layer in vars(_C).items()
           if _inspect.isclass(layer) and issubclass(layer, Module) and not name.startswith("_")}
globals().update(_layers)


def _becomes(lazy, layer):
    """A lazy layer is one of the class of its layer from its first call on."""
    inherited = lazy.__call__

    def call(self, *args, **kwargs):
        output = inherited(self, *args, **kwargs)
        if type(self) is lazy:
            self.__class__ = layer
        return output

    lazy.__call__ = call


for _name, _layer in _layers.items():
    if _name.startswith("Lazy"):
        _becomes(_layer, _layer.__base__)

parameter = _types.SimpleNamespace(Parameter=Parameter)  # torch.nn.parameter


def _init_subclass(cls, **kwargs):
    """A class that is derived from a layer is called through its forward()."""
    if "__call__" not in cls.__dict__ and cls.__module__ != Module.__module__:
        cls.__call__ = Module._call_python


Module.__init_subclass__ = classmethod(_init_subclass)
Module.__copy__ = copies.replica
Module.__deepcopy__ = copies.deep_copy
Module.__reduce_ex__, Module.__setstate__ = copies.reduce, copies.set_state
