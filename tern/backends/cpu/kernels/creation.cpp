// The kernels that make tensors from little or nothing: ranges and triangles.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void range(const LaunchContext&, const RangeArgs& args) {
  visit_dtype(args.dtype, [&]<class T>() {
    for_each_block(static_cast<T*>(args.out), args.count, [&](T* to, int64_t first, int64_t n) {
      if constexpr (std::is_integral_v<T>) {
        if (args.integers) {
          // Unsigned arithmetic wraps, as PyTorch's narrow integers do.
          for (int64_t i = 0; i < n; ++i)
            to[i] =
                static_cast<T>(static_cast<uint64_t>(args.integer_start) +
                               static_cast<uint64_t>(first + i) * static_cast<uint64_t>(args.integer_step));
          return;
        }
      }
      auto store = [](T& out, double value) {
        if constexpr (std::is_integral_v<T>)
          out = static_cast<T>(static_cast<int64_t>(value));
        else
          out = static_cast<T>(static_cast<Compute<T>>(value));
      };
      // Rounded once, as PyTorch's linspace is.
      const int64_t rising = std::clamp<int64_t>(args.pivot - first, 0, n);
      for (int64_t i = 0; i < rising; ++i)
        store(to[i], std::fma(static_cast<double>(first + i), args.step, args.start));
      for (int64_t i = rising; i < n; ++i)
        store(to[i], std::fma(-static_cast<double>(args.count - 1 - first - i), args.step, args.end));
    });
  });
}

namespace {

template <class T>
void keep_triangle(const TriangleArgs& args) {
  const int64_t rows = args.rows, cols = args.cols;
  const int64_t grain = std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(cols, 1));
  parallel_for(args.batch * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* out = static_cast<T*>(args.out) + row * cols;
      const T* in = static_cast<const T*>(args.in) + row * cols;
      // The row's elements [first, last) stay. Diagonals far outside the matrix are clamped before the sum
      // can overflow.
      const int64_t at = row % rows + std::clamp(args.diagonal, -rows - 1, cols + 1);
      const int64_t first = args.upper ? std::clamp<int64_t>(at, 0, cols) : 0;
      const int64_t last = args.upper ? cols : std::clamp<int64_t>(at + 1, 0, cols);
      std::fill(out, out + first, T{});
      if (out != in) std::copy(in + first, in + last, out + first);
      std::fill(out + last, out + cols, T{});
    }
  });
}

}  // namespace

void triangle(const LaunchContext&, const TriangleArgs& args) {
  switch (itemsize(args.dtype)) {
    case 1:
      return keep_triangle<uint8_t>(args);
    case 2:
      return keep_triangle<uint16_t>(args);
    case 4:
      return keep_triangle<uint32_t>(args);
    default:
      return keep_triangle<uint64_t>(args);
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
