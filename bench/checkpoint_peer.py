"""PyTorch's side of bench/checkpoints.py; checkpoint_peer.cpp is Tern's, with the same arguments and the same answer. Besides:
`inspect FILE` prints the names, shapes and dtypes of a file."""

import collections
import json
import os
import sys
import time

import torch


def peak_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def measure(times, reset, step):
    """`step` is timed, `reset` before it is not."""
    before, seconds = peak_kib(), []
    for _ in range(times):
        reset()
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "peak_mib": (peak_kib() - before) / 1024}


def time_load(mode, path, times):
    held = {}

    def step():
        held["file"] = torch.load(path, map_location="cpu", weights_only=True, mmap=mode == "mmap")

    return {**measure(int(times), held.clear, step), "entries": len(held["file"])}


def time_save(_, kind, count, path, times):
    shape = (16,) if kind == "many" else (2048, 2048)
    names = (f"layers.{i}.weight" for i in range(int(count) // (1 if kind == "many" else 16)))
    state = collections.OrderedDict((name, torch.rand(shape)) for name in names)

    def step():
        torch.save(state, path)
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    return {**measure(int(times), lambda: None, step), "entries": len(state)}


def inspect(_, path):
    for name, tensor in torch.load(path, map_location="cpu", weights_only=True, mmap=True).items():
        print(name, tuple(tensor.shape), tensor.dtype)


if __name__ == "__main__":
    torch.zeros(1)
    answer = {"load": time_load, "mmap": time_load, "save": time_save, "inspect": inspect}[sys.argv[1]](*sys.argv[1:])
    if answer:
        print(json.dumps(answer))
