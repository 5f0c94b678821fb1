"""Classes that are written in Python and that the extension makes objects of: sizes, parameters, named tuples."""

import collections
import copy
import functools

from tern import _C


class Size(tuple):
    """The sizes of a tensor."""

    __slots__ = ()

    def __repr__(self):
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self):
        product = 1
        for size in self:
            product *= size
        return product

    def __getitem__(self, place):
        result = super().__getitem__(place)
        return Size(result) if isinstance(place, slice) else result

    def __add__(self, other):
        return Size(super().__add__(tuple(other)))


class Parameter(_C.Tensor):
    """A tensor that is learned: assigned to an attribute of a module, it is one of its parameters."""

    def __init__(self, data=None, requires_grad=True):
        super().__init__(_C.empty(0) if data is None else data.detach())
        self.requires_grad_(requires_grad)

    @classmethod
    def _of(cls, tensor):
        """The tensor itself as a parameter."""
        parameter = cls.__new__(cls)
        _C.Tensor.__init__(parameter, tensor)
        return parameter

    def __repr__(self):
        text = super().__repr__()
        return text if text.startswith("<Uninit") else "Parameter containing:\n" + text

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = Parameter(self.data.clone(), self.requires_grad)
            memo[id(self)].__dict__.update(copy.deepcopy(self.__dict__, memo))
        return memo[id(self)]



@functools.cache
def named_tuple(*names):
    """The class of what an operator with several results returns."""
    return collections.namedtuple("result", names)


def _unpickle(data, requires_grad, is_parameter):
    tensor = _C._load_from_bytes(data, None, True)
    return Parameter(tensor, requires_grad) if is_parameter else tensor.requires_grad_(requires_grad)


def _pickle(self, protocol):
    """For pickle and multiprocessing: as save() writes it."""
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) can be pickled: detach() gives one")
    data = _C._save_to_bytes(self.detach(), True, False)
    return _unpickle, (data, self.requires_grad, isinstance(self, Parameter))


def _copy(self):
    """For copy.copy(): another tensor of the same memory."""
    if isinstance(self, Parameter):
        return Parameter(self, self.requires_grad)
    return self.detach().requires_grad_(self.requires_grad)


def _new(self, *sizes):
    """Of sizes a tensor like this one that is not filled, of numbers one of them."""
    one = sizes[0] if len(sizes) == 1 else None
    return self.new_tensor(one) if isinstance(one, (list, _C.Tensor)) else self.new_empty(one if isinstance(one, tuple) else sizes)


_C.Tensor.__reduce_ex__, _C.Tensor.__copy__, _C.Tensor.new = _pickle, _copy, _new
_C._set_classes(Size, Parameter)
