"""Python's multiprocessing, and spawn(): a function in several processes (torch.multiprocessing)."""

import multiprocessing as _multiprocessing
import multiprocessing.connection as _connection
import traceback as _traceback
from multiprocessing import *  # noqa: F401,F403
from multiprocessing import get_context
from multiprocessing.reduction import ForkingPickler as _ForkingPickler

from tern import _C, distributed as _distributed, shared_memory as _shared_memory
from tern._types import Parameter as _Parameter

for _class in _C.Tensor, _Parameter:
    _ForkingPickler.register(_class, _shared_memory.reduce)


class ProcessRaisedException(Exception):
    """A process that spawn() started has raised an exception, or ended otherwise."""

    def __init__(self, text, error_index, error_pid):
        super().__init__(text)
        self.error_index, self.error_pid = error_index, error_pid


ProcessExitedException = ProcessRaisedException


def _call(function, rank, args, results):
    try:
        function(rank, *args)
    except KeyboardInterrupt:
        pass
    except Exception as error:
        results.send((isinstance(error, _C.DistributedError), _traceback.format_exc()[-50_000:]))
        _distributed._abandon()
        raise SystemExit(1) from None


class ProcessContext:
    """The processes of a spawn(join=False)."""

    def __init__(self, processes, results):
        self.processes, self._results = processes, results

    def pids(self):
        return [process.pid for process in self.processes]

    def _words(self, rank):
        try:
            return self._results[rank].recv() if self._results[rank].poll() else None
        except EOFError:
            return None

    def join(self, timeout=None):
        """Waits for one of them to end, or all. True when all have ended well; ProcessRaisedException ends the others."""
        waiting = [process for process in self.processes if process.is_alive()]
        if waiting and all(process.exitcode in (None, 0) for process in self.processes):
            _connection.wait([process.sentinel for process in waiting], timeout)
        failed = [rank for rank, process in enumerate(self.processes) if process.exitcode not in (None, 0)]
        if not failed:
            return all(process.exitcode == 0 for process in self.processes)
        # The first with words of its own; others may only have heard of its end.
        words = {rank: said for rank in range(len(self.processes)) if (said := self._words(rank))}
        # The one that failed first: others may only have heard of its end.
        rank = min(words, key=lambda rank: words[rank][0]) if words else failed[0]
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join()
        text = words[rank][1] if words else f"exit code {self.processes[rank].exitcode}"
        raise ProcessRaisedException(f"\n\n-- Process {rank} terminated with the following error:\n{text}", rank,
                                     self.processes[rank].pid)


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Calls fn(rank, *args) in `nprocs` processes. With join=False returns a ProcessContext at once."""
    context = get_context(start_method)
    processes, results = [], []
    for rank in range(nprocs):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_call, args=(fn, rank, args, theirs), daemon=daemon)
        process.start()
        theirs.close()
        processes.append(process)
        results.append(ours)
    started = ProcessContext(processes, results)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """As start_processes()."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def set_sharing_strategy(new_strategy):
    """Does nothing: there is one. Tensors after share_memory_() are shared, all others go between processes as copies."""


def get_sharing_strategy():
    return "file_descriptor"


def get_all_sharing_strategies():
    return {"file_descriptor"}


cpu_count = _multiprocessing.cpu_count
