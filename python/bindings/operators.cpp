// Operators: the generated ones, and forms of PyTorch's that C++ spells otherwise.
#include <cmath>

#include "generated.h"
#include "tern/nn/lazy.h"
#include "tern/ops/common.h"

namespace tern::python {

Shape ints_of(const py::args& sizes) {
  Shape ints;
  const bool is_list = sizes.size() == 1 && !PyLong_Check(sizes[0].ptr());
  if (!load_ints(is_list ? py::object(sizes[0]) : py::object(sizes), ints))
    throw TypeError("sizes and dimensions are integers, or one list of integers; got " +
                    std::string(py::repr(sizes)));
  return ints;
}

namespace {

/// The class of named tuples with these names, given as arguments.
const py::object& class_of_named() {
  static const auto* make = new py::object(imported("tern._types", "named_tuple"));  // for good
  return *make;
}

}  // namespace

py::object named_pair(const char* first, const char* second, const std::pair<Tensor, Tensor>& pair) {
  return class_of_named()(first, second)(pair.first, pair.second);
}

py::object named_tuple(const NamedResults& results) {
  const py::tuple names = py::cast(results.names), tensors = py::cast(results.tensors);
  return class_of_named()(*names)(*tensors);
}

void make_method(py::module_& m, TensorClass& c, const char* name) {
  c.attr(name) = py::reinterpret_steal<py::object>(PyInstanceMethod_New(py::object(m.attr(name)).ptr()));
}

namespace {

int category(DType dtype) { return is_bool(dtype) ? 0 : is_floating_point(dtype) ? 2 : 1; }

/// `out` with the numbers of the result, and its sizes.
py::object written(const py::object& result, const py::object& out) {
  if (py::isinstance<py::tuple>(result) && py::isinstance<py::sequence>(out) &&
      py::len(result) == py::len(out)) {
    for (size_t i = 0; i < py::len(result); ++i) written(result[py::int_(i)], out[py::int_(i)]);
    return py::hasattr(result, "_make") ? py::object(result.attr("_make")(out)) : out;  // of a named tuple
  }
  if (!py::isinstance<TensorImpl>(result) || !py::isinstance<TensorImpl>(out))
    throw TypeError("out: expected a tensor for each tensor of the result");
  const auto from = result.cast<Tensor>();
  auto to = out.cast<Tensor>();
  if (from.requires_grad() || (is_grad_enabled() && to.requires_grad()))
    throw AutogradError(
        "out: functions with out= are not recorded for gradients, but one of the tensors requires them");
  if (category(from.dtype()) > category(to.dtype()))
    throw DTypeError("out: the result is " + std::string(name(from.dtype())) + ", which " +
                     std::string(name(to.dtype())) + " does not hold");
  if (from.shape() == to.shape())
    to.copy_(from);
  else
    nn::detail::set_data(to, from.to(to.device(), to.dtype()));
  return out;
}

/// Throws NotImplementedError for tensors of another kind than the usual one.
void check_layout(py::handle layout) {
  if (!layout.is_none() && py::str(layout).cast<std::string>() != "torch.strided")
    throw NotImplementedError("layout: there are no tensors of the kind " +
                              py::str(layout).cast<std::string>() + ", only torch.strided");
}

}  // namespace

namespace {

/// The same bytes as numbers of another dtype, without history; the last dimension grows or shrinks with
/// them.
Tensor bytes_as(const Tensor& x, DType dtype) {
  const auto before = static_cast<int64_t>(x.element_size()), after = static_cast<int64_t>(itemsize(dtype));
  Shape shape = x.shape();
  Strides strides = x.strides();
  int64_t offset = x.storage_offset();
  if (before != after) {
    const auto fits = [&](int64_t elements) { return elements * before % after == 0; };
    const bool is_dense = x.dim() > 0 && strides.back() == 1;
    if (!is_dense || !fits(shape.back()) || !fits(offset) ||
        !std::all_of(strides.begin(), strides.end() - 1, fits))
      throw ShapeError(
          "view: numbers of " + std::to_string(before) + " bytes can not be seen as such of " +
          std::to_string(after) +
          ": the last dimension must be dense, and its bytes a multiple of these; use contiguous()");
    const auto scale = [&](int64_t& elements) { elements = elements * before / after; };
    scale(shape.back());
    scale(offset);
    std::for_each(strides.begin(), strides.end() - 1, scale);
  }
  return Tensor::from_storage(x.storage(), dtype, shape, strides, offset);
}

}  // namespace

Tensor in_format(const Tensor& x, MemoryFormat format) {
  return format == MemoryFormat::Preserve ? x : contiguous(x, format);
}

void take_other_keywords(py::module_& m, const char* name) {
  const py::object function = m.attr(name);
  m.def(name, [function](const py::args& args, const py::kwargs& given) -> py::object {
    py::dict named, after;
    bool more = false;
    for (const auto& [key, value] : given) {
      const auto text = key.cast<std::string>();
      const bool is_after =
          text == "out" || text == "pin_memory" || text == "memory_format" || text == "layout";
      const char* ours = text == "axis" ? "dim" : text == "keepdims" ? "keepdim" : text.c_str();
      more |= is_after || ours != text;
      (is_after ? after : named)[ours] = value;
    }
    if (!more) throw py::reference_cast_error();  // no overload fits
    const auto asked = [&](const char* what) { return after.attr("pop")(what, py::none()); };
    check_layout(asked("layout"));
    const auto format = asked("memory_format").cast<std::optional<MemoryFormat>>();
    const auto pinned = asked("pin_memory").cast<std::optional<bool>>();
    py::object result = function(*args, **named);
    if (format) result = py::cast(in_format(result.cast<Tensor>(), *format));
    if (pinned.value_or(false)) result = py::cast(result.cast<Tensor>().pin_memory());
    const py::object out = asked("out");
    return out.is_none() ? result : written(result, out);
  });
}

void make_second_name(py::module_& m, TensorClass& c, const char* second, const char* first) {
  for (const char* suffix : {"", "_"}) {
    const std::string old_name = first + std::string(suffix), new_name = second + std::string(suffix);
    if (py::hasattr(m, old_name.c_str())) m.attr(new_name.c_str()) = m.attr(old_name.c_str());
    if (py::hasattr(c, old_name.c_str())) c.attr(new_name.c_str()) = c.attr("__dict__")[old_name.c_str()];
  }
}

Tensor round_to(const Tensor& x, int64_t decimals) {
  if (decimals == 0) return round(x);
  const double factor = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  return decimals > 0 ? div(round(mul(x, factor)), factor) : mul(round(div(x, factor)), factor);
}

namespace {

auto input() { return py::arg("input").none(false); }

/// What stands for `*tensors`: several tensors, or one list of them.
std::vector<Tensor> tensors_of(const py::args& args) {
  const bool is_list = args.size() == 1 && !py::isinstance<TensorImpl>(args[0]);
  std::vector<Tensor> tensors;
  for (py::handle tensor : is_list ? py::object(args[0]) : py::object(args)) {
    if (!py::isinstance<TensorImpl>(tensor)) throw TypeError("expected tensors, or one list of them");
    tensors.push_back(tensor.cast<Tensor>());
  }
  return tensors;
}

/// `name(*tensors)` of a function of a list.
template <class Result, class F>
void of_several(py::module_& m, const char* name, F f) {
  m.def(name, [f](const py::args& args) {
    const std::vector<Tensor> tensors = tensors_of(args);
    const py::gil_scoped_release no_gil;
    return Result{f(tensors)};
  });
}

void bind_functions_of_several(py::module_& m) {
  of_several<TensorTuple>(m, "broadcast_tensors", [](const Tensors& x) { return broadcast_tensors(x); });
  of_several<TensorTuple>(m, "atleast_1d", [](const Tensors& x) { return atleast_1d(x); });
  of_several<TensorTuple>(m, "atleast_2d", [](const Tensors& x) { return atleast_2d(x); });
  of_several<TensorTuple>(m, "atleast_3d", [](const Tensors& x) { return atleast_3d(x); });
  of_several<Tensor>(m, "block_diag", [](const Tensors& x) { return block_diag(x); });
  of_several<Tensor>(m, "cartesian_prod", [](const Tensors& x) { return cartesian_prod(x); });
  of_several<Tensor>(m, "chain_matmul", [](const Tensors& x) { return chain_matmul(x); });
  m.def(
      "meshgrid",
      [](const py::args& args, const std::string& indexing) {
        const std::vector<Tensor> tensors = tensors_of(args);
        const py::gil_scoped_release no_gil;
        return TensorTuple{meshgrid(tensors, indexing.c_str())};
      },
      py::arg("indexing") = "ij");
  m.def(
      "einsum",
      [](const std::string& equation, const py::args& operands) {
        const std::vector<Tensor> tensors = tensors_of(operands);
        const py::gil_scoped_release no_gil;
        return einsum(equation, tensors);
      },
      py::arg("equation"));
  m.def(
      "tensordot", [](const Tensor& a, const Tensor& b, int64_t dims) { return tensordot(a, b, dims); },
      py::arg("a").none(false), py::arg("b").none(false), py::arg("dims") = 2, ReleaseGil());
  m.def(
      "tensordot",
      [](const Tensor& a, const Tensor& b, const std::pair<Shape, Shape>& dims) {
        return tensordot(a, b, dims.first, dims.second);
      },
      py::arg("a").none(false), py::arg("b").none(false), py::arg("dims"), ReleaseGil());
}

// ---- reductions

/// `name(input, dim, unbiased, keepdim)`, where `correction` says the same as `unbiased`, and `name(input,
/// unbiased)`.
template <class F>
void bind_variance(py::module_& m, const char* name, F f) {
  m.def(
      name, [f](const Tensor& x, bool unbiased) { return f(x, IntArrayRef(), unbiased ? 1 : 0, false); },
      input(), py::arg("unbiased").noconvert(), ReleaseGil());
  m.def(
      name,
      [f](const Tensor& x, const OptionalInts& dim, std::optional<bool> unbiased, bool keepdim,
          std::optional<double> correction) {
        return f(x, dim, correction.value_or(unbiased.value_or(true) ? 1 : 0), keepdim);
      },
      input(), py::arg("dim") = py::none(), py::arg("unbiased") = py::none(), py::arg("keepdim") = false,
      py::kw_only(), py::arg("correction") = py::none(), ReleaseGil());
}

/// `dim=None` of functions that C++ has without a dimension for that.
template <class F>
void bind_over_all(py::module_& m, const char* name, F f) {
  m.def(
      name,
      [f](const Tensor& x, const py::none&, bool keepdim) {
        const Tensor result = f(x);
        return keepdim ? result.reshape(Shape(static_cast<size_t>(x.dim()), 1)) : result;
      },
      input(), py::arg("dim"), py::arg("keepdim") = false);
}

void bind_reductions(py::module_& m) {
  bind_variance(m, "var", [](const Tensor& x, IntArrayRef d, double c, bool k) { return var(x, d, c, k); });
  bind_variance(m, "std", [](const Tensor& x, IntArrayRef d, double c, bool k) { return std(x, d, c, k); });
  bind_variance(m, "var_mean",
                [](const Tensor& x, IntArrayRef d, double c, bool k) { return var_mean(x, d, c, k); });
  bind_variance(m, "std_mean",
                [](const Tensor& x, IntArrayRef d, double c, bool k) { return std_mean(x, d, c, k); });
  bind_over_all(m, "argmax", [](const Tensor& x) { return argmax(x); });
  bind_over_all(m, "argmin", [](const Tensor& x) { return argmin(x); });
  bind_over_all(m, "all", [](const Tensor& x) { return all(x); });
  bind_over_all(m, "any", [](const Tensor& x) { return any(x); });
  m.def(
      "aminmax",
      [](const Tensor& x, const py::none&, bool keepdim) {
        auto [least, largest] = aminmax(x);
        const Shape ones(static_cast<size_t>(x.dim()), 1);
        return MinAndMax{keepdim ? std::pair(least.reshape(ones), largest.reshape(ones))
                                 : std::pair(least, largest)};
      },
      input(), py::kw_only(), py::arg("dim"), py::arg("keepdim") = false);
  m.def(
      "norm",
      [](const Tensor& x, const std::optional<std::string>& p, const OptionalInts& dim, bool keepdim,
         std::optional<DType> dtype) {
        if (p.value_or("fro") != "fro") throw ValueError("norm: p is a number or 'fro', not '" + *p + "'");
        return norm(x, 2, dim, keepdim, dtype);
      },
      input(), py::arg("p"), py::arg("dim") = py::none(), py::arg("keepdim") = false,
      py::arg("dtype") = py::none(), ReleaseGil());
  m.def(
      "dist", [](const Tensor& x, const Tensor& other, double p) { return norm(sub(x, other), p); }, input(),
      py::arg("other").none(false), py::arg("p") = 2.0, ReleaseGil());
}

// ---- sorting

void bind_sorting(py::module_& m) {
  // All sorting is stable.
  m.def(
      "sort",
      [](const Tensor& x, int64_t dim, bool descending, std::optional<bool>) {
        return ValuesAndIndices{sort(x, dim, descending)};
      },
      input(), py::arg("dim") = -1, py::arg("descending") = false, py::arg("stable") = false, ReleaseGil());
  m.def(
      "argsort",
      [](const Tensor& x, int64_t dim, bool descending, bool) { return argsort(x, dim, descending); },
      input(), py::arg("dim") = -1, py::arg("descending") = false, py::arg("stable") = false, ReleaseGil());

  const auto as_asked = [](const Tensor& positions, bool out_int32) {
    return out_int32 ? positions.to(DType::Int32) : positions;
  };
  const auto search = [as_asked](const Tensor& sorted, const Tensor& values, bool out_int32, bool right,
                                 const std::optional<std::string>& side, const Tensor& sorter) {
    if (side && *side != "left" && *side != "right")
      throw ValueError("searchsorted: side is 'left' or 'right', not '" + *side + "'");
    if (right && side == "left")
      throw ValueError("searchsorted: side='left' and right=True contradict each other");
    const Tensor in_order = sorter.defined() ? gather(sorted, -1, sorter) : sorted;
    return as_asked(searchsorted(in_order, values, right || side == "right"), out_int32);
  };
  const auto bind_search = [&](auto f) {
    m.def("searchsorted", f, py::arg("sorted_sequence").none(false), py::arg("input").none(false),
          py::kw_only(), py::arg("out_int32") = false, py::arg("right") = false, py::arg("side") = py::none(),
          py::arg("sorter") = Tensor(), ReleaseGil());
  };
  bind_search(search);
  bind_search([search](const Tensor& sorted, const Scalar& value, bool out_int32, bool right,
                       const std::optional<std::string>& side, const Tensor& sorter) {
    return search(sorted, full({}, value, {.device = sorted.device()}), out_int32, right, side, sorter);
  });
  const auto bind_bucketize = [&](auto f) {
    m.def("bucketize", f, py::arg("input").none(false), py::arg("boundaries").none(false), py::kw_only(),
          py::arg("out_int32") = false, py::arg("right") = false, ReleaseGil());
  };
  bind_bucketize([as_asked](const Tensor& x, const Tensor& boundaries, bool out_int32, bool right) {
    return as_asked(bucketize(x, boundaries, right), out_int32);
  });
  bind_bucketize([as_asked](const Scalar& x, const Tensor& boundaries, bool out_int32, bool right) {
    return as_asked(bucketize(full({}, x, {.device = boundaries.device()}), boundaries, right), out_int32);
  });
}

// ---- repeated elements

/// The places 0, 1, 2 ..., each as often as `repeats` says.
Tensor places_of(const Tensor& repeats) {
  if (repeats.dim() != 1 || is_floating_point(repeats.dtype()))
    throw ShapeError("repeat_interleave: expected integers in one dimension as repeats");
  if (any(lt(repeats, 0)).item().to_bool())
    throw ValueError("repeat_interleave: repeats can not be negative");
  const Tensor ends = cumsum(repeats, 0);
  const int64_t total = repeats.numel() == 0 ? 0 : ends.select(0, -1).item().to_int();
  return searchsorted(ends, arange(total, {.dtype = ends.dtype(), .device = ends.device()}), /*right=*/true);
}

void bind_repeats(py::module_& m) {
  using Size = std::optional<int64_t>;
  m.def(
      "repeat_interleave", [](const Tensor& repeats, Size) { return places_of(repeats); },
      py::arg("repeats").none(false), py::kw_only(), py::arg("output_size") = py::none(), ReleaseGil());
  m.def(
      "repeat_interleave",
      [](const Tensor& x, const Tensor& repeats, Size dim, Size) {
        const Tensor row = dim ? x : x.flatten();
        const int64_t along = dim.value_or(0);
        const Tensor each = repeats.numel() == 1 ? repeats.reshape({1}).expand({row.size(along)}) : repeats;
        if (each.numel() != row.size(along))
          throw ShapeError("repeat_interleave: " + std::to_string(each.numel()) + " repeats for " +
                           std::to_string(row.size(along)) + " elements");
        return index_select(row, along, places_of(each));
      },
      input(), py::arg("repeats").none(false), py::arg("dim") = py::none(), py::kw_only(),
      py::arg("output_size") = py::none(), ReleaseGil());
}

// ---- of each element

void bind_element_functions(py::module_& m) {
  const auto of_two = [&](const char* name, auto f) {
    m.def(name, f, input(), py::arg("other").none(false), ReleaseGil());
  };
  of_two("max", &maximum);
  of_two("min", &minimum);
  of_two("rsub", [](const Tensor& x, const Tensor& other) { return sub(other, x); });
  m.def("round", &round_to, input(), py::kw_only(), py::arg("decimals"), ReleaseGil());
  m.def(
      "div", [](const Tensor& x, const Tensor& other, const py::none&) { return div(x, other); }, input(),
      py::arg("other").none(false), py::kw_only(), py::arg("rounding_mode"));
  m.def(
      "div", [](const Tensor& x, const Scalar& other, const py::none&) { return div(x, other); }, input(),
      py::arg("other"), py::kw_only(), py::arg("rounding_mode"));
}

// ---- random numbers

void bind_random(py::module_& m) {
  using MaybeGenerator = const std::optional<Generator>&;
  const auto generator = [] { return py::arg_v("generator", py::none()); };
  m.def(
      "bernoulli",
      [](const Tensor& x, double p, MaybeGenerator source) {
        return bernoulli(full_like(x.detach(), p), source);
      },
      input(), py::arg("p"), py::kw_only(), generator(), ReleaseGil());
  m.def(
      "randint_like",
      [](const Tensor& x, int64_t high, std::optional<DType> dtype, std::optional<Device> device,
         bool requires_grad, MaybeGenerator source) {
        return randint_like(x, 0, high, {.dtype = dtype, .device = device, .requires_grad = requires_grad},
                            source);
      },
      input(), py::arg("high"), py::kw_only(), py::arg("dtype") = py::none(), py::arg("device") = py::none(),
      py::arg("requires_grad") = false, generator(), ReleaseGil());
}

// ---- what dtypes hold

struct FloatInfo {
  DType dtype;
  int bits;
  int digits, exponent;  // the binary digits after the leading one, the exponent of the largest number
  double resolution;

  double eps() const { return std::ldexp(1, -digits); }
  double max() const { return std::ldexp(2 - eps(), exponent); }
  double tiny() const { return std::ldexp(1, 1 - exponent); }
};
FloatInfo float_info(std::optional<DType> dtype) {
  const DType asked = dtype.value_or(get_default_dtype());
  for (const FloatInfo& info :
       {FloatInfo{DType::Float16, 16, 10, 15, 1e-3}, FloatInfo{DType::BFloat16, 16, 7, 127, 1e-2},
        FloatInfo{DType::Float32, 32, 23, 127, 1e-6}, FloatInfo{DType::Float64, 64, 52, 1023, 1e-15}})
    if (info.dtype == asked) return info;
  throw TypeError("finfo: expected float16, bfloat16, float32 or float64; iinfo is for integers");
}

struct IntInfo {
  DType dtype;
  int bits;
  int64_t min, max;
};
IntInfo int_info(DType dtype) {
  for (DType signed_one : {DType::Int8, DType::Int16, DType::Int32, DType::Int64})
    if (dtype == signed_one) {
      const int bits = static_cast<int>(itemsize(dtype)) * 8;
      const int64_t max = std::numeric_limits<int64_t>::max() >> (64 - bits);
      return {dtype, bits, -max - 1, max};
    }
  if (dtype == DType::UInt8) return {dtype, 8, 0, 255};
  throw TypeError("iinfo: expected a dtype of integers; finfo is for floats");
}

void bind_infos(py::module_& m) {
  py::class_<FloatInfo>(m, "_FloatInfo")
      .def_readonly("bits", &FloatInfo::bits)
      .def_readonly("resolution", &FloatInfo::resolution)
      .def_property_readonly("eps", &FloatInfo::eps)
      .def_property_readonly("max", &FloatInfo::max)
      .def_property_readonly("min", [](const FloatInfo& info) { return -info.max(); })
      .def_property_readonly("tiny", &FloatInfo::tiny)
      .def_property_readonly("smallest_normal", &FloatInfo::tiny)
      .def_property_readonly("dtype", [](const FloatInfo& info) { return std::string(name(info.dtype)); });
  py::class_<IntInfo>(m, "_IntInfo")
      .def_readonly("bits", &IntInfo::bits)
      .def_readonly("min", &IntInfo::min)
      .def_readonly("max", &IntInfo::max)
      .def_property_readonly("dtype", [](const IntInfo& info) { return std::string(name(info.dtype)); });
  m.def("finfo", &float_info, py::arg("type") = py::none());
  m.def("iinfo", &int_info, py::arg("type"));
}

/// Transforms whose settings are a struct in C++.
void bind_spectra(py::module_& m) {
  m.def(
      "stft",
      [](const Tensor& x, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
         const Tensor& window, bool center, const std::string& pad_mode, bool normalized,
         std::optional<bool> onesided, std::optional<bool> return_complex) {
        return stft(x, n_fft,
                    {.hop_length = hop_length,
                     .win_length = win_length,
                     .window = window,
                     .center = center,
                     .pad_mode = pad_mode,
                     .normalized = normalized,
                     .onesided = onesided,
                     .return_complex = return_complex});
      },
      input(), py::arg("n_fft"), py::arg("hop_length") = py::none(), py::arg("win_length") = py::none(),
      py::arg("window") = Tensor(), py::arg("center") = true, py::arg("pad_mode") = "reflect",
      py::arg("normalized") = false, py::arg("onesided") = py::none(), py::arg("return_complex") = py::none(),
      ReleaseGil());
  m.def(
      "istft",
      [](const Tensor& x, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
         const Tensor& window, bool center, bool normalized, std::optional<bool> onesided,
         std::optional<int64_t> length, bool return_complex) {
        return istft(x, n_fft,
                     {.hop_length = hop_length,
                      .win_length = win_length,
                      .window = window,
                      .center = center,
                      .normalized = normalized,
                      .onesided = onesided,
                      .return_complex = return_complex,
                      .length = length});
      },
      input(), py::arg("n_fft"), py::arg("hop_length") = py::none(), py::arg("win_length") = py::none(),
      py::arg("window") = Tensor(), py::arg("center") = true, py::arg("normalized") = false,
      py::arg("onesided") = py::none(), py::arg("length") = py::none(), py::arg("return_complex") = false,
      ReleaseGil());
}

/// Questions about tensors and dtypes.
void bind_questions(py::module_& m) {
  m.def(
      "is_tensor", [](py::handle object) { return py::isinstance<TensorImpl>(object); }, py::arg("obj"));
  m.def(
      "numel", [](const Tensor& x) { return x.numel(); }, input());
  m.def(
      "is_floating_point", [](const Tensor& x) { return x.is_floating_point(); }, input());
  m.def(
      "is_complex", [](const Tensor& x) { return is_complex(x.dtype()); }, input());
  m.def(
      "is_nonzero", [](const Tensor& x) { return py::bool_(py::cast(x)); }, input());
  m.def(
      "is_same_size", [](const Tensor& x, const Tensor& other) { return x.shape() == other.shape(); },
      input(), py::arg("other").none(false));
  m.def("promote_types", &promote_types, py::arg("type1"), py::arg("type2"));
  m.def(
      "result_type", [](const Tensor& a, const Tensor& b) { return result_type(a, b); },
      py::arg("tensor").none(false), py::arg("other").none(false));
  m.def(
      "result_type", [](const Tensor& a, const Scalar& b) { return result_type(a, b); },
      py::arg("tensor").none(false), py::arg("other"));
  m.def(
      "result_type", [](const Scalar& a, const Tensor& b) { return result_type(b, a); }, py::arg("scalar"),
      py::arg("tensor").none(false));
  m.def("get_default_dtype", &get_default_dtype);
  m.def("set_default_dtype", &set_default_dtype, py::arg("d"));
  m.def("broadcast_shapes", [](const py::args& shapes) {
    Shape result;
    for (py::handle shape : shapes)
      result = broadcast_shapes(result, shape.cast<Shape>(), "broadcast_shapes");
    return result;
  });
}

}  // namespace

void bind_operators(py::module_& m) {
  m.def_submodule("_linalg", "torch.linalg.");
  m.def_submodule("_special", "torch.special.");
  m.def_submodule("_fft", "torch.fft.");
  m.def("view", &bytes_as, py::arg("input").none(false), py::arg("dtype"));  // before that of sizes
  bind_spectra(m);
  bind_operators_0(m);
  bind_operators_1(m);
  bind_operators_2(m);
  bind_operators_3(m);
  bind_operators_4(m);
  bind_operators_5(m);
  bind_functions_of_several(m);
  bind_reductions(m);
  bind_sorting(m);
  bind_repeats(m);
  bind_element_functions(m);
  bind_random(m);
  bind_infos(m);
  bind_questions(m);

  const auto in_order = [](MemoryFormat usual) { return py::arg_v("memory_format", usual); };
  m.def(
      "contiguous", [](const Tensor& x, MemoryFormat format) { return contiguous(x, format); }, input(),
      py::kw_only(), in_order(MemoryFormat::Contiguous), ReleaseGil());
  m.def(
      "clone", [](const Tensor& x, MemoryFormat format) { return in_format(x.clone(), format); }, input(),
      py::kw_only(), in_order(MemoryFormat::Preserve), ReleaseGil());
  const auto of_number = [&](const char* name, auto f) {
    m.def(name, f, py::arg("input"), py::arg("other").none(false), ReleaseGil());
  };
  of_number("add", [](const Scalar& a, const Tensor& b) { return a + b; });
  of_number("sub", [](const Scalar& a, const Tensor& b) { return a - b; });
  of_number("mul", [](const Scalar& a, const Tensor& b) { return a * b; });
  of_number("div", [](const Scalar& a, const Tensor& b) { return a / b; });
  m.def(
      "pin_memory", [](const Tensor& x) { return x.pin_memory(); }, input(), ReleaseGil());
  m.def(
      "detach", [](const Tensor& x) { return x.detach(); }, input());
  m.def(
      "nonzero",
      [](const Tensor& x, bool as_tuple) -> py::object {
        if (as_tuple) return py::tuple(py::cast(where(x)));
        return py::cast(nonzero(x));
      },
      input(), py::kw_only(), py::arg("as_tuple"));
}

}  // namespace tern::python
