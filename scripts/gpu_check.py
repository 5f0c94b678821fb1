#!/usr/bin/env python3
"""Runs Tern's tests and benchmarks on this machine's GPU and writes what came of it: gpu-results.md and gpu-results.json,
gpu-operators.md, bench.json, and logs.tgz. The stages run in the order in which they matter; one that crashes, hangs or runs out of time stops no other, and all
files are written anew after each and its parts.

Exit code: 0 all passed, 1 something failed or was cut short, 2 wrong use, 3 there is no GPU.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from gpucheck import machine, report, run, stages  # noqa: E402

BEGIN = time.monotonic()
NO_GPU = 3
EPILOG = """where a machine is lent for a quarter of an hour, and a command may take ten minutes, two commands are enough. Each runs
several of these, since a machine that has to be started again costs time too. First, the half minute that shows whether anything runs (its
files need not come back) and the tests (three files: gpu-results.md and .json, logs.tgz); then the benchmarks (six: bench.json, operator-bench.json
and gpu-operators.md too):
  ./gpu-check --only facts,cuda --budget 60 --output ../smoke
  ./gpu-check --skip bench,operator_bench,sanitizer --budget 270 --output first
  ./gpu-check --only bench,operator_bench --budget 290 --output second
then, in the same loan or the next, what failed, once mended, or had no time left (of the benchmarks by --only bench --cases NAMES), and
the sanitizer with what remains:
  ./gpu-check --only operators,rooms --budget 100 --output third
  ./gpu-check --only sanitizer --budget 200 --output fourth
and back here, for runs of different versions too:
  scripts/gpu_check.py --join */gpu-results.json

stages:
"""


def say(text):
    print(text, flush=True)


def build(options):
    """Builds what a checkout lacks."""
    folder = pathlib.Path(options.build)
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


def run_stage(stage, check, remaining, is_last):
    """Gives the stage's result after each part, the last time whole. It may take its own limit, and half of what is left, so that
    stages to come have time too."""
    begin, parts = time.monotonic(), []
    check.end = begin + min(stage.limit_s, remaining if is_last else max(30.0, remaining * 0.5), remaining)
    check.hold_context(stage.name not in ("bench", "operator_bench"))

    def result():
        return {"name": stage.name, "what": stage.what, "status": report.status_of(parts), "seconds": time.monotonic() - begin,
                "version": check.facts["version"], "parts": parts}

    try:
        for each in stage.run(check):
            parts.append(each)
            yield result()
    except Exception as error:  # a fault of this script costs no other stage
        parts.append(run.part(stage.name, "failed", reason=f"{type(error).__name__}: {error}"))
    yield result()


def left_out(stage, status, reason):
    return {"name": stage.name, "what": stage.what, "status": status, "seconds": 0, "parts": [], "reason": reason}


def print_stage(result):
    say(f"{result['name']:14} {result['status']:8} {result['seconds']:6.1f} s  {report.counts_of(result['parts'])}")
    for each in result["parts"]:
        if each["status"] != "passed" or each.get("reason"):
            say(f"    {each['name']}: {each['status']}{': ' if each.get('reason') else ''}{' '.join(str(each.get('reason', '')).split())[:300]}")
        for fault in each.get("failures", [])[:8]:
            say(f"        {fault['test']}: {' '.join(fault['text'].split())[:240]}")


def write(made, check, options):
    """The report, and the logs in one file."""
    made["finished"] = report.finished()
    report.write(made, options.results)
    check.output.mkdir(parents=True, exist_ok=True)
    with tarfile.open(check.output / "logs.tgz.part", "w:gz", compresslevel=5) as file:
        file.add(check.logs, arcname="logs")
    os.replace(check.output / "logs.tgz.part", check.output / "logs.tgz")


def check_all(check, options, names):
    made = {"simulated": check.simulated, "facts": check.facts, "figures": check.figures, "stages": []}
    last = [stage for stage in stages.STAGES if stage.name in names][-1]
    for stage in stages.STAGES:
        remaining = (options.budget or 1e9) - (time.monotonic() - BEGIN)
        if stage.name not in names:
            made["stages"].append(left_out(stage, "skipped", "not asked for"))
            continue
        if remaining < machine.LEAST_S:
            made["stages"].append(left_out(stage, "incomplete", f"out of time (--budget {options.budget:.0f})"))
            continue
        before = made["stages"]
        for result in run_stage(stage, check, remaining, stage is last):
            made["stages"] = [*before, result]
            write(made, check, options)
        print_stage(result)
    check.hold_context(False)
    write(made, check, options)
    for row in check.figures.get("bench", {}).get("rows", []):
        say(report.gpu_compare.text_of(row))
    say(f"gpu-check: {options.results}/gpu-results.md; logs in {check.output}/logs.tgz")
    return made


def join_reports(files, folder):
    loaded = [json.loads(pathlib.Path(file).read_text()) for file in files]
    if any(each["simulated"] for each in loaded):
        sys.exit("gpu-check: a report of simulated GPUs never goes to docs/")
    try:
        made = report.merged(loaded, [stage.name for stage in stages.STAGES])
    except ValueError as error:
        sys.exit(f"gpu-check: {error}")
    report.write(made, folder)
    for line in report.versions_lines(made):
        say(line)
    say(f"gpu-check: {folder}/gpu-results.md")


def main():
    names = [stage.name for stage in stages.STAGES]
    epilog = EPILOG + "\n".join(f"  {stage.name:14} {stage.what}" for stage in stages.STAGES)
    parser = argparse.ArgumentParser(description=__doc__, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter)
    in_bundle = (ROOT / "bundle.json").exists()
    parser.add_argument("--budget", type=float, default=0, metavar="SECONDS", help="end by then; a stage takes at most half of what is left while others follow")
    parser.add_argument("--only", default="", metavar="STAGES", help="these stages, separated by commas")
    parser.add_argument("--skip", default="", metavar="STAGES", help="all but these")
    parser.add_argument("--cases", default="", help="of the benchmarks those whose name contains one of these texts")
    parser.add_argument("--rounds", type=int, default=5, help="of the benchmarks, in which all sides take turns [5]")
    parser.add_argument("--output", default="", help="the folder for all files [in a bundle gpu-check-results in this folder; else the "
                                                         "report goes to docs/, the rest to out/gpu-check]")
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
    options.results = pathlib.Path(options.output or ("gpu-check-results" if in_bundle else ROOT / "out/gpu-check-simulated" if options.simulate else
                                                      ROOT / "docs"))
    options.output = ROOT / "out/gpu-check" if options.results == ROOT / "docs" else options.results
    if options.join:
        join_reports(options.join, options.results)
        return 0

    options.build = ROOT if in_bundle else options.build or ROOT / "build"
    if not options.have_gpu:
        build(options)
    program = pathlib.Path(options.build, "bin/tern")
    if not program.exists():
        sys.exit(f"gpu-check: {program} is not there: {'the bundle is not whole' if in_bundle else 'build first (make build)'}")
    options.work = tempfile.mkdtemp(prefix="gpu-check-")
    try:
        return checked(options, (chosen - skipped) | {"facts"})
    finally:
        shutil.rmtree(options.work, ignore_errors=True)


def checked(options, names):
    """The exit code."""
    check = machine.Check(ROOT, options)
    machine.gather_facts(check)
    if reason := why_no_gpu(check):
        print(f"gpu-check: no GPU: {reason}", file=sys.stderr)
        return NO_GPU
    if options.have_gpu:
        return 0
    made = check_all(check, options, names)
    return 1 if any(stage["status"] in ("failed", "incomplete") for stage in made["stages"]) else 0


def terminated(*_):
    """Leaves no program running where the check itself is ended from outside."""
    run.stop_all()
    os._exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"gpu-check: the build failed: {error}")
