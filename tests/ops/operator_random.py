# Operators with arguments drawn at random (tests/support/operator_rows/random_cases.py) beside PyTorch: values and gradients, as in
# operator_table.py, for the sizes and layouts that nobody thought of. The same seed gives the same cases.
#   operator_random.py                            the cases that ctest runs
#   operator_random.py --count 5000 --seed 7      others, and more of them
#   --families product,index   these only         --on DEVICE   cpu (the default), simulated, emulated, or gpu
#   --largest N                most multiplications of a case (an emulated GPU is slow: 300000)

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from operator_rows import driver, random_cases  # noqa: E402

AT_ONCE = 500  # cases whose tensors are kept in memory


def main():
    tool = driver.find_tool()
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=10_000_000)
    parser.add_argument("--families", default=",".join(random_cases.FAMILIES))
    parser.add_argument("--on", choices=driver.DEVICES, default="cpu")
    options = parser.parse_args()
    families = options.families.split(",")
    if unknown := set(families) - set(random_cases.FAMILIES):
        parser.error(f"no family {', '.join(sorted(unknown))}: there are {', '.join(random_cases.FAMILIES)}")
    if options.largest < 10_000:
        parser.error("--largest must be at least 10000, or no case fits")
    passed = failed = not_run = 0
    for first in range(0, options.count, AT_ONCE):
        rows = random_cases.draw(f"{options.seed}.{first}", min(AT_ONCE, options.count - first), options.largest, families)
        a, b, _, c = driver.run_rows(rows, tool, (options.on,))
        passed, failed, not_run = passed + a, failed + b, not_run + c
    print(f"random cases on {options.on}: {passed} passed, {failed} failed{f', {not_run} not run' if not_run else ''}")
    sys.exit(1 if failed or not passed else 0)


main()
