#!/usr/bin/env python3
"""Compares each operator of Tern with PyTorch on this machine, alone and with its gradients; on a GPU with --device cuda:0, where the
sizes need a --scale that gives it enough to do.

Both sides are processes that time one case when asked; they take turns within every round, and the figures are medians over the
rounds. The cases are in operator_cases.py. Prints a line for each, and writes a JSON and a Markdown table.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

from peers import Peer, PeerError, duration, measured, report, write_report

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "support"))


class Case:
    """An operator with arguments; with `backward` its gradients for a gradient of ones."""

    def __init__(self, row, group, arguments, backward):
        import torch
        from operator_rows.driver import describe, may_want_gradient

        self.row, self.group, self.backward = row, group, backward
        self.arguments = list(arguments)
        self.text = f"{row.name}({', '.join(describe(argument) for argument in arguments)})" + (" and gradients" if backward else "")
        if backward:
            for i, value in enumerate(arguments):
                if isinstance(value, torch.Tensor) and may_want_gradient(value.dtype) and i not in row.no_grad:
                    self.arguments[i] = value.detach().requires_grad_()

    @staticmethod
    def first(result):
        return result[0] if isinstance(result, (list, tuple)) else result

    def request(self):
        return {"op": self.row.name, "args": self.arguments, "backward": self.backward}

    def step(self):
        import torch

        if not self.backward:
            return torch.no_grad()(lambda: self.row.torch(*self.arguments))
        wanting = [a for a in self.arguments if isinstance(a, torch.Tensor) and a.requires_grad]
        weight = torch.ones_like(self.first(self.row.torch(*self.arguments)))
        return lambda: torch.autograd.grad(self.first(self.row.torch(*self.arguments)), wanting, weight, allow_unused=True)


def make_cases(only, device, scale):
    """Those without gradients, then the others where there are any. On a GPU without operators that take no tensor to be there."""
    import torch

    import operator_cases
    from operator_rows import families
    from operator_rows.driver import may_want_gradient

    modules = families()
    rows = {}
    for row in (row for module in modules.values() for row in module.ROWS):
        rows.setdefault(row.name, row)  # those of complex numbers have names that were there
    creations = {row.name for row in modules["creation"].ROWS}
    with torch.device(device):
        groups = operator_cases.cases(scale)
    for group, members in groups.items():
        for op, arguments in members:
            if only not in f"{group} {op}" or (device != "cpu" and op in creations):
                continue
            plain = Case(rows[op], group, arguments, backward=False)
            yield plain
            with torch.no_grad():
                result = Case.first(plain.step()())
            floats = any(isinstance(a, torch.Tensor) and may_want_gradient(a.dtype) for a in arguments)
            if rows[op].grad and floats and may_want_gradient(result.dtype):
                yield Case(rows[op], group, arguments, backward=True)


def serve(options):
    """PyTorch's side: answers as peer.h does. Writes the requests for Tern's side to the file that the first line names."""
    import torch

    from torch_peer import time_step

    torch.backends.cudnn.allow_tf32 = False  # as matrix products are: float32 is float32
    on_gpu = options.torch_device != "cpu"
    cases = list(make_cases(options.only, options.torch_device, options.scale))
    torch.save([case.request() for case in cases], sys.stdin.readline().strip())
    print(json.dumps({"version": f"PyTorch {torch.__version__}", "gpu": torch.cuda.get_device_name() if on_gpu else "", "cases": [(case.group, case.text) for case in cases]}), flush=True)
    for line in sys.stdin:
        number, threads, seconds = line.split()
        torch.set_num_threads(int(threads))
        try:
            print(time_step(cases[int(number)].step(), float(seconds), torch.cuda.synchronize if on_gpu else lambda: None), flush=True)
        except RuntimeError as error:
            print("error:", " ".join(str(error).split()), flush=True)


class TorchPeer(Peer):
    """PyTorch's side, which tells in its first line which cases there are."""

    def __init__(self, options, request):
        self.request, self.told = request, None
        super().__init__("PyTorch", [options.python, os.path.abspath(__file__), "--serve", "--only", options.only, "--torch-device",
                                     options.torch_device, "--scale", options.scale])

    def _line(self, timeout):
        if self.told is not self.process:
            self.process.stdin.write(f"{self.request}\n".encode())
            self.told = self.process
        return super()._line(timeout)


def summary(ratios):
    return f"{len(ratios)} cases, median ratio {statistics.median(ratios):.2f}; {sum(r > 1.05 for r in ratios)} take more than 1.05 times " \
           "PyTorch's time"


def markdown(report):
    lines = [
        measured(report),
        "",
    ]
    for threads in sorted({row["threads"] for row in report["rows"]}):
        ratios = [row["ratio"] for row in report["rows"] if row["threads"] == threads]
        lines.append(f"Threads: {threads}. {summary(ratios)}.")
    for each in report.get("failed", []):
        lines.append(f"- without figures: {each['case']}: {each['why']}")
    if left_out := report.get("left_out"):
        lines.append(f"- no time left for {len(left_out)} cases, from {left_out[0]} on")
    for group in dict.fromkeys(row["group"] for row in report["rows"]):
        lines += ["", f"## {group.capitalize()}", "", "| case | threads | Tern | PyTorch | ratio |", "|---|---|---|---|---|"]
        for row in report["rows"]:
            if row["group"] == group:
                lines.append(f"| {row['case']} | {row['threads']} | {duration(row['tern'])} | {duration(row['torch'])} | {row['ratio']:.2f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tern", help="the program operator_peer")
    parser.add_argument("--python", help="a Python that imports torch (scripts/bench_env prints one)")
    parser.add_argument("--device", default="cpu", help="where Tern computes [cpu]")
    parser.add_argument("--torch-device", default="", help="where PyTorch computes [there too]")
    parser.add_argument("--scale", type=int, default=1, help="so many times the elements of large operands [1]")
    parser.add_argument("--budget", type=float, default=0, help="seconds for all cases; 0: no limit")
    parser.add_argument("--threads", default="", help="numbers of threads, separated by commas [1,2; on a GPU 1]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.02, help="least time of one measurement")
    parser.add_argument("--only", default="", help="cases whose group and operator contain this text")
    parser.add_argument("--slower", action="store_true", help="print only what takes more than 1.05 times PyTorch's time")
    parser.add_argument("--json", default="", help="where the JSON goes")
    parser.add_argument("--markdown", default="", help="where the Markdown table goes")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.torch_device = options.torch_device or options.device
    options.threads = options.threads or ("1,2" if options.device == "cpu" else "1")
    if options.serve:
        return serve(options)
    if not options.tern or not options.python:
        parser.error("--tern and --python are needed")

    with tempfile.TemporaryDirectory() as folder:
        request = os.path.join(folder, "request.pt")
        torch = TorchPeer(options, request)
        about = json.loads(torch.version)
        tern = Peer("Tern", [options.tern, request, options.device])
        rows, failed, left_out, end = [], [], [], time.monotonic() + (options.budget or float("inf"))
        for threads in (int(t) for t in options.threads.split(",")):
            for number, (group, text) in enumerate(about["cases"]):
                if time.monotonic() > end:
                    left_out.append(text)
                    continue
                samples = {"tern": [], "torch": []}
                try:
                    for _ in range(options.rounds):
                        samples["tern"].append(tern.time(number, threads, options.seconds))
                        samples["torch"].append(torch.time(number, threads, options.seconds))
                except PeerError as error:
                    failed.append({"case": text, "why": str(error)})
                    continue
                row = {name: statistics.median(values) for name, values in samples.items()}
                row.update(group=group, case=text, threads=threads, ratio=row["tern"] / row["torch"])
                rows.append(row)
                if not options.slower or row["ratio"] > 1.05:
                    print(f"{row['ratio']:6.2f} {duration(row['tern']):>9} {duration(row['torch']):>9} {threads} threads  {text}", flush=True)
        versions = [tern.version, about["version"]] + ([f"both on {about['gpu']}"] if about["gpu"] else [])
        about = report(versions, options.rounds, rows=rows, failed=failed, left_out=left_out)
        tern.close()
        torch.close()
    write_report(about, markdown, options)
    for each in failed:
        print(f"operators: {each['case']}: {each['why']}", file=sys.stderr)
    if left_out:
        print(f"operators: no time left for {len(left_out)} cases, from {left_out[0]} on", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except PeerError as error:
        sys.exit(f"operators: {error}")
