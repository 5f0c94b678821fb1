// Tensors from numbers in the program and from memory owned by others.
#include <cstring>

#include "tern/core/memory.h"
#include "tern/core/recording.h"
#include "tern/kernels/real_types.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/creation_checks.h"

namespace tern {
namespace {

/// The shape by the first element of each level; the numbers in row-major order.
struct Flattened {
  Shape shape;
  std::vector<Scalar> numbers;
  DType kind = DType::Bool;

  explicit Flattened(const NestedList& data) {
    const NestedList* first = &data;
    while (first->is_list()) {
      shape.push_back(static_cast<int64_t>(first->list().size()));
      TERN_CHECK(shape.size() <= kMaxRank, ShapeError,
                 "tensor: lists are nested too deep: a tensor has at most {} dimensions", kMaxRank);
      if (first->list().empty()) break;
      first = &first->list().front();
    }
    numbers.reserve(static_cast<size_t>(checked_numel(shape)));
    add(data, 0);
  }

 private:
  void add(const NestedList& part, size_t depth) {
    if (depth == shape.size()) {
      TERN_CHECK(!part.is_list(), ShapeError,
                 "tensor: expected a number at dim {}, got a list of length {}: all lists of one level "
                 "must be equally deep",
                 depth, part.list().size());
      kind = std::max(kind, part.number().kind());  // the enum is ordered: Bool, Int64, Float64, Complex128
      numbers.push_back(part.number());
      return;
    }
    TERN_CHECK(part.is_list(), ShapeError, "tensor: expected sequence of length {} at dim {} (got a number)",
               shape[depth], depth);
    TERN_CHECK(
        static_cast<int64_t>(part.list().size()) == shape[depth], ShapeError,
        "tensor: expected sequence of length {} at dim {} (got {}): lists of one level must have one length",
        shape[depth], depth, part.list().size());
    for (const NestedList& element : part.list()) add(element, depth + 1);
  }
};

/// Writes a number as `dtype`. Floats may overflow to infinity, as in PyTorch; integers may not.
void store(void* out, DType dtype, const Scalar& value) {
  TERN_CHECK(!is_integral(dtype) || detail::fits(value, dtype), ValueError,
             "tensor: value {} cannot be converted to type {} without overflow: choose a wider dtype",
             detail::text_of(value), name(dtype));
  if (is_complex_computable(dtype))
    return visit_real(real_dtype(dtype), [&]<class T>() {
      const T parts[2] = {static_cast<T>(value.real()), static_cast<T>(value.imag())};
      std::memcpy(out, parts, sizeof parts);
    });
  visit_dtype(dtype, [&]<class T>() {
    T converted;
    if constexpr (std::is_same_v<T, bool>)
      converted = value.to_bool();
    else if constexpr (std::is_integral_v<T>)
      converted = static_cast<T>(value.to_int());
    else if constexpr (std::is_same_v<T, double>)
      converted = value.to_double();
    else
      converted = T(static_cast<float>(value.to_double()));
    std::memcpy(out, &converted, sizeof converted);
  });
}

Scalar load(const void* data, DType dtype) {
  return visit_dtype(dtype, [&]<class T>() {
    T value;
    std::memcpy(static_cast<void*>(&value), data, sizeof value);
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      return Scalar(static_cast<float>(value));
    else
      return Scalar(value);
  });
}

Tensor to_options_device(const Tensor& host, const TensorOptions& options) {
  const Device device = options.device
                            ? with_context("tensor", [&] { return resolve_device(*options.device); })
                            : get_default_device();
  return detail::finish(device.is_cpu() ? host : to(host, device), options);
}

}  // namespace

Tensor tensor(const NestedList& data, const TensorOptions& options) {
  Flattened flat(data);
  DType dtype =
      options.dtype.value_or(flat.kind == DType::Complex128 ? complex_dtype(get_default_dtype())
                             : flat.kind == DType::Float64 || flat.numbers.empty() ? get_default_dtype()
                                                                                   : flat.kind);
  Tensor host = detail::make("tensor", flat.shape, dtype, kCPU);
  char* out = static_cast<char*>(host.data_ptr());
  detail::host_wrote(host.storage());
  for (const Scalar& number : flat.numbers) {
    store(out, dtype, number);
    out += itemsize(dtype);
  }
  return to_options_device(host, options);
}

Tensor detail::tensor_of(const void* data, size_t count, DType held, DType inferred,
                         const TensorOptions& options) {
  DType dtype = options.dtype.value_or(inferred);
  const int64_t numel = static_cast<int64_t>(count);
  // Only integers can fail to fit, so every other conversion is left to the copy kernel.
  if (!is_integral(dtype) || dtype == held) {
    Tensor copy = detail::make("tensor", {numel}, held, kCPU);
    detail::host_wrote(copy.storage());
    if (numel != 0) std::memcpy(copy.data_ptr(), data, copy.nbytes());
    return to_options_device(cast(copy, dtype), options);
  }
  Tensor host = detail::make("tensor", {numel}, dtype, kCPU);
  detail::host_wrote(host.storage());
  for (size_t i = 0; i < count; ++i)
    store(static_cast<char*>(host.data_ptr()) + i * itemsize(dtype), dtype,
          load(static_cast<const char*>(data) + i * itemsize(held), held));
  return to_options_device(host, options);
}

Tensor from_blob(void* data, IntArrayRef shape, DType dtype, std::function<void()> release) {
  return from_blob(data, shape, contiguous_strides(shape), dtype, std::move(release));
}

Tensor from_blob(void* data, IntArrayRef shape, IntArrayRef strides, DType dtype,
                 std::function<void()> release) {
  int64_t numel = with_context("from_blob", [&] { return checked_numel(shape); });
  TERN_CHECK(shape.size() == strides.size(), ShapeError,
             "from_blob: shape {} and strides {} have different lengths", to_string(shape),
             to_string(strides));
  TERN_CHECK(data != nullptr || numel == 0, ValueError, "from_blob: null memory for a tensor of shape {}",
             to_string(shape));
  const size_t alignment = std::min<size_t>(itemsize(dtype), 8);
  TERN_CHECK(reinterpret_cast<uintptr_t>(data) % alignment == 0, ValueError,
             "from_blob: the memory must be aligned to the {} bytes of {}: copy it", alignment, name(dtype));
  int64_t reach = numel == 0 ? 0 : 1;  // elements from the first to the last
  for (size_t d = 0; d < shape.size() && numel != 0; ++d) {
    int64_t span = 0;
    TERN_CHECK(strides[d] >= 0, ShapeError, "from_blob: strides can not be negative: {}", to_string(strides));
    TERN_CHECK(!__builtin_mul_overflow(shape[d] - 1, strides[d], &span) &&
                   !__builtin_add_overflow(reach, span, &reach) && reach < int64_t{1} << 58,
               ShapeError, "from_blob: shape {} with strides {} is larger than memory can be",
               to_string(shape), to_string(strides));
  }
  Storage storage = storage_from_blob(data, static_cast<size_t>(reach) * itemsize(dtype), std::move(release));
  return Tensor::from_storage(std::move(storage), dtype, shape, strides);
}

}  // namespace tern
