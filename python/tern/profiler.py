"""What devices spend their time on, with the names of torch.profiler."""

import enum

from tern import _C


class ProfilerActivity(enum.Enum):
    CPU = 0
    CUDA = 1


_orders = {"count": _C._ProfileOrder.CALLS, "flops": _C._ProfileOrder.FLOPS, "bytes": _C._ProfileOrder.BYTES}
for _where in "cpu", "cuda", "device":
    for _own in "", "self_":
        _orders[f"{_own}{_where}_time_total"] = _C._ProfileOrder.TIME
        _orders[f"{_own}{_where}_time"] = _C._ProfileOrder.MEAN


class Averages(list):
    """Rows by names of operators, the most time first."""

    def __init__(self, profiler):
        super().__init__(profiler.averages())
        self._profiler = profiler

    def table(self, sort_by=None, row_limit=100, **_):
        """The first rows as text. `sort_by` is one of PyTorch's keys for times, "count", "flops" or "bytes"."""
        if sort_by is not None and sort_by not in _orders:
            raise ValueError(f"sort_by={sort_by!r} is not recorded; known are {', '.join(_orders)}")
        return self._profiler.table(row_limit, _orders.get(sort_by, _C._ProfileOrder.TIME))


class profile:
    """Records every kernel, copy and wait in this context, on all devices: `with profile() as p: ...`, then
    `p.key_averages().table()`, `p.events()`, `p.export_chrome_trace(path)`. Arguments of PyTorch's that choose what is recorded
    change nothing."""

    def __init__(self, *, activities=None, record_shapes=False, profile_memory=False, with_stack=False, with_flops=False,
                 with_modules=False):
        self._profiler = _C._Profiler()

    def start(self):
        self._profiler.start()

    def stop(self):
        self._profiler.stop()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def step(self):
        """Does nothing: all steps are recorded."""

    def events(self):
        return self._profiler.events()

    def key_averages(self):
        return Averages(self._profiler)

    def export_chrome_trace(self, path):
        self._profiler.export_chrome_trace(path)
