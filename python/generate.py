#!/usr/bin/env python3
"""Writes the bindings of Tern's operators for Python from the declarations in tern/ops and tern/core.

    python/generate.py SOURCE_ROOT OUT_FOLDER [--list]

Every function of tern/ops whose arguments are simple becomes a function of the extension, with its documentation; those that
Tensor has as methods become methods too, and so do Tensor's methods in place. What is left out is named in BY_HAND: a new operator
that this script can not bind makes it fail. --list prints the names of the files that it writes.
"""

import pathlib
import re
import sys

# Bound in files of their own, since their arguments are structs, or differ from PyTorch's.
BY_HAND = set("""
    tensor from_blob to copy_ item contiguous is_contiguous clone pin_memory set_printoptions print_device
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices
    max_unpool1d max_unpool2d max_unpool3d avg_pool1d avg_pool2d avg_pool3d
    interpolate pad grid_sample affine_grid embedding embedding_bag unfold fold unique unique_consecutive
    cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits
    scaled_dot_product_attention attention_of_heads set_rng_state get_rng_state jacobian hessian lstm_cell to_string conv2d_relu
    kl_div poisson_nll_loss gaussian_nll_loss ctc_loss margin_ranking_loss hinge_embedding_loss cosine_embedding_loss
    triplet_margin_loss triplet_margin_with_distance_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss
    soft_margin_loss parse_reduction alpha_dropout feature_alpha_dropout gumbel_softmax
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
    adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices
    lp_pool1d lp_pool2d lp_pool3d
    var std var_mean std_mean sort argsort searchsorted bucketize tensordot mT
    einsum broadcast_tensors stft istft meshgrid block_diag cartesian_prod chain_matmul
""".split())
# Methods that are bound by hand.
METHODS_BY_HAND = set("copy_ uniform_ normal_ exponential_ bernoulli_ random_ split where real imag".split())
# Not for Python: layers between operators and kernels, and what other functions do there.
NOT_PYTHONS = set("unary binary binary_out ternary bag_mode_word clip".split())

# Headers whose functions are in a namespace of their own and in a module of that name.
NAMESPACES = {"ops/linalg.h": "linalg", "ops/special.h": "special", "ops/fft.h": "fft"}

PUBLIC = re.compile(r'#include "tern/(ops/\w+\.h)"')
NAMED = {name: ("values", "indices") for name in
         "topk max min median nanmedian kthvalue cummax cummin mode".split()} | {"aminmax": ("min", "max")}
# The names of several results, by namespace.
RESULTS = {
    "linalg": {"cholesky_ex": ("L", "info"), "qr": ("Q", "R"), "lu_factor": ("LU", "pivots"), "lu_factor_ex": ("LU", "pivots", "info"),
               "lu": ("P", "L", "U"), "solve_ex": ("result", "info"), "inv_ex": ("inverse", "info"), "slogdet": ("sign", "logabsdet"),
               "eigh": ("eigenvalues", "eigenvectors"), "svd": ("U", "S", "Vh"),
               "lstsq": ("solution", "residuals", "rank", "singular_values")},
    "special": {}, "fft": {},
    "": {"slogdet": ("sign", "logabsdet"), "qr": ("Q", "R"), "svd": ("U", "S", "V"), "triangular_solve": ("solution", "cloned_coefficient")},
}
# Arguments that PyTorch calls otherwise than the headers: for all functions, then for some.
RENAMED = {"x": "input", "a": "input", "b": "other", "dims": "dim", "shape": "size"}
RENAMED_IN = {
    "pow": {"b": "exponent"}, "float_power": {"b": "exponent"}, "lerp": {"start": "input"}, "mv": {"b": "vec"},
    "mm": {"b": "mat2"}, "bmm": {"b": "mat2"}, "outer": {"b": "vec2"}, "dot": {"b": "tensor"}, "take_along_dim": {},
    "permute": {"dims": "dims"}, "flip": {"dims": "dims"}, "roll": {"dims": "dims"}, "rot90": {"dims": "dims"},
    "tile": {"repeats": "dims"}, "reshape": {"shape": "shape"}, "as_strided": {"strides": "stride"},
    "full": {"value": "fill_value"}, "full_like": {"value": "fill_value"}, "new_full": {"value": "fill_value"},
    "fill_diagonal_": {"value": "fill_value"}, "bilinear": {"x1": "input1", "x2": "input2"},
    "cosine_similarity": {"a": "x1", "b": "x2"}, "pairwise_distance": {"a": "x1", "b": "x2"}, "cdist": {"a": "x1", "b": "x2"},
    "hardtanh": {"min": "min_val", "max": "max_val"},
    "split": {"x": "tensor", "split_size": "split_size_or_sections", "split_sizes": "split_size_or_sections"},
    "trapezoid": {"x": "x", "y": "y"}, "trapz": {"x": "x", "y": "y"}, "cumulative_trapezoid": {"x": "x", "y": "y"},
    "cholesky_solve": {"b": "input", "l": "input2"}, "cholesky_inverse": {"l": "input"}, "triangular_solve": {"b": "b", "a": "A"},
    "one_hot": {"classes": "tensor"}, "multinomial": {"weights": "input"}, "bernoulli": {"p": "input"},
    "igamma": {"a": "input", "x": "other"}, "igammac": {"a": "input", "x": "other"}, "poisson": {"rate": "input"}, "standard_gamma": {"shape": "input"},
}
# The same of a namespace: for all its functions under "", then for some.
RENAMED_IN_NAMESPACE = {"linalg": {
    "": {"a": "A", "b": "B", "lu": "LU", "uplo": "UPLO", "n": "N", "dims": "dim"}, "vecdot": {"a": "x", "b": "y", "dims": "dim"},
    "cross": {"a": "input", "b": "other"}, "matrix_power": {"a": "A", "n": "n"},
}, "special": {
    "": {"x": "input"}, "gammainc": {"a": "input", "x": "other"}, "gammaincc": {"a": "input", "x": "other"}, "zeta": {"x": "input", "q": "other"},
}, "fft": {"": {"x": "input", "dims": "dim"}}}
DEFAULTS = {("norm", "p"): "2.0", ("sum", "dims"): "None", ("mean", "dims"): "None"}
# Tensors without a default in C++ that may be None.
MAY_BE_NONE = {("batch_norm", "running_mean"), ("batch_norm", "running_var")}
SIZES_AS_ARGUMENTS = set("zeros ones empty rand randn view reshape permute expand repeat tile flip new_empty new_zeros new_ones".split())
# Methods that are no functions, or other functions.
METHODS_ONLY = set("new_empty new_zeros new_ones new_full unfold".split())

# Functions that take an integer for another thing than a list of one.
INTEGER_OR_LIST = set("split tensor_split hsplit vsplit dsplit".split())

SIMPLE = {
    "const Tensor&": "const Tensor&", "const std::same_as<Tensor> auto&": "const Tensor&", "int64_t": "int64_t",
    "Dimension auto": "int64_t", "bool": "bool", "std::same_as<bool> auto": "bool", "double": "double", "uint64_t": "uint64_t",
    "const Scalar&": "const Scalar&", "std::string_view": "const std::string&", "const char*": "const std::string&",
    "DType": "DType", "IntArrayRef": "IntArrayRef", "const std::vector<Tensor>&": "const std::vector<Tensor>&",
    "Shape": "const Shape&", "std::optional<Shape>": "const std::optional<Shape>&", "Size2": "Size2", "Size3": "Size3", "std::optional<int64_t>": "std::optional<int64_t>",
    "std::optional<double>": "std::optional<double>", "std::optional<DType>": "std::optional<DType>",
    "std::optional<Scalar>": "std::optional<Scalar>", "std::optional<Size2>": "std::optional<Size2>",
    "std::optional<Size3>": "std::optional<Size3>", "const std::optional<Generator>&": "const std::optional<Generator>&",
    "const TensorOptions&": "TensorOptions", "std::optional<std::string_view>": "const std::optional<std::string>&",
}


class Unknown(Exception):
    pass


def split_at_commas(text):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "<({"
        depth -= c in ">)}"
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in parts + [text[start:]] if p.strip()]


def declarations(text, classes):
    """(declaration, documentation) of what stands outside of bodies, of namespace detail and of other classes."""
    text = re.sub(r"^[ \t]*#(.*\\\n)*.*$", "", text, flags=re.M)
    docs, words, depth, skip = [], [], 0, None
    for line in text.splitlines():
        doc = re.match(r"\s*///(?!<) ?(.*)", line)
        if doc:
            docs.append(doc.group(1))
            continue
        line = re.sub(r"//.*", "", line)
        if not line.strip():
            if not words:
                docs = []
            continue
        for piece in re.split(r"([{};])", line):
            if piece == "{":
                before = " ".join(words).strip()
                depth += 1
                if not re.match(rf"namespace (?!detail)|class ({classes})\b", before):
                    if skip is None:
                        skip = depth
                        if "(" in before and not before.endswith(("=", "(", ",")) and before.count("(") == before.count(")"):
                            yield before, docs
                            words, docs = [], []
                        elif before.count("(") != before.count(")"):
                            skip, depth = None, depth - 1  # braces of a default argument
                            words.append("{")
                            continue
                if skip is None:
                    words = []
            elif piece == "}":
                if skip is None and words and " ".join(words).count("(") != " ".join(words).count(")"):
                    words.append("}")
                    continue
                depth -= 1
                if skip is not None and depth < skip:
                    skip = None
                words, docs = [], []
            elif piece == ";":
                if skip is None and words:
                    yield " ".join(words), docs
                if skip is None:
                    words, docs = [], []
            elif skip is None and piece.strip():
                words.append(piece.strip())


class Function:
    PATTERN = re.compile(r"^(?:inline |static |virtual |explicit )*(?P<result>[\w:<>, ]+[&]?) (?P<name>\w+)\((?P<args>.*)\)(?P<const>( const)?)$")

    def __init__(self, declaration, docs):
        text = re.sub(r"\s+", " ", re.sub(r"^(public|private|protected): ?", "", declaration)).strip()
        match = self.PATTERN.match(text)
        if not match:
            raise Unknown(text)
        self.name, self.result, self.is_const = match["name"], match["result"], bool(match["const"])
        self.arguments = []
        self.space = ""  # the namespace below tern
        self.doc = " ".join(docs)
        for each in split_at_commas(match["args"]):
            declared, _, default = (part.strip() for part in each.partition("="))
            kind, _, name = declared.rpartition(" ")
            if kind not in SIMPLE:
                raise Unknown(f"{self.name}: {kind}")
            self.arguments.append((kind, name, default.replace(" ", "") if default.startswith("{") else default or None))


def python_default(function, kind, name, default):
    if (function.name, name) in DEFAULTS and default is None and not function.space:
        default = DEFAULTS[function.name, name]
        return "py::none()" if default == "None" else default
    if default is None:
        if kind == "const std::same_as<Tensor> auto&":
            return "Tensor()"
        return "py::none()" if kind == "std::optional<Scalar>" else None
    if default in ("{}", "std::nullopt"):
        return "Tensor()" if kind == "const Tensor&" else "py::none()"
    if kind in ("IntArrayRef", "Shape") and default != "None":
        return f"py::make_tuple({default.strip('{}')})"
    return f"Scalar({default})" if kind == "const Scalar&" else default


def bound(target, function, call, self_type=None):
    """The statement that binds one overload; `call` makes the call of the list of its arguments."""
    parameters, declared, values, sizes = [], [], [], None
    if self_type:
        parameters.append(f"{self_type} self")
    if function.space:
        spaces = RENAMED_IN_NAMESPACE[function.space]
        names = spaces.get(function.name, spaces[""])
    else:
        names = dict(RENAMED, **RENAMED_IN.get(function.name, {}))
    for number, (kind, name, default) in enumerate(function.arguments):
        if kind == "const TensorOptions&":
            parameters += ["std::optional<DType> dtype", "std::optional<Device> device", "bool requires_grad"]
            declared += ["py::kw_only()", 'py::arg("dtype") = py::none()', 'py::arg("device") = py::none()',
                         'py::arg("requires_grad") = false']
            values.append("TensorOptions{.dtype = dtype, .device = device, .requires_grad = requires_grad}")
            continue
        value = python_default(function, kind, name, default)
        type_ = SIMPLE[kind]
        if kind == "IntArrayRef" and value == "py::none()":
            type_ = "OptionalInts"
        if kind == "IntArrayRef" and sizes is None and value is None:
            sizes = number
        parameters.append(f"{type_} {name}")
        arg = f'py::arg("{names.get(name, name)}")'
        if value is not None:
            arg += f" = {value}"
        elif type_ == "const Tensor&" and (function.name, name) not in MAY_BE_NONE:
            arg += ".none(false)"
        declared.append(arg)
        values.append(f"{name}.c_str()" if kind == "const char*" else name)
    result = call(values)
    if function.name in RESULTS[function.space] and not self_type:
        result = f"NamedResults({{{', '.join(chr(34) + each + chr(34) for each in RESULTS[function.space][function.name])}}}, {result})"
    elif function.name.rstrip("_") in NAMED and function.result.startswith("std::pair"):
        result = f"{'MinAndMax' if function.name == 'aminmax' else 'ValuesAndIndices'}{{{result}}}"
    elif function.result == "std::vector<Tensor>":
        result = f"TensorTuple{{{result}}}"
    doc = f', R"doc({function.doc})doc"' if function.doc else ""
    lines = [f'  {target}.def("{function.name}", []({", ".join(parameters)}) {{ return {result}; }},'
             f' {"".join(d + ", " for d in declared)}ReleaseGil(){doc});']
    if function.name in SIZES_AS_ARGUMENTS and sizes is not None and len(function.arguments) - sizes <= 2 + (
            function.name in ("rand", "randn")):
        before = parameters[:sizes + bool(self_type)]
        after = parameters[sizes + 1 + bool(self_type):]
        name = function.arguments[sizes][1]
        kept = [d for i, d in enumerate(declared) if i != sizes]
        lines.append(
            f'  {target}.def("{function.name}", []({", ".join(before + ["py::args sizes"] + after)}) {{'
            f' const Shape {name} = ints_of(sizes); const py::gil_scoped_release no_gil; return {result}; }}'
            f'{"".join(", " + declared for declared in kept)});')
    return lines


def second_names(root):
    """(second, first) of functions, methods and methods in place."""
    text = (root / "tern/core/second_names.h").read_text()
    return re.findall(r"X\((\w+), (\w+)\)", text.split("#define", 1)[1]) + [("clip", "clamp"), ("concat", "cat"), ("ger", "outer")]


def parse(path, classes="$"):
    public = path.read_text().split("\n private:")[0] if classes != "$" else path.read_text()
    for declaration, docs in declarations(public, classes):
        if "(" not in declaration or "operator" in declaration or re.match(r"(using|template|typedef|constexpr|friend|TERN_)", declaration):
            continue
        try:
            yield Function(declaration, docs)
        except Unknown as unknown:
            yield unknown


def needed(functions):
    """Without overloads for one dimension where there is one for a list, which takes an integer too."""
    lists = {f.name for f in functions if any(kind == "IntArrayRef" for kind, _, _ in f.arguments)}
    return [f for f in functions if f.name in INTEGER_OR_LIST or f.name not in lists or
            all(kind != "Dimension auto" for kind, _, _ in f.arguments)]


def operators(root):
    """Functions of the headers that tern/tern.h gathers, by header."""
    missing, found = [], {}
    for header in PUBLIC.findall((root / "tern/tern.h").read_text()):
        for function in parse(root / "tern" / header):
            if isinstance(function, Function):
                function.space = NAMESPACES.get(header, "")
            if isinstance(function, Unknown):
                name = re.match(r"(?:.*?(\w+)\(|(\w+):)", str(function))
                name = next((n for n in name.groups() if n), "") if name else ""
                if name not in BY_HAND | NOT_PYTHONS and "auto" not in str(function) and "Tensor&" not in str(function).split("(")[0]:
                    missing.append(f"tern/{header}: {function}")
            elif function.name not in BY_HAND | NOT_PYTHONS:
                found.setdefault(header, []).append(function)
    return {header: needed(functions) for header, functions in found.items()}, missing


def methods(root):
    result = []
    for header in ("tern/core/tensor.h", "tern/core/more_methods.h"):
        result += [f for f in parse(root / header, "Tensor|MoreMethods") if isinstance(f, Function)]
    return result


HEAD = """// Written by python/generate.py from the declarations of {sources}.
#include "bindings.h"
#include "generated.h"

namespace tern::python {{

"""
GROUPS = 6


def main():
    root, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    files = [out / f"operators_{i}.cpp" for i in range(GROUPS)] + [out / "methods.cpp"]
    if "--list" in sys.argv:
        print(";".join(map(str, files)), end="")
        return
    found, missing = operators(root)
    if missing:
        sys.exit("python/generate.py: these declarations can not be bound; bind them by hand and name them in BY_HAND:\n  " +
                 "\n  ".join(missing))
    out.mkdir(parents=True, exist_ok=True)

    groups = [[] for _ in range(GROUPS)]
    for header, functions in sorted(found.items(), key=lambda item: -len(item[1])):
        min(groups, key=lambda g: sum(len(f) for _, f in g)).append((header, functions))
    for i, group in enumerate(groups):
        lines = [f"void bind_operators_{i}(py::module_& module) {{"]
        for header, functions in group:
            lines.append(f"  // {header}")
            target = "module"
            if header in NAMESPACES:
                target = NAMESPACES[header]
                lines.append(f'  py::module_ {target} = module.attr("_{target}");')
            for function in functions:
                space = f"{function.space}::" if function.space else ""
                lines += bound(target, function, lambda values, f=function, s=space: f"tern::{s}{f.name}({', '.join(values)})")
            if header in NAMESPACES:
                lines += [f'  take_other_keywords({target}, "{name}");' for name in sorted({f.name for f in functions})]
        write(files[i], HEAD.format(sources="tern/ops") + "\n".join(lines) + "\n}\n\n}  // namespace tern::python\n")

    found = {header: functions for header, functions in found.items() if header not in NAMESPACES}
    known = {f.name for functions in found.values() for f in functions}
    named = [f.name for f in methods(root)]
    elements = re.findall(r"X\((\w+)\)", (root / "tern/core/element_functions.h").read_text().split("#define", 1)[1])
    lines = ["namespace {", "", "/// Functions of the module that are methods too.", "constexpr const char* kMethods[] = {"]
    as_methods = (set(named) | set(elements) | AS_METHODS) & known - METHODS_BY_HAND
    lines += [f'    "{name}",' for name in sorted(as_methods | BOUND_BY_HAND)]
    lines += ["};", "", "/// Methods in place that are functions of the module too.", "constexpr const char* kInPlace[] = {"]
    lines += [f'    "{name}_",' for name in sorted(set(elements) | IN_PLACE_FUNCTIONS)]
    lines += ["};", "", "/// Functions that take `out`, and `axis` for `dim`.", "constexpr const char* kWithOut[] = {"]
    with_out = {f.name for functions in found.values() for f in functions if "Tensor" in f.result} | WITH_OUT_BY_HAND
    lines += [f'    "{name}",' for name in sorted(with_out)]
    lines += ["};", "", "/// Second names and first ones.", "constexpr std::pair<const char*, const char*> kSecondNames[] = {"]
    lines += [f'    {{"{second}", "{first}"}},' for second, first in second_names(root)]
    lines += ["};", "", "}  // namespace", "", "void bind_generated_methods(py::module_& m, TensorClass& c) {"]
    for function in methods(root):
        if function.name in METHODS_BY_HAND:
            continue
        if function.name in METHODS_ONLY or function.name.endswith("_") and function.name not in {"requires_grad_", "detach_"}:
            lines += bound("c", function, lambda values, f=function: f"self.{f.name}({', '.join(values)})", "Tensor")
    for name in elements:
        lines.append(f'  c.def("{name}_", [](Tensor self) {{ return self.{name}_(); }}, ReleaseGil());')
    lines += ["  for (const char* name : kWithOut) take_other_keywords(m, name);",
              "  for (const char* name : kMethods) make_method(m, c, name);",
              "  for (const char* name : kInPlace) m.attr(name) = c.attr(name);",
              "  for (const auto& [second, first] : kSecondNames) make_second_name(m, c, second, first);", "}", "",
              "}  // namespace tern::python"]
    write(files[-1], HEAD.format(sources="tern/core and tern/ops") + "\n".join(lines) + "\n")


# Methods of PyTorch's Tensor that are functions only in C++.
AS_METHODS = set("""
    conj_physical resolve_conj isreal
    gcd lcm igamma igammac mvlgamma bitwise_left_shift bitwise_right_shift
    nanmedian nanquantile bincount histc logsumexp softmin atleast_1d tensor_split hsplit vsplit dsplit bernoulli multinomial
    unsqueeze swapaxes ravel put combinations nansum minimum maximum clamp matmul as_strided hardshrink prelu kron renorm
    inverse det slogdet logdet cholesky cholesky_solve cholesky_inverse triangular_solve qr svd pinverse matrix_power matrix_exp
""".split())
# Methods too, of what is bound by hand.
BOUND_BY_HAND = set("stft istft clone contiguous pin_memory unique unique_consecutive var std sort argsort dist".split())
# Functions with `out` or `dim` of what is bound by hand.
WITH_OUT_BY_HAND = set("var std var_mean std_mean sort argsort tensordot einsum searchsorted bucketize".split())
# Methods in place that are functions too, besides those of each element.
IN_PLACE_FUNCTIONS = set("clamp clamp_min clamp_max fill zero logit nan_to_num xlogy detach index_put addmv".split())


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main()
