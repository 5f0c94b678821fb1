"""One module in each of several processes: nn.parallel.DistributedDataParallel."""

import contextlib

from tern import _C
from tern.utils.data.collate import each_tensor


class DistributedDataParallel(_C.Module):
    """A module that every process has: all start from the parameters and buffers of rank 0, and after each backward() their
    gradients are the means over the processes, the same to the bit on all of them.

    With `device_ids`, the GPU of this process, tensors among the inputs are moved there. Parameters that a process did not use
    need no option. state_dict() has the names of the module after "module.".
    """

    _not_saved = ("_engine", "process_group")

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True,
                 process_group=None, bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False,
                 gradient_as_bucket_view=False, static_graph=False, **options):
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise _C.ValueError(f"DistributedDataParallel: a process has one device, got {list(device_ids)}: start a process for "
                                "each, or use DataParallel")
        self.module = module
        self.device_ids = [_C.device(device).index for device in device_ids] if device_ids else None
        self.broadcast_buffers = broadcast_buffers
        self.bucket_cap_mb = 25 if bucket_cap_mb is None else bucket_cap_mb
        self.process_group = process_group
        self._engine = self._make_engine()

    def _make_engine(self):
        from tern import distributed
        group = distributed._group(self.process_group)
        return _C._DistributedModule(self.module, group._native, self.bucket_cap_mb, self.broadcast_buffers)

    def forward(self, *inputs, **kwargs):
        if "_engine" not in self.__dict__:  # it comes from a file
            self.process_group, self._engine = None, self._make_engine()
        if self.device_ids:
            device = _C.device("cuda", self.device_ids[0])
            inputs, kwargs = each_tensor((inputs, kwargs), lambda tensor: tensor.to(device))
        return self._engine(self.module, *inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """In this context backward() leaves gradients as they are; the first one after it takes the means of what was gathered."""
        before, self._engine.synchronizes = self._engine.synchronizes, False
        try:
            yield
        finally:
            self._engine.synchronizes = before
