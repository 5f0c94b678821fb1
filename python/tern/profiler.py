"""What devices spend their time on, with the names of torch.profiler."""

import enum

from tern import _C


class ProfilerActivity(enum.Enum):
    CPU = 0
    CUDA = 1


class Averages(list):
    """Rows by names of operators, the most time first."""

    def __init__(self, profiler):
        super().__init__(profiler.averages())
        self._profiler = profiler

    def table(self, sort_by=None, row_limit=15, **_):
        return self._profiler.table(row_limit)


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
