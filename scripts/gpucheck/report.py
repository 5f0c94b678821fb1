"""The report of the check on a GPU: JSON, and the page for docs/."""

import json
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "bench"))
import gpu_compare  # noqa: E402
import operators  # noqa: E402
from peers import processor  # noqa: E402, F401
from .run import failure, part  # noqa: E402

MARKS = {"passed": "passed", "failed": "**failed**", "incomplete": "**incomplete**", "skipped": "skipped"}


def without_folders(value):
    """The value with all absolute paths cut short: where things lay on that machine is nobody's business."""
    if isinstance(value, dict):
        return {key: without_folders(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_folders(each) for each in value]
    if isinstance(value, str):
        value = re.sub(r"(?<![\w.])/(?:[\w.+@-]+/)*(?=(?:tests|tern|bench|examples)/)", "", value)
        return re.sub(r"(?<![\w.])/(?:[\w.+@-]+/)+", "", value)
    return value


def status_of(parts):
    statuses = {each["status"] for each in parts}
    return next((each for each in ("failed", "incomplete", "passed") if each in statuses), "skipped")


def counts_of(parts):
    sums = {key: sum(each.get(key, 0) for each in parts) for key in ("passed", "failed", "skipped")}
    return ", ".join(f"{count} {key}" for key, count in sums.items() if count)


def part_of_bench(found, seconds, status="passed", how=""):
    """The part that the benchmarks are, by their figures; `status` and `how` are of the program that took them. A bar that is missed is
    a figure, no fault: it stands in the table."""
    wrong = {}  # the errors of Tern, each once
    for row in found["rows"]:
        for side in ("tern", "own"):
            if side in row["errors"]:
                wrong.setdefault(row["errors"][side], row["case"] if side == "tern" else f"{row['case']}, {row['own_is']}")
    unfinished = [*found["not_measured"], *(row["case"] for row in found["rows"] if row["late"])]
    if wrong or not (found["rows"] or unfinished):
        status = "failed"
    elif unfinished and status == "passed":
        status = "incomplete"
    notes = [gpu_compare.summary(found), f"no time left for {', '.join(unfinished)}" if unfinished else "", how]
    return part("benchmarks", status, reason="; ".join(filter(None, notes)), seconds=seconds,
                failures=[failure(case, text) for text, case in wrong.items()])


def part_of_operators(found, seconds):
    failures = [failure(each["case"].split("(")[0], f"{each['case']}: {each['why']}") for each in found["failed"]]
    status = "failed" if failures or not found["rows"] else "incomplete" if found["left_out"] else "passed"
    return part("operators beside PyTorch", status, reason=operators_summary(found), failures=failures, seconds=seconds)


def operators_summary(found):
    return operators.summary([row["ratio"] for row in found["rows"]]) if found["rows"] else "no figures"


def cell(text):
    return " ".join(str(text).replace("|", "\\|").split())


def machine_lines(facts):
    lines = []
    for card in facts.get("gpu") or []:
        lines.append(f"- {card.get('name')}, {card.get('memory.total')}, compute capability {card.get('compute_cap')}, up to "
                     f"{card.get('clocks.max.sm')}, {card.get('power.limit')}; driver {card.get('driver_version')}")
    if not facts.get("gpu"):
        lines.append(f"- devices: {', '.join(each['name'] or '' for each in facts.get('devices', []))}")
    torch = facts.get("torch")
    lines.append(f"- CUDA: the driver's {facts.get('cuda_of_driver')}, toolkit {facts.get('toolkit')}; "
                 + (f"PyTorch {torch['version']} with CUDA {torch.get('cuda')} and cuDNN {torch.get('cudnn')}" if torch else "no PyTorch"))
    for side, found in (facts.get("libraries") or {}).items():
        lines.append(f"- {side} uses {', '.join(f'{name} {version}' for name, version in found.items())}")
    lines.append(f"- {facts.get('processor')}, {facts.get('cores')} cores, {facts.get('memory_bytes', 0) / (1 << 30):.0f} GiB; {facts.get('system')}")
    lines.append(f"- {facts.get('tern')}, {facts.get('version')}")
    return lines


def versions_of(report):
    """{version of Tern: the stages that ran it, and the benchmarks where they ran another than their stage at last}."""
    found = {}
    for stage in report["stages"]:
        if stage["parts"]:
            found.setdefault(stage["version"], []).append(stage["name"])
    for row in report["figures"].get("bench", {}).get("rows", []):
        if "bench" not in found.get(row["version"], []):
            found.setdefault(row["version"], []).append(row["case"])
    return found


def versions_lines(report):
    """Says so where there is more than one version in a report of several runs."""
    found = versions_of(report)
    return [f"- {', '.join(names)}: by {version}" for version, names in found.items()] if len(found) > 1 else []


def figures_lines(figures):
    lines = []
    if lenet := figures.get("lenet"):
        lines += ["", f"LeNet on {lenet['data']}, one seed, epochs: {lenet['epochs']}:", "", "| | CPU | GPU |", "|---|---|---|",
                  f"| loss of the first step | {lenet['first_loss_cpu']:.6f} | {lenet['first_loss_gpu']:.6f} |",
                  f"| right at the end | {lenet['accuracy_cpu']:.2%} | {lenet['accuracy_gpu']:.2%} |",
                  f"| the whole program | {lenet['seconds_cpu']:.1f} s | {lenet['seconds_gpu']:.1f} s |"]
    for name, what in (("soak", "training"), ("soak_captured", "captured training")):
        if soak := figures.get(name):
            first, last = soak["first"], soak["last"]
            lines += ["", f"Memory of a {what} over {soak['steps']} steps, after the first tenth and at the end: in tensors {first['allocated']} "
                          f"and {last['allocated']} bytes, reserved {first['reserved']} and {last['reserved']}, free on the GPU {first['free']} "
                          f"and {last['free']}, of the process on the host {first['resident']} and {last['resident']}."]
    return lines


def markdown(report):
    title = "# Tern on a GPU" + (" (SIMULATED: no figure here is a GPU's)" if report["simulated"] else "")
    lines = [title, "", "Written by `make gpu-check`: what was run, on what, and every figure beside PyTorch's in the same run.", "",
             f"Measured on {report['facts'].get('date')}.", "", *machine_lines(report["facts"]), *versions_lines(report), "",
             "## Checks", "",
             "| stage | what | result | tests | seconds | notes |", "|---|---|---|---|---|---|"]
    for stage in report["stages"]:
        notes = stage.get("reason") or "; ".join(f"{each['name']}: {each['reason']}" for each in stage["parts"] if each.get("reason"))
        lines.append(f"| {stage['name']} | {stage['what']} | {MARKS[stage['status']]} | {counts_of(stage['parts'])} | {stage['seconds']:.0f} | "
                     f"{cell(notes)} |")
    failed = [(stage["name"], each["name"], fault) for stage in report["stages"] for each in stage["parts"] for fault in each.get("failures", [])]
    if failed:
        lines += ["", "### What failed", ""]
        for stage, name, fault in failed[:60]:
            lines += [f"- {stage}, {name}: `{fault['test']}`", "", "  ```", *(f"  {line}" for line in fault["text"].splitlines()), "  ```", ""]
        if len(failed) > 60:
            lines.append(f"And {len(failed) - 60} more; the JSON has them all.")
    lines += figures_lines(report["figures"])
    if found := report["figures"].get("operators"):
        lines += ["", f"Every operator beside PyTorch is in [gpu-operators.md](gpu-operators.md): {operators_summary(found)}."]
    if bench := report["figures"].get("bench"):
        lines += ["", "## Speed", "", gpu_compare.markdown(bench).rstrip()]
    return "\n".join(lines) + "\n"


def operators_page(report):
    found = report["figures"]["operators"]
    note = "SIMULATED: no figure here is a GPU's. " if report["simulated"] else ""
    return f"# Operators of Tern and PyTorch on a GPU\n\nWritten by `make gpu-check`. {note}float32 is float32 on both sides: without TF32.\n\n" \
        + operators.markdown(found)


def write(report, folder):
    folder, report = pathlib.Path(folder), without_folders(report)
    folder.mkdir(parents=True, exist_ok=True)
    files = {"gpu-results.json": json.dumps(report, indent=1) + "\n", "gpu-results.md": markdown(report)}
    if "operators" in report["figures"]:
        files["gpu-operators.md"] = operators_page(report)
    for name, text in files.items():
        part = folder / f".{name}.part"
        part.write_text(text)
        os.replace(part, folder / name)


def merged(reports, order):
    """One report of several runs on one kind of machine: of each stage the last that ran, of each benchmark the last figures. They may be
    of different versions of Tern, as after a fault was mended: each stage and benchmark says its own. Raises ValueError where they do
    not fit."""
    reports = sorted(reports, key=lambda each: each.get("finished", ""))
    cards = {tuple(card.get("name") for card in each["facts"].get("gpu", [])) for each in reports}
    if len(cards) > 1:
        raise ValueError(f"the reports are of different GPUs: {', '.join(str(card) for card in sorted(cards))}")
    if len({each["simulated"] for each in reports}) > 1:
        raise ValueError("some of the reports are of simulated GPUs")
    stages, figures = {}, {}
    for each in reports:
        for stage in each["stages"]:
            known = stages.get(stage["name"])
            if not known or stage["parts"] or (stage["status"] == "incomplete" and not known["parts"]):
                stages[stage["name"]] = stage
        earlier = figures.get("bench")
        figures.update(each["figures"])
        if earlier and "bench" in each["figures"]:
            figures["bench"] = gpu_compare.merged(earlier, each["figures"]["bench"])
            parts = [part_of_bench(figures["bench"], stages["bench"]["seconds"])]  # what all runs together have left
            stages["bench"] = {**stages["bench"], "parts": parts, "status": status_of(parts)}
    listed = [stages[name] for name in order if name in stages]
    return {**reports[-1], "stages": listed, "figures": figures}


def finished():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
