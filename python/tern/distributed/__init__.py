"""Several processes that work on one thing, on one machine or on many servers: torch.distributed.

    python -m tern.distributed.run --nproc-per-node 4 train.py

    import tern.distributed as dist
    dist.init_process_group()
    model = nn.parallel.DistributedDataParallel(net.to(dist.get_device()))
"""

import atexit
import datetime
import io
import os
import sys
import threading
import types

from tern import _C, serialization
from tern._C import DistributedError, _ReduceOp as ReduceOp, _Work as Work  # noqa: F401
from tern.autograd import no_grad

default_pg_timeout = datetime.timedelta(minutes=30)
DistBackendError = DistNetworkError = DistStoreError = DistError = DistributedError


def get_default_backend_for_device(device):
    """The name that PyTorch has for what carries tensors of the device."""
    return "nccl" if _C.device(device).type == "cuda" else "gloo"


class ProcessGroup:
    """Some of the processes, in the order of their ranks among all."""

    def __init__(self, native, ranks, backend):
        self._native, self._ranks, self._backend = native, ranks, backend

    def rank(self):
        return self._native.rank

    def size(self):
        return len(self._ranks)

    def name(self):
        return self._backend

    def __repr__(self):
        return f"<ProcessGroup: rank {self.rank()} of {self.size()}>"


class GroupMember:
    """What new_group() returns on processes that are not in the group."""

    NON_GROUP_MEMBER = types.SimpleNamespace(_native=None, _ranks=())


class _World:
    """The group that all are in: of the process, or, in simulate(), of the thread."""

    def __init__(self):
        self._of_process = None
        self._of_thread = threading.local()

    @property
    def group(self):
        return getattr(self._of_thread, "group", None) or self._of_process

    def set_for_process(self, group):
        self._of_process = group

    def set_for_thread(self, group):
        self._of_thread.group = group


_world = _World()


def _seconds(timeout):
    return (timeout or default_pg_timeout).total_seconds() if not isinstance(timeout, (int, float)) else timeout


def is_available():
    return True


def is_initialized():
    """Whether init_process_group() was called."""
    return _world.group is not None


is_mpi_available, is_nccl_available = _C._is_mpi_available, _C.cuda_is_available


def is_gloo_available():
    """Whether tensors of the CPU travel by TCP: everywhere."""
    return True


def is_torchelastic_launched():
    """Whether torchrun, or what sets its variables, started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="",
                       pg_options=None, device_id=None):
    """Meets the other processes: those that `python -m tern.distributed.run`, torchrun, `tern launch`, mpirun or srun started
    this one with, or, by init_method="tcp://host:port" or "file:///path" with rank and world_size, those that meet there. A
    group of one where there are no others. `backend` may be any of PyTorch's: tensors on GPUs go by NCCL where that is
    possible, all else by TCP or, in processes that MPI started, by MPI."""
    if is_initialized():
        raise RuntimeError("trying to initialize the default process group twice!")
    if store is not None:
        raise _C.NotImplementedError("init_process_group: a store is not supported: "
                                     "use init_method='tcp://host:port' or 'file:///path'")
    for name in (backend or "gloo").lower().split(","):
        if name.split(":")[-1] not in ("gloo", "nccl", "mpi"):
            raise _C.ValueError(f"init_process_group: '{backend}' is no backend: gloo, nccl or mpi")
    native = _C._ProcessGroup.start(init_method or "", rank, world_size, _seconds(timeout))
    _world.set_for_process(ProcessGroup(native, range(native.size), backend or "gloo"))


def destroy_process_group(group=None):
    """Leaves the group. For that of all, waits until the others leave it too."""
    group = _group(group)
    group._native.close()
    if group is _world.group:
        _world.set_for_process(None)


def _abandon():
    """This process has failed: the others are told, and nobody waits."""
    group = _world.group
    if group is not None:
        group._native.abandon()
        destroy_process_group()


@atexit.register
def _leave():
    if hasattr(sys, "last_value"):  # the program ends with an exception
        _abandon()
    elif is_initialized():
        destroy_process_group()


def simulate(size, function, *args, timeout=None):
    """Calls function(*args) in `size` threads that take the parts of processes, each with a group of its own as the default
    one: for trying on one machine what is meant for many. Returns their results in the order of ranks."""
    natives = _C._ProcessGroup.simulate(size, _seconds(timeout))
    results, errors = [None] * size, [None] * size

    def run(rank):
        native = natives[rank]
        _world.set_for_thread(ProcessGroup(native, range(size), "gloo"))
        try:
            results[rank] = function(*args)
        except BaseException as error:
            errors[rank] = error
            native.abandon()
        finally:
            _world.set_for_thread(None)
            native.close()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Those that only heard of another's end say less.
    raised = sorted((error for error in errors if error), key=lambda error: isinstance(error, DistributedError))
    if raised:
        raise raised[0]
    return results


def _group(group):
    group = group or _world.group
    if group is None:
        raise _C.ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return group


def _member(group):
    """The group where this process is in it, else None."""
    group = _group(group)
    return None if group._native is None else group


def get_rank(group=None):
    """The number of this process in the group; -1 where it is not in it."""
    group = _member(group)
    return -1 if group is None else group.rank()


def get_world_size(group=None):
    group = _member(group)
    return -1 if group is None else group.size()


def get_node_local_rank(fallback_rank=None):
    """The number of this process among those of its machine."""
    return _world.group._native.local_rank if is_initialized() or fallback_rank is None else fallback_rank


def get_device(group=None):
    """Where this process computes: the GPU of its number on its machine, or the CPU where there are none."""
    return _group(group)._native.device


def get_backend(group=None):
    return _group(group)._backend


def get_process_group_ranks(group=None):
    return list(_group(group)._ranks)


def get_group_rank(group, global_rank):
    if global_rank not in group._ranks:
        raise _C.ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group._ranks.index(global_rank)


def get_global_rank(group, group_rank):
    return _group(group)._ranks[group_rank]


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None):
    """A group of some of the processes; all call it, also those that are not in it."""
    world = _group(None)
    ranks = sorted(world._ranks if ranks is None else ranks)
    native = world._native.new_group(ranks)
    return GroupMember.NON_GROUP_MEMBER if native is None else ProcessGroup(native, ranks, backend or world._backend)


def _root(group, rank, group_rank, default=None):
    """Ranks are those among all; with group_src and group_dst in the group."""
    if group_rank is not None:
        return group_rank
    rank = default if rank is None else rank
    if rank not in group._ranks:
        raise _C.ValueError(f"rank {rank} is not in {group}")
    return group._ranks.index(rank)


class _Done:
    """Of an operation that is over."""

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True


def _operation(body):
    """An operation of a group: nothing on processes that are not in it. With async_op what is returned has wait(); but for
    all_reduce the work is over by then."""

    def operation(*args, group=None, async_op=False, **named):
        group = _member(group)
        if group is None:
            return None
        body(group, *args, **named)
        return _Done() if async_op else None

    operation.__name__, operation.__doc__ = body.__name__, body.__doc__
    return operation


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Every process' tensor becomes their sum, mean, product, minimum or maximum."""
    group = _member(group)
    if group is None:
        return None
    work = group._native.all_reduce_async(tensor, op)
    return work if async_op else work.wait() and None


@_operation
def broadcast(group, tensor, src=None, group_src=None):
    """Every process' tensor becomes that of `src`."""
    group._native.broadcast(tensor, _root(group, src, group_src))


@_operation
def reduce(group, tensor, dst=None, op=ReduceOp.SUM, group_dst=None):
    """The tensor of `dst` becomes what those of all come to."""
    group._native.reduce(tensor, _root(group, dst, group_dst), op)


def _fill(places, tensors, what):
    if len(places) != len(tensors):
        raise _C.ValueError(f"{what}: expected a list of {len(tensors)} tensors, one for each process, got {len(places)}")
    with no_grad():
        for place, tensor in zip(places, tensors):
            place.copy_(tensor)


@_operation
def all_gather(group, tensor_list, tensor):
    """The tensors of all processes, in the order of ranks, into those of the list."""
    _fill(tensor_list, group._native.all_gather(tensor).unbind(), "all_gather")


@_operation
def all_gather_into_tensor(group, output_tensor, input_tensor):
    """The same, joined along the first dimension or one above it."""
    with no_grad():
        output_tensor.copy_(group._native.all_gather(input_tensor).reshape(output_tensor.shape))


def _fill_one(output, tensors):
    with no_grad():
        output.copy_(_C.stack(tensors).reshape(output.shape))


@_operation
def gather(group, tensor, gather_list=None, dst=None, group_dst=None):
    """The tensors of all into those of the list, on `dst`."""
    root = _root(group, dst, group_dst, default=0)
    tensors = group._native.gather(tensor, root)
    if group.rank() == root:
        _fill(gather_list or [], tensors, "gather")


@_operation
def scatter(group, tensor, scatter_list=None, src=None, group_src=None):
    """Every process' tensor becomes the one of the list, which `src` has, that is at its rank."""
    root = _root(group, src, group_src, default=0)
    group._native.scatter(tensor, list(scatter_list or []) if group.rank() == root else [], root)


@_operation
def reduce_scatter(group, output, input_list, op=ReduceOp.SUM):
    """Of the lists of all, what is at the place of this process comes to."""
    _fill([output], [group._native.reduce_scatter(list(input_list), op)], "reduce_scatter")


def _parts(tensor, size):
    if tensor.shape[:1] and tensor.shape[0] % size:
        raise _C.ShapeError(f"a first dimension of {tensor.shape[0]} does not divide into {size} processes")
    return list(tensor.chunk(size))


@_operation
def reduce_scatter_tensor(group, output, input, op=ReduceOp.SUM):
    """The same of one tensor, whose first dimension has the parts."""
    _fill_one(output, [group._native.reduce_scatter(_parts(input, group.size()), op)])


@_operation
def all_to_all(group, output_tensor_list, input_tensor_list):
    """Of the lists of all, what is at the place of this process, in the order of ranks."""
    _fill(output_tensor_list, group._native.all_to_all(list(input_tensor_list)), "all_to_all")


@_operation
def all_to_all_single(group, output, input):
    """The same of one tensor, whose first dimension has equal parts."""
    _fill_one(output, group._native.all_to_all(_parts(input, group.size())))


@_operation
def barrier(group, device_ids=None):
    """Returns when all processes have come to it."""
    group._native.barrier()


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    barrier(group=group)


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Gives `dst` the tensor's numbers, which are copied: they may change at once."""
    group = _member(group)
    group._native.send(tensor, _root(group, dst, group_dst))
    return _Done()


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    isend(tensor, dst, group, tag, group_dst)


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """The tensor becomes the next one that `src` sends; leave it alone until wait() has returned."""
    group = _member(group)
    return group._native.irecv(tensor, _root(group, src, group_src))


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    irecv(tensor, src, group, tag, group_src).wait()
    return src


class P2POp:
    """A message for batch_isend_irecv(): `op` is isend or irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise RuntimeError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                               "``torch.distributed.irecv``.")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = op, tensor, peer, group, tag, group_peer


def batch_isend_irecv(p2p_op_list):
    """All of the messages at once; what is returned has wait() for each."""
    sends = [op for op in p2p_op_list if op.op is isend]
    works = {id(op): op.op(op.tensor, op.peer, op.group, op.tag, op.group_peer)
             for op in sends + [op for op in p2p_op_list if op.op is irecv]}
    return [works[id(op)] for op in p2p_op_list]


def _to_bytes(value):
    file = io.BytesIO()
    serialization.save(value, file)
    return file.getvalue()


def _from_bytes(data):
    return serialization.load(io.BytesIO(data), map_location="auto")


# Objects are what a file can hold: numbers, texts, tensors, lists, dicts. What comes from another process runs nothing here.

@_operation
def all_gather_object(group, object_list, obj):
    """The objects of all processes, in the order of ranks, into the list."""
    object_list[:] = map(_from_bytes, group._native.all_gather_bytes(_to_bytes(obj)))


@_operation
def gather_object(group, obj, object_gather_list=None, dst=None, group_dst=None):
    """The same, on `dst` only."""
    root = _root(group, dst, group_dst, default=0)
    gathered = group._native.all_gather_bytes(_to_bytes(obj))
    if group.rank() == root:
        object_gather_list[:] = map(_from_bytes, gathered)


@_operation
def broadcast_object_list(group, object_list, src=None, device=None, group_src=None):
    """The list's objects become those of `src`."""
    root = _root(group, src, group_src, default=0)
    object_list[:] = _from_bytes(group._native.broadcast_bytes(_to_bytes(list(object_list)), root))


@_operation
def scatter_object_list(group, scatter_object_output_list, scatter_object_input_list=None, src=None, group_src=None):
    """The first of the output list becomes the one of the input list, which `src` has, that is at this process' rank."""
    root = _root(group, src, group_src, default=0)
    values = list(scatter_object_input_list or []) if group.rank() == root else []
    if group.rank() == root and len(values) != group.size():
        raise _C.ValueError(f"scatter_object_list: expected {group.size()} objects, one for each process, got {len(values)}")
    scatter_object_output_list[0] = _from_bytes(group._native.broadcast_bytes(_to_bytes(values), root))[group.rank()]


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None):
    """Gives `dst` the objects, which it takes by recv_object_list()."""
    data = _C.frombuffer(bytearray(_to_bytes(list(object_list))), dtype=_C.uint8)
    send(_C.tensor([data.numel()]), dst, group, group_dst=group_dst)
    send(data, dst, group, group_dst=group_dst)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """The list's objects become those that `src` sends."""
    size = _C.zeros(1, dtype=_C.int64)
    recv(size, src, group, group_src=group_src)
    data = _C.empty(int(size.item()), dtype=_C.uint8)
    recv(data, src, group, group_src=group_src)
    object_list[:] = _from_bytes(bytes(data.numpy()))
    return src


def _all_reduce_with_gradient(tensor, op=ReduceOp.SUM, group=None):
    """The sum of all processes' tensors; its gradient is the sum of all gradients."""
    if op != ReduceOp.SUM:
        raise _C.NotImplementedError("nn.functional.all_reduce: only the sum has a gradient")
    return _group(group)._native.all_reduce_with_gradient(tensor)


nn = types.SimpleNamespace(functional=types.SimpleNamespace(all_reduce=_all_reduce_with_gradient))


class _Groups(type):
    @property
    def WORLD(cls):
        """The group that all processes are in."""
        return _world.group


class group(metaclass=_Groups):
    """Names of groups that are always there."""
