"""Pruning: parameters some of whose numbers are kept at zero by a mask. `name` becomes `name_orig`, which is learned, times the buffer
`name_mask`, before each call of the module."""

import abc
import collections
import collections.abc
import numbers
import weakref

from tern import _C


class _Kept:
    """What a pruned parameter keeps of its pruning, on the tensor `name_orig`. Of a copy of the module the hook goes on, but can not be
    taken away."""

    def __init__(self, method, hook):
        self.method, self.hook, self.value = method, hook, None

    def __deepcopy__(self, memo):
        return _Kept(self.method, None)


class _DetachedCopy:
    """copy.deepcopy() of a tensor that is computed: its numbers."""

    def __init__(self, tensor):
        self._tensor = weakref.ref(tensor)

    def __call__(self, memo):
        return self._tensor().detach().clone()


def _has_parts(module, name):
    tensors = dict(module._tensor_fields())
    return f"{name}_orig" in tensors and f"{name}_mask" in tensors


def _kept(module, name):
    return getattr(module, f"{name}_orig").__dict__.get("_pruning") if _has_parts(module, name) else None


def _hooks(module):
    """What Module._forward_pre_hooks shows: the pruning methods of the module's own parameters."""
    names = [name.removesuffix("_orig") for name, _ in module._tensor_fields() if name.endswith("_orig")]
    kept = [_kept(module, name) for name in names]
    return collections.OrderedDict(enumerate(each.method for each in kept if each is not None))


class BasePruningMethod(abc.ABC):
    """Derive, write compute_mask(t, default_mask), and call apply(module, name, ...) of the class. PRUNING_TYPE is 'unstructured',
    'structured' (with an attribute `dim`) or 'global': which part of a tensor that is pruned already a further pruning looks at."""

    _tensor_name: str
    PRUNING_TYPE = "unstructured"

    def __call__(self, module, inputs):
        """Before the module is called: computes the parameter."""
        if _has_parts(module, self._tensor_name):  # not in a copy whose pruning was removed
            self._compute(module)

    def _compute(self, module):
        value = self.apply_mask(module)
        if not value.is_leaf:
            value.__deepcopy__ = _DetachedCopy(value)
        kept = _kept(module, self._tensor_name)
        if kept is not None:
            kept.value = value  # so that the module's attribute is this object, and no nn.Parameter
        setattr(module, self._tensor_name, value)

    @abc.abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask, of zeros and ones, for importance scores `t` and the mask that there is."""

    def apply_mask(self, module):
        """The parameter times its mask."""
        name = getattr(self, "_tensor_name", None)
        if name is None or not _has_parts(module, name):
            raise ValueError(f"Module {module} has to be pruned")
        original, mask = getattr(module, f"{name}_orig"), getattr(module, f"{name}_mask")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes the parameter `name` of the module by a method of this class that is made of the other arguments; one that is pruned
        already by both. Returns the method."""
        if not isinstance(module, _C.Module):
            raise TypeError(f"prune: expected an nn.Module, got '{type(module).__name__}'")
        method = cls(*args, **kwargs)
        method._tensor_name = name
        before = _kept(module, name)
        tensor = getattr(module, name, None)
        if before is not None:
            default_mask = getattr(module, f"{name}_mask").detach().clone()
            if not isinstance(before.method, PruningContainer):
                method = _container(before.method, method)
            else:
                method = _container(*before.method, method)
        elif dict(module._tensor_fields()).get(name) == "parameter" and tensor is not None:
            if tensor._is_lazy():
                raise ValueError(f"prune: '{name}' of {type(module).__name__} waits for its size: call the module with one batch first")
            default_mask = _C.ones_like(tensor.detach())
        else:
            raise ValueError(f"prune: '{name}' is no parameter of {type(module).__name__}"
                             + (": it is computed from others" if isinstance(tensor, _C.Tensor) else ""))
        scores = tensor if importance_scores is None else importance_scores
        if scores.shape != tensor.shape:
            raise ValueError("importance_scores should have the same shape as parameter "
                             f"{name} of {module}: {tuple(tensor.shape)}, got {tuple(scores.shape)}")
        mask = method.compute_mask(scores.detach(), default_mask=default_mask).to(tensor.dtype)
        if before is None:
            delattr(module, name)
            module.register_parameter(f"{name}_orig", tensor)
            module.register_buffer(f"{name}_mask", mask)
        else:
            if before.hook is not None:
                before.hook.remove()
            tensor = getattr(module, f"{name}_orig")
            setattr(module, f"{name}_mask", mask)
        tensor._pruning = _Kept(method, module.register_forward_pre_hook(method))
        method._compute(module)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """The tensor pruned by this method, without a module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise ValueError(f"importance_scores should have the same shape as tensor t: {tuple(t.shape)}, got {tuple(scores.shape)}")
        default_mask = _C.ones_like(t.detach()) if default_mask is None else default_mask
        return t * self.compute_mask(scores.detach(), default_mask=default_mask)

    def remove(self, module):
        """Makes the pruned parameter one of the module's own again, with its zeros; see remove()."""
        name = self._tensor_name
        kept = _kept(module, name)
        if kept is None:
            raise ValueError(f"Module {module} has to be pruned before pruning can be removed")
        value = self.apply_mask(module).detach()
        tensor = getattr(module, f"{name}_orig")
        if kept.hook is not None:
            kept.hook.remove()
        del tensor._pruning
        for field in (f"{name}_orig", f"{name}_mask"):
            delattr(module, field)
        if name in vars(module):
            delattr(module, name)
        tensor.data = value
        module.register_parameter(name, tensor)


def _container(*methods):
    container = PruningContainer()
    container._tensor_name = methods[0]._tensor_name
    for method in methods:
        container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Several prunings of one parameter, one after the other."""

    def __init__(self, *args):
        self._pruning_methods = ()
        methods = args[0] if len(args) == 1 and isinstance(args[0], collections.abc.Iterable) else args
        for method in methods:
            if not self._pruning_methods and isinstance(method, BasePruningMethod):
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Adds one for the same parameter; None adds nothing."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is None:
            return
        own = getattr(self, "_tensor_name", method._tensor_name)
        if own != method._tensor_name:
            raise ValueError("Can only add pruning methods acting on the parameter named "
                             f"'{own}' to PruningContainer {self}. Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """The last method's mask of what the mask so far leaves, together with that mask."""
        if not self._pruning_methods:
            raise ValueError("prune: an empty PruningContainer computes no mask")
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype).clone()
        if method.PRUNING_TYPE == "unstructured":
            place = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError("Pruning methods of PRUNING_TYPE \"structured\" need to have the attribute `dim` defined.")
            dim = _dimension(t, method.dim)
            others = [d for d in range(t.dim()) if d != dim]
            kept = (mask.sum(dim=others) if others else mask) != 0
            place = (slice(None),) * dim + (kept.nonzero().flatten(),)
        elif method.PRUNING_TYPE == "global":
            place = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask[place] = method.compute_mask(t[place], default_mask=mask[place]).to(mask.dtype)
        return mask


# ---- the methods

def _check_amount(amount):
    if not isinstance(amount, numbers.Real) or isinstance(amount, bool):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and amount > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count(amount, size):
    """How many of `size` are pruned: a number of them, or a fraction."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return int(amount)


def _dimension(t, dim):
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {tuple(t.shape)}")
    return dim % t.dim()


class Identity(BasePruningMethod):
    """Prunes nothing: the parameter gets the names of a pruned one."""

    def compute_mask(self, t, default_mask):
        return default_mask

    @classmethod
    def apply(cls, module, name):
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    def __init__(self, amount):
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self._places(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes single numbers, drawn at random."""

    def _places(self, t, count):
        return _C.topk(_C.rand_like(t).view(-1), k=count)[1]

    @classmethod
    def apply(cls, module, name, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the numbers nearest to zero."""

    def _places(self, t, count):
        return _C.topk(t.abs().reshape(-1), k=count, largest=False)[1]

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def compute_mask(self, t, default_mask):
        if t.dim() <= 1:
            raise ValueError("Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                             f"{tuple(t.shape)} with {t.dim()} dims")
        dim = _dimension(t, self.dim)
        count = _count(self.amount, t.shape[dim])
        if not count:
            return default_mask
        mask = _C.zeros_like(t)
        mask[(slice(None),) * dim + (self._kept(t, dim, count),)] = 1
        return mask.to(default_mask.dtype) * default_mask


class RandomStructured(_Structured):
    """Prunes whole channels of a dimension, drawn at random."""

    def _kept(self, t, dim, count):
        return _C.argsort(_C.rand(t.shape[dim]))[count:].to(t.device)

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels of a dimension with the smallest norms of order `n`."""

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t, dim, count):
        norms = _C.norm(t, p=self.n, dim=[d for d in range(t.dim()) if d != dim])
        return _C.topk(norms, k=t.shape[dim] - count, largest=True)[1]

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if self.mask.shape != default_mask.shape:
            raise ValueError(f"custom_from_mask: the mask must have the parameter's shape {tuple(default_mask.shape)}, "
                             f"got {tuple(self.mask.shape)}")
        return default_mask * self.mask.to(default_mask.device, default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        return super().apply(module, name, mask=mask)


# ---- the functions; all return the module

def identity(module, name):
    """Gives a parameter the names of a pruned one, with a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prunes `amount` numbers of a parameter, a number of them or a fraction, drawn at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes the `amount` numbers of a parameter that are nearest to zero, or those with the smallest importance scores."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prunes `amount` channels of a dimension of a parameter, drawn at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes the `amount` channels of a dimension of a parameter that have the smallest norms of order `n`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prunes the numbers of a parameter at which the mask is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes parameters, pairs of a module and a name, as if they were one: by a class of unstructured methods, made of `kwargs`.
    `importance_scores` is a dict from such pairs to tensors."""
    if not isinstance(parameters, collections.abc.Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    if not parameters:
        raise ValueError("global_unstructured(): parameters has no pair of a module and a name")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError('Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
                        f"Found method {pruning_method} of type {method.PRUNING_TYPE}")
    method._tensor_name = "temp"
    tensors = [getattr(module, name).detach() for module, name in parameters]
    flat = [scores.get(pair, tensor).detach().reshape(-1) for pair, tensor in zip(parameters, tensors)]
    masks = [getattr(module, f"{name}_mask") if _kept(module, name) is not None else _C.ones_like(tensor)
             for (module, name), tensor in zip(parameters, tensors)]
    mask = _container(method).compute_mask(_C.cat(flat), default_mask=_C.cat([each.reshape(-1) for each in masks]))
    start = 0
    for (module, name), tensor in zip(parameters, tensors):
        custom_from_mask(module, name, mask=mask[start:start + tensor.numel()].view(tensor.shape))
        start += tensor.numel()


def remove(module, name):
    """Ends the pruning of a parameter: it is one of the module's own again, the same object as before, with zeros where it was pruned."""
    kept = _kept(module, name)
    if kept is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    kept.method.remove(module)
    return module


def is_pruned(module):
    """Whether a parameter of the module, or of one below it, is pruned."""
    return any(_hooks(below) for _, below in module.named_modules())
