// Numbers as the bits of an element, on the host.
#pragma once

#include <cstring>

#include "tern/kernels/functors.h"

namespace tern::cuda_backend {

/// In the lowest bytes. Throws DTypeError for dtypes that no operator computes on.
inline uint64_t bits_of(DType dtype, const Param& number) {
  uint64_t bits = 0;
  visit_dtype(dtype, [&]<class T>() {
    T value;
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      value = T(static_cast<float>(number.floating));
    else
      value = functors::from_param<T>(number);
    std::memcpy(&bits, &value, sizeof(T));
  });
  return bits;
}

}  // namespace tern::cuda_backend
