// How operators obey autocast (ops/autocast.h); for operators only. One line at the entry says to which of
// PyTorch's lists the operator belongs:
//   if (autocasts(a)) [[unlikely]] return autocast_lower(mm, a, b);
// It costs the test of a thread-local bool where autocast is off. The function is called again with its
// tensors cast and autocast paused.
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include "tern/autograd/autocast_mode.h"
#include "tern/core/tensor.h"
#include "tern/ops/autocast.h"

namespace tern {
namespace detail {

bool autocasts_on(const Tensor& x) noexcept;
/// Whether autocast may change the dtype of x on such devices: floats, but not float64.
bool can_autocast(const Tensor& x, DeviceType type) noexcept;
/// x as `dtype`, from the cache where it is a weight; x itself where autocast leaves it alone.
Tensor autocast_tensor(const Tensor& x, DeviceType type, DType dtype);
/// The widest dtype of `current` and x.
DType autocast_widest(DType current, const Tensor& x, DeviceType type) noexcept;

inline DeviceType autocast_device(const Tensor& x) { return x.device().type; }
inline DeviceType autocast_device(const std::vector<Tensor>& tensors) { return tensors[0].device().type; }

template <class T>
decltype(auto) autocast_argument(const T& value, DeviceType type, DType dtype) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return autocast_tensor(value, type, dtype);
  } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
    std::vector<Tensor> cast;
    cast.reserve(value.size());
    for (const Tensor& x : value) cast.push_back(autocast_tensor(x, type, dtype));
    return cast;
  } else {
    return (value);
  }
}

template <class Op, class... Args>
decltype(auto) autocast_call(DeviceType type, DType dtype, Op&& op, const Args&... args) {
  const AutocastPause pause;
  return op(autocast_argument(args, type, dtype)...);
}

}  // namespace detail

/// Whether autocast is on for the kind of device where x lies.
inline bool autocasts(const Tensor& x) noexcept { return detail::autocasting && detail::autocasts_on(x); }
/// The same for operators that are on the list for CUDA only.
inline bool autocasts_on_gpu(const Tensor& x) noexcept { return autocasts(x) && x.device().is_cuda(); }
inline bool autocasts_on_gpu(const std::vector<Tensor>& tensors) noexcept {
  return detail::autocasting && !tensors.empty() && autocasts_on_gpu(tensors[0]);
}
/// The same for operators that are on the list for the CPU only.
inline bool autocasts_on_cpu(const Tensor& x) noexcept { return autocasts(x) && x.device().is_cpu(); }

/// op(args...) in the lower precision. Where the first argument lies decides which tensors are cast.
template <class Op, class First, class... Rest>
decltype(auto) autocast_lower(Op&& op, const First& first, const Rest&... rest) {
  const DeviceType type = detail::autocast_device(first);
  return detail::autocast_call(type, get_autocast_dtype(type), op, first, rest...);
}

/// op(args...) in float32.
template <class Op, class First, class... Rest>
decltype(auto) autocast_float32(Op&& op, const First& first, const Rest&... rest) {
  return detail::autocast_call(detail::autocast_device(first), DType::Float32, op, first, rest...);
}

/// op(args...) in the widest dtype of its tensors, at least the lower precision.
template <class Op, class First, class... Rest>
decltype(auto) autocast_widest(Op&& op, const First& first, const Rest&... rest) {
  const DeviceType type = detail::autocast_device(first);
  DType dtype = get_autocast_dtype(type);
  const auto widen = [&]<class T>(const T& value) {
    if constexpr (std::is_same_v<T, Tensor>) dtype = detail::autocast_widest(dtype, value, type);
  };
  widen(first);
  (widen(rest), ...);
  return detail::autocast_call(type, dtype, op, first, rest...);
}

/// The dtype in which an operator that takes one computes on GPUs: float32 where none was asked for.
inline std::optional<DType> autocast_result(const Tensor& x, std::optional<DType> dtype) noexcept {
  if (!detail::autocasting || dtype || !autocasts_on_gpu(x)) [[likely]]
    return dtype;
  return detail::can_autocast(x, DeviceType::CUDA) ? DType::Float32 : dtype;
}

}  // namespace tern
