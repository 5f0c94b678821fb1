// The numbers of a tensor on the host, of every dtype, those without operators too: sums, the first few,
// counts of NaN and infinities, differences. For looking at checkpoints and comparing them.
#pragma once

#include <complex>
#include <cstdint>
#include <variant>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::io {

/// One element: bool, whole numbers exactly, floating-point and complex numbers as double. Quantized ones
/// are the integers that are stored.
using Number = std::variant<bool, int64_t, uint64_t, double, std::complex<double>>;

struct NumberSummary {
  std::complex<double> sum;   ///< in float64; the imaginary part is 0 unless the dtype is complex
  std::vector<Number> first;  ///< the first four in row-major order
  int64_t nans = 0;           ///< of complex numbers, those with a part that is NaN
  int64_t infinities = 0;
};

/// False for dtypes whose elements hold several numbers each, and for tensors whose numbers were not read.
bool has_numbers(const Tensor& tensor) noexcept;

/// Throws DeviceError off the CPU, DTypeError unless has_numbers, CheckpointError for a tensor that repeats
/// few elements so often that going through them would take minutes. With `drop_pages`, numbers in a mapped
/// file leave memory again when they are summed (MappedFile::drop_pages): for tensors that nobody has
/// changed.
NumberSummary summarize_numbers(const Tensor& tensor, bool drop_pages = false);

struct NumberDifference {
  double largest = 0;     ///< of |a - b|; NaN beside a number, or an infinity, counts as infinite
  int64_t different = 0;  ///< elements that differ by more than the tolerance
  int64_t first = -1;     ///< position of the first of these in row-major order
};

/// Compares two tensors of one shape; their dtypes may differ. NaN equals NaN. Throws as summarize_numbers,
/// and ShapeError.
NumberDifference difference(const Tensor& a, const Tensor& b, double tolerance = 0);

}  // namespace tern::io
