#!/usr/bin/env python3
"""Compares Tern on a GPU with PyTorch (eager, and compiled with mode="reduce-overhead") and with bare CUDA, in one run.

Each side is a process that times one case when asked; they take turns within every round, another one first in each, and the figures
are medians over the rounds. A side that fails or is missing leaves its column empty, with the reason; a case that failed is not asked
for again, and a side that was silent for too long for nothing more. scripts/gpu_check.py runs this as its stage `bench`; a new row is a
line in rows() and a case of that name in gpu_peer.cpp and its counterparts.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from typing import Optional

from peers import Peer, PeerError, PeerTimeout, duration

HERE = os.path.dirname(os.path.abspath(__file__))
SIDES = ("eager", "compiled", "bare")
# How long Tern may take for an answer after it was silent for too long once: unlike other sides it is asked for its other cases.
LESS_PATIENCE_S = 30
# Of the time that is left another side may take so much for an answer: torch.compile must not cost the cases that follow.
SHARE_OF_OTHERS = 0.6


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
    own: str = ""                          # a second case of Tern's that stands beside it
    own_side: str = ""                     # its process where it is another: see commands_of
    own_is: str = ""                       # what is different about it
    seconds: float = 0                     # least time of one measurement, where --seconds is too short


def rows(small):
    """What needs no compiler comes first: torch.compile may take long, and time may end."""
    copied = 1 << 16 if small else 64 << 20
    numel = 1 << 16 if small else 256 << 20  # much more than caches hold, also where it is only read
    found = [
        Row("launch_host", "256 launches of an empty kernel: the host's time", {"bare": 1.2}),
        Row("launch_rate", "the same, until the GPU is done", {"bare": None}),
        Row("h2d_pinned", f"copy of {4 * copied >> 20} MiB from pinned memory to the GPU", {"bare": 1 / 0.95, "eager": None},
            work="nbytes", amount=4 * copied),
    ]
    # Bytes that must be read and written, for each element of the input.
    for case, what, nbytes in [
        ("relu", "relu", 8), ("exp", "exp", 8), ("gelu", "gelu", 8), ("add", "add", 12), ("add_row", "add of a row", 8),
        ("softmax", "softmax of rows", 8), ("log_softmax", "log_softmax of rows", 8), ("layer_norm", "layer_norm", 8),
        ("sum", "sum", 4), ("sum_rows", "sum of rows", 4), ("sum_columns", "sum of columns", 4), ("amax_rows", "largest of rows", 4),
        ("norm", "norm", 4),
    ]:
        found.append(Row(case, f"{what}, [{numel // 1024}, 1024]", {"eager": None}, work="nbytes", amount=nbytes * numel, share=0.9))
    found += [matmul_row(n, name, small) for n in (4096, 8192) for name in ("float32", "tf32", "bfloat16")]
    libraries = {"own_side": "libraries", "own_is": "by cuBLASLt and cuDNN"}
    found += [
        Row("products_each", "1000 products of 100x100, each norm read", {"eager": None}),
        Row("products_kept", "the same, norms kept on the device", {"eager": None}, own="products_kept", **libraries),
        Row("products_captured", "the same, captured", {"eager": None}, theirs="products_kept", own="products_captured", own_side="chain",
            own_is="kernels one after the other"),
        Row("lenet_step_b256", "LeNet training step with SGD, batch 256, eager", {"eager": 0.5, "compiled": None}),
        Row("lenet_step_b256_captured", "LeNet training step, captured", {"eager": 0.15, "compiled": 0.8}, theirs="lenet_step_b256",
            own="lenet_step_b256_captured", **libraries),
        Row("mlp_step_b2", "MLP training step with Adam, batch 2, eager", {"eager": 0.5, "compiled": None}),
        Row("mlp_step_b2_captured", "MLP training step, captured", {"eager": 0.15, "compiled": 0.8}, theirs="mlp_step_b2",
            own="mlp_step_b2_captured", **libraries),
    ]
    found += [matmul_row(n, name, small) for n in (1024, 2048, 16384) for name in ("float32", "tf32", "bfloat16")]
    size = 4096 // 32 if small else 4096
    found.append(Row("linear_bfloat16", f"layer [{size}, {size}] on {size} rows with all its gradients, bfloat16", {"eager": None},
                     work="flops", amount=3 * 2 * size**3, own="linear_bfloat16", own_side="separate",
                     own_is="the bias' gradient by a kernel of its own"))
    found.append(Row("feed_forward_bfloat16", f"layers {size // 4} to {size} to {size // 4} with GELU (tanh) between them, on {size} rows with all "
                     "gradients, bfloat16", {"eager": None}, work="flops", amount=3 * 2 * 2 * size * size * size // 4, own="feed_forward_bfloat16",
                     own_side="separate", own_is="GELU and the gradients of the biases by kernels of their own"))
    found.append(Row("two_at_once", "two chains of small kernels on two logical GPUs at once", {}, tern="logical", own="two_in_turn",
                     own_is="one after the other on one"))
    for case, nbytes in [("softmax", 12), ("layer_norm", 12), ("norm", 8)]:
        found.append(Row(f"{case}_gradient", f"gradients of {case}, [{numel // 1024}, 1024]", {"eager": None}, work="nbytes",
                         amount=nbytes * numel))
    return found


def matmul_row(n, name, small):
    size = n // 32 if small else n
    by_host = " (bound by the host)" if n == 1024 and name != "float32" else ""
    measured = {"own": f"matmul_{name}_{n}_measured", "own_is": "by the fastest algorithm measured"} if n in (4096, 8192) else {}
    # Of these bars 2 % decide: a card needs a while to come to its clock.
    return Row(f"matmul_{name}_{n}", f"matmul {size}, {'TF32' if name == 'tf32' else name}{by_host}", {"eager": 1 / 0.98}, work="flops",
               amount=2 * size**3, seconds=0 if small else 0.3, **measured)


class OutOfTime(Exception):
    """The time for all cases is over."""


class Sides:
    """The processes, until the time `end`. Of those that did not start, or were silent for too long, the reason is remembered, and of
    cases that failed."""

    def __init__(self, commands, end, log=None):
        self.peers, self.reasons, self.failed, self.end = {}, {}, {}, end
        for name, (command, env, timeout) in commands.items():
            try:
                self.peers[name] = Peer(name, command, env, min(timeout, self.limit(name)), log)
                self.peers[name].timeout = timeout
            except PeerError as error:
                self.reasons[name] = str(error)
        self.versions = {name: peer.version for name, peer in self.peers.items()}

    def limit(self, side):
        """Seconds that an answer may take."""
        return max(0.0, self.end - time.monotonic()) * (SHARE_OF_OTHERS if side in SIDES else 1)

    def ask(self, side, case, seconds):
        """Nanoseconds for one iteration, and what the side remarks."""
        if side not in self.peers:
            raise PeerError(self.reasons.get(side, f"there is no {side}"))
        if (side, case) in self.failed:
            raise PeerError(self.failed[side, case])
        if time.monotonic() >= self.end:
            raise OutOfTime
        peer = self.peers[side]
        try:
            return peer.time(case, 1, seconds, self.limit(side)), peer.remark
        except PeerError as error:
            self.failed[side, case] = f"{error}, case {case}" if isinstance(error, PeerTimeout) else str(error)
            if isinstance(error, PeerTimeout):
                if time.monotonic() >= self.end:
                    raise OutOfTime from None
                if side == "tern":
                    peer.timeout = min(peer.timeout, LESS_PATIENCE_S)
                else:
                    self.reasons[side] = f"{self.failed[side, case]}: it is asked for nothing more"
                    del self.peers[side]
            raise PeerError(self.failed[side, case]) from None

    def close(self):
        for peer in self.peers.values():
            peer.close()


def measure(sides, questions, rounds, seconds):
    """Samples of interleaved rounds: {key: [nanoseconds]}, {key: why there are none}, and {key: what the side remarked}. `questions` is
    {key: (side, case)}. Each round begins with another one, so that what the card was heated by falls on all. Where time ends, samples
    are fewer."""
    samples, errors, remarks, keys = {key: [] for key in questions}, {}, {}, list(questions)
    try:
        for turn in range(rounds):
            first = turn % len(keys)
            for key in keys[first:] + keys[:first]:
                if key in errors:
                    continue
                try:
                    figure, remark = sides.ask(*questions[key], seconds)
                    samples[key].append(figure)
                    if remark:
                        remarks[key] = remark
                except PeerError as error:
                    errors[key] = str(error)
    except OutOfTime:  # too few rounds are no median
        samples = {key: values for key, values in samples.items() if len(values) >= min(3, rounds)}
    return {key: values for key, values in samples.items() if values and key not in errors}, errors, remarks


def copy_bandwidth(sides, options, source=""):
    """(bytes per second that the card copies, read and written; who copied; why not who should): bare CUDA, else PyTorch."""
    nbytes, reasons = 8 * (1 << 16 if options.small else 256 << 20), []
    for side in [source] if source else ["bare", "eager"]:
        samples, errors, _ = measure(sides, {"copy": (side, "copy")}, options.rounds, options.seconds)
        if samples:
            return nbytes / statistics.median(samples["copy"]) * 1e9, side, "; ".join(reasons)
        reasons.append(errors.get("copy", f"{side}: no time left"))
    return None, "", "; ".join(reasons)


def judge(bar, figure, seen):
    """Sets what a bar says of a figure, whose rounds gave those `seen`."""
    met = (lambda value: value <= bar["most"]) if "most" in bar else (lambda value: value >= bar["least"])
    bar.update(figure=figure, met=met(figure), seen=[min(seen), max(seen)], within_noise=met(min(seen)) != met(max(seen)))


def set_share(result, bandwidth):
    """Judges a row by its share of the bandwidth of copies."""
    for bar in result["bars"]:
        if "least" in bar and bandwidth and "tern" in result["nanoseconds"]:
            nbytes = result["nbytes_per_second"]["tern"] * result["nanoseconds"]["tern"]
            result["share"] = result["nbytes_per_second"]["tern"] / bandwidth
            judge(bar, result["share"], [nbytes / each / bandwidth for each in result["samples"]["tern"]])


def measure_row(row, sides, options):
    questions = {"tern": (row.tern, row.case)}
    if row.own:
        questions["own"] = (row.own_side or row.tern, row.own)
    questions.update({side: (side, row.theirs or row.case) for side in row.sides})
    samples, errors, remarks = measure(sides, questions, options.rounds, max(options.seconds, row.seconds))
    figures = {key: statistics.median(values) for key, values in samples.items()}
    result = {"case": row.case, "what": row.what, "own_is": row.own_is, "nanoseconds": figures, "samples": samples, "errors": errors,
              "late": [key for key in questions if key not in samples and key not in errors], "remarks": remarks, "bars": []}
    if row.work:
        result[row.work + "_per_second"] = {side: row.amount / time * 1e9 for side, time in figures.items()}
    ratios = {side: figures["tern"] / time for side, time in figures.items() if "tern" in figures and side != "tern"}
    if ratios:
        result["ratios"] = ratios
    for side, bar in row.sides.items():
        if bar is not None:
            result["bars"].append({"of": f"time / {side}", "most": bar, "figure": None, "met": None})
            if side in ratios:
                judge(result["bars"][-1], ratios[side], [ours / theirs for ours, theirs in zip(samples["tern"], samples[side])])
    if row.share is not None:
        result["bars"].append({"of": "share of the copy bandwidth", "least": row.share, "figure": None, "met": None})
    return result


def run(commands, options, say=print):
    """The report. `commands` is {side: (command, environment, seconds that one answer may take)}."""
    begin = time.monotonic()
    sides = Sides(commands, begin + options.budget if options.budget else float("inf"), options.log)
    try:
        bandwidth, source, why_not = copy_bandwidth(sides, options)
        chosen = [row for row in rows(options.small) if not options.only or any(part in row.case for part in options.only.split(","))]
        report = {"versions": sides.versions, "missing": sides.reasons, "rounds": options.rounds, "copy_by": source,
                  "copy_bytes_per_second": bandwidth, "rows": [], "not_measured": [row.case for row in chosen]}
        if why_not:
            report["missing"]["copy"] = why_not

        def keep():
            report["seconds"] = time.monotonic() - begin
            if options.json:
                write(report, options.json)

        for row in chosen:
            result = measure_row(row, sides, options)
            if "tern" in result["late"]:
                continue
            report["not_measured"].remove(row.case)
            set_share(result, bandwidth)
            report["rows"].append(result)
            say(text_of(result))
            keep()
        if bandwidth:  # as the card copies when it is warm too: the larger counts
            report["copy_bytes_per_second"] = bandwidth = max(bandwidth, copy_bandwidth(sides, options, source)[0] or 0)
            for result in report["rows"]:
                set_share(result, bandwidth)
        keep()  # before the processes end, which may hang
    finally:
        sides.close()
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
    # What the first run lacked, unless the later one had it.
    missing = {side: why for side, why in first["missing"].items() if side not in later["versions"] and not (side == "copy" and bandwidth)}
    made = {**first, **later, "versions": {**first["versions"], **later["versions"]}, "missing": {**missing, **later["missing"]},
            "rows": list(rows.values()), "not_measured": left_out, "copy_bytes_per_second": bandwidth}
    for row in made["rows"]:
        set_share(row, bandwidth)
    return made


def summary(report):
    """How many cases there are, and how many bars are met."""
    bars = [bar for row in report["rows"] for bar in row["bars"]]
    verdicts = [bar["met"] for bar in bars]
    measured = sum("tern" in row["nanoseconds"] for row in report["rows"])
    noise = sum(bar.get("within_noise", False) for bar in bars)
    return f"{measured} cases measured; {verdicts.count(True)} bars met, {verdicts.count(False)} missed, {verdicts.count(None)} without " \
           f"figures; {noise} of these verdicts are within the noise"


def judged(bars):
    """The bars of a row with their verdicts."""
    texts = []
    for bar in bars:
        bound = f"≤ {bar['most']:.3f}×" if "most" in bar else f"≥ {bar['least']:.1%}"
        verdict = "not measured" if bar["met"] is None else "met" if bar["met"] else "missed"
        if bar.get("within_noise"):
            verdict += f", within noise ({' to '.join(f'{each:.3f}' if 'most' in bar else f'{each:.1%}' for each in bar['seen'])})"
        side = bar["of"].rpartition("/ ")[2] if "most" in bar else "of copy"
        texts.append(f"{bound} {side}: {verdict}")
    return "; ".join(texts)


def rate_text(row, side):
    for key, unit, scale in (("flops_per_second", "TFLOP/s", 1e12), ("nbytes_per_second", "GB/s", 1e9)):
        if side in row.get(key, {}):
            return f", {row[key][side] / scale:.4g} {unit}"
    return ""


def cell(row, side):
    if side not in row["nanoseconds"]:
        return ""
    ratio, samples = row.get("ratios", {}).get(side), row["samples"][side]
    spread = f" ({duration(min(samples), 4)} to {duration(max(samples), 4)})" if len(samples) > 1 else ""
    return duration(row["nanoseconds"][side], 4) + spread + rate_text(row, side) + ("" if ratio is None else f", {ratio:.3f}")


def text_of(row):
    if "tern" not in row["nanoseconds"]:
        return f"{row['case']:28} not measured: {row['errors'].get('tern', '')}"
    names = {**{side: side for side in ("tern", *SIDES)}, "own": row["own_is"]}
    parts = [f"{name} {cell(row, side)}" for side, name in names.items() if side in row["nanoseconds"]]
    return f"{row['case']:28} {' | '.join(parts)} {judged(row['bars'])}"


def markdown(report):
    bandwidth = report["copy_bytes_per_second"]
    copied = f"The card copies {bandwidth / 1e9:.0f} GB/s, read and written ({report['copy_by']}). " if bandwidth else ""
    lines = [
        f"{'; '.join(report['versions'].values())}. Medians of {report['rounds']} interleaved rounds. {copied}"
        "In brackets the smallest and the largest. After a time of another side, or of another way of Tern's, stands Tern's time divided by it: "
        "below 1 Tern is faster. A verdict is within noise where some rounds say the opposite. PyTorch compiled is torch.compile with "
        f"mode=\"reduce-overhead\". {summary(report)}.",
        "",
        "| case | Tern | PyTorch eager | PyTorch compiled | bare CUDA | share of copy | bar |",
        "|---|---|---|---|---|---|---|",
    ]
    reasons = {f"{side}: {why}" for side, why in report["missing"].items()}
    for row in report["rows"]:
        if row["errors"]:
            reasons |= {f"{row['case']}, {side}: {why}" for side, why in row["errors"].items() if why != report["missing"].get(side)}
        reasons |= {f"{row['case']}, {side}: no time left" for side in row["late"]}
        share = f"{row['share']:.1%}" if "share" in row else ""
        own = f"; {row['own_is']} {cell(row, 'own')}" if "own" in row["nanoseconds"] else ""
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
        "tern": ([options.tern, *small], {}, 90),
        "eager": (torch, {}, 120),
        "compiled": ([*torch, "--compiled"], {}, 150),
        "bare": ([options.bare, *small], {}, 60),
        # The simulation has two GPUs by itself.
        "logical": ([options.tern, *small], {"TERN_LOGICAL_GPUS": "2"}, 60),
        # Small kernels are left to cuBLASLt and cuDNN; recorded kernels run one after the other.
        "libraries": ([options.tern, *small], {"TERN_CUDA_CONV": "cudnn", "TERN_CUDA_MATMUL": "cublas"}, 60),
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
    parser.add_argument("--budget", type=float, default=0, help="seconds for all cases; 0: no limit")
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
