# Autocast: the rows of the operator table run under torch.autocast and under Tern's AutocastGuard, on tensors of float32, of bfloat16 and of
# both. Dtypes must be the same, values and gradients within bfloat16's rounding. PyTorch's CPU autocast is run itself. There is no GPU to run
# its CUDA autocast on: what it makes of dtypes is told by tensors without memory (FakeTensorMode, from PyTorch 2 on), and by the lists below,
# which are compared with it.
#   autocast.py [NAME...]   runs the rows of these operators only

import contextlib
import dataclasses
import os
import sys
import pathlib
import time
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from operator_rows import attention, driver, image, index, linalg, loss, method, network, order, pointwise, reduce, shape, special  # noqa: E402

try:
    from torch._subclasses.fake_tensor import FakeTensorMode
except ImportError:
    FakeTensorMode = None
HAS_FAKES = FakeTensorMode is not None and driver.VERSION >= (2, 4)
FAMILIES = (pointwise, reduce, shape, index, order, network, loss, attention, image, linalg, special, method)
LOWER = torch.bfloat16

# PyTorch's lists for CUDA (aten/src/ATen/autocast_mode.h), as far as Tern has the operators.
TO_LOWER = {"scaled_dot_product_attention", "matmul", "mm", "bmm", "mv", "addmm", "addmv", "addr", "baddbmm", "chain_matmul", "cov", "corrcoef", "linear", "linear_relu", "linear_gelu_linear", "einsum", "conv1d", "conv2d", "conv2d_relu", "conv3d", "prelu", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linalg.multi_dot", "linalg.vecdot", "Tensor.matmul", "Tensor.mm"}
TO_FLOAT32 = {"pow", "number_pow", "square", "exp", "expm1", "log", "log1p", "log2", "log10", "rsqrt", "reciprocal", "tan", "softplus", "asin", "acos", "arcsin", "arccos", "sinh", "cosh", "erfinv", "special.erfinv", "logsumexp",
              "layer_norm", "group_norm", "rms_norm", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
              "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss", "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss",
              "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss", "cosine_similarity", "normalize", "pairwise_distance", "cdist", "pdist", "renorm", "local_response_norm", "lp_pool1d", "lp_pool2d", "lp_pool3d", "Tensor.exp", "Tensor.log", "Tensor.square", "Tensor.pow"}
FLOAT32_RESULT = {"sum", "prod", "cumsum", "cumprod", "trapezoid", "trapz", "cumulative_trapezoid", "softmin", "softmax", "log_softmax", "norm", "linalg.norm", "linalg.vector_norm", "linalg.matrix_norm", "Tensor.sum", "Tensor.softmax", "Tensor.log_softmax", "Tensor.norm"}
TO_WIDEST = {"atan2", "arctan2", "addcmul", "addcdiv", "bilinear", "dot", "index_put", "scatter_add", "tensordot", "cross"}
# a / x is x.reciprocal() * a, which the row avoids for its rounding.
BY_RECIPROCAL = {"number_div"}
# Linear algebra that is on the list for the CPU; what is on none takes no 16-bit floats.
LINALG_ON_CPU = {"linalg.cholesky", "linalg.cholesky_ex", "linalg.qr", "linalg.solve", "linalg.inv", "linalg.inv_ex", "linalg.lstsq", "linalg.cond",
                 "linalg.matrix_rank", "linalg.eigh", "linalg.eigvalsh", "linalg.svd", "linalg.svdvals", "linalg.vecdot", "inverse", "cholesky", "cholesky_solve",
                 "cholesky_inverse", "triangular_solve", "qr", "svd", "pinverse"}
LINALG = {row.name for row in linalg.ROWS}
# On a list of PyTorch's for the CPU.
ON_CPU = TO_LOWER | LINALG_ON_CPU | {"prod", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                     "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss", "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss",
                     "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss", "ctc_loss", "index_copy", "cat", "stack", "pad", "quantile", "nanquantile", "trace", "cdist", "tensordot"}
ON_CUDA = TO_LOWER | TO_FLOAT32 | FLOAT32_RESULT | TO_WIDEST | BY_RECIPROCAL | {"binary_cross_entropy", "cat", "stack"}
# On the CPU PyTorch 1.13 has another list, or does not take bfloat16.
SINCE_2 = {"addmv", "prelu", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linalg.vecdot", "tensordot", "inner", "isin", "embedding_bag", "embedding_bag_renormed"}
# Of an operator that is on no list, so many cases, whose dtypes alone are compared.
FEW = 8


def dtypes_of(args):
    found = []
    driver.replace_tensors(list(args), lambda t: found.append(t.dtype))
    return found


def variants(args):
    """The arguments in float32, in bfloat16, and with bfloat16 for the first tensor only: pairs of whether they are mixed and themselves."""
    floats = [dtype for dtype in dtypes_of(args) if dtype.is_floating_point]
    if not floats or set(floats) != {torch.float32}:
        return
    yield False, args
    yield False, tuple(driver.replace_tensors(list(args), lambda t: t.to(LOWER) if t.is_floating_point() else t))
    if len(floats) > 1:
        seen = []

        def first(t):
            if not t.is_floating_point() or seen:
                return t
            seen.append(t)
            return t.to(LOWER)
        yield True, tuple(driver.replace_tensors(list(args), first))


@contextlib.contextmanager
def fake_autocast():
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", LOWER)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", False)


def asked_by_fakes(row, args):
    """The results' dtypes under CUDA autocast, an error's text, or None where tensors without memory do not tell."""
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            fakes = driver.replace_tensors(list(args), lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cuda"))
            with fake_autocast():
                return [o.dtype for o in driver.as_list(row.torch(*fakes))]
    except RuntimeError as error:
        return str(error) if "unsafe to autocast" in str(error) or "same dtype" in str(error) else None
    except Exception:
        return None


def by_lists(row, args, plain):
    """The same by the lists; `plain` are the dtypes without autocast, None for an error."""
    if row.name == "binary_cross_entropy":
        return "unsafe to autocast"
    if row.name == "local_response_norm" and args[0].numel() == 0:
        return plain  # the input itself
    if row.name in TO_LOWER:
        return [LOWER]
    if row.name in TO_FLOAT32:
        return [torch.float32]
    if row.name in BY_RECIPROCAL:
        return [torch.float32]
    if row.name in FLOAT32_RESULT:
        explicit = [a for a in args if isinstance(a, torch.dtype)]
        return explicit or [torch.float32]
    if row.name in TO_WIDEST:
        return [torch.float32 if torch.float32 in dtypes_of(args) else LOWER]
    return plain


def plain_dtypes(row, args):
    try:
        with torch.no_grad():
            return [o.dtype for o in driver.as_list(row.torch(*args))]
    except Exception:
        return None


def loose(row, torch_function, listed):
    return dataclasses.replace(row, torch=torch_function, values=row.values and listed, grad=row.grad and listed, scale="tensor", tolerance=max(row.tolerance, 8), zero_sign=False, special_grad=False)


def cpu_case(row, args):
    def under_autocast(*a):
        with torch.autocast("cpu", dtype=LOWER):
            return row.torch(*a)
    case = driver.prepare(loose(row, under_autocast, row.name in ON_CPU), args)
    if case is not None:
        case.autocast = LOWER
    return case


def cuda_case(row, args, problems):
    """Values from the CPU in float32, dtypes from PyTorch's CUDA autocast."""
    plain = plain_dtypes(row, args)
    expected = by_lists(row, args, plain)
    if HAS_FAKES:
        told = asked_by_fakes(row, args)
        if told is not None and expected is not None and row.name not in BY_RECIPROCAL:
            if isinstance(told, str) != isinstance(expected, str) or (isinstance(told, list) and told != expected):
                problems.append(f"FAILED: {row.name}({', '.join(driver.describe(a) for a in args)}): by the lists {expected}, PyTorch says {told}")
            expected = told
    if expected is None:
        return None
    wide = tuple(driver.replace_tensors(list(args), lambda t: t.float() if t.dtype == LOWER else t))
    case = driver.prepare(loose(row, row.torch, row.name in ON_CUDA), wide)
    if case is None or case.error is not None:
        return None
    given = driver.prepare(dataclasses.replace(case.row, torch=lambda *a: a[0]), args)
    case = dataclasses.replace(case, args=given.args, autocast=LOWER)
    if isinstance(expected, str):
        return dataclasses.replace(case, error=expected)
    case.dtypes = expected
    case.cotangents = [None if c is None else c.to(d) for c, d in zip(case.cotangents, expected)]
    return case


def main():
    tool = os.environ.get("TERN_OPERATOR_TOOL")
    if not tool or not os.path.exists(tool):
        print("SKIP: TERN_OPERATOR_TOOL does not name the helper program")
        sys.exit(77)
    warnings.filterwarnings("ignore")
    driver.make_oracle()
    wanted = set(sys.argv[1:])
    begin = time.monotonic()
    cases, problems = {"cpu": [], "simulated": []}, []
    for row in (row for family in FAMILIES for row in family.ROWS):
        if wanted and row.name not in wanted or driver.VERSION < row.since:
            continue
        outlines, listed = set(), row.name in ON_CPU | ON_CUDA
        for given in row.cases():
            if not listed and len(outlines) >= FEW:
                break
            for mixed, args in variants(tuple(given)):
                key = repr(driver.replace_tensors(list(args), lambda t: (t.dtype, t.shape, t.stride())))
                if key in outlines:
                    continue
                outlines.add(key)
                if plain_dtypes(row, tuple(given)) is None:
                    continue  # a wrong use: that is for operator_table.py
                if row.name == "norm" and args[0].numel() > 10000:
                    continue  # the row sums in float64
                # What operators on no list say of two dtypes is for operator_table.py.
                if row.name in LINALG - LINALG_ON_CPU - ON_CUDA:
                    continue
                if row.name not in LINALG - LINALG_ON_CPU and (not mixed or row.name in ON_CPU) and (driver.VERSION >= (2, 0) or row.name not in SINCE_2):
                    cases["cpu"].append(cpu_case(row, args))
                if row.name not in LINALG - ON_CUDA and (not mixed or row.name in ON_CUDA):
                    cases["simulated"].append(cuda_case(row, args, problems))
    failed = 0
    for device, those in cases.items():
        those = [case for case in those if case is not None]
        texts = list(problems) if device == "simulated" else []
        for case, result in zip(those, driver.run_tool(tool, those, device)):
            text = "crashed: " + result["crash"] if "crash" in result else driver.verdict(case, result)
            if text:
                texts.append(f"FAILED on {device}: {case.text()}: {text}")
        print("\n".join(texts if wanted else texts[:40]))
        failed += len(texts)
        print(f"PyTorch {torch.__version__}, {device}: {len(those)} cases, {len(texts)} failed")
    print(f"{time.monotonic() - begin:.1f} s")
    sys.exit(1 if failed else 0)


main()
