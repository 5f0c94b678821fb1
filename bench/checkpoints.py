#!/usr/bin/env python3
"""Compares Tern's checkpoints with PyTorch's on this machine: whether files go both ways unchanged, how long loading and saving
take, and how much memory.

Round trips come first: the tests of the repository, run with this PyTorch. Then both sides load, map and save the same
contents, each in processes of its own, in turn. A process does the same thing --repeat times: what it does first is one figure,
the median of the later times another, since a program that loads again has its memory already. Cold means that the file's pages
were dropped from the page cache before; each process does it once then. Saving is Tern's save(), which syncs, against torch.save
and fsync. Inspecting is the program `tern inspect` from start to end, against a Python that lists the same.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"
ROUND_TRIPS = ["io/torch_roundtrip", "train/module_roundtrip", "train/resume_in_torch", "ops/random_in_torch", "train/lenet_in_torch"]
TOOLS = ["copy_tool", "module_tool", "resume_tool", "random_tool", "logits_tool"]
GIB = 1 << 30


@dataclasses.dataclass
class Case:
    mode: str  # load, mmap, inspect, save
    kind: str  # large: count MiB in tensors of 16 MiB; many: count tensors of 64 bytes
    count: int
    folder: pathlib.Path
    medium: str  # disk, tmpfs
    cold: bool = False

    @property
    def nbytes(self):
        return self.count << 20 if self.kind == "large" else self.count * 256  # with its names and headers

    @property
    def contents(self):
        if self.kind == "many":
            return f"{self.count:,} small tensors"
        return f"{self.count // 1024} GiB" if self.count % 1024 == 0 else f"{self.count} MiB"

    @property
    def name(self):
        return f"{self.mode} {self.contents}, {self.medium}" + ("" if self.mode == "save" else ", cold" if self.cold else ", warm")

    @property
    def bar(self):
        """(the most, of what), or None."""
        if self.mode in ("load", "save"):
            return (0.2 if self.kind == "many" else 0.5), "ratio"
        if self.nbytes >= 4 * GIB:
            return (0.020 if self.mode == "mmap" else 0.050), "seconds"
        return None


def cases(options):
    for folder in options.folder:
        kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True).stdout.strip()
        medium = "tmpfs" if kind == "tmpfs" else "disk"
        contents = [("large", size) for size in options.sizes] + [("many", options.many)] * bool(options.many)
        for kind, count in contents:
            modes = ["load"] if kind == "many" else ["load", "mmap", "inspect"] if count >= 4096 else ["load", "mmap"]
            for mode in modes:
                yield Case(mode, kind, count, folder, medium)
                if medium == "disk":
                    yield Case(mode, kind, count, folder, medium, cold=True)
            yield Case("save", kind, count, folder, medium)


def say(text, end="\n"):
    print(text, end=end, file=sys.stderr, flush=True)


def memory(field):
    with open("/proc/meminfo") as info:
        return next(int(line.split()[1]) * 1024 for line in info if line.startswith(field + ":"))


def lacks_room(case):
    """Why this case cannot run here, or nothing. Saving needs the old file beside the new one, and the tensors in memory."""
    if shutil.disk_usage(case.folder).free < 2.2 * case.nbytes:
        return f"not enough room in {case.medium}"
    if memory("MemAvailable") < (3.2 if case.medium == "tmpfs" else 1.5) * case.nbytes:
        return "not enough memory"
    return ""


def prepare(path, cold):
    with open(path, "rb") as file:
        if cold:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        else:
            while file.read(1 << 24):
                pass


def run(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def time_program(command):
    """A whole process, from outside."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds, process.returncode = time.perf_counter() - start, os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {"seconds": [seconds], "peak_mib": usage.ru_maxrss / 1024, "entries": None}


def measure(case, sides, options):
    """The row of one case."""
    path = case.folder / "tern-bench-checkpoint.pt"
    contents = [case.kind, str(case.count), str(path)]
    rounds = options.slow_rounds if case.kind == "many" or case.nbytes > GIB else options.rounds
    runs = {side: [] for side in sides}
    try:
        if case.mode != "save":
            run([*sides["torch"], "save", *contents, "1"])
        file_mib = path.stat().st_size / (1 << 20) if case.mode == "load" else 0
        for turn in range(rounds):
            for side in list(sides)[:: 1 if turn % 2 else -1]:
                say(".", end="")
                if case.mode == "save":
                    path.unlink(missing_ok=True)
                    runs[side].append(run([*sides[side], "save", *contents, str(options.repeat)]))
                    opened = run([*sides["torch"], "mmap", str(path), "1"])["entries"]
                    assert opened == runs[side][-1]["entries"], f"PyTorch finds {opened} tensors in what {side} saved"
                    continue
                prepare(path, case.cold)
                if case.mode == "inspect":
                    command = [options.bin / "tern"] if side == "tern" else sides[side]
                    runs[side].append(time_program([*command, "inspect", path]))
                else:
                    runs[side].append(run([*sides[side], case.mode, str(path), "1" if case.cold else str(options.repeat)]))
    finally:
        path.unlink(missing_ok=True)
    entries = {each["entries"] for results in runs.values() for each in results}
    assert len(entries) == 1, f"the sides find {entries} entries"

    row = {"what": case.name, "bar": case.bar, "runs": runs}
    if case.mode == "load":
        row["memory_bar_mib"] = file_mib + 64
    for side, results in runs.items():
        row[f"{side}_peak_mib"] = max(each["peak_mib"] for each in results)
    for when, part in (("first", slice(1)), ("later", slice(1, None))):
        seconds = {side: [s for each in results for s in each["seconds"][part]] for side, results in runs.items()}
        if all(seconds.values()):
            row[when] = {side: statistics.median(values) for side, values in seconds.items()}
            row[when]["ratio"] = row[when]["tern"] / row[when]["torch"]
            row[when]["met"] = not case.bar or row[when]["ratio" if case.bar[1] == "ratio" else "tern"] <= case.bar[0]
    return row


def duration(seconds):
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def verdict(row):
    if not row["bar"]:
        return ""
    text = f"{row['bar'][0]:.2f}" if row["bar"][1] == "ratio" else duration(row["bar"][0])
    met = {when: row[when]["met"] for when in ("first", "later") if when in row}
    if len(set(met.values())) == 1:
        return f"{text} {'met' if all(met.values()) else 'missed'}"
    return f"{text} " + ", ".join(f"{'met' if good else 'missed'} {when}" for when, good in met.items())


def cells(row, when):
    if when not in row:
        return ["", "", ""]
    each = row[when]
    return [duration(each["torch"]), duration(each["tern"]), f"{each['ratio']:.{2 if each['ratio'] >= 0.1 else 3}f}"]


def run_round_trips(options):
    environment = {**os.environ, "TERN_PROGRAM": str(options.bin / "tern"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {f"TERN_{tool.upper()}": str(options.bin / tool) for tool in TOOLS}
    results = []
    for test in ROUND_TRIPS:
        say(f"checkpoints: round trip {test}")
        script = [TESTS / "support/run_python_test.py", TESTS / f"{test}.py"]
        result = subprocess.run([options.python, *script], env=environment, capture_output=True, text=True)
        lines = (result.stdout.strip() or "nothing was printed").splitlines()
        results.append({"test": f"tests/{test}.py", "passed": result.returncode == 0, "says": lines[-1]})
        print(f"{test}: {'passed' if result.returncode == 0 else 'FAILED'}: {lines[-1]}", flush=True)
        if result.returncode:
            say(result.stdout + result.stderr)
    return results


def machine():
    with open("/proc/cpuinfo") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores, {memory('MemTotal') / GIB:.0f} GiB"


def versions(options):
    query = ("import importlib.util as u, sys, torch; print(f'PyTorch {torch.__version__}');"
             "print('safetensors ' + __import__('safetensors').__version__ if u.find_spec('safetensors') else 'no safetensors package');"
             "print('Python ' + sys.version.split()[0])")
    tern = subprocess.check_output([options.bin / "tern", "version"], text=True).split()[-1]
    return [f"Tern {tern}", *subprocess.check_output([options.python, "-c", query], text=True).splitlines()]


# Why a bar is missed, for the page: words that the case's name holds, and the sentence.
REASONS = [
    (["load", "cold"], "The disk sets the pace on both sides: reading the file without loading it takes about as long."),
    (["load", "warm"], "First loads pay for fresh memory, the same on both sides; later ones copy from the page cache as fast as memory goes."),
    (["save", "disk"], "Both wait for the disk."),
    (["save", "tmpfs"], "Most of the time fills the pages of the new file, which the system lets one thread do: a bare write of as many bytes "
                        "takes nearly half of PyTorch's time."),
]


def markdown(report):
    lines = [
        "# Checkpoints beside PyTorch {#checkpoint_benchmarks}",
        "",
        f"Written by `make bench-checkpoints`. Measured on {report['date']}: {report['machine']}; {', '.join(report['versions'])}.",
        f"Medians of {report['rounds']} interleaved rounds, {report['slow_rounds']} for files over 1 GiB and small tensors, every round in",
        f"processes of its own, in which each thing is done {report['repeat']} times. *First* is what a process does first, *later* the median of",
        "the other times, when its memory is there already. Cold files are loaded once by each process. Ratios below 1 mean that",
        "Tern is faster.",
        "",
        "## Round trips",
        "",
        "The tests of the repository, run with this PyTorch: what Tern writes (zip, legacy, compact, safetensors, npz, whole modules) opens there, all",
        "plain data with `weights_only=True`, and is equal bit for bit; what it writes comes back equal; a run begun on one side goes on at",
        "the other.",
        "",
        "| test | result | last line |",
        "|---|---|---|",
    ]
    lines += [f"| `{each['test']}` | {'passed' if each['passed'] else 'FAILED'} | {each['says']} |" for each in report["round_trips"]]
    lines += [
        "",
        "## Speed and memory",
        "",
        "| | PyTorch, first | Tern, first | ratio | PyTorch, later | Tern, later | ratio | bar | PyTorch, MiB | Tern, MiB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in report["rows"]:
        figures = [*cells(row, "first"), *cells(row, "later"), verdict(row), f"{row['torch_peak_mib']:.0f}", f"{row['tern_peak_mib']:.0f}"]
        lines.append(f"| {row['what']} | " + " | ".join(figures) + " |")
    for what in report["left_out"]:
        lines.append(f"| {what} | | | | | | | | | |")
    lines += [
        "",
        "*mmap* opens a file without reading its numbers. *Save* is with sync: `torch.save` followed by `fsync`. *Inspect* is the whole",
        "program `tern inspect`, beside a Python that imports PyTorch, maps the file and lists the same. Memory is the peak of the",
        "process beyond what it had before the first time; with inspect, the peak of the whole process.",
        "",
        "In a virtual machine, free memory that was given back to the host is dear to get again, above all as huge pages: figures of",
        "first loads vary by a factor of three from run to run.",
        "",
    ]
    bounded = [row for row in report["rows"] if "memory_bar_mib" in row]
    if bounded:
        over = [f"{row['what']} ({row['tern_peak_mib']:.0f} MiB)" for row in bounded if row["tern_peak_mib"] > row["memory_bar_mib"]]
        lines += ["A full load may take the file's size plus 64 MiB at most: " + (f"missed by {', '.join(over)}." if over else "met by all."), ""]
    missed = [row["what"] for row in report["rows"] if "missed" in verdict(row)]
    for what in missed:
        lines.append(f"- Missed: {what}. " + " ".join(text for words, text in REASONS if all(word in what for word in words)))
    if not missed:
        lines.append("Every bar is met.")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="a Python that imports torch (scripts/bench_env prints one)")
    parser.add_argument("--bin", type=pathlib.Path, default="build/bin", help="where checkpoint_peer, tern and the tests' tools are")
    parser.add_argument("--folder", action="append", type=pathlib.Path, help="where files are written (default: build/bench and /dev/shm)")
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",") if part], default=[512, 4096], help="MiB")
    parser.add_argument("--many", type=int, default=100000, help="number of small tensors; 0: none")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slow-rounds", type=int, default=3, help="rounds for files over 1 GiB and for small tensors")
    parser.add_argument("--repeat", type=int, default=5, help="how often each process does its thing")
    parser.add_argument("--only", default="", help="cases whose name contains this text, such as 'load 4 GiB' or 'round trips'; the "
                        "others keep the figures that the file of --json has, where those are of the same day, machine, versions and rounds")
    parser.add_argument("--json", type=pathlib.Path, help="where the JSON goes")
    parser.add_argument("--markdown", type=pathlib.Path, help="where the page goes")
    options = parser.parse_args()
    if not options.folder:
        options.folder = [pathlib.Path("build/bench"), pathlib.Path("/dev/shm")]
        options.folder[0].mkdir(parents=True, exist_ok=True)
    missing = [name for name in ("checkpoint_peer", "tern", *TOOLS) if not (options.bin / name).exists()]
    if missing:
        sys.exit(f"checkpoints: {options.bin} lacks {', '.join(missing)}; `make bench-checkpoints` builds them")
    sides = {"torch": [options.python, str(HERE / "checkpoint_peer.py")], "tern": [str(options.bin / "checkpoint_peer")]}

    report = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "versions": versions(options), "rounds": options.rounds,
              "slow_rounds": options.slow_rounds, "repeat": options.repeat}
    before = {}
    if options.only and options.json and options.json.exists():
        before = json.loads(options.json.read_text())
        if any(before[key] != value for key, value in report.items()):
            before = {}
    report |= {"round_trips": before.get("round_trips", []), "rows": [], "left_out": []}
    if options.only in "round trips":
        report["round_trips"] = run_round_trips(options)

    known = {row["what"]: row for row in before.get("rows", [])}
    every = list(cases(options))
    print(f"\n{'':40}{'PyTorch':>9}{'Tern':>9} ratio{'PyTorch':>11}{'Tern':>9} ratio  memory, MiB  bar   (first, later)")
    for i, case in enumerate(every):
        if options.only not in case.name:
            report["rows"] += [known[case.name]] if case.name in known else []
            continue
        say(f"checkpoints: {i + 1} of {len(every)}: {case.name} ", end="")
        lack = lacks_room(case)
        if lack:
            report["left_out"].append(f"{case.name}: left out, {lack}")
            say(f"left out, {lack}")
            continue
        row = measure(case, sides, options)
        say("")
        report["rows"].append(row)
        first, later = cells(row, "first"), cells(row, "later")
        print(f"{case.name:40}{first[0]:>9}{first[1]:>9}{first[2]:>6}{later[0]:>11}{later[1]:>9}{later[2]:>6}"
              f"{row['torch_peak_mib']:7.0f}{row['tern_peak_mib']:7.0f} {verdict(row)}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(markdown(report))
    if not all(each["passed"] for each in report["round_trips"]):
        sys.exit("checkpoints: a round trip failed")


if __name__ == "__main__":
    main()
