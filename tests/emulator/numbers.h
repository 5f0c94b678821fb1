// Arrays whose type is known at run time, read and written as double.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <library_types.h>

#include <cstdint>

namespace emulator {

inline double read_number(cudaDataType type, const void* data, int64_t i) {
  switch (type) {
    case CUDA_R_16F:
      return static_cast<double>(__half2float(static_cast<const __half*>(data)[i]));
    case CUDA_R_16BF:
      return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]));
    case CUDA_R_64F:
      return static_cast<const double*>(data)[i];
    default:
      return static_cast<double>(static_cast<const float*>(data)[i]);
  }
}

inline void write_number(cudaDataType type, void* data, int64_t i, double x) {
  switch (type) {
    case CUDA_R_16F:
      static_cast<__half*>(data)[i] = __float2half_rn(static_cast<float>(x));
      return;
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(static_cast<float>(x));
      return;
    case CUDA_R_64F:
      static_cast<double*>(data)[i] = x;
      return;
    default:
      static_cast<float*>(data)[i] = static_cast<float>(x);
  }
}

/// A float32 with the lowest `bits` of its mantissa rounded away: 13 for TF32, 16 for bfloat16.
inline double rounded(double x, int bits) {
  const auto value = static_cast<float>(x);
  uint32_t word = 0;
  __builtin_memcpy(&word, &value, sizeof word);
  if (value == value && value - value == 0) {
    word += (uint32_t{1} << (bits - 1)) - 1 + (word >> bits & 1);
    word = word >> bits << bits;
  }
  float result = 0;
  __builtin_memcpy(&result, &word, sizeof word);
  return static_cast<double>(result);
}

}  // namespace emulator
