# The operator table: every public operator of tern/ops has a row that compares its values and gradients with PyTorch's over
# dtypes, shapes, layouts and special values, on the CPU, on a simulated GPU and, where it is built (TERN_EMULATED_PLUGIN), with the
# CUDA backend's kernels on the CUDA emulator. Rows are in tests/support/operator_rows/, one module for each family; Tern's side is
# the helper program operator_tool.cpp, named by TERN_OPERATOR_TOOL.
#   operator_table.py [NAME...]   runs the rows of these operators only
#   --on DEVICE                   there only: cpu, simulated, emulated, or gpu (the machine's own, which is never chosen by itself)
#   --family NAME                 runs this family only, and looks for no operators without a row

import argparse
import os
import pathlib
import re
import sys
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from operator_rows import FAMILIES, driver, families, method  # noqa: E402

# Functions of the headers that are no operators, or have tests of their own.
NOT_ROWS = {
    "tern/ops/attention.h": {"attention_of_heads", "attention_of_packed", "split_heads", "join_heads"},  # tests/nn/attention_test.cpp
    "tern/ops/attention_blocks.h": {"keeps_weights"},         # a part of attention
    "tern/ops/attention_fused.h": {"attend_fused", "attend_backward_fused"},
    "tern/ops/autocast.h": {"is_autocast_enabled", "is_autocast_cache_enabled"},  # tests/ops/autocast_test.cpp
    "tern/ops/autocast_rules.h": {"autocasts", "autocasts_on", "autocasts_on_gpu", "autocasts_on_cpu", "can_autocast", "autocast_tensor"},
    "tern/ops/embedding.h": {"embedding_gradient"},         # a part of embedding
    "tern/ops/jacobian.h": {"jacobian", "hessian", "vjp", "jvp", "hvp"},  # tests/ops/jacobian_test.cpp
    "tern/ops/linalg_common.h": {"made", "expanded", "columns_of", "rows_of", "solve_with", "inverse_with", "unpack_lu"},  # parts of linalg
    "tern/ops/print.h": {"to_string"},                        # tests/ops/print_test.cpp
    "tern/ops/memory_format.h": {"is_contiguous"},            # tests/ops/layout_test.cpp
    "tern/ops/common.h": {"cast", "empty_of", "differentiable_once", "gelu_tanh_gradient", "reduce_to", "relu_gradient"},  # parts of operators
    "tern/ops/shape.h": {"equal_parts"},                    # a part of hsplit, vsplit and dsplit
    "tern/ops/loss_common.h": {"reduced"},            # a part of losses
    "tern/ops/copy.h": {"pin_memory", "pinned_copy"},         # tests/backends/sim/memory_test.cpp
    "tern/ops/elementwise.h": {"unary", "binary", "ternary", "clamp_inside"},  # parts of operators
    "tern/ops/complex_elementwise.h": {"complex_number", "complex_binary", "complex_function", "times_conj", "complex_power", "complex_in_place",
                                        "aligned_parts", "both_parts"},  # parts of operators
    "tern/ops/pointwise.h": {"clamp_between"},              # clamp
    "tern/ops/random.h": {"get_rng_state", "gumbel_softmax"},  # tests/ops/random_torch_test.cpp, random_in_torch.py; tests/nn/small_layers_test.cpp
    "tern/ops/random_torch.h": {"draws_as_torch", "empty_in_order_of"},
    "tern/ops/creation.h": {"tensor_of", "checked_scalar"},   # parts of tensor()
    "tern/ops/creation_checks.h": {"make", "finish", "fits"}, # parts of operators
}


def methods():
    """Rows of the methods that tensor.h and more_methods.h declare for operators: under the plain name those that change the tensor.
    Those that methods_test.cpp compares with the function of the same name need none of their own."""
    core = HERE.parent.parent / "tern" / "core"
    text, more = (core / "tensor.h").read_text(), (core / "more_methods.h").read_text()
    text = text[text.index("---- conversions and copies (ops)"):text.index("---- second names")]
    text += more[more.index(" public:\n"):more.index(" protected:\n")]
    found = re.findall(r"^  (?:Tensor&?|std::vector<Tensor>|std::pair<Tensor, Tensor>) (\w+)\(", text, re.MULTILINE)
    assert {"clone", "sum", "add_", "addmv", "t_"} <= set(found)
    found = [name for name in found if name != "name"] + [f"{name}_" for name in method.element_functions()]  # declared by a macro
    compared = set(re.findall(r'\{"(\w+)",', (HERE / "methods_test.cpp").read_text()))
    return {name if name.endswith("_") else f"Tensor.{name}" for name in set(found) - compared - {"cuda", "pin_memory"}}


def public_operators():
    """Names of the operators that the headers of tern/ops declare, and the methods of Tensor."""
    names = methods()
    declaration = re.compile(r"^(?:inline )?(?:Tensor&?|bool|Scalar|std::vector<Tensor>|std::pair<Tensor, Tensor>|std::tuple<Tensor[\w, ]*>) (\w+)\(", re.MULTILINE)
    for header in sorted((HERE.parent.parent / "tern" / "ops").glob("*.h")):
        if not (header.stem.endswith("_plan") or header.stem.endswith("_geometry")):
            found = {name for name in declaration.findall(header.read_text()) if not name.startswith("operator")}
            if header.stem in ("linalg", "special", "fft"):  # namespaces of their own
                found = {f"{header.stem}.{name}" for name in found}
            names |= found - NOT_ROWS.get(f"tern/ops/{header.name}", set())
    return names | {second for second, _ in method.second_names()}


def main():
    tool = driver.find_tool()
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--on", choices=driver.DEVICES)
    parser.add_argument("--family", choices=FAMILIES)
    options = parser.parse_args()
    wanted = set(options.names)
    emulated = ("emulated",) if os.environ.get("TERN_EMULATED_PLUGIN") else ()
    devices = (options.on,) if options.on else ("cpu", "simulated", *emulated)
    begin = time.monotonic()
    modules = families()
    rows = [row for module in modules.values() for row in module.ROWS]
    without = [] if options.family else sorted(public_operators() - {row.name for row in rows})
    if without:
        print(f"FAILED: operators without a row: {', '.join(without)}")
    passed = failed = unanswered = not_run = 0
    for name, module in modules.items():
        if options.family not in (None, name):
            continue
        chosen = [row for row in module.ROWS if not wanted or row.name in wanted]
        a, b, c, d = driver.run_rows(chosen, tool, devices, limit=1000 if wanted else 3)
        passed, failed, unanswered, not_run = passed + a, failed + b, unanswered + c, not_run + d
    print(f"PyTorch {torch.__version__}: {len(rows)} rows on {' and '.join(devices)}, {passed} passed, {failed} failed"
          f"{f', {not_run} not run' if not_run else ''} ({unanswered} that PyTorch does not compute) in {time.monotonic() - begin:.1f} s")
    sys.exit(1 if failed or without else 0)


main()
