"""Models by name, and the functions that build them."""

import fnmatch
import functools
import os

from tern import _C
from tern.models._weights import Weights, WeightsEnum, weights_of
from tern.serialization import load

__all__ = ["Weights", "WeightsEnum", "get_model", "get_model_builder", "get_model_weights", "get_weight", "list_models"]

_builders = {}


def list_models(module=None, include=None, exclude=None):
    """The names of all models, or of those in the package `module`, that match patterns of the shell."""
    def matches(name, patterns):
        return any(fnmatch.fnmatch(name, pattern) for pattern in ([patterns] if isinstance(patterns, str) else patterns))

    return sorted(name for name, build in _builders.items()
                  if (module is None or build.__module__.rpartition(".")[0] == module.__name__)
                  and (not include or matches(name, include)) and not (exclude and matches(name, exclude)))


def get_model_builder(name):
    """The function that builds the model of this name."""
    if name.lower() not in _builders:
        raise ValueError(f"Unknown model {name}")
    return _builders[name.lower()]


def get_model(name, **config):
    """The model of this name, with these arguments of its function."""
    return get_model_builder(name)(**config)


def get_model_weights(name):
    """The enumeration of the weights for a model, of its name or function."""
    return (get_model_builder(name) if isinstance(name, str) else name).weights


def get_weight(name):
    """The weights of a name like "ResNet50_Weights.IMAGENET1K_V1"."""
    kind, dot, member = name.partition(".")
    if not dot or "." in member:
        raise ValueError(f"Invalid weight name provided: '{name}'.")
    for build in _builders.values():
        if build.weights.__name__ == kind:
            return build.weights[member]
    raise ValueError(f"The weight enum '{kind}' for the specific method couldn't be retrieved.")


def fixed(options, **settings):
    """Options with the settings that make the model what its name says."""
    for name, value in settings.items():
        if options.get(name, value) != value:
            raise ValueError(f"The parameter '{name}' expected value {value} but got {options[name]} instead.")
    return {**options, **settings}


def _strictly(make, state, entry, options):
    net = make(**options)
    net.load_state_dict(state)
    return net


def define(namespace, make, rows, loaded=_strictly):
    """Puts functions that build models, and enumerations of their weights, into the namespace of a module, and gives their names. A row is
    the first arguments of `make`. `loaded(make, state, entry, options)` builds a model for a state dict: one that is given, or that of
    an entry of the enumeration."""
    names = []
    for name, arguments in rows.items():
        kind = weights_of(name, namespace["__name__"])
        build = _builders[name] = _builder(name, functools.partial(make, *arguments), kind, loaded)
        build.__module__ = namespace["__name__"]
        namespace.update({name: build, kind.__name__: kind})
        names += [name, kind.__name__]
    return names


def _builder(name, make, kind, loaded):
    def build(weights=None, progress=True, *, pretrained=False, **options):
        weights = _chosen(name, kind, True if pretrained else weights)
        if weights is None:
            return make(**options)
        if isinstance(weights, dict):
            return loaded(make, weights, None, options)
        if isinstance(weights, kind):
            options = fixed(options, num_classes=1000)
            return loaded(make, weights.get_state_dict(), weights, options)
        return loaded(make, load(weights), None, options)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""The model {name}. `weights` is None for random numbers, a member of {kind.__name__} or its name, the path of a file,
    or a state dict. `pretrained=True` is IMAGENET1K_V1; `progress` changes nothing. Other arguments are those of the class."""
    build.weights = kind
    return build


def _chosen(name, kind, weights):
    """None, a member of the enumeration, a state dict, or the path of a file."""
    if weights is None or weights is False:
        return None
    if weights is True:
        if "IMAGENET1K_V1" not in kind.__members__:
            raise ValueError(f"No weights available for model {name} as pretrained=True: there are {', '.join(kind.__members__)}")
        return kind.IMAGENET1K_V1
    if isinstance(weights, (dict, WeightsEnum)):
        return weights if isinstance(weights, dict) else kind.verify(weights)
    path = os.fspath(weights)
    if path.removeprefix(f"{kind.__name__}.") in kind.__members__:
        return kind.verify(path)
    if not os.path.exists(path):
        raise _C.DataError(f"{name}: weights='{path}' is no file, and none of {', '.join(kind.__members__)}")
    return path
