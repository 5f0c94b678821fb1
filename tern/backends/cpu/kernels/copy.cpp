// The kernels that move elements: fill, copy with conversion.
#include <bit>
#include <type_traits>

#include "tern/backends/cpu/kernels/bits.h"
#include "tern/backends/cpu/kernels/short_rows.h"
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
  walk1(
      args.geometry, args.out, sizeof(Out), args.in, sizeof(In),
      [](void* o, const void* x, int64_t n, const void*) {
        auto* out = static_cast<Out*>(o);
        auto* in = static_cast<const In*>(x);
        if constexpr (kWidened<In>)
          widen_row(out, in, n);
        else if constexpr (kWidened<Out>)
          narrow_row(out, in, n);
        else
          row1(out, in, n, [](In v) { return convert<Out>(v); });
      },
      nullptr);
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
  else if (is(DType::Float64, DType::Float32))
    convert_directly<double, float>(args);
  else if (is(DType::Float32, DType::Float64))
    convert_directly<float, double>(args);
  else if (is(DType::Bool, DType::Float32))
    convert_directly<bool, float>(args);
  else
    return false;
  return true;
}

/// Copies between two layouts of a plain 2-D transposition, in blocks that read whole cache lines and stay in
/// the cache.
void transpose_blocks(const CopyArgs& args) {
  const Geometry<2>& g = args.geometry;
  constexpr int64_t kBlock = 64;
  const size_t item = itemsize(args.out_dtype);
  const int64_t size = static_cast<int64_t>(item);
  const int64_t planes = g.ndim == 3 ? g.sizes[0] : 1;
  const int r = g.ndim - 2, c = g.ndim - 1;
  const int64_t rows = g.sizes[r], cols = g.sizes[c];
  const int64_t out_stride = g.strides[0][r], in_stride = g.strides[1][c];
  const int64_t row_blocks = (rows + kBlock - 1) / kBlock;
  parallel_for(
      planes * row_blocks, std::max<int64_t>(1, kPointwiseGrain / (kBlock * cols)),
      [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t plane = g.ndim == 3 ? task / row_blocks : 0, i = task % row_blocks * kBlock;
          char* out = static_cast<char*>(args.out) + (plane * g.strides[0][0] + i * out_stride) * size;
          const char* in = static_cast<const char*>(args.in) + (plane * g.strides[1][0] + i) * size;
          for (int64_t j = 0; j < cols; j += kBlock)
            transpose_elements(item, in + j * in_stride * size, in_stride, std::min(kBlock, cols - j),
                               std::min(kBlock, rows - i), out + j * size, out_stride);
        }
      });
}

bool is_transposition(const Geometry<2>& g) {
  return (g.ndim == 2 || g.ndim == 3) && g.strides[0][g.ndim - 1] == 1 && g.strides[1][g.ndim - 2] == 1 &&
         g.strides[1][g.ndim - 1] > 1 && g.sizes[g.ndim - 1] > 1 && g.sizes[g.ndim - 2] > 1;
}

/// One row, read with any stride; the usual ones are compiled apart.
template <class T>
void copy_row(T* out, int64_t out_step, const T* in, int64_t in_step, int64_t n) {
  if (out_step != 1)
    for (int64_t i = 0; i < n; ++i) out[i * out_step] = in[i * in_step];
  else if (in_step == 1)
    copy_bytes(out, in, n * static_cast<int64_t>(sizeof(T)));
  else if (in_step == 0)
    std::fill_n(out, n, *in);
  else if (in_step == -1)
    for (int64_t i = 0; i < n; ++i) out[i] = in[-i];
  else if (in_step == 2)
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * 2];
  else
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * in_step];
}

/// Elements of one dtype are moved as bits of their size.
template <class T>
void copy_bits(const CopyArgs& args) {
  const Geometry<2>& g = args.geometry;
  T* out = static_cast<T*>(args.out);
  const T* in = static_cast<const T*>(args.in);
  constexpr int64_t kSize = sizeof(T);
  if (g.flat())
    return for_each_block(out, g.numel,
                          [&](T* to, int64_t first, int64_t n) { copy_bytes(to, in + first, n * kSize); });
  const int64_t columns = g.sizes[g.ndim - 1];
  const Rows from = rows_of(g, 1, sizeof(T)), to = rows_of(g, 0, sizeof(T));
  if (g.ndim > 1 && columns < (is_transposition(g) ? kShortRowAcross : kShortGatheredRow) && g.numel > 0 &&
      (from.dense() || to.dense()))
    return parallel_for(g.numel / columns, kPointwiseGrain / columns, [&](int64_t begin, int64_t end) {
      if (to.dense())
        gather_rows(from, in, begin, end - begin, out + begin * columns);
      else
        scatter_rows(to, out, begin, end - begin, in + begin * columns);
    });
  if (sizeof(T) <= 8 && is_transposition(g)) return transpose_blocks(args);
  const int64_t out_step = g.strides[0][g.ndim - 1], in_step = g.strides[1][g.ndim - 1];
  parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    walk_rows(g, begin, end, [&](const int64_t(&offset)[2], int64_t n) {
      copy_row(out + offset[0], out_step, in + offset[1], in_step, n);
    });
  });
}

template <class T>
void fill_bits(const FillArgs& args, T value) {
  const Geometry<1>& g = args.geometry;
  T* out = static_cast<T*>(args.out);
  if (g.flat())
    return for_each_block(out, g.numel, [&](T* to, int64_t, int64_t n) { std::fill_n(to, n, value); });
  const int64_t step = g.strides[0][g.ndim - 1];
  parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    walk_rows(g, begin, end, [&](const int64_t(&offset)[1], int64_t n) {
      for (int64_t i = 0; i < n; ++i) out[offset[0] + i * step] = value;
    });
  });
}

}  // namespace

void fill(const LaunchContext&, const FillArgs& args) {
  const uint64_t bits = bits_of(args.dtype, args.value);
  visit_bits(args.dtype, [&]<class T>() { fill_bits(args, static_cast<T>(bits)); });
}

void copy(const LaunchContext&, const CopyArgs& args) {
  if (args.out_dtype == args.in_dtype) {
    if (!visit_item(itemsize(args.out_dtype), [&]<class T>() { copy_bits<T>(args); })) copy_bits<Wide>(args);
    return;
  }
  if (convert_common(args)) return;
  Conversion steps = conversion(args.out_dtype, args.in_dtype);
  const size_t out_item = itemsize(args.out_dtype), in_item = itemsize(args.in_dtype);
  walk1(args.geometry, args.out, out_item, args.in, in_item, convert_row_for(out_item, in_item), &steps);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
