// Sums, the part of the reduce kernel that most programs run.
#include "tern/backends/cpu/kernels/reduce.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Whether sum_small_integers takes the sum: rows of neighbours, long enough.
bool are_rows(const ReduceArgs& args) {
  constexpr int64_t kLeast = 64;
  return args.reduced.ndim == 1 && args.reduced.strides[0][0] == 1 && args.reduced.numel >= kLeast;
}

/// Integers of 8 and 16 bits: the sums of pieces fit 32 bits, which vectors have more of than of 64.
template <class T>
void sum_small_integers(const ReduceArgs& args) {
  constexpr int64_t kPiece = 32768;
  const int64_t n = args.reduced.numel, pieces = (n + kPiece - 1) / kPiece;
  Scratch<int64_t> partial(args.kept.numel * pieces);
  const int64_t grain = std::max<int64_t>(1, 2 * wide::kReduceGrain / std::min(n, kPiece));
  parallel_for(args.kept.numel * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % pieces * kPiece, count = std::min(kPiece, n - first);
      const T* x = static_cast<const T*>(args.in) + wide::offset_of(args.kept, task / pieces) + first;
      int32_t sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += x[i];
      partial.get()[task] = sum;
    }
  });
  for (int64_t k = 0; k < args.kept.numel; ++k) {
    int64_t sum = 0;
    for (int64_t i = 0; i < pieces; ++i) sum += partial.get()[k * pieces + i];
    static_cast<int64_t*>(args.out)[k] = sum;
  }
}

}  // namespace

void reduce_sum(const ReduceArgs& args) {
  if (are_rows(args)) {
    if (args.dtype == DType::Bool || args.dtype == DType::UInt8) return sum_small_integers<uint8_t>(args);
    if (args.dtype == DType::Int8) return sum_small_integers<int8_t>(args);
    if (args.dtype == DType::Int16) return sum_small_integers<int16_t>(args);
  }
  reduce_arithmetic<wide::Sum>(args);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
