# Runs one Python test, or reports it as skipped (exit code 77) where its modules are missing.
# Called by ctest as: run_python_test.py SCRIPT; the test finds the program in TERN_PROGRAM. As for the programs of tests,
# TERN_TEST_DEVICE=cuda:0 puts every tensor that a test of the Python module makes without naming a device on that one.

import importlib.util
import os
import runpy
import sys

missing = [name for name in ("numpy", "torch") if importlib.util.find_spec(name) is None]
if missing:
    print(f"SKIP: {', '.join(missing)} cannot be imported by {sys.executable} (`make test` installs them)")
    sys.exit(77)
script = sys.argv[1]
device = os.environ.get("TERN_TEST_DEVICE")
if device and os.path.basename(os.path.dirname(os.path.abspath(script))) == "python":  # those of the Python module
    import tern

    tern.set_default_device(device)
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(script))
runpy.run_path(script, run_name="__main__")
