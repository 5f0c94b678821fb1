// Elements on the device: compute types, vectors of 16 bytes, and loads and stores whose dtype is known at
// run time.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "tern/core/dtype.h"

namespace tern::cuda_backend {

/// What an element of storage type T is computed in.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

template <class T>
__device__ __forceinline__ Compute<T> widen(T x) {
  if constexpr (std::is_same_v<T, Half>)
    return __half2float(__ushort_as_half(x.bits));
  else if constexpr (std::is_same_v<T, BFloat16>)
    return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
  else
    return x;
}

template <class T>
__device__ __forceinline__ T narrow(Compute<T> x) {
  if constexpr (std::is_same_v<T, Half>) {
    T result;
    result.bits = __half_as_ushort(__float2half_rn(x));
    return result;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    T result;
    result.bits = x != x ? uint16_t{0x7fc0} : __bfloat16_as_ushort(__float2bfloat16_rn(x));
    return result;
  } else {
    return x;
  }
}

/// N elements that are loaded and stored at once.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T at[N];
};

/// Elements of a pack: at least 16 bytes, at least four elements.
constexpr int pack_of(size_t itemsize) { return itemsize >= 4 ? 4 : static_cast<int>(16 / itemsize); }
template <class T>
inline constexpr int kPack = pack_of(sizeof(T));

/// C++'s conversion made total, as on the CPU: floats out of the range of int64 and NaN become its lowest
/// number.
__device__ __forceinline__ int64_t to_integer(double x) {
  return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? static_cast<int64_t>(x) : INT64_MIN;
}

/// Calls f with `data` as a pointer to what an array of `dtype` holds, which has to be of C's kind: float
/// takes float32 and the 16-bit floats, double also those and float64, int64 integers and bool.
template <class C, class F>
__device__ __forceinline__ auto visit_stored(DType dtype, const void* data, const F& f) {
  if constexpr (std::is_integral_v<C>) {
    switch (dtype) {
      case DType::Int64:
        return f(static_cast<const int64_t*>(data));
      case DType::Int32:
        return f(static_cast<const int32_t*>(data));
      case DType::Int16:
        return f(static_cast<const int16_t*>(data));
      case DType::Int8:
        return f(static_cast<const int8_t*>(data));
      default:  // bool and uint8
        return f(static_cast<const uint8_t*>(data));
    }
  } else {
    if (dtype == DType::Float32) return f(static_cast<const float*>(data));
    if (dtype == DType::Float16) return f(static_cast<const Half*>(data));
    if constexpr (std::is_same_v<C, double>)
      if (dtype == DType::Float64) return f(static_cast<const double*>(data));
    return f(static_cast<const BFloat16*>(data));
  }
}

/// Element i of an array, as C; see visit_stored().
template <class C>
__device__ __forceinline__ C load(DType dtype, const void* data, int64_t i) {
  return visit_stored<C>(dtype, data, [i](const auto* from) { return static_cast<C>(widen(from[i])); });
}

/// The other way; integers wrap, and every number but 0 is true.
template <class C>
__device__ __forceinline__ void store(DType dtype, void* data, int64_t i, C x) {
  if constexpr (std::is_integral_v<C>) {
    switch (dtype) {
      case DType::Int64:
        static_cast<int64_t*>(data)[i] = x;
        return;
      case DType::Int32:
        static_cast<int32_t*>(data)[i] = static_cast<int32_t>(x);
        return;
      case DType::Int16:
        static_cast<int16_t*>(data)[i] = static_cast<int16_t>(x);
        return;
      case DType::Bool:
        static_cast<uint8_t*>(data)[i] = x != 0;
        return;
      default:
        static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(x);
        return;
    }
  } else {
    if (dtype == DType::Float32)
      static_cast<float*>(data)[i] = static_cast<float>(x);
    else if (dtype == DType::Float16)
      static_cast<Half*>(data)[i] = narrow<Half>(static_cast<float>(x));
    else if (std::is_same_v<C, double> && dtype == DType::Float64)
      static_cast<double*>(data)[i] = x;
    else
      static_cast<BFloat16*>(data)[i] = narrow<BFloat16>(static_cast<float>(x));
  }
}

/// Calls `f.template operator()<C>()` with the type that a dtype is computed in when it is known at run time:
/// float, double or int64.
template <class F>
decltype(auto) visit_compute(DType dtype, F&& f) {
  if (dtype == DType::Float64) return f.template operator()<double>();
  if (is_floating_point(dtype)) return f.template operator()<float>();
  if (!is_computable(dtype)) throw_not_computable(dtype);
  return f.template operator()<int64_t>();
}

/// The first place below `count` for which `reached`, which stays true from there on; `count` if none.
template <class I, class Reached>
__device__ __forceinline__ I first_place(I count, const Reached& reached) {
  I low = 0, high = count;
  while (low < high) {
    const I middle = low + (high - low) / 2;
    if (reached(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace tern::cuda_backend
