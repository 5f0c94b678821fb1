// The kernels that move elements: fill, copy with conversion, where.
#include <bit>
#include <type_traits>

#include "tern/backends/cpu/kernels/transpose.h"
#include "tern/backends/cpu/kernels/walk.h"
#include "tern/kernels/functors.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// C++'s conversion made total: NaN and floats out of range become what x86 and PyTorch give (cut through
/// int64).
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

/// A conversion in two steps through int64 or double, which hold every element exactly: ten loops in and
/// twenty out, where direct ones would be a hundred.
struct Conversion {
  void (*load)(void* wide, const void* in, int64_t n);
  void (*store)(void* out, const void* wide, int64_t n);
};

template <class Wide, class T>
void load_wide(void* wide, const void* in, int64_t n) {
  row1(static_cast<Wide*>(wide), static_cast<const T*>(in), n,
       [](Compute<T> x) { return static_cast<Wide>(x); });
}
template <class T, class Wide>
void store_wide(void* out, const void* wide, int64_t n) {
  row1(static_cast<T*>(out), static_cast<const Wide*>(wide), n, [](Wide x) { return convert<T>(x); });
}

Conversion conversion(DType out, DType in) {
  return visit_dtype(in, [&]<class In>() {
    using Wide = std::conditional_t<std::is_integral_v<In>, int64_t, double>;
    return visit_dtype(out, [&]<class Out>() {
      return Conversion{&load_wide<Wide, In>, &store_wide<Out, Wide>};
    });
  });
}

void convert_row(void* out, const void* in, int64_t n, const void* functor, size_t out_item, size_t in_item) {
  const auto& steps = *static_cast<const Conversion*>(functor);
  constexpr int64_t kTile = 512;
  alignas(64) std::byte wide[kTile * 8];
  for (int64_t i = 0; i < n; i += kTile) {
    int64_t count = std::min(kTile, n - i);
    steps.load(wide, static_cast<const char*>(in) + i * static_cast<int64_t>(in_item), count);
    steps.store(static_cast<char*>(out) + i * static_cast<int64_t>(out_item), wide, count);
  }
}

template <size_t out_item, size_t in_item>
void convert_row_of(void* out, const void* in, int64_t n, const void* functor) {
  convert_row(out, in, n, functor, out_item, in_item);
}

Row1 convert_row_for(size_t out_item, size_t in_item) {
  constexpr Row1 table[4][4] = {
      {convert_row_of<1, 1>, convert_row_of<1, 2>, convert_row_of<1, 4>, convert_row_of<1, 8>},
      {convert_row_of<2, 1>, convert_row_of<2, 2>, convert_row_of<2, 4>, convert_row_of<2, 8>},
      {convert_row_of<4, 1>, convert_row_of<4, 2>, convert_row_of<4, 4>, convert_row_of<4, 8>},
      {convert_row_of<8, 1>, convert_row_of<8, 2>, convert_row_of<8, 4>, convert_row_of<8, 8>}};
  return table[std::countr_zero(out_item)][std::countr_zero(in_item)];
}

/// The conversions that training spends time in, in one step. False when the pair is none of them.
template <class Out, class In>
void convert_directly(const CopyArgs& args) {
  map1(args.geometry, static_cast<Out*>(args.out), static_cast<const In*>(args.in),
       [](Compute<In> x) { return convert<Out>(x); });
}
bool convert_common(const CopyArgs& args) {
  auto is = [&](DType out, DType in) { return args.out_dtype == out && args.in_dtype == in; };
  if (is(DType::Float32, DType::UInt8))
    convert_directly<float, uint8_t>(args);
  else if (is(DType::Float32, DType::Bool))
    convert_directly<float, bool>(args);
  else if (is(DType::Float32, DType::Int64))
    convert_directly<float, int64_t>(args);
  else if (is(DType::Float32, DType::Float16))
    convert_directly<float, Half>(args);
  else if (is(DType::Float32, DType::BFloat16))
    convert_directly<float, BFloat16>(args);
  else if (is(DType::Float16, DType::Float32))
    convert_directly<Half, float>(args);
  else if (is(DType::BFloat16, DType::Float32))
    convert_directly<BFloat16, float>(args);
  else
    return false;
  return true;
}

/// Copies between two layouts of a plain 2-D transposition: squares of kTransposeTile inside blocks that read
/// whole cache lines and stay in the cache.
template <class T>
void transpose_blocks(const CopyArgs& args) {
  const Geometry<2>& g = args.geometry;
  constexpr int64_t kBlock = 64, kTile = kTransposeTile<T>;
  const int64_t planes = g.ndim == 3 ? g.sizes[0] : 1;
  const int r = g.ndim - 2, c = g.ndim - 1;
  const int64_t rows = g.sizes[r], cols = g.sizes[c];
  const int64_t out_stride = g.strides[0][r], in_stride = g.strides[1][c];
  const int64_t row_blocks = (rows + kBlock - 1) / kBlock;
  auto copy_block = [&](T* out, const T* in, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const int64_t i_tiles = i0 + (i1 - i0) / kTile * kTile, j_tiles = j0 + (j1 - j0) / kTile * kTile;
    for (int64_t j = j0; j < j_tiles; j += kTile)
      for (int64_t i = i0; i < i_tiles; i += kTile)
        transpose_tile(in + j * in_stride + i, in_stride, out + i * out_stride + j, out_stride);
    for (int64_t i = i0; i < i1; ++i)
      for (int64_t j = i < i_tiles ? j_tiles : j0; j < j1; ++j)
        out[i * out_stride + j] = in[j * in_stride + i];
  };
  parallel_for(planes * row_blocks, std::max<int64_t>(1, kPointwiseGrain / (kBlock * cols)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t plane = task / row_blocks, i0 = task % row_blocks * kBlock;
                   T* out = static_cast<T*>(args.out) + (g.ndim == 3 ? plane * g.strides[0][0] : 0);
                   const T* in = static_cast<const T*>(args.in) + (g.ndim == 3 ? plane * g.strides[1][0] : 0);
                   for (int64_t j0 = 0; j0 < cols; j0 += kBlock)
                     copy_block(out, in, i0, std::min(rows, i0 + kBlock), j0, std::min(cols, j0 + kBlock));
                 }
               });
}

bool is_transposition(const Geometry<2>& g) {
  return (g.ndim == 2 || g.ndim == 3) && g.strides[0][g.ndim - 1] == 1 && g.strides[1][g.ndim - 2] == 1 &&
         g.strides[1][g.ndim - 1] > 1 && g.sizes[g.ndim - 1] > 1 && g.sizes[g.ndim - 2] > 1;
}

/// Elements of one dtype are moved as bits of their size.
void copy_bits(const CopyArgs& args) {
  auto move = [&]<class T>() {
    if constexpr (sizeof(T) <= 8)
      if (is_transposition(args.geometry)) return transpose_blocks<T>(args);
    map1(args.geometry, static_cast<T*>(args.out), static_cast<const T*>(args.in), [](T x) { return x; });
  };
  struct Wide {
    uint64_t low, high;
  };
  switch (itemsize(args.out_dtype)) {
    case 1:
      return move.template operator()<uint8_t>();
    case 2:
      return move.template operator()<uint16_t>();
    case 4:
      return move.template operator()<uint32_t>();
    case 8:
      return move.template operator()<uint64_t>();
    default:
      return move.template operator()<Wide>();
  }
}

}  // namespace

void fill(const LaunchContext&, const FillArgs& args) {
  const Geometry<1>& g = args.geometry;
  visit_dtype(args.dtype, [&]<class T>() {
    T value;
    if constexpr (std::is_same_v<Compute<T>, float>)
      value = T(static_cast<float>(args.value.floating));
    else
      value = functors::from_param<T>(args.value);
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
  if (convert_common(args)) return;
  Conversion steps = conversion(args.out_dtype, args.in_dtype);
  const size_t out_item = itemsize(args.out_dtype), in_item = itemsize(args.in_dtype);
  walk1(args.geometry, args.out, out_item, args.in, in_item, convert_row_for(out_item, in_item), &steps);
}

void where(const LaunchContext&, const WhereArgs& args) {
  const Geometry<4>& g = args.geometry;
  visit_dtype(args.dtype, [&]<class T>() {
    T scalars[2];
    const Param* params[2] = {&args.a_scalar, &args.b_scalar};
    for (int i = 0; i < 2; ++i) {
      if constexpr (std::is_same_v<Compute<T>, float>)
        scalars[i] = T(static_cast<float>(params[i]->floating));
      else
        scalars[i] = functors::from_param<T>(*params[i]);
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
