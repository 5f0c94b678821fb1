#!/usr/bin/env python3
"""Compares Tern on a GPU with PyTorch (eager, and compiled with mode="reduce-overhead") and with bare CUDA, in one run.

Each side is a process that times one case when asked; they take turns within every round, and the figures are medians over the
rounds. A side that fails or is missing leaves its column empty, with the reason. scripts/gpu_check.py runs this as its stage
`bench`; a new row is a line in rows() and a case of that name in gpu_peer.cpp and its counterparts.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from typing import Optional

from peers import Peer, PeerError, duration

HERE = os.path.dirname(os.path.abspath(__file__))
SIDES = ("eager", "compiled", "bare")


@dataclasses.dataclass
class Row:
    case: str                              # of Tern
    what: str
    sides: dict                            # who else runs it, with the bar on Tern's time / theirs; None: no bar
    theirs: str = ""                       # their case, where it has another name
    tern: str = "tern"                     # Tern's process: "logical" has two logical GPUs
    work: str = ""                         # "flops" or "nbytes": what `amount` counts in an iteration
    amount: float = 0
    share: Optional[float] = None          # bar on the share of the measured copy bandwidth
    own: str = ""                          # a second case of Tern's that stands in for the other side
    own_side: str = ""                     # its process where it is another: see commands_of


def rows(small):
    numel = 1 << 16 if small else 64 << 20
    found = [
        Row("launch_host", "256 launches of an empty kernel: the host's time", {"bare": 1.2}),
        Row("launch_rate", "the same, until the GPU is done", {"bare": None}),
        Row("lenet_step_b256", "LeNet training step with SGD, batch 256, eager", {"eager": 0.5, "compiled": None}),
        Row("lenet_step_b256_captured", "LeNet training step, captured", {"eager": 0.15, "compiled": 0.8}, theirs="lenet_step_b256",
            own="lenet_step_b256_captured", own_side="libraries"),
        Row("mlp_step_b2", "MLP training step with Adam, batch 2, eager", {"eager": 0.5, "compiled": None}),
        Row("mlp_step_b2_captured", "MLP training step, captured", {"eager": 0.15, "compiled": 0.8}, theirs="mlp_step_b2",
            own="mlp_step_b2_captured", own_side="libraries"),
        Row("products_each", "1000 products of 100x100, each norm read", {"eager": None}),
        Row("products_kept", "the same, norms kept on the device", {"eager": None}, own="products_kept", own_side="libraries"),
        Row("products_captured", "the same, captured", {"eager": None}, theirs="products_kept", own="products_captured", own_side="chain"),
        Row("h2d_pinned", f"copy of {4 * numel >> 20} MiB from pinned memory to the GPU", {"bare": 1 / 0.95, "eager": None},
            work="nbytes", amount=4 * numel),
    ]
    # Bytes that must be read and written, for each element of the input.
    for case, what, nbytes in [
        ("relu", "relu", 8), ("exp", "exp", 8), ("gelu", "gelu", 8), ("add", "add", 12), ("add_row", "add of a row", 8),
        ("softmax", "softmax of rows", 8), ("log_softmax", "log_softmax of rows", 8), ("layer_norm", "layer_norm", 8),
        ("sum", "sum", 4), ("sum_rows", "sum of rows", 4), ("sum_columns", "sum of columns", 4), ("amax_rows", "largest of rows", 4),
        ("norm", "norm", 4),
    ]:
        found.append(Row(case, f"{what}, [{numel // 1024}, 1024]", {"eager": None}, work="nbytes", amount=nbytes * numel, share=0.9))
    for n in (4096, 8192, 1024, 2048, 16384):
        for name, what in (("float32", "float32"), ("tf32", "TF32"), ("bfloat16", "bfloat16")):
            size = n // 32 if small else n
            by_host = " (bound by the host)" if n == 1024 and name != "float32" else ""
            found.append(Row(f"matmul_{name}_{n}", f"matmul {size}, {what}{by_host}", {"eager": 1 / 0.98}, work="flops", amount=2 * size**3,
                             own=f"matmul_{name}_{n}_measured" if n in (4096, 8192) else ""))
    size = 4096 // 32 if small else 4096
    found.append(Row("linear_bfloat16", f"layer [{size}, {size}] on {size} rows with all its gradients, bfloat16", {"eager": None},
                     work="flops", amount=3 * 2 * size**3, own="linear_bfloat16", own_side="separate"))
    found.append(Row("two_at_once", "two chains of small kernels on two logical GPUs at once / one after the other", {}, tern="logical",
                     own="two_in_turn"))
    return found


class Sides:
    """The processes; those that did not start are remembered with the reason."""

    def __init__(self, commands, log=None):
        self.peers, self.reasons = {}, {}
        for name, (command, env, timeout) in commands.items():
            try:
                self.peers[name] = Peer(name, command, env, timeout, log)
            except PeerError as error:
                self.reasons[name] = str(error)

    def versions(self):
        return {name: peer.version for name, peer in self.peers.items()}

    def close(self):
        for peer in self.peers.values():
            peer.close()


def measure(sides, questions, rounds, seconds):
    """Medians of interleaved rounds: {key: nanoseconds}, {key: why there is none}, and {key: what the side remarked}. `questions` is
    {key: (side, case)}."""
    samples, errors, remarks = {key: [] for key in questions}, {}, {}
    for _ in range(rounds):
        for key, (side, case) in questions.items():
            if key in errors:
                continue
            if side not in sides.peers:
                errors[key] = sides.reasons.get(side, f"there is no {side}")
                continue
            try:
                samples[key].append(sides.peers[side].time(case, 1, seconds))
                if sides.peers[side].remark:
                    remarks[key] = sides.peers[side].remark
            except PeerError as error:
                errors[key] = str(error)
    return {key: statistics.median(values) for key, values in samples.items() if values and key not in errors}, errors, remarks


def copy_bandwidth(source, sides, options):
    """Bytes per second that the card copies, read and written; None, and why, where `source` does not say."""
    nbytes = 8 * (1 << 16 if options.small else 64 << 20)
    figures, errors, _ = measure(sides, {"copy": (source, "copy")}, options.rounds, options.seconds)
    return (nbytes / figures["copy"] * 1e9 if figures else None), errors.get("copy")


def set_share(result, bandwidth):
    """Judges a row by its share of the bandwidth of copies."""
    for bar in result["bars"]:
        if "least" in bar and bandwidth and "tern" in result["nanoseconds"]:
            result["share"] = share = result["nbytes_per_second"]["tern"] / bandwidth
            bar.update(figure=share, met=share >= bar["least"])


def measure_row(row, sides, options):
    questions = {"tern": (row.tern, row.case)}
    if row.own:
        questions["own"] = (row.own_side or row.tern, row.own)
    questions.update({side: (side, row.theirs or row.case) for side in row.sides})
    figures, errors, remarks = measure(sides, questions, options.rounds, options.seconds)
    result = {"case": row.case, "what": row.what, "nanoseconds": figures, "errors": errors, "remarks": remarks, "bars": []}
    tern = figures.get("tern")
    if row.work:
        result[row.work + "_per_second"] = {side: row.amount / time * 1e9 for side, time in figures.items()}
    for side, bar in row.sides.items():
        ratio = tern / figures[side] if tern and side in figures else None
        if ratio is not None:
            result.setdefault("ratios", {})[side] = ratio
        if bar is not None:
            result["bars"].append({"of": f"time / {side}", "most": bar, "figure": ratio, "met": None if ratio is None else ratio <= bar})
    if tern and "own" in figures:
        result.setdefault("ratios", {})["own"] = tern / figures["own"]
    if row.share is not None:
        result["bars"].append({"of": "share of the copy bandwidth", "least": row.share, "figure": None, "met": None})
    return result


def run(commands, options, say=print):
    """The report. `commands` is {side: (command, environment, seconds that one answer may take)}."""
    begin = time.monotonic()
    sides = Sides(commands, options.log)
    try:
        source = "bare" if "bare" in sides.peers else "eager"
        bandwidth, why_not = copy_bandwidth(source, sides, options)
        report = {"versions": sides.versions(), "missing": sides.reasons, "rounds": options.rounds, "copy_by": source,
                  "copy_bytes_per_second": bandwidth, "rows": [], "not_measured": []}
        if why_not:
            report["missing"]["copy"] = why_not
        for row in rows(options.small):
            if options.only and not any(part in row.case for part in options.only.split(",")):
                continue
            if options.budget and time.monotonic() - begin > options.budget:
                report["not_measured"].append(row.case)
                continue
            result = measure_row(row, sides, options)
            set_share(result, bandwidth)
            report["rows"].append(result)
            say(text_of(result))
            if options.json:
                write(report, options.json)
        if bandwidth:  # as the card copies when it is warm too: the larger counts
            report["copy_bytes_per_second"] = bandwidth = max(bandwidth, copy_bandwidth(source, sides, options)[0] or 0)
            for result in report["rows"]:
                set_share(result, bandwidth)
    finally:
        sides.close()
    report["seconds"] = time.monotonic() - begin
    if options.json:
        write(report, options.json)
    return report


def write(report, path):
    with open(path + ".part", "w") as file:
        json.dump(report, file, indent=1)
    os.replace(path + ".part", path)


def merged(first, later):
    """One report of two runs: of each case the later figures, where there are any."""
    rows = {row["case"]: row for row in first["rows"]}
    rows.update({row["case"]: row for row in later["rows"] if row["case"] not in rows or "tern" in row["nanoseconds"]})
    left_out = [case for case in dict.fromkeys(first["not_measured"] + later["not_measured"]) if case not in rows]
    bandwidth = max(filter(None, (each["copy_bytes_per_second"] for each in (first, later))), default=None)
    made = {**first, **later, "versions": {**first["versions"], **later["versions"]}, "rows": list(rows.values()), "not_measured": left_out,
            "copy_bytes_per_second": bandwidth}
    for row in made["rows"]:
        set_share(row, bandwidth)
    return made


def summary(report):
    """How many cases there are, and how many bars are met."""
    bars = [bar["met"] for row in report["rows"] for bar in row["bars"]]
    measured = sum("tern" in row["nanoseconds"] for row in report["rows"])
    return f"{measured} cases measured; {bars.count(True)} bars met, {bars.count(False)} missed, {bars.count(None)} without figures"


def judged(bars):
    """The bars of a row with their verdicts."""
    texts = []
    for bar in bars:
        bound = f"≤ {bar['most']:.2f}×" if "most" in bar else f"≥ {bar['least']:.0%}"
        verdict = "not measured" if bar["met"] is None else "met" if bar["met"] else "missed"
        side = bar["of"].rpartition("/ ")[2] if "most" in bar else "of copy"
        texts.append(f"{bound} {side}: {verdict}")
    return "; ".join(texts)


def rate_text(row, side):
    for key, unit, scale in (("flops_per_second", "TFLOP/s", 1e12), ("nbytes_per_second", "GB/s", 1e9)):
        if side in row.get(key, {}):
            return f" ({row[key][side] / scale:.4g} {unit})"
    return ""


def cell(row, side):
    if side not in row["nanoseconds"]:
        return ""
    ratio = row.get("ratios", {}).get(side)
    return duration(row["nanoseconds"][side]) + rate_text(row, side) + ("" if ratio is None else f", {ratio:.2f}")


def text_of(row):
    if "tern" not in row["nanoseconds"]:
        return f"{row['case']:28} not measured: {row['errors'].get('tern', '')}"
    parts = [f"{side} {cell(row, side)}" for side in ("tern", *SIDES, "own") if side in row["nanoseconds"]]
    return f"{row['case']:28} {' | '.join(parts)} {judged(row['bars'])}"


def markdown(report):
    bandwidth = report["copy_bytes_per_second"]
    copied = f"The card copies {bandwidth / 1e9:.0f} GB/s, read and written ({report['copy_by']}). " if bandwidth else ""
    lines = [
        f"{'; '.join(report['versions'].values())}. Medians of {report['rounds']} interleaved rounds. {copied}"
        "After a time of another side stands Tern's time divided by it: below 1 Tern is faster. PyTorch compiled is torch.compile, of loss and "
        f"gradient with mode=\"reduce-overhead\", of the optimizer's step without. {summary(report)}.",
        "",
        "| case | Tern | PyTorch eager | PyTorch compiled | bare CUDA | share of copy | bar |",
        "|---|---|---|---|---|---|---|",
    ]
    reasons = {f"{side}: {why}" for side, why in report["missing"].items()}
    for row in report["rows"]:
        if row["errors"]:
            reasons |= {f"{row['case']}, {side}: {why}" for side, why in row["errors"].items() if side not in report["missing"]}
        share = f"{row['share']:.0%}" if "share" in row else ""
        own = f"; the other way {cell(row, 'own')}" if "own" in row["nanoseconds"] else ""
        tern = cell(row, "tern") + own or "not measured"
        lines.append(f"| {row['what']} | {tern} | {' | '.join(cell(row, side) for side in SIDES)} | {share} | {judged(row['bars'])} |")
    if report["not_measured"]:
        lines += ["", f"Not measured, for lack of time: {', '.join(report['not_measured'])}."]
    if reasons:
        lines += ["", "Without figures:", ""] + [f"- {reason}" for reason in sorted(reasons)]
    remarks = [f"- {row['case']}, {side}: {remark}" for row in report["rows"] for side, remark in row["remarks"].items()]
    if remarks:
        lines += ["", "Remarks:", "", *remarks]
    return "\n".join(lines) + "\n"


def commands_of(options):
    """{side: (command, environment, timeout)}; a side whose program is not given is left out."""
    small = ["--small"] if options.small else []
    torch = [options.python, os.path.join(HERE, "torch_gpu_peer.py"), "--device", options.torch_device, *small]
    commands = {
        "tern": ([options.tern, *small], {}, 180),
        "eager": (torch, {}, 180),
        "compiled": ([*torch, "--compiled"], {}, 150),
        "bare": ([options.bare, *small], {}, 60),
        # The simulation has two GPUs by itself.
        "logical": ([options.tern, *small], {"TERN_LOGICAL_GPUS": "2"}, 60),
        # Small kernels are left to cuBLASLt and cuDNN; recorded kernels run one after the other.
        "libraries": ([options.tern, *small], {"TERN_CUDA_CONV": "cudnn", "TERN_CUDA_MATMUL": "cublas"}, 180),
        "chain": ([options.tern, *small], {"TERN_CUDA_GRAPH": "chain"}, 60),
        "separate": ([options.tern, *small], {"TERN_CUDA_MATMUL": "separate"}, 60),
    }
    if not options.bare:
        del commands["bare"]
    if not options.python:
        del commands["eager"], commands["compiled"]
    elif options.no_compiled:
        del commands["compiled"]
    return commands


def arguments(parser):
    parser.add_argument("--tern", required=True, help="the program gpu_peer")
    parser.add_argument("--bare", default="", help="the program gpu_bare")
    parser.add_argument("--python", default="", help="a Python that imports a torch with CUDA")
    parser.add_argument("--torch-device", default="cuda:0", help="where PyTorch computes")
    parser.add_argument("--no-compiled", action="store_true", help="leave torch.compile out")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the programs themselves")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="least time of one measurement")
    parser.add_argument("--budget", type=float, default=0, help="seconds after which no further case is begun; 0: no limit")
    parser.add_argument("--only", default="", help="cases whose name contains one of these texts, separated by commas")
    parser.add_argument("--json", default="", help="where the report goes; it is written after every case")
    parser.add_argument("--markdown", default="", help="where the table goes")
    parser.add_argument("--log", default="", help="where the processes' error output goes")
    return parser


def main():
    description = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options = arguments(description).parse_args()
    report = run(commands_of(options), options, lambda text: print(text, flush=True))
    for side, why in report["missing"].items():
        print(f"gpu_compare: without {side}: {why}", file=sys.stderr)
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(markdown(report))
    # Other sides may be missing; without Tern's there is nothing.
    sys.exit(0 if "tern" in report["versions"] else 1)


if __name__ == "__main__":
    main()
