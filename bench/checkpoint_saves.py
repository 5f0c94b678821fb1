#!/usr/bin/env python3
# Saving of checkpoints beside PyTorch: Tern's save() against torch.save followed by fsync, the same numbers of tensors of the same
# sizes, replacing the file each time; in turn, medians and the ratio. Then PyTorch opens what Tern wrote with weights_only=True.
#   bench/checkpoint_saves.py --peer build/bin/checkpoint_save_peer [--folder DIR]... [--sizes 512,4096] [--many 100000] [--rounds 5]

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

TORCH_SIDE = """
import collections, json, os, sys, time, torch
kind, count, path, rounds = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
shape = (16,) if kind == "many" else (2048, 2048)
state = collections.OrderedDict((f"layers.{i}.weight", torch.randn(shape)) for i in range(count if kind == "many" else count // 16))
seconds = []
for _ in range(rounds):
    start = time.perf_counter()
    torch.save(state, path)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    seconds.append(time.perf_counter() - start)
print(json.dumps(seconds))
"""
CHECK = "import sys, torch; print(len(torch.load(sys.argv[1], weights_only=True, mmap=True)))"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", required=True, help="checkpoint_save_peer")
    parser.add_argument("--folder", action="append", type=pathlib.Path)
    parser.add_argument("--sizes", default="512,4096", help="MiB")
    parser.add_argument("--many", type=int, default=100000, help="small tensors")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cases = [(f"{size} MiB", "large", int(size)) for size in options.sizes.split(",") if size]
    cases += [(f"{options.many} small tensors", "many", options.many)] if options.many else []
    print(f"{'save and sync':40} {'PyTorch':>10} {'Tern':>10} {'ratio':>7}")
    for folder in options.folder or [pathlib.Path(".")]:
        path = folder / "tern-bench-save.pt"
        for label, kind, count in cases:
            commands = {"torch": [sys.executable, "-c", TORCH_SIDE], "tern": [options.peer]}
            seconds = {name: [] for name in commands}
            try:
                for _ in range(options.rounds):
                    for name, command in commands.items():
                        out = subprocess.run([*command, kind, str(count), str(path), "3"], check=True, capture_output=True, text=True).stdout
                        seconds[name] += json.loads(out)[1:]  # the first meets no old file
                entries = subprocess.run([sys.executable, "-c", CHECK, str(path)], check=True, capture_output=True, text=True).stdout
                assert int(entries) == (count if kind == "many" else count // 16), entries
                median = {name: statistics.median(values) for name, values in seconds.items()}
                print(f"{label + ' in ' + str(folder):40} {median['torch'] * 1e3:7.0f} ms {median['tern'] * 1e3:7.0f} ms "
                      f"{median['tern'] / median['torch']:7.3f}", flush=True)
            finally:
                path.unlink(missing_ok=True)


main()
