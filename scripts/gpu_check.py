#!/usr/bin/env python3
"""Runs Tern's tests and benchmarks on this machine's GPU and writes what came of it: gpu-results.md and gpu-results.json, in docs/
of a checkout, or in --output from a bundle (`make gpu-bundle`). The stages run in the order in which they matter; one that crashes,
hangs or runs out of time stops no other, and the report is written anew after each.

Exit code: 0 all passed, 1 something failed, 2 wrong use, 3 there is no GPU.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from gpucheck import report, run, stages  # noqa: E402

NO_GPU = 3


def say(text):
    print(text, flush=True)


def build(options):
    """Builds what a checkout lacks."""
    folder = pathlib.Path(options.build or ROOT / "build")
    if (ROOT / "bundle.json").exists() or options.no_build:
        return
    missing = [name for name in ("tern", "gpu_peer", "operator_tool", "test_backends_cuda", *(f"test_{room}" for room in stages.ROOMS))
               if not (folder / "bin" / name).exists()]
    if missing:
        say(f"gpu-check: building ({', '.join(missing[:4])}{' and more' if len(missing) > 4 else ''} missing)")
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-DTERN_BUILD_BENCH=ON", "-DTERN_BUILD_TESTS=ON", "-DTERN_BUILD_EXAMPLES=ON"], check=True)
        subprocess.run(["cmake", "--build", folder], check=True)


def why_no_gpu(check):
    """None where there is a GPU, else the reason."""
    found = check.facts["devices"]
    if check.simulated:
        return None if any(each["simulated"] for each in found) else "not even a simulated one: the program does not run"
    if any(each["backend"] == "cuda" and not each["simulated"] for each in found):
        return None
    if not found:
        outcome = subprocess.run([check.bin / "tern", "devices"], capture_output=True, text=True, env=check.env())
        return f"the program tells of no device at all: {' '.join((outcome.stderr or outcome.stdout).split())[-400:]}"
    findings = [each for each in check.json_of("doctor").get("findings", []) if each.get("severity") in ("error", "problem", "warning")]
    return " ".join([check.facts["doctor"], *(each["found"] for each in findings[:3])]).strip()


def run_stage(stage, check, remaining):
    """The stage's result. It may take its own limit, and half of what is left, so that others have time too."""
    limit = min(stage.limit_s, max(30.0, remaining * 0.5))
    for log in check.logs.glob(f"{stage.name}-*.log"):
        log.unlink()
    begin = time.monotonic()
    check.end = begin + min(limit, remaining)
    try:
        parts = stage.run(check)
    except Exception as error:  # a fault of this script costs no other stage
        parts = [run.part(stage.name, "failed", reason=f"{type(error).__name__}: {error}")]
    return {"name": stage.name, "what": stage.what, "status": report.status_of(parts), "seconds": time.monotonic() - begin, "parts": parts}


def left_out(stage, reason):
    return {"name": stage.name, "what": stage.what, "status": "skipped", "seconds": 0, "parts": [], "reason": reason}


def print_stage(result):
    say(f"{result['name']:12} {result['status']:8} {result['seconds']:6.1f} s  {report.counts_of(result['parts'])}")
    for each in result["parts"]:
        if each["status"] != "passed" or each.get("reason"):
            say(f"    {each['name']}: {each['status']}{': ' if each.get('reason') else ''}{' '.join(str(each.get('reason', '')).split())[:300]}")
        for fault in each.get("failures", [])[:8]:
            say(f"        {fault['test']}: {' '.join(fault['text'].split())[:240]}")


def check_all(check, options, names):
    begin = time.monotonic()
    made = {"simulated": check.simulated, "facts": check.facts, "figures": check.figures, "stages": []}
    folder = options.results
    for stage in stages.STAGES:
        remaining = (options.budget or 1e9) - (time.monotonic() - begin)
        if stage.name not in names:
            made["stages"].append(left_out(stage, "not asked for"))
            continue
        if remaining < 5:
            made["stages"].append(left_out(stage, f"out of time (--budget {options.budget:.0f})"))
            continue
        result = run_stage(stage, check, remaining)
        made["stages"].append(result)
        made["finished"] = report.finished()
        print_stage(result)
        report.write(made, folder)
    made["finished"] = report.finished()
    report.write(made, folder)
    say(f"gpu-check: {folder}/gpu-results.md; logs in {check.logs}")
    return made


def join_reports(files, folder):
    loaded = [json.loads(pathlib.Path(file).read_text()) for file in files]
    if any(each["simulated"] for each in loaded):
        sys.exit("gpu-check: a report of simulated GPUs never goes to docs/")
    report.write(report.merged(loaded, [stage.name for stage in stages.STAGES]), folder)
    say(f"gpu-check: {folder}/gpu-results.md")


def main():
    names = [stage.name for stage in stages.STAGES]
    epilog = "stages:\n" + "\n".join(f"  {stage.name:12} {stage.what}" for stage in stages.STAGES)
    parser = argparse.ArgumentParser(description=__doc__, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter)
    in_bundle = (ROOT / "bundle.json").exists()
    parser.add_argument("--budget", type=float, default=0, metavar="SECONDS", help="end by then; a stage takes at most half of what is left")
    parser.add_argument("--only", default="", metavar="STAGES", help="these stages, separated by commas")
    parser.add_argument("--skip", default="", metavar="STAGES", help="all but these")
    parser.add_argument("--cases", default="", help="of the benchmarks those whose name contains one of these texts")
    parser.add_argument("--output", default="", help="where results and logs go [out/gpu-check; in a bundle gpu-check-results in this folder]")
    parser.add_argument("--python", default="", help="a Python that imports a torch with CUDA [this one]")
    parser.add_argument("--mnist", default="", help="a folder with MNIST's files [the bundle's; else generated digits]")
    parser.add_argument("--jobs", type=int, default=0, help="test programs at a time [a fourth of the cores, at most 4]")
    parser.add_argument("--build", default="", help="the build folder of a checkout [build]")
    parser.add_argument("--no-build", action="store_true", help="build nothing; what is missing is skipped")
    parser.add_argument("--simulate", action="store_true", help="try the check itself on two simulated GPUs; docs/ is not written")
    parser.add_argument("--have-gpu", action="store_true", help="only say whether there is a GPU")
    parser.add_argument("--join", nargs="+", metavar="FILE", help="run nothing: make one report of the gpu-results.json of several runs")
    options = parser.parse_args()

    chosen = set(filter(None, options.only.split(","))) or set(names)
    skipped = set(filter(None, options.skip.split(",")))
    if unknown := sorted((chosen | skipped) - set(names)):
        parser.error(f"there is no stage {', '.join(unknown)}; there are {', '.join(names)}")
    if not options.output:
        options.output = "gpu-check-results" if in_bundle else str(ROOT / "out" / ("gpu-check-simulated" if options.simulate else "gpu-check"))
    options.results = pathlib.Path(options.output if in_bundle or options.simulate else ROOT / "docs")
    if options.join:
        join_reports(options.join, options.results)
        return 0

    if not options.have_gpu:
        build(options)
    check = stages.Check(ROOT, options)
    if not (check.bin / "tern").exists():
        sys.exit(f"gpu-check: {check.bin / 'tern'} is not there: build first (make gpu-bundle, or make build)")
    stages.gather_facts(check)
    if reason := why_no_gpu(check):
        print(f"gpu-check: no GPU: {reason}", file=sys.stderr)
        return NO_GPU
    if options.have_gpu:
        return 0
    made = check_all(check, options, (chosen - skipped) | {"facts"})
    return 1 if any(stage["status"] == "failed" for stage in made["stages"]) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"gpu-check: the build failed: {error}")
