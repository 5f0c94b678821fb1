"""The program `tern` of a wheel, which lies in the package."""

import os
import pathlib
import sys


def main():
    program = pathlib.Path(__file__).with_name("bin") / "tern"
    if not program.exists():
        sys.exit(f"tern: {program} is not there: this package was built without the program")
    os.execv(program, ["tern", *sys.argv[1:]])
