# The rows of the operator table (tests/ops/operator_table.py): inputs, one module for each family of operators, and the
# comparison with PyTorch.
