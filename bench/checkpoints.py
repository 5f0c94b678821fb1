#!/usr/bin/env python3
# Loading of checkpoints beside PyTorch's torch.load: both sides in processes of their own, one load each, in turn, on the same
# files, which torch.save wrote. Medians, the ratio, the peak of memory beyond what the process had before.
#   bench/checkpoints.py --peer build/bin/checkpoint_peer [--folder DIR]... [--sizes 512,4096] [--many 100000] [--rounds 5]
# Give a folder on a disk and one on tmpfs. Cold means: the file's pages were dropped from the page cache before (after fsync).

import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys

TORCH_SIDE = """
import json, sys, time, torch
torch.zeros(1)
peak = lambda: next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before, start = peak(), time.perf_counter()
file = torch.load(sys.argv[2], map_location="cpu", weights_only=True, mmap=sys.argv[1] == "mmap")
print(json.dumps({"seconds": time.perf_counter() - start, "peak_mib": (peak() - before) / 1024, "entries": len(file)}))
"""


def write(path, kind, count):
    import torch
    if kind == "many":
        state = collections.OrderedDict((f"layers.{i}.weight", torch.randn(16)) for i in range(count))
    else:
        state = collections.OrderedDict((f"layers.{i}.weight", torch.randn(2048, 2048)) for i in range(count // 16))
    with open(path, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())


def prepare(path, cold):
    with open(path, "rb") as file:
        if cold:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        else:
            while file.read(1 << 24):
                pass


def measure(commands, path, cold, rounds):
    results = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            prepare(path, cold)
            out = subprocess.run([*command, str(path)], check=True, capture_output=True, text=True).stdout
            results[name].append(json.loads(out))
    return {name: {"seconds": statistics.median(r["seconds"] for r in runs), "best": min(r["seconds"] for r in runs),
                   "peak_mib": statistics.median(r["peak_mib"] for r in runs)} for name, runs in results.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", required=True, help="checkpoint_peer")
    parser.add_argument("--folder", action="append", type=pathlib.Path)
    parser.add_argument("--sizes", default="512,4096", help="MiB")
    parser.add_argument("--many", type=int, default=100000, help="small tensors")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, help="where the figures go too")
    options = parser.parse_args()
    import torch
    print(f"PyTorch {torch.__version__}; medians of {options.rounds} processes each, in turn\n")
    print(f"{'file':42} {'PyTorch':>10} {'Tern':>10} {'ratio':>7} {'of the best':>11} {'memory, MiB':>17}")
    rows = []
    cases = [(f"{size} MiB", "large", int(size)) for size in options.sizes.split(",") if size]
    cases += [(f"{options.many} small tensors", "many", options.many)] if options.many else []
    for folder in options.folder or [pathlib.Path(".")]:
        path = folder / "tern-bench-checkpoint.pt"
        on_tmpfs = subprocess.run(["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True).stdout.strip() == "tmpfs"
        for label, kind, count in cases:
            write(path, kind, count)
            try:
                for mode in ("load", "mmap"):
                    for cold in (False,) if on_tmpfs else (False, True):
                        commands = {"torch": [sys.executable, "-c", TORCH_SIDE, mode], "tern": [options.peer, mode]}
                        result = measure(commands, path, cold, options.rounds)
                        name = f"{mode} {label}, {'tmpfs' if on_tmpfs else 'disk'}{', cold' if cold else ', warm'}"
                        ours, theirs = result["tern"], result["torch"]
                        rows.append({"name": name, **result, "ratio": ours["seconds"] / theirs["seconds"]})
                        print(f"{name:42} {theirs['seconds'] * 1e3:7.1f} ms {ours['seconds'] * 1e3:7.1f} ms {rows[-1]['ratio']:7.3f} "
                              f"{ours['best'] / theirs['best']:11.3f} "
                              f"{theirs['peak_mib']:8.0f} {ours['peak_mib']:8.0f}", flush=True)
            finally:
                path.unlink()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


main()
