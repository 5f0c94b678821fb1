"""Running of programs and of GoogleTest programs for the check on a GPU: logs, limits on time, crashes and hangs that cost no other
test. The stages are in stages.py, the report in report.py."""

import os
import re
import signal
import subprocess
import sys
import time

# Tern says this of errors after which a process can not use the GPU any more: what the process does later means nothing.
STICKY = "The error is sticky"
LAST_LINES = 12
# A group of its own, which is stopped together with what it starts, and goes with the session.
GROUP = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
RUNNING = set()
MARK = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] ([^\s,(]+)")


class Outcome:
    """What became of a program: `code` is None when it was stopped, and `stopped` says why; `out_of_time` by its limit."""

    def __init__(self, code, stopped, seconds, text, out_of_time=False):
        self.code, self.stopped, self.seconds, self.text, self.out_of_time = code, stopped, seconds, text, out_of_time

    @property
    def ok(self):
        return self.code == 0

    def how(self):
        if self.stopped:
            return self.stopped
        return f"ended by signal {signal.Signals(-self.code).name}" if self.code < 0 else f"exit code {self.code}"

    def last_lines(self):
        return "\n".join(self.text.strip().splitlines()[-LAST_LINES:])


def run(command, log, env, limit_s, silent_s=0, cwd=None):
    """Runs a command with its output in the file `log` (added to); it is stopped, with all that it started, after `limit_s`, or when
    it wrote nothing for `silent_s`."""
    begin = time.monotonic()
    with open(log, "ab") as file:
        file.write(f"$ {' '.join(str(part) for part in command)}\n".encode())
        file.flush()
        start = file.tell()
        try:
            process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                       env=env, cwd=cwd, **GROUP)
        except OSError as error:
            return Outcome(127, "", 0, str(error))
    RUNNING.add(process)
    stopped, size, grown, out_of_time = "", start, begin, False
    while True:
        try:
            process.wait(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if os.path.getsize(log) != size:
                size, grown = os.path.getsize(log), now
            if now - begin > limit_s:
                out_of_time = True
                stopped = f"stopped after {limit_s:.0f} s"
            elif silent_s and now - grown > silent_s:
                stopped = f"stopped: silent for {silent_s:.0f} s"
            if stopped:
                break
        except BaseException:
            stop(process)
            raise
    stop(process)
    code = process.wait()
    with open(log, "rb") as file:
        file.seek(start)
        text = file.read().decode(errors="replace")
    return Outcome(None if stopped else code, stopped, time.monotonic() - begin, text, out_of_time)


def stop(process):
    """Ends what is left of the process and of those that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    RUNNING.discard(process)


def stop_all():
    """Ends all that runs."""
    for process in list(RUNNING):
        stop(process)


def part(name, status, **more):
    """A piece of a stage's result."""
    return {"name": name, "status": status, **more}


def status_of_outcome(outcome):
    """What time cuts short has neither passed nor failed."""
    return "passed" if outcome.ok else "incomplete" if outcome.out_of_time else "failed"


def part_of(name, outcome, test="", status=""):
    """The part that a program is, by its outcome where no status is given; its last lines tell of a failure."""
    status = status or status_of_outcome(outcome)
    failures = [failure(test or name, outcome.last_lines())] if status == "failed" else []
    return part(name, status, seconds=outcome.seconds, reason="" if outcome.ok else outcome.how(), failures=failures)


def failure(test, text):
    return {"test": test, "text": "\n".join(text.strip().splitlines()[-LAST_LINES:])}


def parse_tests(text):
    """([(test, verdict, text)], the test that was running at the end)."""
    found, current, lines = [], None, []
    for line in text.splitlines():
        mark = MARK.search(line)
        if mark and mark[1] == "RUN":
            current, lines = mark[2], []
        elif mark and mark[2] == current:
            found.append((current, mark[1], "\n".join(lines)))
            current = None
        elif current:
            lines.append(line)
    return found, current, "\n".join(lines)


def list_tests(program, env, pattern):
    """Names of the tests that a filter chooses."""
    try:
        text = subprocess.run([str(program), "--gtest_list_tests", f"--gtest_filter={pattern}"], capture_output=True, text=True, env=env,
                              timeout=120).stdout
    except subprocess.TimeoutExpired:
        return []
    names, suite = [], ""
    for line in text.splitlines():
        name = line.split("#")[0].strip()
        if line[:1] not in ("", " ") and name.endswith("."):
            suite = name
        elif line.startswith("  ") and suite and "DISABLED_" not in suite + name:
            names.append(suite + name)
    return names


def run_tests(name, program, log, env, limit_s, pattern="*", wrapper=(), silent_s=60):
    """Runs a GoogleTest program as one part. After a crash, a hang, or an error that ends all use of the GPU, the tests that are left
    run in a new process. Without failures, but cut short by the limit, it is "incomplete"."""
    end = time.monotonic() + limit_s
    if not os.path.exists(program):
        return part(name, "skipped", reason=f"{os.path.basename(program)} is not there")
    remaining = list_tests(program, env, pattern)
    if not remaining:
        return part(name, "failed", reason=f"{os.path.basename(program)} lists no tests for {pattern}")
    passed, skipped, failures, notes, seconds, chosen = 0, {}, [], [], 0.0, pattern
    while remaining:
        outcome = run([*wrapper, program, f"--gtest_filter={chosen}"], log, env, max(1.0, end - time.monotonic()), silent_s)
        seconds += outcome.seconds
        found, current, lines = parse_tests(outcome.text)
        reached = None
        for test, verdict, text in found:
            reached = test
            if verdict == "OK":
                passed += 1
            elif verdict == "SKIPPED":
                skipped[test] = " ".join(text.split())
            else:
                failures.append(failure(test, text))
                if STICKY in text:
                    break
        else:
            if outcome.out_of_time:
                notes.append(f"cut short after {passed + len(failures) + len(skipped)} tests" + (f", in {current}" if current else ""))
                break
            if current:
                reached = current
                failures.append(failure(current, f"{lines}\n{outcome.how()}"))
            elif not outcome.ok and not any(verdict == "FAILED" for _, verdict, _ in found):
                failures.append(failure("(the program)", f"{outcome.last_lines()}\n{outcome.how()}"))
        if reached not in remaining:
            break
        remaining = remaining[remaining.index(reached) + 1:]
        if remaining and not outcome.stopped and outcome.ok and not failures:
            break  # what the filter lists and does not run
        if remaining and (time.monotonic() > end - 1 or len(failures) > 200):
            notes.append(f"{len(remaining)} tests were not run, from {remaining[0]} on")
            break
        chosen = ":".join(remaining)
    status = "failed" if failures else "incomplete" if notes else "passed" if passed else "skipped"
    reasons = sorted(set(skipped.values()))
    return part(name, status, passed=passed, failed=len(failures), skipped=len(skipped), failures=failures, seconds=seconds,
                reason="; ".join(notes + (reasons[:3] if status == "skipped" else [])))
