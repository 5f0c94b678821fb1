// The matrix product of every dtype: batches, 16-bit types through float, integers. The blocked product
// itself is in gemm.cpp.
#include "tern/kernels/matmul.h"

#include <algorithm>

#include "tern/backends/cpu/kernels/exponents.h"
#include "tern/backends/cpu/kernels/gemm.h"
#include "tern/backends/cpu/kernels/gemm_narrow.h"
#include "tern/backends/cpu/kernels/matmul_packers.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/tile_matrix.h"
#include "tern/device/launch.h"
#include "tern/kernels/linear.h"
#include "tern/kernels/precision.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// What one product of a batch reads and writes.
template <class T>
struct Matrices {
  const T* a;
  const T* b;
  const T* addend;  // or null
  T* out;
};

template <class T>
std::pair<Operand<T>, Operand<T>> operands_of(const MatmulArgs& args, const Matrices<T>& x) {
  return {{x.a, args.a_row_stride, args.a_col_stride}, {x.b, args.b_col_stride, args.b_row_stride}};
}

bool is_relu(const MatmulArgs& args) { return args.epilogue == MatmulEpilogue::Relu; }

/// Rows [i, i + rows) and columns [j, j + columns) of the result from their sums, which change.
template <class T>
void finish_rows(const MatmulArgs& args, const Matrices<T>& x, int64_t i, int64_t rows, int64_t j,
                 int64_t columns, float* sums, int64_t stride) {
  const float alpha = static_cast<float>(args.alpha), beta = static_cast<float>(args.beta);
  for (int64_t r = i; r < i + rows; ++r, sums += stride) {
    if (alpha != 1.0f)
      for (int64_t c = 0; c < columns; ++c) sums[c] *= alpha;
    if (x.addend != nullptr) {
      const T* addend = x.addend + r * args.addend_row_stride + j * args.addend_col_stride;
      for (int64_t c = 0; c < columns; ++c)
        sums[c] += beta * static_cast<float>(addend[c * args.addend_col_stride]);
    }
    if (is_relu(args))
      for (int64_t c = 0; c < columns; ++c) sums[c] = sums[c] < 0.0f ? 0.0f : sums[c];
    from_compute(x.out + r * args.out_row_stride + j, sums, columns);
  }
}

/// Writes what the product of tiles sums.
template <class T>
class FinishedResult final : public TileResult {
 public:
  FinishedResult(const MatmulArgs& args, const Matrices<T>& x) : args_(args), x_(x) {}
  void finish(int64_t i, int64_t j, int64_t rows, int64_t columns, float* sums,
              int64_t stride) const override {
    finish_rows(args_, x_, i, rows, j, columns, sums, stride);
  }

 private:
  const MatmulArgs& args_;
  const Matrices<T>& x_;
};

// ---- float and double
// ------------------------------------------------------------------------------------------------

/// A column times a row: there is nothing to pack.
template <class T>
void multiply_vectors(const MatmulArgs& args, const Matrices<T>& x) {
  const T alpha = static_cast<T>(args.alpha);
  const int64_t n = args.n;
  parallel_for(args.m, std::max<int64_t>(1, 32768 / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T a = x.a[i * args.a_row_stride];
      T* out = x.out + i * args.out_row_stride;
      if (is_relu(args)) {
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) {
          const T product = alpha * (a * x.b[j]);
          out[j] = product < T(0) ? T(0) : product;
        }
      } else {
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) out[j] = alpha * (a * x.b[j]);
      }
    }
  });
}

#if defined(__AVX512F__)
bool has_parts(const Operand<float>& x, int64_t size, int64_t k) {
  if (x.index_stride == 1) return have_parts(x.from, k, size, x.k_stride);
  return x.k_stride == 1 && have_parts(x.from, size, k, x.index_stride);
}

/// The product on tiles of bfloat16. False where the precision that is set does not allow it, or it does not
/// pay.
bool multiply_by_tiles(const MatmulArgs& args, const Matrices<float>& x) {
  const auto precision = kernels::matmul_precision();
  if (precision == kernels::MatmulPrecision::Highest) return false;
  const bool high = precision == kernels::MatmulPrecision::High;
  if (high && !may_use_tiles()) return false;  // three products by pairs are slower than one of float32
  // Below these, operands would be read only to be converted.
  const int64_t least = high ? 64 : 32;
  const double least_products = high ? 0x1p21 : 0,
               products =
                   static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k);
  if (std::min(args.m, args.n) < least || products < least_products || !suits_tiles(args.m, args.n, args.k))
    return false;
  const auto [a, b] = operands_of(args, x);
  if (high && !(has_parts(a, args.m, args.k) && has_parts(b, args.n, args.k))) return false;
  const int64_t parts = high ? 2 : 1;
  gemm_tiles(args.m, args.n, args.k, TileMatrix<float>(a.from, a.index_stride, a.k_stride, parts),
             TileMatrix<float>(b.from, b.index_stride, b.k_stride, parts), FinishedResult<float>(args, x));
  return true;
}
#else
bool multiply_by_tiles(const MatmulArgs&, const Matrices<float>&) { return false; }
#endif

template <class T>
requires std::is_floating_point_v<T>
void multiply(const MatmulArgs& args, const Matrices<T>& x, bool tiles) {
  if (args.k == 1 && x.addend == nullptr && args.b_col_stride == 1 && args.n >= 16)
    return multiply_vectors(args, x);
  if constexpr (std::is_same_v<T, float>)
    if (tiles && multiply_by_tiles(args, x)) return;
  Gemm<T> g{.m = args.m,
            .n = args.n,
            .k = args.k,
            .a = x.a,
            .a_row_stride = args.a_row_stride,
            .a_col_stride = args.a_col_stride,
            .b = x.b,
            .b_row_stride = args.b_row_stride,
            .b_col_stride = args.b_col_stride,
            .c = x.out,
            .c_row_stride = args.out_row_stride,
            .epilogue = {.alpha = static_cast<T>(args.alpha), .relu = is_relu(args)}};
  int64_t addend_row_stride = args.addend_row_stride, addend_col_stride = args.addend_col_stride;
  if (g.n == 1 && g.m > 1 && g.c_row_stride == 1) {
    // A column is a row of the transposed product, whose kernels read wide.
    std::swap(g.m, g.n);
    std::swap(g.a, g.b);
    std::swap(g.a_row_stride, g.b_col_stride);
    std::swap(g.a_col_stride, g.b_row_stride);
    std::swap(addend_row_stride, addend_col_stride);
    g.c_row_stride = g.n;
  }
  if (x.addend != nullptr) {
    g.epilogue.addend = x.addend;
    g.epilogue.addend_row_stride = addend_row_stride;
    g.epilogue.beta = static_cast<T>(args.beta);
    if (addend_col_stride != 1 && g.n > 1) {
      for (int64_t i = 0; i < g.m; ++i)
        for (int64_t j = 0; j < g.n; ++j)
          g.c[i * g.c_row_stride + j] = x.addend[i * addend_row_stride + j * addend_col_stride];
      g.epilogue.addend = g.c;
      g.epilogue.addend_row_stride = g.c_row_stride;
    }
  }
  gemm(g);
}

// ---- float16 and bfloat16
// --------------------------------------------------------------------------------------------

/// Of a matrix; the least ones for one without contiguous rows or columns, which is not scanned.
Exponents exponents_of(const Operand<BFloat16>& x, int64_t size, int64_t k) {
  using TERN_CPU_VARIANT::exponents_of;
  if (x.index_stride == 1) return exponents_of(x.from, k, size, x.k_stride);
  return x.k_stride == 1 ? exponents_of(x.from, size, k, x.index_stride) : Exponents{0};
}

bool stay_normal(const MatmulArgs& args, const Operand<BFloat16>& a, const Operand<BFloat16>& b) {
  return products_stay_normal(exponents_of(a, args.m, args.k), exponents_of(b, args.n, args.k));
}

/// sums[m, n] = a @ b, by pairs of bfloat16 where they `may_pair`, or widened.
template <class T>
void sum_products(const MatmulArgs& args, const Operand<T>& a, const Operand<T>& b,
                  [[maybe_unused]] bool may_pair, float* sums) {
  Gemm<float> g{.m = args.m, .n = args.n, .k = args.k, .c = sums, .c_row_stride = args.n};
  const auto run = [&](const Packer<float>& pack_a, const Packer<float>& pack_b) {
    g.pack_a = &pack_a;
    g.pack_b = &pack_b;
    gemm(g);
  };
  if constexpr (std::is_same_v<T, BFloat16>) {
    const int64_t pair_depth = (pass_depth<float>(args.k) + 1) / 2;
    const bool many = static_cast<double>(args.m) * static_cast<double>(args.n) >=
                      64.0 * static_cast<double>(args.m + args.n);
    if (may_pair && many && has_pairs() && stay_normal(args, a, b)) {
      g.k = (args.k + 1) / 2;
      g.pass_depth = pair_depth;
      g.elements = Elements::Pairs;
      return run(PairPacker(a, args.k), PairPacker(b, args.k));
    }
    g.pass_depth = 2 * pair_depth;
  }
  run(WideningPacker<T>(a), WideningPacker<T>(b));
}

/// Many rows of sums of few rows of b: there is nothing to pack.
template <class T>
void multiply_few(const MatmulArgs& args, const Matrices<T>& x) {
  constexpr int64_t kColumns = 1024;
  parallel_for(args.m, std::max<int64_t>(1, 32768 / args.n), [&](int64_t begin, int64_t end) {
    float sums[kColumns], factors[kRowsAtOnce];
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t p = 0; p < args.k; ++p)
        factors[p] = static_cast<float>(x.a[i * args.a_row_stride + p * args.a_col_stride]);
      for (int64_t j = 0; j < args.n; j += kColumns) {
        const int64_t count = std::min(kColumns, args.n - j);
        std::fill_n(sums, count, 0.0f);
        add_narrow_rows(factors, x.b + j, args.b_row_stride, args.k, count, sums);
        finish_rows(args, x, i, 1, j, count, sums, count);
      }
    }
  });
}

template <class T>
requires(std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) void multiply(const MatmulArgs& args,
                                                                               const Matrices<T>& x,
                                                                               bool tiles) {
  const auto [a, b] = operands_of(args, x);
  const bool adjacent = (a.k_stride == 1 && b.k_stride == 1) || args.k == 1;
  const bool few_rows = adjacent && args.m <= kNarrowRows, one_column = adjacent && args.n == 1;
  const bool of_rows = args.b_col_stride == 1 && args.n >= 64 && args.k >= 1 && !few_rows;
  if (of_rows && args.k <= kRowsAtOnce && args.m > kNarrowRowsOfRows) return multiply_few(args, x);
  const bool few_rows_of_rows =
      of_rows && args.m <= kNarrowRowsOfRows && (args.a_col_stride == 1 || args.k == 1);
  bool may_pair = true;
  if constexpr (kHasTiles && std::is_same_v<T, BFloat16>) {
    // Tiles read operands twice, which costs more than they save where no cache holds the weights of few
    // rows.
    constexpr int64_t kCached = int64_t{1} << 21;
    const int64_t least_rows = args.n * args.k < kCached ? 2 : 5;
    const bool by_rows = adjacent && args.m < least_rows;
    if (tiles && !by_rows && !one_column && !few_rows_of_rows && suits_tiles(args.m, args.n, args.k)) {
      if (stay_normal(args, a, b))
        return gemm_tiles(args.m, args.n, args.k, TileMatrix<T>(a.from, a.index_stride, a.k_stride),
                          TileMatrix<T>(b.from, b.index_stride, b.k_stride), FinishedResult<T>(args, x));
      may_pair = false;
    }
  }
  const Scratch<float> sums(args.m * args.n);
  if (few_rows)
    gemm_narrow_dot(args.m, args.n, args.k, a.from, a.index_stride, b.from, b.index_stride, sums.get());
  else if (few_rows_of_rows)
    gemm_narrow_rows(args.m, args.n, args.k, a.from, a.index_stride, b.from, b.k_stride, sums.get());
  else if (one_column)
    gemm_narrow_dot(1, args.m, args.k, b.from, b.index_stride, a.from, a.index_stride, sums.get());
  else
    sum_products(args, a, b, may_pair, sums.get());
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(args.n, 1));
  parallel_for(args.m, grain, [&](int64_t begin, int64_t end) {
    finish_rows(args, x, begin, end - begin, 0, args.n, sums.get() + begin * args.n, args.n);
  });
}

// ---- integers
// --------------------------------------------------------------------------------------------------------

template <class T>
requires std::is_integral_v<T>
void multiply(const MatmulArgs& args, const Matrices<T>& x, bool /*tiles*/) {
  // Unsigned arithmetic of 32 or 64 bits wraps to the same low bits as any wider sum would.
  using Sum = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const Sum alpha = static_cast<Sum>(static_cast<int64_t>(args.alpha));
  const Sum beta = static_cast<Sum>(static_cast<int64_t>(args.beta));
  constexpr int64_t kChunk = 256;
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(args.n * args.k, 1));
  parallel_for(args.m, grain, [&](int64_t begin, int64_t end) {
    Sum sums[kChunk];
    for (int64_t i = begin; i < end; ++i) {
      const T* a = x.a + i * args.a_row_stride;
      T* out = x.out + i * args.out_row_stride;
      for (int64_t j0 = 0; j0 < args.n; j0 += kChunk) {
        const int64_t count = std::min(kChunk, args.n - j0);
        std::fill_n(sums, count, Sum{0});
        const T* b = x.b + j0 * args.b_col_stride;
        if (args.b_col_stride == 1) {
          for (int64_t p = 0; p < args.k; ++p, b += args.b_row_stride) {
            const Sum scale = static_cast<Sum>(a[p * args.a_col_stride]);
            for (int64_t j = 0; j < count; ++j) sums[j] += scale * static_cast<Sum>(b[j]);
          }
        } else {
          for (int64_t j = 0; j < count; ++j, b += args.b_col_stride)
            for (int64_t p = 0; p < args.k; ++p)
              sums[j] +=
                  static_cast<Sum>(a[p * args.a_col_stride]) * static_cast<Sum>(b[p * args.b_row_stride]);
        }
        for (int64_t j = 0; j < count; ++j) {
          Sum sum = alpha * sums[j];
          if (x.addend != nullptr)
            sum += beta *
                   static_cast<Sum>(x.addend[i * args.addend_row_stride + (j0 + j) * args.addend_col_stride]);
          const T value = static_cast<T>(sum);
          out[j0 + j] = is_relu(args) && value < T(0) ? T(0) : value;
        }
      }
    }
  });
}

// ---- batches
// ---------------------------------------------------------------------------------------------------------

/// Where product number `index` of the batch lies.
template <class T>
Matrices<T> matrices_at(const MatmulArgs& args, int64_t index) {
  int64_t a = 0, b = 0, addend = 0, out = 0;
  for (int d = args.batch_dims; d-- > 0;) {
    const int64_t i = index % args.batch_sizes[d];
    index /= args.batch_sizes[d];
    a += i * args.a_batch_strides[d];
    b += i * args.b_batch_strides[d];
    addend += i * args.addend_batch_strides[d];
    out += i * args.out_batch_strides[d];
  }
  return {static_cast<const T*>(args.a) + a, static_cast<const T*>(args.b) + b,
          args.addend != nullptr ? static_cast<const T*>(args.addend) + addend : nullptr,
          static_cast<T*>(args.out) + out};
}

/// Batch dimensions over which b does not change are more rows of one product.
MatmulArgs rows_from_batch(MatmulArgs args) {
  while (args.batch_dims > 0) {
    const int d = args.batch_dims - 1;
    const int64_t size = args.batch_sizes[d];
    const bool one = size == 1;
    const bool more_rows =
        args.b_batch_strides[d] == 0 && args.a_batch_strides[d] == args.m * args.a_row_stride &&
        args.out_batch_strides[d] == args.m * args.out_row_stride &&
        (args.addend == nullptr || args.addend_batch_strides[d] == args.m * args.addend_row_stride);
    if (!one && !more_rows) break;
    args.m *= size;
    args.batch_dims = d;
  }
  return args;
}

template <class T>
void matmul_of(const MatmulArgs& args, bool tiles) {
  const int64_t count = args.batch_count();
  if (count == 1) return multiply(args, matrices_at<T>(args, 0), tiles);
  const double work = static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k);
  const bool each_alone = count >= 2 * num_threads() || work < 1e6;
  const auto products = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) multiply(args, matrices_at<T>(args, i), tiles);
  };
  if (!each_alone) return products(0, count);
  parallel_for(count, static_cast<int64_t>(std::max(1.0, kWorkPerThread / (work + 100.0))), products);
}

}  // namespace

void unary(const LaunchContext& context, const UnaryArgs& args);
void binary(const LaunchContext& context, const BinaryArgs& args);

void matmul(const LaunchContext& context, const MatmulArgs& original, bool tiles) {
  if (original.epilogue >= MatmulEpilogue::Gelu) {
    matmul(context, without_gelu(original), tiles);
    if (original.epilogue == MatmulEpilogue::Gelu) return unary(context, gelu_of(original));
    return binary(context, gelu_gradient_of(original));
  }
  if (original.batch_dims == 0) {
    if (original.dtype == DType::Float32)
      return multiply(
          original,
          Matrices<float>{static_cast<const float*>(original.a), static_cast<const float*>(original.b),
                          static_cast<const float*>(original.addend), static_cast<float*>(original.out)},
          tiles);
  }
  const MatmulArgs args = rows_from_batch(original);
  if (args.m == 0 || args.n == 0 || args.batch_count() == 0) return;
  visit_dtype(args.dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, bool>)
      throw_not_computable(args.dtype);
    else
      matmul_of<T>(args, tiles);
  });
}

void matmul(const LaunchContext& context, const MatmulArgs& args) { matmul(context, args, false); }
void matmul_tiles(const LaunchContext& context, const MatmulArgs& args) { matmul(context, args, true); }

}  // namespace tern::cpu::TERN_CPU_VARIANT
