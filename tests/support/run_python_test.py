# Runs one Python test, or reports it as skipped (exit code 77) where its modules are missing.
# Called by ctest as: run_python_test.py SCRIPT; the test finds the program in TERN_PROGRAM.

import importlib.util
import os
import runpy
import sys

missing = [name for name in ("numpy", "torch") if importlib.util.find_spec(name) is None]
if missing:
    print(f"SKIP: {', '.join(missing)} cannot be imported by {sys.executable} (`make test` installs them)")
    sys.exit(77)
script = sys.argv[1]
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(script))
runpy.run_path(script, run_name="__main__")
