// Sorting of rows that are cut into buckets, which all threads share.
#include "tern/kernels/sort.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/backends/cpu/kernel_testing.h"

namespace tern::testing {
namespace {

/// Rows of `size` elements beside each other: value(i), sorted both ways.
template <class T, class Value>
void check(const Variant& variant, const std::string& what, int64_t rows, int64_t size, const Value& value) {
  std::vector<T> x(static_cast<size_t>(rows * size)), values(x.size());
  std::vector<int64_t> indices(x.size()), order(static_cast<size_t>(size));
  for (T& element : x) element = value();
  for (const bool descending : {false, true}) {
    variant.run(kernels::sort, {descending, false, false, dtype_of<T>(), values.data(), indices.data(),
                                x.data(), 1, size, rows, size});
    for (int64_t r = 0; r < rows; ++r) {
      const auto at = [&](int64_t i) { return x[static_cast<size_t>(i * rows + r)]; };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        const T p = at(descending ? b : a), q = at(descending ? a : b);
        return p < q || (p == p && q != q);
      });
      for (int64_t i = 0; i < size; ++i) {
        const auto place = static_cast<size_t>(i * rows + r);
        ASSERT_EQ(indices[place], order[static_cast<size_t>(i)]) << what << ", row " << r << ", place " << i;
        const T expected = at(indices[place]);
        ASSERT_TRUE(values[place] == expected || expected != expected) << what << ", place " << i;
      }
    }
  }
}

TEST(CpuSort, LongRows) {
  std::mt19937_64 bits(1);
  std::normal_distribution<double> normal;
  for_each_variant([&](const Variant& variant) {
    check<float>(variant, "normal", 1, 70001, [&] {
      const uint64_t n = bits() % 50;
      return n == 0   ? std::numeric_limits<float>::quiet_NaN()
             : n == 1 ? -0.0f
                      : static_cast<float>(normal(bits));
    });
    check<double>(variant, "normal", 2, 65536, [&] { return normal(bits); });
    check<int64_t>(variant, "all bits", 1, 65537, [&] { return static_cast<int64_t>(bits()); });
    check<int64_t>(variant, "few", 1, 80000, [&] { return static_cast<int64_t>(bits() % 1000); });
    check<int32_t>(variant, "most alike", 1, 80000,
                   [&] { return bits() % 100 == 0 ? static_cast<int32_t>(bits()) : 7; });
    check<uint8_t>(variant, "two", 1, 65536, [&] { return static_cast<uint8_t>(bits() % 2); });
    check<int64_t>(variant, "one", 1, 65536, [] { return int64_t{-3}; });
  });
}

}  // namespace
}  // namespace tern::testing
