// Tensors of Python's numbers and lists, and the generators of random numbers. Those of sizes alone are
// generated.
#include <complex>

#include "bindings.h"
#include "numpy.h"

namespace tern::python {

namespace {

/// Lists, tuples and other sequences, such as ranges; texts are none.
bool is_list(py::handle data) {
  return py::isinstance<py::list>(data) || py::isinstance<py::tuple>(data) ||
         (PySequence_Check(data.ptr()) && !PyUnicode_Check(data.ptr()) && !PyBytes_Check(data.ptr()) &&
          !py::hasattr(data, "__array__") && PySequence_Size(data.ptr()) >= 0);
}

/// What nested lists hold, in row-major order.
struct NestedNumbers {
  Shape shape;
  std::vector<Scalar> numbers;
  bool any_complex = false, any_float = false, all_bool = true;

  void add(py::handle data, size_t depth) {
    if (py::isinstance<TensorImpl>(data)) {
      const py::object numbers_of_it = py::cast(data.cast<Tensor>().detach()).attr("tolist")();
      return add(numbers_of_it, depth);
    }
    if (is_list(data)) {
      const auto length = static_cast<int64_t>(py::len(data));
      if (depth == shape.size()) {
        if (!numbers.empty()) throw_uneven(depth);
        if (depth == kMaxRank)
          throw ValueError("tensor: lists are nested deeper than " + std::to_string(kMaxRank));
        shape.push_back(length);
      } else if (shape[depth] != length) {
        throw ShapeError("tensor: expected a list of length " + std::to_string(shape[depth]) +
                         " at dimension " + std::to_string(depth) + ", got one of length " +
                         std::to_string(length));
      }
      for (py::handle item : data) add(item, depth + 1);
      return;
    }
    if (depth != shape.size()) throw_uneven(depth);
    std::optional<Scalar> number;
    if (!load_scalar(data, /*convert=*/true, number))
      throw TypeError("tensor: expected numbers, or lists of numbers, got " +
                      std::string(Py_TYPE(data.ptr())->tp_name));
    any_complex |= number->is_complex();
    any_float |= number->is_floating_point();
    all_bool &= number->kind() == DType::Bool;
    numbers.push_back(*number);
  }

 private:
  [[noreturn]] static void throw_uneven(size_t depth) {
    throw ShapeError("tensor: lists and numbers stand side by side at dimension " + std::to_string(depth));
  }
};

Tensor tensor_of_lists(py::handle data, std::optional<DType> dtype) {
  NestedNumbers read;
  read.add(data, 0);
  const bool none = read.numbers.empty();
  const DType inferred = read.any_complex         ? complex_dtype(get_default_dtype())
                         : none || read.any_float ? get_default_dtype()
                         : read.all_bool          ? DType::Bool
                                                  : DType::Int64;
  const TensorOptions options{.dtype = dtype.value_or(inferred)};
  Tensor flat;
  if (read.any_complex) {
    std::vector<std::complex<double>> values;
    for (const Scalar& number : read.numbers) values.push_back(number.to<std::complex<double>>());
    flat = tensor(values, options);
  } else if (read.any_float) {
    std::vector<double> values;
    for (const Scalar& number : read.numbers) values.push_back(number.to_double());
    flat = tensor(values, options);
  } else {
    std::vector<int64_t> values;
    for (const Scalar& number : read.numbers) values.push_back(number.to_int());
    flat = tensor(values, options);
  }
  return flat.view(read.shape);
}

Tensor tensor_of(py::handle data, std::optional<DType> dtype, std::optional<Device> device, bool copies) {
  Tensor result;
  if (py::isinstance<TensorImpl>(data)) {
    result = data.cast<Tensor>();
    if (copies) result = result.detach().clone();
  } else if (std::optional<Tensor> array = tensor_from_array(data)) {
    result = *array;
  } else {
    result = tensor_of_lists(data, dtype);
  }
  if (dtype) result = result.to(*dtype);
  return result.to(device.value_or(result.is_cuda() ? result.device() : get_default_device()));
}

RandomEngine engine_of(const std::string& word) {
  if (word == "philox") return RandomEngine::Philox;
  if (word == "torch") return RandomEngine::MersenneTwister;
  throw ValueError(
      "manual_seed: engine is 'philox' (the same numbers on every device) or 'torch' (PyTorch's on the "
      "CPU), not '" +
      word + "'");
}

thread_local uint64_t torch_seed = 0;  ///< of manual_seed, which the state of PyTorch's engine does not show

/// As long as it is there, the thread's default generator is one of its own, of the engine that the default
/// one has.
class OwnGenerator {
 public:
  explicit OwnGenerator(uint64_t seed) : guard_(Generator(seed, default_generator().engine())) {
    torch_seed = seed;
  }

 private:
  DefaultGeneratorGuard guard_;
};

}  // namespace

void bind_creation(py::module_& m) {
  m.def(
      "tensor",
      [](py::object data, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
        const Tensor result = tensor_of(data, dtype, device, /*copies=*/true);
        return requires_grad ? result.requires_grad_() : result;
      },
      py::arg("data"), py::kw_only(), py::arg("dtype") = py::none(), py::arg("device") = py::none(),
      py::arg("requires_grad") = false,
      "A tensor with a copy of numbers, lists of numbers, an array or a tensor.");
  m.def(
      "as_tensor",
      [](py::object data, std::optional<DType> dtype, std::optional<Device> device) {
        return tensor_of(data, dtype, device, /*copies=*/false);
      },
      py::arg("data"), py::arg("dtype") = py::none(), py::arg("device") = py::none());
  m.def(
      "scalar_tensor",
      [](const Scalar& s, std::optional<DType> dtype, std::optional<Device> device) {
        return full({}, s, {.dtype = dtype.value_or(get_default_dtype()), .device = device});
      },
      py::arg("s"), py::kw_only(), py::arg("dtype") = py::none(), py::arg("device") = py::none());

  m.def(
      "manual_seed",
      [](uint64_t seed, std::optional<std::string> engine) {
        if (engine)
          manual_seed(seed, engine_of(*engine));
        else
          manual_seed(seed);
        torch_seed = seed;
        return default_generator();
      },
      py::arg("seed"), py::kw_only(), py::arg("engine") = py::none(),
      "Seeds the default generator. With engine='torch' the CPU draws PyTorch's numbers from now on.");
  m.def("_draws_as_torch", [] { return default_generator().engine() == RandomEngine::MersenneTwister; });
  m.def("seed", &seed);
  m.def(
      "initial_seed",
      [] {
        Generator& generator = default_generator();
        return generator.engine() == RandomEngine::Philox ? generator.state().seed : torch_seed;
      },
      "What the default generator was seeded with; in a DataLoader's worker, that of the worker.");
  py::class_<OwnGenerator>(m, "_OwnGenerator").def(py::init<uint64_t>());
  m.def("get_rng_state", [] { return get_rng_state(); });
  m.def(
      "set_rng_state", [](const Tensor& state) { set_rng_state(state); }, py::arg("new_state").none(false));
  m.def("get_default_device", &get_default_device);
  m.def("set_default_device", &set_default_device, py::arg("device"));
}

}  // namespace tern::python
