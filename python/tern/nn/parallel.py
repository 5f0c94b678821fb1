"""One module on several GPUs of one process, and its parts: scatter, replicate, parallel_apply, gather."""

import concurrent.futures
import types
import warnings

from tern import _C
from tern.autograd import set_grad_enabled
from tern.nn import copies
from tern.nn.distributed import DistributedDataParallel  # noqa: F401
from tern.utils.data.collate import each_tensor


def _take_apart(value, tensors):
    """Appends the tensors in the value to the list; a function gives the value with others in their places."""
    each_tensor(value, lambda tensor: tensors.append(tensor) or tensor)

    def build(others):
        rest = iter(others)
        return each_tensor(value, lambda _: next(rest))

    return build


def _devices(devices):
    return [_C.device(device) for device in devices]


class DataParallel(_C.Module):
    """Splits each batch over the GPUs, calls a replica of the module on each part, and joins the results on one of them.

    The module is on the first of `device_ids` (by default all GPUs); to a single one it is moved. Without GPUs it is called as it is. A batch of 30 on two
    GPUs comes as 15 and 15. state_dict() has the names of the module after "module.".
    """

    _not_saved = ("_engine",)

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module = module
        self.dim = dim
        self._engine = self._make_engine(device_ids or [], output_device)
        self.device_ids = [device.index for device in self._engine.device_ids]
        self.output_device = self._engine.output_device.index
        if self.device_ids:
            self.src_device_obj = _C.device("cuda", self.device_ids[0])
        if len(self.device_ids) == 1:
            module.to(self.src_device_obj)

    def _make_engine(self, device_ids, output_device):
        return _C._DataParallel(self.module, _devices(device_ids), output_device, self.dim, warnings.warn)

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        if "_engine" not in self.__dict__:  # it comes from a file
            self._engine = self._make_engine(self.device_ids, self.output_device)
        tensors, rebuilds = [], []
        arguments = _take_apart((inputs, kwargs), tensors)

        def call(replica, part):
            args, named = arguments(part)
            outputs = []
            rebuilds.append(_take_apart(replica(*args, **named), outputs))
            return outputs

        outputs = self._engine(tensors, call)
        return rebuilds[0](outputs)


def scatter(inputs, target_gpus, dim=0):
    """The tensors of the inputs in parts, one for each GPU, in lists, tuples and dicts too; all else goes to each."""
    devices = _devices(target_gpus)
    if isinstance(inputs, _C.Tensor):
        return tuple(_C._scatter(inputs, devices, dim))
    tensors = []
    build = _take_apart(inputs, tensors)
    parts = [_C._scatter(tensor, devices, dim) for tensor in tensors]
    return [build(own) for own in zip(*parts)] if parts else [inputs] * len(devices)


def gather(outputs, target_device, dim=0):
    """The tensors of the outputs of several GPUs joined on one device."""
    parts, builds = [], []
    for output in outputs:
        tensors = []
        builds.append(_take_apart(output, tensors))
        parts.append(tensors)
    return builds[0]([_C._gather(list(own), _C.device(target_device), dim) for own in zip(*parts)])


def replicate(network, devices, detach=False):
    """The module on each of the devices; gradients of the replicas come to the module's own parameters."""
    devices = _devices(devices)
    places = [(path, name, tensor.detach() if detach else tensor) for path, module in network.named_modules()
              for name, tensor in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False))]
    replicas = []
    for copied in _C._broadcast_coalesced([tensor for *_, tensor in places], devices):
        replica = copies.replica(network)
        below = dict(replica.named_modules())
        for (path, name, _), tensor in zip(places, copied):
            below[path]._set_tensor(name, tensor)
        replicas.append(replica)
    return replicas


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Each module called with its inputs, side by side."""
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    recording = _C.is_grad_enabled()

    def run(module, given, named):
        with set_grad_enabled(recording):
            return module(*(given if isinstance(given, (list, tuple)) else (given,)), **named)

    with concurrent.futures.ThreadPoolExecutor(len(modules)) as pool:
        return list(pool.map(run, modules, inputs, kwargs_tup))


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """DataParallel for one call."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))


# Tensors between devices (torch.cuda.comm).
comm = types.SimpleNamespace(
    broadcast=lambda tensor, devices: tuple(_C._broadcast(tensor, _devices(devices))),
    broadcast_coalesced=lambda tensors, devices: [tuple(own) for own in _C._broadcast_coalesced(tensors, _devices(devices))],
    reduce_add=lambda inputs, destination=0: _C._reduce_add(inputs, _C.device(destination)),
    reduce_add_coalesced=lambda inputs, destination=0: _C._reduce_add_coalesced(inputs, _C.device(destination)),
    scatter=lambda tensor, devices, dim=0: tuple(_C._scatter(tensor, _devices(devices), dim)),
    gather=lambda tensors, dim=0, destination=0: _C._gather(list(tensors), _C.device(destination), dim))
