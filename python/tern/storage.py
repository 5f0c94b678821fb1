"""The memory below tensors as one row of numbers: what `x.storage()` and `x.untyped_storage()` give."""

from tern import _C


class TypedStorage:
    """All numbers of a tensor's memory, also those that the tensor does not show. They can be read and changed."""

    def __init__(self, tensor):
        self._flat = tensor.detach()._whole_storage()

    dtype = property(lambda self: self._flat.dtype)
    device = property(lambda self: self._flat.device)
    is_cuda = property(lambda self: self._flat.is_cuda)

    def untyped(self):
        return UntypedStorage(self._flat)

    def data_ptr(self):
        return self._flat.data_ptr()

    def size(self):
        return self._flat.numel()

    __len__ = size

    def nbytes(self):
        return self._flat.nbytes

    def element_size(self):
        return self._flat.element_size()

    def __getitem__(self, place):
        return type(self)(self._flat[place].clone()) if isinstance(place, slice) else self._flat[place].item()

    def __setitem__(self, place, value):
        self._flat[place] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._flat.tolist()

    def fill_(self, value):
        self._flat.fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        self._flat.copy_(source._flat)
        return self

    def clone(self):
        return type(self)(self._flat.clone())

    def cpu(self):
        return self if not self.is_cuda else type(self)(self._flat.cpu())

    def is_pinned(self, device=None):
        return self._flat.is_pinned()

    def resize_(self, size):
        raise NotImplementedError("the memory of a tensor keeps its size: make a new tensor")

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and (self.data_ptr(), self.nbytes()) == (other.data_ptr(), other.nbytes())

    def __hash__(self):
        return hash((self.data_ptr(), self.nbytes()))

    def __repr__(self):
        numbers = "".join(f" {number}\n" for number in self)
        return f"{numbers}[torch.storage.{type(self).__name__}(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


class UntypedStorage(TypedStorage):
    """The same as bytes."""

    def __init__(self, tensor):
        self._flat = tensor.detach()._whole_storage().view(_C.uint8)

    def untyped(self):
        return self


def is_storage(obj):
    return isinstance(obj, TypedStorage)


_C.Tensor.storage = lambda self: TypedStorage(self)
_C.Tensor.untyped_storage = lambda self: UntypedStorage(self)
