"""How long statements take."""

import statistics
import time

from tern import _C


class Measurement:
    """What Timer measured: `times` are seconds for one run, `number_per_run` runs each."""

    def __init__(self, number_per_run, raw_times, statement):
        self.number_per_run, self.raw_times, self._statement = number_per_run, raw_times, statement

    @property
    def times(self):
        return [seconds / self.number_per_run for seconds in self.raw_times]

    @property
    def mean(self):
        return statistics.fmean(self.times)

    @property
    def median(self):
        return statistics.median(self.times)

    def __repr__(self):
        scale, unit = next(((scale, unit) for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")) if self.median * scale >= 1), (1e9, "ns"))
        count = len(self.raw_times)
        return (f"{object.__repr__(self)}\n{self._statement}\n  {'Median: ' if count > 1 else ''}{self.median * scale:.2f} {unit}\n"
                f"  {count} measurement{'s' if count > 1 else ''}, {self.number_per_run} runs{' per measurement' if count > 1 else ''}")


def _wait():
    if _C.cuda_is_available():
        _C.cuda_synchronize()


class Timer:
    """Measures a statement, with these global names; what GPUs do for it is waited for."""

    def __init__(self, stmt="pass", setup="pass", timer=time.perf_counter, globals=None, label=None, sub_label=None, description=None,
                 **options):
        self._statement, self._timer = label or stmt, timer
        self._globals = dict(globals or {})
        exec(setup, self._globals)
        self._code = compile(stmt, "<Timer>", "exec")

    def _seconds(self, number):
        _wait()
        start = self._timer()
        for _ in range(number):
            exec(self._code, self._globals)
        _wait()
        return self._timer() - start

    def timeit(self, number=1000000):
        """One measurement of so many runs, after a few that are not counted."""
        self._seconds(max(number // 100, 2))
        return Measurement(number, [self._seconds(number)], self._statement)

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Measurements of as many runs as are long enough to be measured, for `min_run_time` seconds."""
        number = 1
        while self._seconds(number) < min_run_time / 1000 and number < 10**7:
            number *= 10
        times = []
        while sum(times) < min_run_time:
            times.append(self._seconds(number))
        return Measurement(number, times, self._statement)
