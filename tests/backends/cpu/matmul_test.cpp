// The matrix product kernel against sums in double: shapes around the sizes of tiles and blocks, strides,
// batches, dtypes.
#include "tern/kernels/matmul.h"

#include <fmt/format.h>

#include <limits>
#include <random>
#include <string_view>

#include "tern/kernels/precision.h"
#include "tests/backends/cpu/kernel_testing.h"

namespace tern::testing {
namespace {

enum class Layout { Rows, Columns, Gaps };
enum class Addend { None, Bias, Matrix, Turned, PerRow };

struct ProductCase {
  int64_t m, n, k;
  Layout a = Layout::Rows;
  Layout b = Layout::Rows;
  Addend addend = Addend::None;
  bool relu = false;
  int batch_dims = 0;
};

/// Strides of a matrix; returns the elements that it spans.
int64_t lay_out(Random& random, Layout layout, int64_t rows, int64_t columns, int64_t& row_stride,
                int64_t& column_stride) {
  switch (layout) {
    case Layout::Rows:
      row_stride = columns + random.integer(0, 3), column_stride = 1;
      break;
    case Layout::Columns:
      row_stride = 1, column_stride = rows + random.integer(0, 3);
      break;
    case Layout::Gaps:
      column_stride = 2, row_stride = 2 * columns + 1;
      break;
  }
  return row_stride * rows + column_stride * columns + 1;
}

template <class T>
void check(const Variant& variant, Random& random, const ProductCase& c) {
  MatmulArgs args;
  args.dtype = dtype_of<T>();
  args.epilogue = c.relu ? MatmulEpilogue::Relu : MatmulEpilogue::None;
  args.m = c.m, args.n = c.n, args.k = c.k;
  args.batch_dims = c.batch_dims;
  for (int d = 0; d < c.batch_dims; ++d) args.batch_sizes[d] = random.integer(1, 3);
  // Strides of the batch; an operand that is only read broadcasts now and then.
  const auto spread = [&](int64_t span, int64_t* strides, bool may_broadcast) {
    for (int d = c.batch_dims; d-- > 0;) {
      if (may_broadcast && random.integer(0, 2) == 0) continue;
      strides[d] = span;
      span *= args.batch_sizes[d];
    }
    return span;
  };
  const int64_t a_span = spread(lay_out(random, c.a, c.m, c.k, args.a_row_stride, args.a_col_stride),
                                args.a_batch_strides, true);
  const int64_t b_span = spread(lay_out(random, c.b, c.k, c.n, args.b_row_stride, args.b_col_stride),
                                args.b_batch_strides, true);
  args.out_row_stride = c.n + random.integer(0, 3);
  const int64_t out_span = spread(args.out_row_stride * c.m + 1, args.out_batch_strides, false);
  int64_t addend_span = 0;
  switch (c.addend) {
    case Addend::None:
      break;
    case Addend::Bias:
      args.addend_col_stride = 1, addend_span = c.n;
      break;
    case Addend::Matrix:
      args.addend_row_stride = c.n + 2, args.addend_col_stride = 1, addend_span = (c.n + 2) * c.m;
      break;
    case Addend::Turned:
      args.addend_row_stride = 1, args.addend_col_stride = c.m, addend_span = c.n * c.m;
      break;
    case Addend::PerRow:
      args.addend_row_stride = 1, addend_span = c.m;
      break;
  }
  if (c.addend != Addend::None) addend_span = spread(addend_span, args.addend_batch_strides, true);
  const std::vector<T> a = random.elements<T>(a_span), b = random.elements<T>(b_span),
                       addend = random.elements<T>(addend_span + 1);
  std::vector<T> out = random.elements<T>(out_span);
  const std::vector<T> before = out;
  if (c.addend != Addend::None) {
    args.addend = addend.data();
    if (random.coin()) {
      args.alpha = std::is_integral_v<T> ? 2.0 : 0.5;
      args.beta = std::is_integral_v<T> ? 3.0 : -0.25;
    }
  }
  args.a = a.data(), args.b = b.data(), args.out = out.data();

  std::vector<double> expected(out.size());
  for (size_t i = 0; i < out.size(); ++i)
    expected[i] = to_double(before[i]);  // gaps between rows stay as they were
  const auto at = [](const auto& values, int64_t i) { return to_double(values[static_cast<size_t>(i)]); };
  for (int64_t index = 0; index < args.batch_count(); ++index) {
    int64_t a0 = 0, b0 = 0, addend0 = 0, out0 = 0, rest = index;
    for (int d = c.batch_dims; d-- > 0;) {
      const int64_t i = rest % args.batch_sizes[d];
      rest /= args.batch_sizes[d];
      a0 += i * args.a_batch_strides[d], b0 += i * args.b_batch_strides[d];
      addend0 += i * args.addend_batch_strides[d], out0 += i * args.out_batch_strides[d];
    }
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < c.k; ++p)
          sum += at(a, a0 + i * args.a_row_stride + p * args.a_col_stride) *
                 at(b, b0 + p * args.b_row_stride + j * args.b_col_stride);
        sum *= args.alpha;
        if (args.addend != nullptr)
          sum += args.beta * at(addend, addend0 + i * args.addend_row_stride + j * args.addend_col_stride);
        if constexpr (std::is_integral_v<T>)
          sum = static_cast<double>(static_cast<T>(static_cast<int64_t>(sum)));
        if (c.relu) sum = std::max(sum, 0.0);
        expected[static_cast<size_t>(out0 + i * args.out_row_stride + j)] = sum;
      }
    }
  }
  variant.run(kernels::matmul, args);
  expect_near(
      out, expected,
      fmt::format("{} [{}, {}] @ [{}, {}], layouts {} {}, addend {}, relu {}, batch of {}", name(args.dtype),
                  c.m, c.k, c.k, c.n, int(c.a), int(c.b), int(c.addend), c.relu, args.batch_count()));
}

/// Sets the precision of products for the length of a scope.
struct PrecisionGuard {
  explicit PrecisionGuard(std::string_view precision) { set_float32_matmul_precision(precision); }
  PrecisionGuard(const PrecisionGuard&) = delete;
  PrecisionGuard& operator=(const PrecisionGuard&) = delete;
  ~PrecisionGuard() { set_float32_matmul_precision("highest"); }
};

/// a[m, k] @ b[k, n].
std::vector<float> float_product(const Variant& variant, int64_t m, int64_t n, int64_t k,
                                 const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> out(static_cast<size_t>(m * n));
  MatmulArgs args;
  args.dtype = DType::Float32;
  args.m = m, args.n = n, args.k = k;
  args.a = a.data(), args.b = b.data(), args.out = out.data();
  args.a_row_stride = k, args.b_row_stride = args.out_row_stride = n;
  args.a_col_stride = args.b_col_stride = 1;
  variant.run(kernels::matmul, args);
  return out;
}

TEST(CpuMatmul, RandomCases) {
  for_each_variant([](const Variant& variant) {
    Random random(1);
    for (int i = 0; i < 400; ++i) {
      const auto size = [&] {
        const int64_t kind = random.integer(0, 5);
        return kind == 0 ? random.integer(0, 4) : kind < 4 ? random.integer(1, 40) : random.integer(1, 120);
      };
      ProductCase c{size(), size(), random.integer(0, 30) == 0 ? random.integer(500, 1500) : size()};
      c.a = static_cast<Layout>(random.integer(0, 2));
      c.b = static_cast<Layout>(random.integer(0, 2));
      c.addend = static_cast<Addend>(random.integer(0, 4));
      c.relu = random.coin();
      if (random.integer(0, 3) == 0) c.batch_dims = static_cast<int>(random.integer(1, 3));
      if (random.integer(0, 7) == 0) {
        if (random.coin())
          check<int64_t>(variant, random, c);
        else
          check<uint8_t>(variant, random, c);
      } else {
        with_random_float(random, [&]<class T>() { check<T>(variant, random, c); });
      }
    }
  });
}

TEST(CpuMatmul, SeveralBlocksInEveryDirection) {
  for_each_variant([](const Variant& variant) {
    Random random(2);
    check<float>(variant, random,
                 {350, 270, 1100, Layout::Rows, Layout::Columns, Addend::Bias, /*relu=*/true});
    check<float>(variant, random, {7, 4200, 40, Layout::Rows, Layout::Columns, Addend::Bias});
    check<float>(variant, random, {40, 4200, 60, Layout::Rows, Layout::Rows, Addend::Bias});
    check<float>(variant, random, {20, 1200, 700, Layout::Columns, Layout::Columns, Addend::Matrix});
    check<float>(variant, random, {2, 300, 1200, Layout::Columns, Layout::Rows, Addend::Matrix});
    check<double>(variant, random, {100, 130, 600, Layout::Columns, Layout::Rows});
  });
}

/// On tiles, or by pairs in their place.
bool multiplies_blocks(std::string_view variant) { return variant == "amx" || variant == "bf16"; }

/// Eighths are exact as bfloat16.
TEST(CpuMatmul, EveryPrecisionTakesEveryShape) {
  for (const char* precision : {"high", "medium"}) {
    const PrecisionGuard guard(precision);
    for_each_variant([](const Variant& variant) {
      Random random(12);
      for (int i = 0; i < 24; ++i) {
        ProductCase c{random.integer(30, 150), random.integer(30, 150), random.integer(1, 200)};
        c.a = static_cast<Layout>(random.integer(0, 2));
        c.b = static_cast<Layout>(random.integer(0, 2));
        c.addend = static_cast<Addend>(random.integer(0, 4));
        c.relu = random.coin();
        c.batch_dims = i % 8 == 0;
        check<float>(variant, random, c);
      }
      if (!multiplies_blocks(variant.table->variant)) return;  // the others know one precision
      check<float>(variant, random, {2100, 70, 40, Layout::Rows, Layout::Columns, Addend::Bias});
      check<float>(variant, random, {64, 64, 4200, Layout::Columns, Layout::Rows, Addend::Matrix});
    });
  }
}

TEST(CpuMatmul, PrecisionSaysWhatIsMultiplied) {
  const int64_t m = 130, n = 140, k = 150;
  std::mt19937 engine(13);
  std::normal_distribution<float> normal;
  std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
  for (float& x : a) x = normal(engine);
  for (float& x : b) x = normal(engine);
  using Product = double (*)(double x, double y);
  static const auto rounded = [](double x) { return to_double(BFloat16(static_cast<float>(x))); };
  const Product exact = [](double x, double y) { return x * y; };
  const auto expected_of = [&](Product product) {
    std::vector<double> sums(static_cast<size_t>(m * n));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j)
          sums[static_cast<size_t>(i * n + j)] +=
              product(a[static_cast<size_t>(i * k + p)], b[static_cast<size_t>(p * n + j)]);
    return sums;
  };
  const std::vector<double> expected = expected_of(exact);
  const std::pair<const char*, Product> on_tiles[] = {
      {"highest", exact},
      {"high",
       [](double x, double y) {
         const double high_x = rounded(x), high_y = rounded(y);
         return high_x * high_y + high_x * rounded(y - high_y) + rounded(x - high_x) * high_y;
       }},
      {"medium", [](double x, double y) { return rounded(x) * rounded(y); }}};
  for (const auto& [precision, product] : on_tiles) {
    const PrecisionGuard guard(precision);
    const std::vector<double> with_tiles = expected_of(product);
    for (const cpu::KernelTable* table : cpu::kernel_tables()) {
      if (!table->supported()) continue;
      const std::string_view variant = table->variant;
      const bool by_pairs = variant == "bf16" && std::string_view(precision) == "medium";
      expect_near(float_product(Variant{table}, m, n, k, a, b),
                  variant == "amx" || by_pairs ? with_tiles : expected, precision);
    }
  }
}

TEST(CpuMatmul, EveryPrecisionPassesInfinityAndNan) {
  const int64_t size = 130;
  const float most = std::numeric_limits<float>::max();
  std::vector<float> a(static_cast<size_t>(size * size), 0.3f), b(static_cast<size_t>(size * size), 0.0f);
  for (int64_t i = 0; i < size; ++i) b[static_cast<size_t>(i * size + i)] = 1.0f;  // the unit matrix
  const auto row = [&](int64_t i) { return a.begin() + i * size; };
  std::fill_n(row(0), size, INFINITY);
  std::fill_n(row(1), size, -INFINITY);
  std::fill_n(row(2), size, NAN);
  std::fill_n(row(3), size, most);
  for (const char* precision : {"highest", "high", "medium"}) {
    const PrecisionGuard guard(precision);
    const bool rounds = std::string_view(precision) == "medium";
    for_each_variant([&](const Variant& variant) {
      const std::vector<float> out = float_product(variant, size, size, size, a, b);
      const auto first_of = [&](int64_t i) { return out[static_cast<size_t>(i * size)]; };
      for (int64_t i : {0, 1, 2}) EXPECT_TRUE(std::isnan(first_of(i)));  // infinity times 0
      EXPECT_TRUE(rounds || first_of(3) == most) << first_of(3);
      EXPECT_NEAR(first_of(4), 0.3f, rounds ? 1e-3f : 1e-5f);
    });
  }
}

TEST(CpuMatmul, AccumulatesIntoItsOwnResult) {
  for_each_variant([](const Variant& variant) {
    for (int64_t size : {1, 3, 40, 150}) {
      Random random(3);
      const std::vector<float> a = random.elements<float>(size * size),
                               b = random.elements<float>(size * size);
      std::vector<float> out = random.elements<float>(size * size);
      std::vector<double> expected(out.begin(), out.end());
      for (int64_t i = 0; i < size; ++i)
        for (int64_t j = 0; j < size; ++j)
          for (int64_t p = 0; p < size; ++p)
            expected[static_cast<size_t>(i * size + j)] += to_double(a[static_cast<size_t>(i * size + p)]) *
                                                           to_double(b[static_cast<size_t>(p * size + j)]);
      MatmulArgs args;
      args.dtype = DType::Float32;
      args.m = args.n = args.k = size;
      args.a = a.data(), args.b = b.data(), args.out = out.data(), args.addend = out.data();
      args.a_row_stride = args.b_row_stride = args.out_row_stride = args.addend_row_stride = size;
      args.a_col_stride = args.b_col_stride = args.addend_col_stride = 1;
      variant.run(kernels::matmul, args);
      expect_near(out, expected, fmt::format("accumulation, size {}", size));
    }
  });
}

TEST(CpuMatmul, NanAndInfinityPass) {
  for_each_variant([](const Variant& variant) {
    const std::vector<float> a = {NAN, 1, INFINITY, 2, 0, 0}, b = {1, 2, 3, 4};  // [3, 2] @ [2, 2]
    std::vector<float> out(6);
    MatmulArgs args;
    args.dtype = DType::Float32;
    args.epilogue = MatmulEpilogue::Relu;
    args.m = 3, args.n = 2, args.k = 2;
    args.a = a.data(), args.b = b.data(), args.out = out.data();
    args.a_row_stride = args.b_row_stride = args.out_row_stride = 2;
    args.a_col_stride = args.b_col_stride = 1;
    variant.run(kernels::matmul, args);
    expect_near(out, {NAN, NAN, INFINITY, INFINITY, 0, 0}, "special values");
  });
}

TEST(CpuMatmul, ResultDoesNotDependOnThreads) {
  Random random(4);
  const std::vector<float> a = random.elements<float>(300 * 700), b = random.elements<float>(700 * 310);
  for (const cpu::KernelTable* table : cpu::kernel_tables()) {
    if (!table->supported()) continue;
    std::vector<float> results[3];
    for (int threads : {1, 2, 3}) {
      set_thread_local_num_threads(threads);
      std::vector<float>& out = results[threads - 1];
      out.resize(300 * 310);
      MatmulArgs args;
      args.dtype = DType::Float32;
      args.alpha = 1.0 / 3.0;
      args.m = 300, args.n = 310, args.k = 700;
      args.a = a.data(), args.b = b.data(), args.out = out.data();
      args.a_row_stride = 700, args.b_row_stride = args.out_row_stride = 310;
      args.a_col_stride = args.b_col_stride = 1;
      Variant{table}.run(kernels::matmul, args);
    }
    EXPECT_EQ(results[0], results[1]) << table->variant;
    EXPECT_EQ(results[0], results[2]) << table->variant;
  }
  set_thread_local_num_threads(0);
}

/// The product of matrices of bfloat16 that are given as floats, with `turned` columns of b side by side.
std::vector<float> bfloat16_product(const Variant& variant, int64_t m, int64_t n, int64_t k, bool turned,
                                    const std::vector<float>& a, const std::vector<float>& b) {
  const auto narrow = [](const std::vector<float>& values) {
    std::vector<BFloat16> result;
    for (float x : values) result.push_back(BFloat16(x));
    return result;
  };
  const std::vector<BFloat16> narrow_a = narrow(a), narrow_b = narrow(b);
  std::vector<BFloat16> out(static_cast<size_t>(m * n));
  MatmulArgs args;
  args.dtype = DType::BFloat16;
  args.m = m, args.n = n, args.k = k;
  args.a = narrow_a.data(), args.b = narrow_b.data(), args.out = out.data();
  args.a_row_stride = k, args.a_col_stride = 1;
  args.b_row_stride = turned ? 1 : n, args.b_col_stride = turned ? k : 1;
  args.out_row_stride = n;
  variant.run(kernels::matmul, args);
  std::vector<float> result;
  for (BFloat16 x : out) result.push_back(static_cast<float>(x));
  return result;
}

/// Numbers whose sums float holds exactly, whatever their order.
TEST(CpuMatmul, BFloat16OfSizesAroundThoseOfTiles) {
  struct Sizes {
    int64_t m, n, k;
  };
  for (const Sizes& sizes : {Sizes{16, 64, 64},
                             {1, 4096, 33},
                             {17, 130, 31},
                             {33, 47, 95},
                             {48, 16, 129},
                             {300, 270, 70},
                             {40, 50, 4200},
                             {2100, 20, 40},
                             {20, 2100, 40}}) {
    const int64_t m = sizes.m, n = sizes.n, k = sizes.k;
    Random random(11);
    const std::vector<float> a = random.elements<float>(m * k), b = random.elements<float>(k * n);
    for (bool turned : {false, true}) {
      std::vector<float> expected(static_cast<size_t>(m * n));
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < k; ++p)
            sum += static_cast<double>(a[static_cast<size_t>(i * k + p)]) *
                   static_cast<double>(b[static_cast<size_t>(turned ? j * k + p : p * n + j)]);
          expected[static_cast<size_t>(i * n + j)] = static_cast<float>(BFloat16(static_cast<float>(sum)));
        }
      }
      for_each_variant([&](const Variant& variant) {
        EXPECT_EQ(bfloat16_product(variant, m, n, k, turned, a, b), expected)
            << m << " x " << n << " x " << k << (turned ? ", turned" : "");
      });
    }
  }
}

/// But for tiles, and pairs in their place, which add in an order of their own: the same for any number of
/// threads.
TEST(CpuMatmul, BFloat16HasTheSameBitsOnEveryInstructionSet) {
  const int64_t n = 170;
  for (auto [m, k] : std::initializer_list<std::pair<int64_t, int64_t>>{{150, 1},
                                                                        {150, 2},
                                                                        {150, 7},
                                                                        {150, 301},
                                                                        {150, 513},
                                                                        {150, 1030},
                                                                        {1, 1030},
                                                                        {3, 513},
                                                                        {8, 301}}) {
    Random random(5);
    std::vector<float> a = random.elements<float>(m * k), b = random.elements<float>(k * n);
    for (float& x : a) x *= 0.3f;
    for (float& x : b) x *= 0.7f;
    for (bool turned : {false, true}) {
      std::vector<std::vector<float>> results, with_tiles;
      for_each_variant([&, rows = m, depth = k](const Variant& variant) {
        const std::string_view name = variant.table->variant;
        if (name == "generic") return;
        (multiplies_blocks(name) ? with_tiles : results)
            .push_back(bfloat16_product(variant, rows, n, depth, turned, a, b));
      });
      for (const auto* of : {&results, &with_tiles})
        for (size_t i = 1; i < of->size(); ++i)
          EXPECT_EQ((*of)[0], (*of)[i]) << m << " x " << k << ", run " << i;
    }
  }
}

TEST(CpuMatmul, BFloat16KeepsNumbersBelowTheNormalOnes) {
  const int64_t m = 130, n = 140, k = 40;
  const float small = std::ldexp(1.0f, -130), large = std::ldexp(1.0f, 20), tiny = std::ldexp(1.0f, -66);
  for_each_variant([&](const Variant& variant) {
    const std::vector<float> ones(static_cast<size_t>(k * n), large);
    EXPECT_EQ(bfloat16_product(variant, m, n, k, false, std::vector<float>(static_cast<size_t>(m * k), small),
                               ones),
              std::vector<float>(static_cast<size_t>(m * n), std::ldexp(40.0f, -110)));
    const std::vector<float> a(static_cast<size_t>(m * k), tiny), b(static_cast<size_t>(k * n), tiny);
    EXPECT_EQ(bfloat16_product(variant, m, n, k, false, a, b),
              std::vector<float>(static_cast<size_t>(m * n), std::ldexp(40.0f, -132)));
  });
}

}  // namespace
}  // namespace tern::testing
