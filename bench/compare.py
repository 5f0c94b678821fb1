#!/usr/bin/env python3
"""Compares Tern with libtorch (C++) and PyTorch (Python) on this machine.

Each side is a process that times one case when asked; they take turns within every round, and the figures are
medians over the rounds. Prints both sides and their ratio, and writes a JSON and a Markdown table.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

from peers import Peer, PeerError, duration, measured, report, write_report

HERE = os.path.dirname(os.path.abspath(__file__))

# (case, what is compared, bar on tern / libtorch; None where there is none)
CASES = [
    ("add_small", "[2,3] + [2,3]", 0.4),
    ("mlp_forward_b2", "MLP 20-256-10 forward, batch 2", 0.3),
    ("mlp_forward_b2_no_grad", "the same without recording gradients", None),
    ("mlp_adam_step_b2", "MLP training step with Adam, batch 2", 0.2),
    ("lenet_step_b1", "LeNet training step with SGD, batch 1", None),
    ("lenet_step_b32", "LeNet training step with SGD, batch 32", None),
    ("lenet_step_b256", "LeNet training step with SGD, batch 256", 0.5),
    ("resnet18_forward_b1", "ResNet-18 forward without gradients, one picture of 224x224", None),
    ("resnet18_step_b8", "ResNet-18 training step with SGD, batch 8", None),
    ("relu_16m", "relu of 16M floats", 0.5),
    ("exp_16m", "exp of 16M floats", 0.5),
    ("add_16m", "add of 16M floats", 0.5),
    ("gelu_16m", "gelu of 16M floats", 0.5),
    ("softmax_16m", "softmax of [16384,1024]", None),
    ("sum_16m", "sum of 16M floats", None),
    ("transpose_copy_16m", "copy of a transposed [4096,4096]", None),
    ("matmul_100", "matmul 100", 1 / 0.95),
    ("matmul_256", "matmul 256", 1 / 0.95),
    ("matmul_512", "matmul 512", 1 / 0.95),
    ("matmul_1024", "matmul 1024", 1 / 0.95),
    ("matmul_2048", "matmul 2048", 1 / 0.95),
    ("matmul_4096", "matmul 4096", 1 / 0.95),
    ("storage_64", "64 bytes of memory, taken and given back", None),
    ("storage_1m", "1 MiB of memory, taken and given back", None),
    ("products_1000_norm_each", "1000 products of 100x100, each norm read", None),
    ("products_1000_norm_once", "1000 products of 100x100, norms read once", None),
]

# Of Tern alone, on one thread: (case, what is measured, bar in nanoseconds).
OWN_CASES = [
    ("launch_empty", "launch of an empty kernel on the CPU", 60),
    ("storage_64", "64 bytes of cached memory, taken and given back", 40),
    ("storage_1m", "1 MiB of cached memory, taken and given back", 40),
]
# Of Tern alone: (case, the case that it is compared with, what is compared, bar on their ratio).
OWN_PAIRS = [
    ("two_products_at_once", "two_products_in_turn", "two matmuls 1024 on two simulated GPUs at once / on one in turn", 0.6),
]


def build_libtorch_peer(python, folder):
    """Compiles libtorch_peer.cpp against the libtorch inside that Python's torch; kept while it is newer than its sources."""
    query = (
        "import json, torch, os; from torch.utils import cpp_extension as c; r = os.path.dirname(torch.__file__);"
        "print(json.dumps([torch.__version__, c.include_paths(), c.library_paths(), int(torch._C._GLIBCXX_USE_CXX11_ABI),"
        "[os.path.join(os.path.dirname(r), 'nvidia', d, 'lib') for d in (os.listdir(os.path.join(os.path.dirname(r), 'nvidia'))"
        " if os.path.isdir(os.path.join(os.path.dirname(r), 'nvidia')) else [])]]))"
    )
    version, includes, libraries, abi, extra = json.loads(subprocess.check_output([python, "-c", query], text=True))
    output = os.path.join(folder, f"libtorch_peer-{version}")
    sources = [os.path.join(HERE, name) for name in ("libtorch_peer.cpp", "peer.h")]
    environment = {"LD_LIBRARY_PATH": ":".join(libraries + extra + [os.environ.get("LD_LIBRARY_PATH", "")])}
    if os.path.exists(output) and all(os.path.getmtime(output) > os.path.getmtime(s) for s in sources):
        return output, environment
    print(f"compare: building the libtorch {version} side (about a minute)", file=sys.stderr)
    command = ["g++", "-std=c++20", "-O2", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", sources[0], "-o", output, "-fopenmp"]
    command += [flag for path in includes for flag in ("-isystem", path)] + [f"-L{path}" for path in libraries]
    command += ["-Wl,--no-as-needed", "-ltorch_cpu", "-Wl,--as-needed", "-ltorch", "-lc10", "-Wl,--allow-shlib-undefined"]
    subprocess.run(command, check=True)
    return output, environment


def measure_own(peer, options):
    """Rows of what is measured of Tern alone."""
    median = lambda case: statistics.median(peer.time(case, 1, options.seconds) for _ in range(options.rounds))
    for case, what, bar in OWN_CASES:
        if options.only in case:
            figure = median(case)
            yield {"case": case, "what": what, "figure": duration(figure), "bar": duration(bar), "met": figure <= bar}
    for case, other, what, bar in OWN_PAIRS:
        if options.only in case:
            pairs = [(peer.time(case, 2, options.seconds), peer.time(other, 2, options.seconds)) for _ in range(options.rounds)]
            figure = statistics.median(a / b for a, b in pairs)
            yield {"case": case, "what": what, "figure": f"{figure:.2f}", "bar": f"{bar:.2f}", "met": figure <= bar}


def markdown(report):
    lines = [
        measured(report),
        "",
        "| case | threads | Tern | libtorch | ratio | bar | PyTorch (Python) | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in report["rows"]:
        bar = "" if row["bar"] is None else f"{row['bar']:.2f} {'met' if row['met'] else 'missed'}"
        lines.append(
            f"| {row['what']} | {row['threads']} | {duration(row['tern'])} | {duration(row['libtorch'])} | {row['ratio']:.2f} | {bar} "
            f"| {duration(row['python'])} | {row['ratio_python']:.2f} |"
        )
    lines += ["", "| of Tern alone, one thread for each device | figure | bar |", "|---|---|---|"]
    for row in report["own"]:
        lines.append(f"| {row['what']} | {row['figure']} | {row['bar']} {'met' if row['met'] else 'missed'} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tern", required=True, help="the program tern_peer")
    parser.add_argument("--python", required=True, help="a Python that imports torch (scripts/bench_env prints one)")
    parser.add_argument("--build-dir", default="build/bench", help="where the libtorch side is built")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.15, help="least time of one measurement")
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--json", default="", help="where the JSON goes")
    parser.add_argument("--markdown", default="", help="where the Markdown table goes")
    options = parser.parse_args()

    os.makedirs(options.build_dir, exist_ok=True)
    libtorch, environment = build_libtorch_peer(options.python, options.build_dir)
    peers = {
        "tern": Peer("tern", [options.tern]),
        "libtorch": Peer("libtorch", [libtorch], environment),
        "python": Peer("python", [options.python, os.path.join(HERE, "torch_peer.py")]),
    }
    rows = []
    print(f"{'case':28} thr {'tern':>10} {'libtorch':>10} ratio  bar    {'python':>10} ratio")
    for threads in (int(t) for t in options.threads.split(",")):
        for case, what, bar in CASES:
            if options.only not in case:
                continue
            samples = {name: [] for name in peers}
            for _ in range(options.rounds):
                for name, peer in peers.items():
                    samples[name].append(peer.time(case, threads, options.seconds))
            row = {name: statistics.median(values) for name, values in samples.items()}
            row.update(case=case, what=what, threads=threads, bar=bar, samples=samples)
            row["ratio"], row["ratio_python"] = row["tern"] / row["libtorch"], row["tern"] / row["python"]
            row["met"] = bar is None or row["ratio"] <= bar
            rows.append(row)
            text = "" if bar is None else f"{bar:.2f} {'ok' if row['met'] else 'MISSED'}"
            print(
                f"{case:28} {threads:3} {duration(row['tern']):>10} {duration(row['libtorch']):>10} {row['ratio']:5.2f}  {text:11}"
                f"{duration(row['python']):>10} {row['ratio_python']:5.2f}",
                flush=True,
            )
    own = list(measure_own(peers["tern"], options))
    for row in own:
        print(f"{row['what']}: {row['figure']}, bar {row['bar']} {'ok' if row['met'] else 'MISSED'}")
    about = report([peer.version for peer in peers.values()], options.rounds, rows=rows, own=own)
    for peer in peers.values():
        peer.close()
    write_report(about, markdown, options)


if __name__ == "__main__":
    try:
        main()
    except PeerError as error:
        sys.exit(f"compare: {error}")
