// Tensors from nothing, from numbers and from foreign memory. Random tensors are in ops/random.h, copies and
// conversions of tensors in ops/copy.h.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <ranges>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

namespace detail {

/// C++ types that tensor() takes as numbers.
template <class T>
concept Number = (std::is_arithmetic_v<T> && !std::is_same_v<T, char> && !std::is_same_v<T, wchar_t> &&
                  !std::is_same_v<T, char8_t> && !std::is_same_v<T, char16_t> &&
                  !std::is_same_v<T, char32_t> && !std::is_same_v<T, long double>) ||
                 std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || ComplexNumber<T>;

/// Contiguous ranges of numbers: vector, array, span.
template <class R>
concept NumberRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    Number<std::remove_cv_t<std::ranges::range_value_t<R>>>;

/// The dtype that tensor() infers from a C++ type: the default dtype for float and double, its complex dtype
/// for complex numbers, int64 for 32- and 64-bit integers, otherwise the type's own.
template <Number T>
DType inferred_dtype() {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    return get_default_dtype();
  else if constexpr (ComplexNumber<T>)
    return complex_dtype(get_default_dtype());
  else if constexpr (std::is_integral_v<T> && sizeof(T) >= 4)
    return DType::Int64;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return DType::Int64;
  else
    return dtype_of<T>();
}

/// A number as a Scalar. Throws ValueError for an unsigned one that int64 does not hold.
template <Number T>
Scalar checked_scalar(T number) {
  if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
    if (number >> 63 != 0)
      throw ValueError("tensor: value " + std::to_string(number) +
                       " is larger than int64 holds: tensors have no such integers");
  }
  return number;
}

Tensor tensor_of(const void* data, size_t count, DType held, DType inferred, const TensorOptions& options);

}  // namespace detail

/// The argument of tensor(): a number or a list of these, as deep as wished.
class NestedList {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T> || ComplexNumber<T>) && detail::Number<T> NestedList(T number)
      : number_(detail::checked_scalar(number)) {}
  NestedList(std::initializer_list<NestedList> list) : is_list_(true), list_(list) {}
  /// Ranges of ranges: std::vector<std::vector<float>>.
  template <std::ranges::input_range R>
  requires(!std::is_same_v<std::remove_cvref_t<R>, NestedList> &&
           std::convertible_to<std::ranges::range_value_t<R>, NestedList>) NestedList(const R& range)
      : is_list_(true) {
    for (auto&& element : range)
      list_.emplace_back(static_cast<const std::ranges::range_value_t<R>&>(element));
  }

  bool is_list() const noexcept { return is_list_; }
  const std::vector<NestedList>& list() const noexcept { return list_; }
  const Scalar& number() const noexcept { return number_; }

 private:
  bool is_list_ = false;
  Scalar number_ = 0;
  std::vector<NestedList> list_;
};

/// A tensor of the numbers given: `tensor(3.5)`, `tensor({1, 2, 3})`, `tensor({{1.0, 2.0}, {3.0, 4.0}})`.
/// Unless options.dtype says otherwise the dtype is bool for bools alone, int64 for integers, the default
/// dtype as soon as there is a float, and the complex numbers of that as soon as there is a complex one.
/// Throws ShapeError for lists of unequal lengths, ValueError for a number outside the dtype's range.
Tensor tensor(const NestedList& data, const TensorOptions& options = {});

/// A 1-D tensor with a copy of a vector, array or span. float and double give the default dtype, 32- and
/// 64-bit integers int64, other types their own, unless options.dtype says otherwise.
template <detail::NumberRange R>
Tensor tensor(const R& numbers, const TensorOptions& options = {}) {
  using T = std::remove_cv_t<std::ranges::range_value_t<R>>;
  if constexpr (std::is_same_v<T, uint16_t> || std::is_same_v<T, uint32_t> ||
                (std::is_unsigned_v<T> && sizeof(T) == 8)) {
    return tensor(NestedList(numbers), options);
  } else {
    return detail::tensor_of(std::ranges::data(numbers), std::ranges::size(numbers), dtype_of<T>(),
                             detail::inferred_dtype<T>(), options);
  }
}

/// A tensor over memory that someone else owns (host memory, row-major): nothing is copied. `release` runs
/// once, when no tensor uses the memory any more; without it the caller keeps the memory alive. Throws
/// ValueError for null or misaligned memory.
Tensor from_blob(void* data, IntArrayRef shape, DType dtype, std::function<void()> release = {});
/// The same with strides in elements, none of them negative.
Tensor from_blob(void* data, IntArrayRef shape, IntArrayRef strides, DType dtype,
                 std::function<void()> release = {});
template <class T>
requires(!std::is_void_v<T> && !std::is_const_v<T>) Tensor
    from_blob(T* data, IntArrayRef shape, std::function<void()> release = {}) {
  return from_blob(static_cast<void*>(data), shape, dtype_of<T>(), std::move(release));
}
/// A tensor over the memory of `owner`, which is kept alive as long as a tensor uses it.
template <class T>
Tensor from_blob(std::shared_ptr<std::vector<T>> owner, IntArrayRef shape) {
  Tensor all = from_blob(owner->data(), {static_cast<int64_t>(owner->size())}, [owner] {});
  return all.view(shape);
}

// ---- one value
// -----------------------------------------------------------------------------------------------------
// dtype: options.dtype or the default dtype; device: options.device or the CPU. All are row-major.

/// Uninitialised.
Tensor empty(IntArrayRef shape, const TensorOptions& options = {});
Tensor zeros(IntArrayRef shape, const TensorOptions& options = {});
Tensor ones(IntArrayRef shape, const TensorOptions& options = {});
/// The dtype is the value's kind (bool, int64, default dtype) unless options say otherwise. Throws ValueError
/// for a value that the dtype can not hold.
Tensor full(IntArrayRef shape, const Scalar& value, const TensorOptions& options = {});

/// As the functions of the same name with x's shape, and x's dtype and device unless options say otherwise.
Tensor empty_like(const Tensor& x, const TensorOptions& options = {});
Tensor zeros_like(const Tensor& x, const TensorOptions& options = {});
Tensor ones_like(const Tensor& x, const TensorOptions& options = {});
Tensor full_like(const Tensor& x, const Scalar& value, const TensorOptions& options = {});

// ---- ranges
// --------------------------------------------------------------------------------------------------------

/// start, start + step, ... below (for a negative step: above) end: ceil((end - start) / step) numbers,
/// computed in double and for integer dtypes exactly, start and step cut to integers. int64 when all three
/// are integers, else the default dtype, unless options say otherwise. Throws ValueError for a step of zero
/// or of the wrong sign.
Tensor arange(const Scalar& end, const TensorOptions& options = {});
Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {});
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options = {});
/// `steps` numbers at equal distances from start to end, both included; computed in double from the nearer
/// end. Throws ValueError where the dtype does not hold one of them.
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, const TensorOptions& options = {});
/// base to the powers of linspace(start, end, steps).
Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base = 10.0,
                const TensorOptions& options = {});

// ---- matrices
// ------------------------------------------------------------------------------------------------------

/// Ones on the main diagonal, [n, n] or [n, m].
Tensor eye(int64_t n, const TensorOptions& options = {});
Tensor eye(int64_t n, int64_t m, const TensorOptions& options = {});
/// x with zeros above (tril) or below (triu) the diagonal number `diagonal` of its last two dimensions.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
Tensor triu(const Tensor& x, int64_t diagonal = 0);
/// int64 zeros with a one at each class number: [...] to [..., num_classes]; -1 takes the largest number plus
/// one. Blocks the host to check the numbers. Throws ValueError for one below 0 or not below num_classes.
Tensor one_hot(const Tensor& classes, int64_t num_classes = -1);

}  // namespace tern
