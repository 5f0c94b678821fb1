"""Tensors in memory that processes share: share_memory_() moves them there, and what is sent to another process names the place instead of
the numbers. The memory has no name in the file system: it is gone when the last process lets it go, however that ends."""

import mmap
import os
import weakref

from tern import _C
from tern._types import Parameter

_blocks = {}  # of this process: first address -> (number of bytes, descriptor, weak reference to the mapping)
_opened = {}  # mappings of other processes' blocks, weakly: (process, descriptor, inode) -> mapping


def _map(file, nbytes):
    """A mapping of the descriptor, which is closed when nothing uses the mapping any more."""
    memory = mmap.mmap(file, nbytes)
    start = _C.frombuffer(memory, dtype=_C.uint8).data_ptr()

    def forget():
        _blocks.pop(start, None)
        os.close(file)

    _blocks[start] = nbytes, file, weakref.ref(memory)
    weakref.finalize(memory, forget)
    return memory


def _block_of(tensor):
    """(number of bytes, descriptor, mapping, offset of the tensor) of the block that the tensor lies in, or None."""
    place = tensor.data_ptr() if tensor.device.type == "cpu" and tensor.numel() else 0
    for start, (nbytes, file, memory) in _blocks.items():
        if start <= place < start + nbytes:
            return nbytes, file, memory(), place - start
    return None


def share(tensors):
    """Moves tensors on the CPU into one block."""
    tensors = {id(tensor): tensor for tensor in tensors if tensor.device.type == "cpu" and tensor.numel() and not is_shared(tensor)}
    places, size = [], 0
    for tensor in tensors.values():
        places.append(size)
        size += -(-tensor.numel() * tensor.element_size() // 64) * 64
    if not size:
        return
    file = os.memfd_create("tern")
    try:
        os.posix_fallocate(file, 0, size)  # OSError here where there is no room, not a signal later
        memory = _map(file, size)
    except BaseException:
        os.close(file)
        raise
    for tensor, offset in zip(tensors.values(), places):
        shared = _C.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel(), offset=offset).view(tensor.shape)
        shared.copy_(tensor.detach())
        tensor.data = shared


def is_shared(tensor):
    return tensor.is_cuda or _block_of(tensor) is not None


def _share_tensor(self):
    """Moves a tensor on the CPU into memory that processes share. It keeps its strides only where they are dense; views of it stay where
    they were."""
    share([self])
    return self


def _share_module(self):
    """Moves parameters and buffers into memory that processes share."""
    share([*self.parameters(), *self.buffers()])
    return self


def _open(process, file, inode, nbytes, offset, dtype, shape, requires_grad, is_parameter):
    key = (process, file, inode)
    memory = _opened[key]() if key in _opened else None
    if memory is None:
        try:
            here = os.open(f"/proc/{process}/fd/{file}", os.O_RDWR)
        except OSError as error:
            raise _C.DataError("a tensor in shared memory can not be opened: the process that sent it has ended, or has let it go "
                               f"({error})") from None
        if os.fstat(here).st_ino != inode:
            os.close(here)
            raise _C.DataError("a tensor in shared memory can not be opened: the process that sent it has let it go")
        memory = _map(here, nbytes)
        _opened[key] = weakref.ref(memory)
        weakref.finalize(memory, _opened.pop, key, None)
    count = 1
    for size in shape:
        count *= size
    tensor = _C.frombuffer(memory, dtype=dtype, count=count, offset=offset).view(shape)
    return Parameter(tensor, requires_grad) if is_parameter else tensor.requires_grad_(requires_grad)


def reduce(tensor):
    """What is sent to another process: of a shared tensor its place."""
    block = _block_of(tensor)
    if block is None or not tensor.is_contiguous() or not tensor.is_leaf:
        return tensor.__reduce_ex__(2)
    nbytes, file, _, offset = block
    return _open, (os.getpid(), file, os.fstat(file).st_ino, nbytes, offset, tensor.dtype, tuple(tensor.shape), tensor.requires_grad,
                   isinstance(tensor, Parameter))


_C.Tensor.share_memory_, _C.Tensor.is_shared = _share_tensor, is_shared
_C.Module.share_memory = _share_module
