# The rows of the operator table (tests/ops/operator_table.py): inputs, one module for each family of operators, and the
# comparison with PyTorch.
import importlib

FAMILIES = ("pointwise", "reduce", "shape", "index", "order", "network", "loss", "attention", "recurrent", "image", "resize", "creation", "linalg", "special", "complex", "method")


def families():
    """{name: module}, which imports PyTorch."""
    return {name: importlib.import_module(f"{__name__}.{name}") for name in FAMILIES}
