# The check on a GPU (scripts/gpu_check.py) itself, without one: it says so; on simulated GPUs it runs and marks its report; tests that
# crash, hang, or end all use of the GPU are named and cost no others; what time or compute-sanitizer cut short has not passed; sides of the
# benchmarks that hang cost one answer.

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from gpucheck import machine, report, run, stages  # noqa: E402
from gpucheck.report import gpu_compare  # noqa: E402
from peers import Peer, PeerError  # noqa: E402

# A program as GoogleTest makes them.
FAKE = """#!{python}
import os, sys, time
names = ["First", "Crashes", "Wrong", "Sticky", "AfterSticky", "Hangs", "Skips", "Last"]
chosen = sys.argv[-1].split("=", 1)[1]
chosen = names if chosen == "*" else [name.split(".")[1] for name in chosen.split(":")]
if sys.argv[1] == "--gtest_list_tests":
    print("Suite.")
    print("".join(f"  {{name}}\\n" for name in names), end="")
    sys.exit(0)
sticky = False
for name in chosen:
    print(f"[ RUN      ] Suite.{{name}}", flush=True)
    if name == "Crashes": os.abort()
    if name == "Hangs": time.sleep(60)
    if name == "Sticky":
        print("illegal address. The error is sticky: nothing can be done")
        sticky = True
    if name == "Wrong": print("expected 1, got 2")
    word = "FAILED  " if sticky or name == "Wrong" else "SKIPPED " if name == "Skips" else "      OK"
    print(f"[ {{word}} ] Suite.{{name}} (0 ms)", flush=True)
"""


def test_runner(folder):
    program = folder / "fake_tests"
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    result = run.run_tests("fake", program, folder / "fake.log", dict(os.environ), 60, silent_s=1.5)
    assert result["status"] == "failed", result
    assert [fault["test"] for fault in result["failures"]] == ["Suite.Crashes", "Suite.Wrong", "Suite.Sticky", "Suite.Hangs"], result
    assert (result["passed"], result["skipped"]) == (3, 1), result  # First, AfterSticky and Last
    assert "SIGABRT" in result["failures"][0]["text"] and "silent" in result["failures"][3]["text"], result
    result = run.run_tests("fake", program, folder / "fake.log", dict(os.environ), 2, pattern="Suite.First:Suite.Hangs")
    assert (result["status"], result["reason"]) == ("incomplete", "cut short after 1 tests, in Suite.Hangs"), result


def test_findings_of_the_sanitizer(folder):
    def judged(text, status):
        (folder / "sanitizer.log").write_text(text)
        return stages.with_findings({"status": status, "reason": "cut short" if status == "incomplete" else ""}, folder / "sanitizer.log")

    assert judged("========= ERROR SUMMARY: 0 errors\n", "passed") == {"status": "passed", "reason": "no finding"}
    assert judged("========= COMPUTE-SANITIZER\n", "incomplete") == {"status": "incomplete", "reason": "cut short; no finding until then"}
    assert judged("========= Invalid __global__ read of size 4\n", "incomplete")["status"] == "failed"
    assert judged("no word of it\n", "passed")["status"] == "failed"
    (folder / "sanitizer.log").write_text("========= Error: Device not supported.\nerror 999\n")
    refused = stages.with_findings(run.part("cuda", "failed", failed=9, failures=[run.failure("Gpu.Adds", "error 999")]), folder / "sanitizer.log")
    assert refused["status"] == "skipped" and "failures" not in refused, refused
    assert not stages.refuses(["Device not supported", "Invalid __global__ read of size 4"])


def test_programs_that_time_cuts_short(folder):
    check = types.SimpleNamespace(logs=folder, env=lambda stage, **more: dict(os.environ))
    program = lambda left, **more: machine.Check.program(check, "stage", "sleep", ["sleep", "60"], {}, **more)
    check.log = lambda stage, name: folder / f"{stage}-{name}.log"
    for left, more, status in ((1, {}, "incomplete"), (6, {}, "incomplete"), (60, {"hang_s": 1}, "failed")):
        check.left = lambda limit_s: min(limit_s, left)
        outcome = program(left, **more)
        assert run.part_of("sleep", outcome)["status"] == status, (left, outcome.how())
        assert outcome.how().startswith("not started") == (left == 1), outcome.how()


# A side of the benchmarks that can do nothing any more after its first error.
FAKE_PEER = """
import sys
print("fake", flush=True)
broken = False
for line in sys.stdin:
    broken = broken or line.startswith("bad")
    if sys.argv[1:] == ["hangs"] and "step" in line: import time; time.sleep(60)
    print("error: sticky" if broken else "100 # warm", flush=True)
"""


def test_peers_start_again_after_errors():
    peer = Peer("fake", [sys.executable, "-c", FAKE_PEER], timeout=20)
    assert (peer.time("good", 1, 0), peer.remark) == (100, "warm")
    try:
        peer.time("bad", 1, 0)
        raise AssertionError("an error was taken for a figure")
    except PeerError as error:
        assert "sticky" in str(error)
    assert peer.time("good", 1, 0) == 100
    peer.close()


def test_a_side_that_hangs_costs_one_answer():
    commands = {side: ([sys.executable, "-c", FAKE_PEER, *more], {}, timeout) for side, more, timeout in
                (("tern", [], 20), ("eager", [], 20), ("compiled", ["hangs"], 4))}
    options = gpu_compare.arguments(argparse.ArgumentParser()).parse_args(["--tern", "", "--small", "--only", "step,relu", "--budget", "60"])
    made = gpu_compare.run(commands, options, lambda text: None)
    assert {row["case"]: "tern" in row["nanoseconds"] for row in made["rows"]}.keys() >= {"relu", "mlp_step_b2_captured"} and not made["not_measured"], made
    assert "asked for nothing more" in made["missing"]["compiled"] and made["seconds"] < 7.5, made
    assert made["copy_by"] == "eager" and report.part_of_bench(made, 1)["status"] == "failed"  # there is no side with the libraries alone


def test_reports_are_joined():
    def made(time, version="a", **stages):
        return {"simulated": False, "facts": {"gpu": [{"name": "GPU"}], "version": version}, "figures": {}, "finished": time,
                "stages": [{"name": name, "what": "", "status": status, "seconds": 1, "version": version, "parts": [{"name": name, "status": status}] if status != "skipped" else []}
                           for name, status in stages.items()]}

    joined = report.merged([made("2", rooms="skipped", bench="passed"), made("1", rooms="passed", bench="skipped")], ["rooms", "bench"])
    assert [stage["status"] for stage in joined["stages"]] == ["passed", "passed"], joined

    def measured(left_out, **rows):
        return {"versions": {}, "missing": {}, "not_measured": left_out, "copy_bytes_per_second": 10,
                "rows": [{"case": case, "nanoseconds": {"tern": time} if time else {}, "bars": [], "errors": {}, "late": [], "version": "a"}
                         for case, time in rows.items()]}

    first, second = made("1", bench="passed"), made("2", bench="passed")
    first["figures"]["bench"], second["figures"]["bench"] = measured(["c"], a=1, b=1), measured([], b=None, a=2, c=3)
    bench = report.merged([first, second], ["bench"])["figures"]["bench"]
    assert {row["case"]: row["nanoseconds"]["tern"] for row in bench["rows"]} == {"a": 2, "b": 1, "c": 3} and not bench["not_measured"], bench
    first, second = made("1", bench="passed"), made("2", bench="passed")
    first["figures"]["bench"], second["figures"]["bench"] = measured(["b", "c"], a=1), measured([], b=1)
    assert report.merged([first, second], ["bench"])["stages"][0]["status"] == "incomplete"  # c has no figures yet

    joined = report.merged([made("1", rooms="passed", soak="passed"), made("2", "b", rooms="passed")], ["rooms", "soak"])
    assert report.versions_of(joined) == {"b": ["rooms"], "a": ["soak"]}, joined
    second = made("2")
    second["facts"]["gpu"] = [{"name": "another"}]
    try:
        report.merged([made("1"), second], [])
        raise AssertionError("reports of two kinds of GPU were joined")
    except ValueError:
        pass


def test_no_folders_in_reports():
    text = report.without_folders({"a": ["at /home/me/tern/tests/ops/x.cpp:3, 5.1 GB/s, in /opt/python/site/torch.py", 1]})
    assert text == {"a": ["at tests/ops/x.cpp:3, 5.1 GB/s, in torch.py", 1]}, text


def check(*arguments, **environment):
    build = pathlib.Path(os.environ["TERN_PROGRAM"]).parent.parent
    env = {key: value for key, value in os.environ.items() if not key.startswith("TERN_")}
    return subprocess.run([sys.executable, ROOT / "scripts/gpu_check.py", "--no-build", "--build", build, *arguments], env={**env, **environment},
                          capture_output=True, text=True)


def test_without_a_gpu(folder):
    # Where there is one, it is hidden.
    outcome = check("--output", folder / "none", CUDA_VISIBLE_DEVICES="")
    assert outcome.returncode == 3 and "gpu-check: no GPU: " in outcome.stderr, outcome


def test_simulated(folder):
    outcome = check("--simulate", "--only", "examples,soak", "--output", folder / "out")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert sorted(os.listdir(folder / "out")) == ["gpu-results.json", "gpu-results.md", "logs.tgz"]
    made = json.loads((folder / "out/gpu-results.json").read_text())
    assert made["simulated"] and {stage["name"]: stage["status"] for stage in made["stages"]}["rooms"] == "skipped", made
    assert "SIMULATED" in (folder / "out/gpu-results.md").read_text()


def test_a_bundle_without_programs(folder):
    for name in ("scripts", "bench"):
        shutil.copytree(ROOT / name, folder / "bundle" / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "bundle/bundle.json").write_text("{}")
    outcome = subprocess.run([sys.executable, folder / "bundle/scripts/gpu_check.py"], capture_output=True, text=True)
    assert outcome.returncode == 1 and "the bundle is not whole" in outcome.stderr and "Traceback" not in outcome.stderr, outcome


with tempfile.TemporaryDirectory(prefix="tern-gpu-check-") as name:
    test_runner(pathlib.Path(name))
    test_findings_of_the_sanitizer(pathlib.Path(name))
    test_programs_that_time_cuts_short(pathlib.Path(name))
    test_peers_start_again_after_errors()
    test_a_side_that_hangs_costs_one_answer()
    test_reports_are_joined()
    test_no_folders_in_reports()
    test_without_a_gpu(pathlib.Path(name))
    test_simulated(pathlib.Path(name))
    test_a_bundle_without_programs(pathlib.Path(name))
print("the check on a GPU names what fails, and goes on")
