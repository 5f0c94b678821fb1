"""Parameters and buffers that are computed from others whenever they are read, by modules that the program writes. Norms of weights and
orthogonal weights are in parametrizations.py."""

import collections.abc
import contextlib
import copy

from tern import _C
from tern._types import Parameter
from tern.autograd import no_grad
from tern.nn.containers import ModuleDict, ModuleList

_FIELD = "parametrizations"
_cache, _cached = {}, [0]  # what cached() keeps, and how many of such contexts are open


@contextlib.contextmanager
def cached():
    """In this context each parametrized tensor is computed once: at its first use."""
    _cached[0] += 1
    try:
        yield
    finally:
        _cached[0] -= 1
        if not _cached[0]:
            _cache.clear()


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _type_name(value):
    return type(value).__name__


def _check_like(what, value, reference, remedy):
    """The value is a tensor of the shape and dtype of the reference."""
    if not isinstance(value, _C.Tensor):
        raise ValueError(f"{what} must return a tensor, got {_type_name(value)}{remedy}")
    if value.dtype != reference.dtype:
        raise ValueError(f"{what} may not change the dtype of the tensor: it is {reference.dtype}, got {value.dtype}{remedy}")
    if value.shape != reference.shape:
        raise ValueError(f"{what} may not change the shape of the tensor: it is {tuple(reference.shape)}, got {tuple(value.shape)}{remedy}")


_UNSAFE = "; unsafe=True allows it"


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what they compute it from: `original`, or `original0`, `original1` and so on where the
    right_inverse() of the first gives several tensors. Called without arguments it gives the tensor."""

    def __init__(self, modules, original, unsafe=False):
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            new = self._inverse(original, required=False)
        self.is_tensor = isinstance(new, _C.Tensor)
        if not self.is_tensor and not isinstance(new, collections.abc.Sequence):
            raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {_type_name(new)}")
        self.ntensors = 1 if self.is_tensor else len(new)
        shown = copy.copy(original)
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            with no_grad():
                _check_like("Registering a parametrization: the parametrizations", self(), shown, _UNSAFE)

    def _keep_one(self, original, new):
        if new.dtype != original.dtype or new.device != original.device:
            raise ValueError("When `right_inverse` outputs one tensor, it may not change its dtype or device: "
                             f"it is {original.dtype} on {original.device}, got {new.dtype} on {new.device}")
        if new is not original:
            original.data = new
        _register(self, "original", original)

    def _keep_several(self, original, new):
        for place, tensor in enumerate(new):
            if not isinstance(tensor, _C.Tensor):
                raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                                 f"Got element {place} of the sequence with type {_type_name(tensor)}.")
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            _register(self, f"original{place}", tensor)

    def _of(self, named):
        return ModuleList(module for _, module in named)

    def _inverse(self, value, required):
        for module in reversed(list(self)):
            inverse = getattr(module, "right_inverse", None)
            if inverse is None:
                if required:
                    raise RuntimeError(f"parametrization {_type_name(module)} does not implement right_inverse.")
                continue
            try:
                value = inverse(value)
            except NotImplementedError:
                if required:
                    raise
        return value

    def right_inverse(self, value):
        """Sets what the tensor is computed from so that it becomes `value`: what an assignment to the module's attribute does."""
        with no_grad():
            new = self._inverse(value, required=True)
            originals = self._originals()
            if self.is_tensor:
                new = [new]
            elif not isinstance(new, collections.abc.Sequence) or len(new) != self.ntensors:
                raise ValueError(f"'right_inverse' must return a sequence of {self.ntensors} tensors, as when it was registered; "
                                 f"got {len(new) if isinstance(new, collections.abc.Sequence) else _type_name(new)}")
            for place, (original, tensor) in enumerate(zip(originals, new)):
                _check_like("'right_inverse'" + ("" if self.is_tensor else f", element {place},"), tensor, original, "")
            for original, tensor in zip(originals, new):
                original.data = tensor.clone() if tensor is value else tensor

    def _originals(self):
        return [self.original] if self.is_tensor else [getattr(self, f"original{place}") for place in range(self.ntensors)]

    def forward(self):
        first, *others = self
        value = first(*self._originals())
        for module in others:
            value = module(value)
        return value


# ---- classes of parametrized modules

def _lists(module):
    """The ModuleDict of the module's ParametrizationLists; None where there is none."""
    found = dict(module._modules_added()).get(_FIELD)
    return found if isinstance(found, ModuleDict) else None


def _computed(module, name):
    made_by = _lists(module)[name]
    if not _cached[0]:
        return made_by()
    kept = _cache.get(id(made_by))
    if kept is None:
        kept = _cache[id(made_by)] = made_by, made_by()
    return kept[1]


def _fill(module, inputs):
    """Before each call of a layer of C++, which reads its own fields."""
    lists = _lists(module)
    for name in lists.keys() if lists else ():
        module._set_tensor(name, _computed(module, name))


def _attribute(name):
    return property(lambda self: _computed(self, name), lambda self, value: _lists(self)[name].right_inverse(value))


def _not_pickled(self, protocol):
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict(): save that, register the "
                       "parametrizations on a new module, and load it there")


def _set_class(module):
    """A class whose properties are the parametrized tensors, derived from the one that the module had before."""
    before, lists = type_before_parametrizations(module), _lists(module)
    if not lists:
        module.__class__ = before
        return
    names = {name: _attribute(name) for name in lists.keys()}

    def deep_copy(self, memo):
        if not self._is_python():
            with no_grad():
                _fill(self, ())  # what the last call computed has a history, and could not be copied
        return before.__deepcopy__(self, memo)

    module.__class__ = type(f"Parametrized{before.__name__}", (before,), {
        **names, "__module__": __name__, "__slots__": (),  # the layout of the class before, or an object could not change to it
        "_before_parametrizations": before, "__deepcopy__": deep_copy, "__reduce_ex__": _not_pickled})


def type_before_parametrizations(module):
    """The class that the module had before the first register_parametrization()."""
    return getattr(type(module), "_before_parametrizations", type(module))


def _norms(module):
    """Names of tensors that weight_norm() and spectral_norm() of nn.utils.parametrizations compute in C++."""
    own = [name for name, _ in module.named_parameters(recurse=False)]
    return {name.split(".")[1] for name in own if name.startswith(_FIELD + ".")}


def _remove_norm(module, name):
    """Makes the tensor the module's own again, whichever norm computes it; False where none does."""
    for remove in (_C.remove_weight_norm, _C.remove_spectral_norm):
        try:
            remove(module, name)
            return True
        except ValueError:
            pass
    return False


def _is_computed_in_cpp(module, name):
    """Whether weight_norm or spectral_norm, under either kind of names, computes the tensor."""
    return _remove_norm(copy.copy(module), name)


# ---- what programs call

def is_parametrized(module, tensor_name=None):
    """Whether the tensor of this name, or without a name any of the module's own, is computed by parametrizations."""
    lists = _lists(module)
    names = _norms(module).union(lists.keys() if lists else ())
    return bool(names) if tensor_name is None else tensor_name in names


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """From now on the module's parameter or buffer `tensor_name` is what `parametrization`, a module, gives of the tensor
    `module.parametrizations.<tensor_name>.original`, which is learned in its place: the same object as before, so that optimizers go on
    with it. A right_inverse() of the parametrization says what `original` begins with, and is called when something is assigned to
    `module.<tensor_name>`; where it gives several tensors, they are `original0`, `original1` and so on. Of several parametrizations of one
    tensor the last registered comes last. Without `unsafe` a change of shape or dtype is refused (ValueError).

    A layer of C++ takes the tensor when it is called, `layer(x)`, not at a call of its forward().
    """
    if not isinstance(module, _C.Module) or not isinstance(parametrization, _C.Module):
        wrong = parametrization if isinstance(module, _C.Module) else module
        raise TypeError(f"register_parametrization: expected an nn.Module, got '{_type_name(wrong)}'")
    parametrization.train(module.training)
    lists = _lists(module)
    if lists is not None and tensor_name in lists:
        _chain(lists[tensor_name], getattr(module, tensor_name), parametrization, unsafe)
        return module
    tensors = dict(module._tensor_fields())
    if tensor_name not in tensors or getattr(module, tensor_name) is None:
        by_norm = isinstance(getattr(module, tensor_name, None), _C.Tensor) and _is_computed_in_cpp(module, tensor_name)
        if by_norm:
            raise ValueError(f"register_parametrization: '{tensor_name}' of {_type_name(module)} is computed by weight_norm or "
                             "spectral_norm already: remove_parametrizations(), or remove_weight_norm() and the like, take that away")
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    original = getattr(module, tensor_name)
    if original._is_lazy():
        raise ValueError(f"register_parametrization: '{tensor_name}' of {_type_name(module)} waits for its size: call the module with one "
                         "batch first")
    made_by = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if lists is None:
        module.add_module(_FIELD, ModuleDict())
        if not module._is_python():
            module.register_forward_pre_hook(_fill)
    _lists(module)[tensor_name] = made_by
    _set_class(module)
    if not module._is_python():
        with no_grad():
            _fill(module, ())
    return module


def _chain(made_by, value, parametrization, unsafe):
    if not unsafe:
        with no_grad():
            _check_like("Registering a parametrization: the parametrization", parametrization(value), value, _UNSAFE)
            if hasattr(parametrization, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    _check_like("Registering a parametrization: its right_inverse", parametrization.right_inverse(value), value, _UNSAFE)
    made_by.append(parametrization)
    made_by.unsafe |= unsafe


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes the tensor one of the module's own again: as the parametrizations computed it, or, without `leave_parametrized`, `original`
    as it is. It is the object that `original` was, unless there were several."""
    lists = _lists(module)
    if lists is None or tensor_name not in lists:
        if tensor_name in _norms(module):
            return _remove_norm_of_cpp(module, tensor_name, leave_parametrized)
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    made_by = lists[tensor_name]
    if made_by.is_tensor:
        original = made_by.original
        if leave_parametrized:
            with no_grad():
                original.data = made_by().clone()
    elif leave_parametrized:
        with no_grad():
            value = made_by().clone()
        learned = any(isinstance(tensor, Parameter) for tensor in made_by._originals())
        original = Parameter(value, made_by.original0.requires_grad) if learned else value
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence "
                         "of tensors.")
    del lists[tensor_name]
    if not len(lists):
        delattr(module, _FIELD)
    _set_class(module)
    if not module._is_python() and tensor_name in module._own_tensors():
        setattr(module, tensor_name, original)
    else:
        _register(module, tensor_name, original)
    return module


def _remove_norm_of_cpp(module, name, leave_parametrized):
    tensors = dict(module.named_parameters(recurse=False))
    original = tensors.get(f"{_FIELD}.{name}.original")
    if not leave_parametrized and original is None:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence "
                         "of tensors.")
    _remove_norm(module, name)
    if not leave_parametrized:
        getattr(module, name).data.copy_(original.detach())
    return module
