"""Checkpoints that several processes write and read together, each its pieces: torch.distributed.checkpoint. The folder opens with
tern.load() as one dict too, and in PyTorch.

    state = {"model": get_model_state_dict(net), "optimizer": get_optimizer_state_dict(net, optimizer)}
    dcp.save(state, checkpoint_id="step-1000")
    dcp.load(state, checkpoint_id="step-1000")   # by any number of processes
"""

import os

from tern import _C, distributed
from tern.autograd import no_grad
from tern.distributed import _pieces


class _Storage:
    def __init__(self, path, *args, **options):
        self.path = os.fspath(path)


class FileSystemWriter(_Storage):
    """A folder to be written."""


class FileSystemReader(_Storage):
    """A folder to be read."""

    def read_metadata(self):
        """The names that are there, with their paths."""
        return _C._distributed_names(self.path)


def _folder(checkpoint_id, storage):
    if checkpoint_id is None and storage is None:
        raise ValueError("a distributed checkpoint needs a checkpoint_id, the path of a folder")
    return storage.path if checkpoint_id is None else os.fspath(checkpoint_id)


def _plain(state):
    """What has a state_dict() of its own gives it."""
    return {key: value.state_dict() if hasattr(value, "state_dict") else value for key, value in state.items()}


def _is_opened(value):
    """Lists with tensors or dicts in them are opened, as in PyTorch."""
    return isinstance(value, list) and any(isinstance(item, (_C.Tensor, dict)) or _is_opened(item) for item in value)


def _leaves(value, path=()):
    """(path, container, key, value) of all that is in nested dicts, and in lists that are opened."""
    for key, item in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        step = path + (str(key) if isinstance(value, dict) else key,)
        if isinstance(item, dict) and item or _is_opened(item):
            yield from _leaves(item, step)
        else:
            yield step, value, key, item


def save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, no_dist=False,
         use_collectives=True):
    """Writes the folder. Each process writes its pieces of divided tensors, and its share of what all have; all call it with the
    same names. A checkpoint that is there already stays readable until the new one is whole."""
    state, folder = _plain(state_dict), _folder(checkpoint_id, storage_writer)
    pieces = {}
    for path, _, _, value in _leaves(state):
        piece = _pieces.piece_of(value) if isinstance(value, _C.Tensor) else None
        if piece is not None:
            pieces[".".join(map(str, path))] = piece
    alone = no_dist or not distributed.is_initialized()
    group = _C._ProcessGroup.simulate(1, 60)[0] if alone else distributed._group(process_group)._native
    _C._write_distributed(group, folder, state, pieces)


def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Reads the folder into the tensors of the state dict, each process no more than its pieces; other values are replaced. Names
    of the folder that the state dict lacks are left aside."""
    state, folder = _plain(state_dict), _folder(checkpoint_id, storage_reader)
    leaves = list(_leaves(state))
    requests = []
    for path, _, _, value in leaves:
        piece = _pieces.piece_of(value) if isinstance(value, _C.Tensor) else None
        shape, start = piece or (None, 0)
        requests.append((".".join(map(str, path)), start, None if piece is None else value.numel(), shape))
    values = _C._read_distributed(folder, requests)
    for (name, *_), (_, _, _, value), read in zip(requests, leaves, values):
        if isinstance(value, _C.Tensor) and (not isinstance(read, _C.Tensor) or read.shape != value.shape):
            raise _C.CheckpointError(f"'{folder}': '{name}' is {tuple(read.shape) if isinstance(read, _C.Tensor) else read!r} there, "
                                     f"a tensor of shape {tuple(value.shape)} is expected")
    with no_grad():
        for (_, container, key, value), read in zip(leaves, values):
            if isinstance(value, _C.Tensor):
                value.copy_(read)
            else:
                container[key] = read
    for key, value in state_dict.items():
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(state[key])
        else:
            state_dict[key] = state[key]


def async_save(state_dict, **options):
    """save(), whose result is there: the future that PyTorch returns is done."""
    import concurrent.futures
    future = concurrent.futures.Future()
    future.set_result(save(state_dict, **options))
    return future
