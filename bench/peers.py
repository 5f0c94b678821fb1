"""What the comparisons with PyTorch share: the processes that are measured (their side of the protocol is in peer.h and in the
*_peer.py), and how figures and the machine are written."""

import json
import os
import platform
import select
import subprocess
import time


class PeerError(Exception):
    """A process did not start, ended, was silent for too long, or answered with an error."""


class PeerTimeout(PeerError):
    """It was silent for too long."""


class Peer:
    """A process that times one case when asked. It is started again for the next question after it ended, was silent for `timeout`
    seconds, or answered with an error, since some errors of a GPU are for good. `remark` is what it said beside its last figure."""

    def __init__(self, name, command, env=None, timeout=600, log=None):
        self.name, self.command, self.timeout = name, [str(part) for part in command], timeout
        self.env, self.log = {**os.environ, **(env or {})}, log
        self.process, self.pending, self.remark = None, b"", ""
        self.version = self._start()

    def _start(self, limit=float("inf")):
        errors = open(self.log, "ab") if self.log else None
        self.pending = b""
        try:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0, env=self.env
            )
        except OSError as error:
            raise PeerError(f"{self.name} did not start: {error}") from None
        finally:
            if errors:
                errors.close()
        version = self._line(min(self.timeout, limit))
        if not version:
            raise PeerError(f"{self.name} did not start: {' '.join(self.command)}")
        return version

    def _line(self, timeout):
        """The next line that the process writes; empty when it ended. When it was silent for too long it is ended: PeerTimeout."""
        end = time.monotonic() + timeout
        while b"\n" not in self.pending:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self.kill()
                raise PeerTimeout(f"{self.name} was silent for {timeout:.0f} s")
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                self.kill()
                return ""
            self.pending += piece
        line, self.pending = self.pending.split(b"\n", 1)
        return line.decode(errors="replace").strip()

    def time(self, case, threads, seconds, limit=float("inf")):
        """Nanoseconds for one iteration; PeerTimeout where the answer takes longer than `timeout` or `limit`."""
        end = time.monotonic() + limit
        if self.process is None:
            self._start(limit)
        try:
            self.process.stdin.write(f"{case} {threads} {seconds}\n".encode())
        except OSError:
            self.kill()
            raise PeerError(f"{self.name}, case {case}: the process ended") from None
        answer = self._line(min(self.timeout, end - time.monotonic()))
        figure, _, self.remark = answer.partition(" # ")
        try:
            return float(figure)
        except ValueError:
            self.kill()
            raise PeerError(f"{self.name}, case {case}: {answer or 'the process ended'}") from None

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.close()

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:  # it hangs at its end: what it had to say it has said
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
            self.process = None


def duration(nanoseconds, digits=3):
    for unit, scale in (("ns", 1), ("µs", 1e3), ("ms", 1e6)):
        if nanoseconds < 1000 * scale:
            return f"{nanoseconds / scale:.{digits}g} {unit}"
    return f"{nanoseconds / 1e9:.{digits}g} s"


def processor():
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def report(versions, rounds, **parts):
    """What a comparison says of itself, with its parts."""
    return {"date": time.strftime("%Y-%m-%d"), "processor": processor(), "cores": os.cpu_count(), "versions": versions, "rounds": rounds, **parts}


def measured(report):
    """The same in words."""
    return (f"Measured on {report['date']}: {report['processor']}, {report['cores']} cores; {', '.join(report['versions'])}; medians of "
            f"{report['rounds']} interleaved rounds. Ratios below 1 mean that Tern is faster.")


def write_report(report, markdown, options):
    """Writes the report to the file of --json and `markdown(report)` to that of --markdown, where they are given."""
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(markdown(report))
