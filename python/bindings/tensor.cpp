// The class Tensor: its attributes, numbers out of it, Python's operators, and the methods that are not
// generated from core/tensor.h (generate.py says which those are).
#include <complex>

#include "generated.h"
#include "tern/nn/lazy.h"

namespace tern::python {

namespace {

/// `a + b` and so on: with a tensor or a number; Python asks the other side where neither fits.
template <class Function>
void operators(TensorClass& c, const char* name, const char* reversed, Function f) {
  c.def(
      name, [f](const Tensor& a, const Tensor& b) -> Tensor { return f(a, b); }, py::is_operator(),
      py::arg("other").none(false), ReleaseGil());
  c.def(
      name, [f](const Tensor& a, const Scalar& b) -> Tensor { return f(a, b); }, py::is_operator(),
      ReleaseGil());
  if constexpr (requires(Scalar s, Tensor t) { f(s, t); })
    if (reversed)
      c.def(
          reversed, [f](const Tensor& b, const Scalar& a) -> Tensor { return f(a, b); }, py::is_operator(),
          ReleaseGil());
}

/// `a += b`: a itself.
template <class Function>
void in_place_operators(TensorClass& c, const char* name, Function f) {
  c.def(
      name, [f](Tensor a, const Tensor& b) { return f(a, b); }, py::is_operator(),
      py::arg("other").none(false), ReleaseGil());
  c.def(
      name, [f](Tensor a, const Scalar& b) { return f(a, b); }, py::is_operator(), ReleaseGil());
}

/// A number as a tensor, for operators that take tensors only.
Tensor like(const Tensor& x, const Scalar& number) {
  return full({}, number, {.dtype = promote_with_scalar(x.dtype(), number)});
}

void bind_operators_of_python(TensorClass& c) {
  operators(c, "__add__", "__radd__", [](const auto& a, const auto& b) { return a + b; });
  operators(c, "__sub__", "__rsub__", [](const auto& a, const auto& b) { return a - b; });
  operators(c, "__mul__", "__rmul__", [](const auto& a, const auto& b) { return a * b; });
  operators(c, "__truediv__", "__rtruediv__", [](const auto& a, const auto& b) { return a / b; });
  operators(c, "__mod__", "__rmod__", [](const auto& a, const auto& b) { return a % b; });
  operators(c, "__pow__", "__rpow__", [](const auto& a, const auto& b) { return pow(a, b); });
  operators(c, "__floordiv__", nullptr, [](const Tensor& a, const auto& b) { return floor_divide(a, b); });
  c.def(
      "__rfloordiv__", [](const Tensor& b, const Scalar& a) { return floor_divide(like(b, a), b); },
      py::is_operator(), ReleaseGil());
  operators(c, "__lshift__", "__rlshift__",
            [](const auto& a, const auto& b) { return bitwise_left_shift(a, b); });
  operators(c, "__rshift__", "__rrshift__",
            [](const auto& a, const auto& b) { return bitwise_right_shift(a, b); });
  operators(c, "__eq__", nullptr, [](const Tensor& a, const auto& b) { return a.eq(b); });
  operators(c, "__ne__", nullptr, [](const Tensor& a, const auto& b) { return a.ne(b); });
  operators(c, "__lt__", nullptr, [](const Tensor& a, const auto& b) { return a.lt(b); });
  operators(c, "__le__", nullptr, [](const Tensor& a, const auto& b) { return a.le(b); });
  operators(c, "__gt__", nullptr, [](const Tensor& a, const auto& b) { return a.gt(b); });
  operators(c, "__ge__", nullptr, [](const Tensor& a, const auto& b) { return a.ge(b); });
  struct Bitwise {
    const char *name, *reversed, *in_place, *plain_in_place;
    Tensor (Tensor::*method)(const Tensor&) const;
    Tensor& (Tensor::*method_in_place)(const Tensor&);
  };
  for (const auto& [name, reversed, in_place, plain_in_place, method, method_in_place] :
       {Bitwise{"__and__", "__rand__", "__iand__", "bitwise_and_", &Tensor::bitwise_and,
                &Tensor::bitwise_and_},
        Bitwise{"__or__", "__ror__", "__ior__", "bitwise_or_", &Tensor::bitwise_or, &Tensor::bitwise_or_},
        Bitwise{"__xor__", "__rxor__", "__ixor__", "bitwise_xor_", &Tensor::bitwise_xor,
                &Tensor::bitwise_xor_}}) {
    const auto f = method;
    const auto g = method_in_place;
    auto with_tensor = [f](const Tensor& a, const Tensor& b) { return (a.*f)(b); };
    auto with_number = [f](const Tensor& a, const Scalar& b) { return (a.*f)(like(a, b)); };
    c.def(name, with_tensor, py::is_operator(), py::arg("other").none(false), ReleaseGil());
    c.def(name, with_number, py::is_operator(), ReleaseGil());
    c.def(reversed, with_number, py::is_operator(), ReleaseGil());
    c.def(
        in_place, [g](Tensor a, const Tensor& b) { return (a.*g)(b); }, py::is_operator(),
        py::arg("other").none(false), ReleaseGil());
    const auto with_number_in_place = [g](Tensor a, const Scalar& b) { return (a.*g)(like(a, b)); };
    c.def(in_place, with_number_in_place, py::is_operator(), ReleaseGil());
    c.def(plain_in_place, with_number_in_place, py::arg("other"), ReleaseGil());
  }
  c.def(
      "__matmul__", [](const Tensor& a, const Tensor& b) { return matmul(a, b); }, py::is_operator(),
      py::arg("other").none(false), ReleaseGil());
  c.def(
      "__neg__", [](const Tensor& x) { return neg(x); }, ReleaseGil());
  c.def(
      "__pos__", [](const Tensor& x) { return positive(x); }, ReleaseGil());
  c.def(
      "__abs__", [](const Tensor& x) { return abs(x); }, ReleaseGil());
  c.def(
      "__invert__", [](const Tensor& x) { return x.bitwise_not(); }, ReleaseGil());
  in_place_operators(c, "__iadd__", [](Tensor& a, const auto& b) { return a.add_(b); });
  in_place_operators(c, "__isub__", [](Tensor& a, const auto& b) { return a.sub_(b); });
  in_place_operators(c, "__imul__", [](Tensor& a, const auto& b) { return a.mul_(b); });
  in_place_operators(c, "__itruediv__", [](Tensor& a, const auto& b) { return a.div_(b); });
  in_place_operators(c, "__ifloordiv__", [](Tensor& a, const auto& b) { return a.floor_divide_(b); });
  in_place_operators(c, "__imod__", [](Tensor& a, const auto& b) { return a.remainder_(b); });
  in_place_operators(c, "__ipow__", [](Tensor& a, const auto& b) { return a.pow_(b); });
}

Scalar item_of(const Tensor& x) {
  const py::gil_scoped_release no_gil;
  return x.item();
}

/// The numbers of a tensor as lists in lists.
py::object nested_list(const Tensor& x, const std::vector<Scalar>& numbers, int64_t dim, size_t& next) {
  if (dim == x.dim()) return py::cast(numbers[next++]);
  py::list list;
  for (int64_t i = 0; i < x.size(dim); ++i) list.append(nested_list(x, numbers, dim + 1, next));
  return py::object(std::move(list));
}

py::object to_list(const Tensor& x) {
  std::vector<Scalar> numbers;
  auto take = [&](const auto& values) {
    for (const auto value : values) numbers.push_back(Scalar(value));
  };
  {
    const py::gil_scoped_release no_gil;
    if (is_complex(x.dtype()))
      take(x.to_vector<std::complex<double>>());
    else if (is_floating_point(x.dtype()))
      take(x.to_vector<double>());
    else if (is_bool(x.dtype()))
      take(x.to_vector<bool>());
    else
      take(x.to_vector<int64_t>());
  }
  size_t next = 0;
  return nested_list(x, numbers, 0, next);
}

bool truth_of(const Tensor& x) {
  if (x.numel() != 1)
    throw ShapeError(x.numel() == 0 ? "Boolean value of Tensor with no values is ambiguous"
                                    : "Boolean value of Tensor with more than one value is ambiguous");
  return item_of(x).to_bool();
}

void bind_numbers(TensorClass& c) {
  c.def("item", &item_of);
  c.def("tolist", &to_list);
  c.def("__bool__", &truth_of);
  c.def("__int__", [](const Tensor& x) { return item_of(x).to<int64_t>(); });
  c.def("__float__", [](const Tensor& x) { return item_of(x).to_double(); });
  c.def("__complex__", [](const Tensor& x) { return Scalar(item_of(x).to<std::complex<double>>()); });
  c.def("__index__", [](const Tensor& x) {
    if (is_floating_point(x.dtype()) || is_complex(x.dtype()) || x.numel() != 1)
      throw TypeError("only integer tensors of a single element can be converted to an index");
    return item_of(x).to_int();
  });
  c.def("__len__", [](const Tensor& x) {
    if (x.dim() == 0) throw TypeError("len() of a 0-d tensor");
    return x.size(0);
  });
  c.def("__iter__", [](const Tensor& x) {
    if (x.dim() == 0) throw TypeError("iteration over a 0-d tensor");
    return py::iter(py::cast(x.unbind(0)));
  });
  c.def("__contains__", [](const Tensor& x, const Scalar& number) { return truth_of(x.eq(number).any()); });
  c.def("__contains__", [](const Tensor& x, const Tensor& other) { return truth_of(x.eq(other).any()); });
  c.def("__format__", [](const Tensor& x, const std::string& format) {
    if (x.dim() == 0) return py::cast(item_of(x)).attr("__format__")(format);
    return py::object(py::str(x.str()));
  });
  c.def(
      "__repr__", [](const Tensor& x) { return x.str(); }, ReleaseGil());
  c.def("__hash__", [](const Tensor& x) { return reinterpret_cast<intptr_t>(x.impl_ptr().get()) >> 4; });
}

void bind_attributes(TensorClass& c) {
  c.def_property_readonly("shape", [](const Tensor& x) { return x.shape(); });
  c.def("size", [](const Tensor& x) { return x.shape(); });
  c.def(
      "size", [](const Tensor& x, int64_t dim) { return x.size(dim); }, py::arg("dim"));
  c.def("stride", [](const Tensor& x) { return py::tuple(py::cast(x.strides())); });
  c.def(
      "stride", [](const Tensor& x, int64_t dim) { return x.stride(dim); }, py::arg("dim"));
  c.def("dim", [](const Tensor& x) { return x.dim(); });
  c.def("ndimension", [](const Tensor& x) { return x.dim(); });
  c.def_property_readonly("ndim", [](const Tensor& x) { return x.dim(); });
  c.def("numel", [](const Tensor& x) { return x.numel(); });
  c.def("nelement", [](const Tensor& x) { return x.numel(); });
  c.def("element_size", [](const Tensor& x) { return x.element_size(); });
  c.def_property_readonly("itemsize", [](const Tensor& x) { return x.element_size(); });
  c.def_property_readonly("nbytes", [](const Tensor& x) { return x.nbytes(); });
  c.def_property_readonly("dtype", [](const Tensor& x) { return x.dtype(); });
  c.def_property_readonly("device", [](const Tensor& x) { return x.device(); });
  c.def_property_readonly("is_cuda", [](const Tensor& x) { return x.is_cuda(); });
  c.def_property_readonly("is_cpu", [](const Tensor& x) { return x.is_cpu(); });
  c.def("get_device", [](const Tensor& x) { return x.is_cuda() ? static_cast<int>(x.device().index) : -1; });
  c.def(
      "is_contiguous", [](const Tensor& x, MemoryFormat format) { return is_contiguous(x, format); },
      py::arg("memory_format") = MemoryFormat::Contiguous);
  c.def_property_readonly(
      "layout", [](const Tensor&) { return imported("tern.serialization", "Layout")("torch.strided"); });
  c.def("is_floating_point", [](const Tensor& x) { return x.is_floating_point(); });
  c.def("is_complex", [](const Tensor& x) { return is_complex(x.dtype()); });
  c.def("is_pinned", [](const Tensor& x) { return x.is_pinned(); });
  c.def("storage_offset", [](const Tensor& x) { return x.storage_offset(); });
  c.def(
      "record_stream", [](const Tensor& x, Stream stream) { x.record_stream(stream); }, py::arg("stream"));
  c.def("_is_lazy", [](const Tensor& x) { return nn::is_lazy(x); });
  c.def("_whole_storage", [](const Tensor& x) {
    const auto count = static_cast<int64_t>(x.storage()->nbytes() / x.element_size());
    return Tensor::from_storage(x.storage(), x.dtype(), {count}, {1}, 0);
  });
  c.def("data_ptr", [](const Tensor& x) { return reinterpret_cast<uintptr_t>(x.data_ptr()); });
  c.def_property_readonly("_version", [](const Tensor& x) { return x.version(); });
  c.def_property_readonly("T", [](const Tensor& x) {
    std::vector<int64_t> dims;
    for (int64_t d = x.dim(); d-- > 0;) dims.push_back(d);
    return x.permute(dims);
  });
  c.def_property_readonly("mT", [](const Tensor& x) { return x.mT(); });
  c.def_property_readonly("mH", [](const Tensor& x) { return x.mH(); });
  c.def_property_readonly("H", [](const Tensor& x) { return x.dim() == 0 ? x : x.mH(); });
  c.def_property(
      "real", [](const Tensor& x) { return x.real(); },
      [](const Tensor& x, const Tensor& part) { x.real().copy_(part); });
  c.def_property(
      "imag", [](const Tensor& x) { return x.imag(); },
      [](const Tensor& x, const Tensor& part) { x.imag().copy_(part); });
  c.def("is_signed", [](const Tensor& x) { return x.dtype() != DType::UInt8 && !is_bool(x.dtype()); });
  for (const char* name : {"is_sparse", "is_sparse_csr", "is_quantized", "is_nested", "is_meta", "is_mkldnn",
                           "is_mps", "is_xla", "is_xpu"})  // kinds that there are not
    c.def_property_readonly(name, [](const Tensor&) { return false; });
}

/// A hook of a tensor, to be taken away again.
struct HookOfTensor {
  Tensor tensor;
  int64_t number;
  void remove() { tensor.remove_hook(number); }
};

void bind_gradients(TensorClass& c) {
  c.def_property(
      "requires_grad", [](const Tensor& x) { return x.requires_grad(); },
      [](const Tensor& x, bool requires_grad) { x.requires_grad_(requires_grad); });
  c.def(
      "requires_grad_", [](const Tensor& x, bool requires_grad) { return x.requires_grad_(requires_grad); },
      py::arg("requires_grad") = true);
  c.def_property(
      "grad", [](const Tensor& x) { return x.grad(); },
      [](const Tensor& x, const Tensor& grad) { x.set_grad(grad); });
  c.def_property(
      "data",
      [](const Tensor& x) {
        if (!nn::is_lazy(x)) return x.detach();
        // As in PyTorch, where nobody tells that it does nothing.
        if (PyErr_WarnEx(PyExc_UserWarning,
                         "`data` of an uninitialized parameter is empty, and what is done to it has no "
                         "effect: call the "
                         "lazy layer with one batch first",
                         1) != 0)
          throw py::error_already_set();
        return empty({0}, {.dtype = x.dtype(), .device = x.device(), .requires_grad = false});
      },
      [](const Tensor& x, const Tensor& data) { nn::detail::set_data(x, data.detach()); });
  c.def_property_readonly("is_leaf", [](const Tensor& x) { return x.is_leaf(); });
  c.def_property_readonly("grad_fn", [](const Tensor& x) -> std::optional<std::string> {
    const std::string name = x.grad_fn_name();
    if (name.empty()) return std::nullopt;
    return "<" + name + ">";
  });
  c.def("retain_grad", [](const Tensor& x) { x.retain_grad(); });
  c.def("detach", [](const Tensor& x) { return x.detach(); });
  c.def("detach_", [](Tensor x) { return x.detach_(); });
  c.def(
      "backward",
      [](const Tensor& x, const Tensor& gradient, bool retain_graph, bool create_graph) {
        x.backward(gradient, retain_graph, create_graph);
      },
      py::arg("gradient") = Tensor(), py::arg("retain_graph") = false, py::arg("create_graph") = false,
      ReleaseGil());
  c.def(
      "register_hook",
      [](const Tensor& x, py::function hook) {
        return HookOfTensor{x, x.register_hook([hook = Callback(std::move(hook))](const Tensor& gradient) {
                              const py::gil_scoped_acquire gil;
                              const py::object result = hook(gradient);
                              if (!result.is_none() && !py::isinstance<TensorImpl>(result))
                                throw TypeError("register_hook: a hook returns a tensor or None, not '" +
                                                std::string(Py_TYPE(result.ptr())->tp_name) + "'");
                              return result.cast<Tensor>();
                            })};
      },
      py::arg("hook"));
  c.def(
      "register_post_accumulate_grad_hook",
      [](const Tensor& x, py::function hook) {
        return HookOfTensor{
            x, x.register_post_accumulate_grad_hook([hook = Callback(std::move(hook))](const Tensor& leaf) {
              const py::gil_scoped_acquire gil;
              hook(leaf);
            })};
      },
      py::arg("hook"));
}

/// What `x.to(...)` is asked for: a device, a dtype, both, or another tensor's.
Tensor moved(const Tensor& x, std::optional<Device> device, std::optional<DType> dtype, bool non_blocking,
             bool copy, MemoryFormat format) {
  const ToOptions options{.non_blocking = non_blocking, .copy = copy};
  const Tensor result = device && dtype ? x.to(*device, *dtype, options)
                        : device        ? x.to(*device, options)
                        : dtype         ? x.to(*dtype, options)
                        : copy          ? x.clone()
                                        : x;
  return in_format(result, format);
}

void bind_moves(TensorClass& c) {
  const auto how = [&](auto f, auto... declared) {
    c.def("to", f, declared..., py::arg("non_blocking") = false, py::arg("copy") = false, py::kw_only(),
          py::arg("memory_format") = MemoryFormat::Preserve, ReleaseGil());
  };
  how([](const Tensor& x, const Tensor& other, bool non_blocking, bool copy,
         MemoryFormat format) { return moved(x, other.device(), other.dtype(), non_blocking, copy, format); },
      py::arg("other").none(false));
  how([](const Tensor& x, DType dtype, bool non_blocking, bool copy,
         MemoryFormat format) { return moved(x, {}, dtype, non_blocking, copy, format); },
      py::arg("dtype"));
  how([](const Tensor& x, std::optional<Device> device, std::optional<DType> dtype, bool non_blocking,
         bool copy, MemoryFormat format) { return moved(x, device, dtype, non_blocking, copy, format); },
      py::arg("device") = py::none(), py::arg("dtype") = py::none());
  c.def(
      "cpu", [](const Tensor& x) { return x.cpu(); }, ReleaseGil());
  c.def(
      "cuda",
      [](const Tensor& x, std::optional<Device> device, bool non_blocking) {
        return x.to(device.value_or(Device(DeviceType::CUDA, -1)), {.non_blocking = non_blocking});
      },
      py::arg("device") = py::none(), py::arg("non_blocking") = false, ReleaseGil());
  c.def(
      "type_as", [](const Tensor& x, const Tensor& other) { return x.type_as(other); },
      py::arg("other").none(false), ReleaseGil());
  struct Conversion {
    const char *method, *type;
    DType dtype;
  };
  static constexpr Conversion conversions[] = {
      {"float", "FloatTensor", DType::Float32}, {"double", "DoubleTensor", DType::Float64},
      {"half", "HalfTensor", DType::Float16},   {"bfloat16", "BFloat16Tensor", DType::BFloat16},
      {"long", "LongTensor", DType::Int64},     {"int", "IntTensor", DType::Int32},
      {"short", "ShortTensor", DType::Int16},   {"char", "CharTensor", DType::Int8},
      {"byte", "ByteTensor", DType::UInt8},     {"bool", "BoolTensor", DType::Bool}};
  for (const Conversion& each : conversions)
    c.def(
        each.method, [dtype = each.dtype](const Tensor& x) { return x.to(dtype); }, ReleaseGil());
  // "torch.FloatTensor" and so on; asked for, a dtype, such a text, or tern.FloatTensor itself.
  c.def("type", [](const Tensor& x) {
    for (const Conversion& each : conversions)
      if (each.dtype == x.dtype()) return std::string(x.is_cuda() ? "torch.cuda." : "torch.") + each.type;
    throw TypeError("type: there is no class of tensors of this dtype");
  });
  c.def(
      "type", [](const Tensor& x, DType dtype, bool) { return x.to(dtype); }, py::arg("dtype"),
      py::arg("non_blocking") = false, ReleaseGil());
  c.def(
      "type",
      [](const Tensor& x, const py::object& type, bool) {
        const auto text = py::str(py::getattr(type, "__name__", type)).cast<std::string>();
        if (text == "Tensor" || text == "torch.Tensor") return x.to(get_default_dtype());
        for (const Conversion& each : conversions)
          if (text == each.type || text == std::string("torch.") + each.type) return x.to(each.dtype);
        throw TypeError("type: expected a dtype, or the name of a class of tensors, got " + text);
      },
      py::arg("dtype"), py::arg("non_blocking") = false);
}

/// x with the numbers of f(x).
template <class F>
Tensor replaced(Tensor x, F f) {
  const bool recorded =
      is_grad_enabled() && x.requires_grad();  // then what f keeps for its gradient must not change
  return x.copy_(f(recorded ? x.clone() : x));
}

Scalar product(const Scalar& a, const Scalar& b) {
  if (a.is_floating_point() || b.is_floating_point()) return a.to_double() * b.to_double();
  return a.to_int() * b.to_int();
}

/// Methods in place that PyTorch gives more arguments than core/tensor.h.
void bind_in_place(TensorClass& c) {
  using MaybeGenerator = const std::optional<Generator>&;
  const auto random = [&](const char* name, auto f, const auto&... declared) {
    c.def(name, f, declared..., py::kw_only(), py::arg("generator") = py::none(), ReleaseGil());
  };
  random(
      "uniform_", [](Tensor x, double from, double to, MaybeGenerator g) { return uniform_(x, from, to, g); },
      py::arg("from") = 0.0, py::arg("to") = 1.0);
  random(
      "normal_", [](Tensor x, double mean, double std, MaybeGenerator g) { return normal_(x, mean, std, g); },
      py::arg("mean") = 0.0, py::arg("std") = 1.0);
  random(
      "exponential_", [](Tensor x, double lambd, MaybeGenerator g) { return exponential_(x, lambd, g); },
      py::arg("lambd") = 1.0);
  random(
      "bernoulli_", [](Tensor x, double p, MaybeGenerator g) { return bernoulli_(x, p, g); },
      py::arg("p") = 0.5);
  random(
      "bernoulli_",
      [](Tensor x, const Tensor& p, MaybeGenerator g) {
        return x.copy_(bernoulli(p.detach().expand(x.shape()), g));
      },
      py::arg("p").none(false));
  random("random_", [](Tensor x, MaybeGenerator g) { return random_(x, g); });
  random(
      "random_", [](Tensor x, int64_t to, MaybeGenerator g) { return random_(x, 0, to, g); }, py::arg("to"));
  random(
      "random_", [](Tensor x, int64_t from, int64_t to, MaybeGenerator g) { return random_(x, from, to, g); },
      py::arg("from"), py::arg("to"));
  c.def(
      "copy_", [](Tensor x, const Tensor& other, bool) { return x.copy_(other); },
      py::arg("other").none(false), py::arg("non_blocking") = false, ReleaseGil());
  // A number that is a tensor.
  c.def(
      "fill_",
      [](Tensor x, const Tensor& value) {
        if (value.dim() != 0)
          throw ShapeError("fill_: expected a number or a tensor of no dimensions as value");
        return x.copy_(value);
      },
      py::arg("value").none(false), ReleaseGil());
  c.def(
      "masked_fill_",
      [](Tensor x, const Tensor& mask, const Tensor& value) {
        return replaced(x, [&](const Tensor& old) { return masked_fill(old, mask, value); });
      },
      py::arg("mask").none(false), py::arg("value").none(false), ReleaseGil());
  c.def(
      "clamp_",
      [](Tensor x, const Tensor& min, const Tensor& max) {
        return replaced(x, [&](const Tensor& old) { return clamp(old, min, max); });
      },
      py::arg("min") = Tensor(), py::arg("max") = Tensor(), ReleaseGil());
  c.def(
      "round_",
      [](Tensor x, int64_t decimals) {
        return replaced(x, [&](const Tensor& old) { return round_to(old, decimals); });
      },
      py::kw_only(), py::arg("decimals"), ReleaseGil());
  c.def(
      "add_",
      [](Tensor x, const Scalar& other, const Scalar& alpha) { return x.add_(product(other, alpha)); },
      py::arg("other"), py::kw_only(), py::arg("alpha"), ReleaseGil());
  c.def(
      "sub_",
      [](Tensor x, const Scalar& other, const Scalar& alpha) { return x.sub_(product(other, alpha)); },
      py::arg("other"), py::kw_only(), py::arg("alpha"), ReleaseGil());
}

/// Methods whose arguments have another order, or other names, than those of the function.
void bind_other_methods(TensorClass& c) {
  const auto bind_where = [&](auto f) {
    c.def("where", f, py::arg("condition").none(false), py::arg("other").none(false), ReleaseGil());
  };
  bind_where([](const Tensor& x, const Tensor& condition, const Tensor& other) {
    return where(condition, x, other);
  });
  bind_where([](const Tensor& x, const Tensor& condition, const Scalar& other) {
    return where(condition, x, other);
  });
  const auto bind_split = [&](auto f) {
    c.def("split", f, py::arg("split_size"), py::arg("dim") = 0, ReleaseGil());
  };
  bind_split([](const Tensor& x, int64_t size, int64_t dim) { return TensorTuple{split(x, size, dim)}; });
  bind_split(
      [](const Tensor& x, const Shape& sizes, int64_t dim) { return TensorTuple{split(x, sizes, dim)}; });
  c.def(
      "is_same_size", [](const Tensor& x, const Tensor& other) { return x.shape() == other.shape(); },
      py::arg("other").none(false));
  c.def("is_nonzero", &truth_of);
  c.def(
      "new_tensor",
      [](const Tensor& x, const py::object& data, std::optional<DType> dtype, std::optional<Device> device,
         bool requires_grad) {
        return imported("tern._C", "tensor")(data, py::arg("dtype") = dtype.value_or(x.dtype()),
                                             py::arg("device") = device.value_or(x.device()),
                                             py::arg("requires_grad") = requires_grad);
      },
      py::arg("data"), py::kw_only(), py::arg("dtype") = py::none(), py::arg("device") = py::none(),
      py::arg("requires_grad") = false);
}

}  // namespace

TensorClass bind_tensor(py::module_& m) {
  py::class_<HookOfTensor>(m, "HookOfTensor")
      .def("remove", &HookOfTensor::remove)
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](HookOfTensor& self, py::args) { self.remove(); });
  TensorClass c(m, "Tensor", py::dynamic_attr(), "An n-dimensional array on a device, with its gradient.");
  c.def(py::init([](const Tensor& tensor) { return tensor.impl_ptr(); }), py::arg("tensor").none(false));
  c.def(py::init([](py::args sizes) {
    if (sizes.empty()) return empty({0}).impl_ptr();
    const py::object first = sizes[0];
    const bool is_size = py::type::of(first).attr("__name__").cast<std::string>() == "Size";
    if (sizes.size() == 1 && !is_size && PySequence_Check(first.ptr()))
      return imported("tern._C", "tensor")(first, py::arg("dtype") = get_default_dtype())
          .cast<Tensor>()
          .impl_ptr();
    Shape shape;
    if (!load_ints(is_size ? first : py::object(sizes), shape))
      throw TypeError("Tensor() takes sizes, or a list of numbers");
    return empty(shape).impl_ptr();
  }));
  bind_attributes(c);
  bind_numbers(c);
  bind_gradients(c);
  bind_moves(c);
  bind_operators_of_python(c);
  bind_in_place(c);
  bind_other_methods(c);
  c.def("__copy__", [](const Tensor& x) { return x.detach().requires_grad_(x.requires_grad()); });
  c.def(
      "__deepcopy__",
      [](const Tensor& x, py::dict memo) {
        const py::object key = py::int_(reinterpret_cast<intptr_t>(x.impl_ptr().get()));
        if (memo.contains(key)) return py::object(memo[key]);
        if (!x.is_leaf())
          throw AutogradError("only tensors that are leaves can be copied deeply; detach() gives one");
        const Tensor copy = x.detach().clone();
        if (x.requires_grad()) copy.requires_grad_();
        memo[key] = py::cast(copy);
        return py::object(memo[key]);
      },
      py::arg("memo"));
  return c;
}

}  // namespace tern::python
