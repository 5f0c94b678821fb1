"""What devices spend their time on, with the names of torch.profiler."""

import enum
import os
import socket
import time

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


class ProfilerAction(enum.Enum):
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(*, wait, warmup, active, repeat=0, skip_first=0):
    """What to do in each step: `skip_first` are left out; then, `repeat` times or for ever, `wait` and `warmup` are, and `active`
    recorded."""
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise ValueError("schedule: wait, warmup, repeat and skip_first must not be negative, and active must be above 0")
    length = wait + warmup + active

    def action(step):
        step -= skip_first
        if step < 0 or (repeat > 0 and step >= repeat * length):
            return ProfilerAction.NONE
        step %= length
        if step < wait + warmup:
            return ProfilerAction.NONE if step < wait else ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if step == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """For profile(on_trace_ready=...): writes each trace into the folder."""
    def write(profiler):
        os.makedirs(dir_name, exist_ok=True)
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        profiler.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}.pt.trace.json"))

    return write


class profile:
    """Records every kernel, copy and wait in this context, on all devices: `with profile() as p: ...`, then
    `p.key_averages().table()`, `p.events()`, `p.export_chrome_trace(path)`. With a schedule() those of its active steps, which step()
    counts; `on_trace_ready` is called with this object at the end of each record. Arguments of PyTorch's that choose what is recorded
    change nothing."""

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False, with_stack=False,
                 with_flops=False, with_modules=False, **options):
        self._profiler = _C._Profiler()
        self._schedule, self._on_trace_ready = schedule or (lambda step: ProfilerAction.RECORD), on_trace_ready
        self.step_num, self._records = 0, False

    def _go_on(self):
        wanted = self._schedule(self.step_num) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if wanted and not self._records:
            self._profiler = _C._Profiler()
            self._profiler.start()
        self._records = wanted

    def _finish(self):
        if self._records:
            self._records = False
            self._profiler.stop()
            if self._on_trace_ready:
                self._on_trace_ready(self)

    def start(self):
        self._go_on()

    def stop(self):
        self._finish()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def step(self):
        """The next step of the schedule begins."""
        if self._schedule(self.step_num) is ProfilerAction.RECORD_AND_SAVE:
            self._finish()
        self.step_num += 1
        self._go_on()

    def events(self):
        return self._profiler.events()

    def key_averages(self, **_):
        return Averages(self._profiler)

    def export_chrome_trace(self, path):
        self._profiler.export_chrome_trace(path)


class record_function:
    """A name for what is done in this context, which records do not show."""

    def __init__(self, name, args=None):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass
