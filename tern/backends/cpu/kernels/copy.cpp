// The kernels that move elements: fill, copy with conversion, where.
#include <type_traits>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/kernels/functors.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// C++'s conversion made total: NaN and floats out of range become what x86 and PyTorch give (cut through int64).
template <class Out, class In>
[[gnu::always_inline]] inline Compute<Out> convert(In x) {
  using O = Compute<Out>;
  if constexpr (std::is_same_v<O, bool>) {
    return x != In(0);
  } else if constexpr (std::is_floating_point_v<In> && std::is_integral_v<O>) {
    constexpr In kLimit = static_cast<In>(9223372036854775808.0);
    bool fits = x >= -kLimit && x < kLimit;
    return static_cast<O>(fits ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::min());
  } else {
    return static_cast<O>(x);
  }
}

/// Copies between two layouts of a plain 2-D transposition in blocks that stay in the cache.
template <class T>
void transpose_blocks(const CopyArgs& args) {
  const Geometry<2>& g = args.geometry;
  constexpr int64_t kBlock = 32;
  const int64_t planes = g.ndim == 3 ? g.sizes[0] : 1;
  const int r = g.ndim - 2, c = g.ndim - 1;
  const int64_t rows = g.sizes[r], cols = g.sizes[c];
  const int64_t row_blocks = (rows + kBlock - 1) / kBlock;
  parallel_for(planes * row_blocks, std::max<int64_t>(1, kPointwiseGrain / (kBlock * cols)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t plane = task / row_blocks, i0 = task % row_blocks * kBlock;
      T* out = static_cast<T*>(args.out) + (g.ndim == 3 ? plane * g.strides[0][0] : 0);
      const T* in = static_cast<const T*>(args.in) + (g.ndim == 3 ? plane * g.strides[1][0] : 0);
      const int64_t i1 = std::min(rows, i0 + kBlock);
      for (int64_t j0 = 0; j0 < cols; j0 += kBlock) {
        const int64_t j1 = std::min(cols, j0 + kBlock);
        for (int64_t i = i0; i < i1; ++i)
          for (int64_t j = j0; j < j1; ++j) out[i * g.strides[0][r] + j] = in[i + j * g.strides[1][c]];
      }
    }
  });
}

template <class T>
bool is_transposition(const Geometry<2>& g) {
  return (g.ndim == 2 || g.ndim == 3) && g.strides[0][g.ndim - 1] == 1 && g.strides[1][g.ndim - 2] == 1 &&
         g.strides[1][g.ndim - 1] > 1 && g.sizes[g.ndim - 1] > 1 && g.sizes[g.ndim - 2] > 1;
}

/// Elements of one dtype are moved as bits of their size.
void copy_bits(const CopyArgs& args) {
  auto move = [&]<class T>() {
    if (is_transposition<T>(args.geometry)) transpose_blocks<T>(args);
    else map1(args.geometry, static_cast<T*>(args.out), static_cast<const T*>(args.in), [](T x) { return x; });
  };
  struct Wide {
    uint64_t low, high;
  };
  switch (itemsize(args.out_dtype)) {
    case 1: return move.template operator()<uint8_t>();
    case 2: return move.template operator()<uint16_t>();
    case 4: return move.template operator()<uint32_t>();
    case 8: return move.template operator()<uint64_t>();
    default: return move.template operator()<Wide>();
  }
}

}  // namespace

void fill(const LaunchContext&, const FillArgs& args) {
  const Geometry<1>& g = args.geometry;
  visit_dtype(args.dtype, [&]<class T>() {
    T value;
    if constexpr (std::is_same_v<Compute<T>, float>) value = T(static_cast<float>(args.value.floating));
    else value = functors::from_param<T>(args.value);
    T* out = static_cast<T*>(args.out);
    if (g.flat()) {
      for_each_block(out, g.numel, [&](T* to, int64_t, int64_t n) { std::fill_n(to, n, value); });
      return;
    }
    const int64_t step = g.strides[0][g.ndim - 1];
    parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
      walk_rows(g, begin, end, [&](const int64_t(&offset)[1], int64_t n) {
        for (int64_t i = 0; i < n; ++i) out[offset[0] + i * step] = value;
      });
    });
  });
}

void copy(const LaunchContext&, const CopyArgs& args) {
  if (args.out_dtype == args.in_dtype) return copy_bits(args);
  visit_dtype(args.in_dtype, [&]<class In>() {
    visit_dtype(args.out_dtype, [&]<class Out>() {
      if constexpr (!std::is_same_v<In, Out>)
        map1(args.geometry, static_cast<Out*>(args.out), static_cast<const In*>(args.in),
             [](Compute<In> x) { return convert<Out>(x); });
    });
  });
}

void where(const LaunchContext&, const WhereArgs& args) {
  const Geometry<4>& g = args.geometry;
  visit_dtype(args.dtype, [&]<class T>() {
    T scalars[2];
    const Param* params[2] = {&args.a_scalar, &args.b_scalar};
    for (int i = 0; i < 2; ++i) {
      if constexpr (std::is_same_v<Compute<T>, float>) scalars[i] = T(static_cast<float>(params[i]->floating));
      else scalars[i] = functors::from_param<T>(*params[i]);
    }
    const int inner = g.ndim - 1;
    const bool* condition = static_cast<const bool*>(args.condition);
    const int64_t so = g.strides[0][inner], sc = g.strides[1][inner];
    const int64_t sa = args.a ? g.strides[2][inner] : 0, sb = args.b ? g.strides[3][inner] : 0;
    parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
      walk_rows(g, begin, end, [&](const int64_t(&offset)[4], int64_t n) {
        T* o = static_cast<T*>(args.out) + offset[0];
        const bool* c = condition + offset[1];
        const T* a = args.a ? static_cast<const T*>(args.a) + offset[2] : &scalars[0];
        const T* b = args.b ? static_cast<const T*>(args.b) + offset[3] : &scalars[1];
        if (so == 1 && sc == 1 && sa == 1 && sb == 1) {
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) o[i] = c[i] ? a[i] : b[i];
        } else {
          for (int64_t i = 0; i < n; ++i) o[i * so] = c[i * sc] ? a[i * sa] : b[i * sb];
        }
      });
    });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
