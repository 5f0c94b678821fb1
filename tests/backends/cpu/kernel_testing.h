// What the tests of single CPU kernels share: every instruction set that this processor runs, random elements
// of any dtype, comparison with a reference in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tern/backends/cpu/tables.h"
#include "tern/base/parallel.h"
#include "tern/core/dtype.h"
#include "tern/kernels/list.h"

namespace tern::testing {

/// Small random numbers, the same in every run.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  /// An integer in [low, high].
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool coin() { return integer(0, 1) == 1; }
  /// Eighths in [-1, 1], or integers in [0, 9], exact in every dtype.
  template <class T>
  T element() {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(integer(0, 9));
    else if constexpr (std::is_same_v<T, double>)
      return static_cast<double>(integer(-8, 8)) / 8.0;
    else
      return T(static_cast<float>(integer(-8, 8)) / 8.0f);
  }
  template <class T>
  std::vector<T> elements(int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    for (T& value : values) value = element<T>();
    return values;
  }

 private:
  std::mt19937 engine_;
};

template <class T>
double to_double(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return static_cast<double>(static_cast<float>(x));
  else
    return static_cast<double>(x);
}

template <class T>
constexpr double tolerance() {
  if constexpr (std::is_same_v<T, BFloat16>)
    return 2e-2;
  else if constexpr (std::is_same_v<T, Half>)
    return 3e-3;
  else if constexpr (std::is_same_v<T, float>)
    return 2e-5;
  else if constexpr (std::is_same_v<T, double>)
    return 1e-11;
  else
    return 0;
}

/// Fails once, at the worst element, unless all are within the tolerance of the dtype; NaN equals NaN.
template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double x = to_double(got[i]), y = expected[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double difference = std::abs(x - y) / (1.0 + std::abs(y));
    if (!(difference <= worst)) {
      worst = std::isnan(difference) ? INFINITY : difference;
      where = i;
    }
  }
  EXPECT_LE(worst, tolerance<T>()) << what << ": element " << where << " of " << got.size() << " is "
                                   << to_double(got[where]) << ", expected " << expected[where];
}

/// The kernels for one instruction set.
struct Variant {
  const cpu::KernelTable* table;
  template <class Args>
  void run(Kernel<Args> kernel, const std::type_identity_t<Args>& args) const {
    table->kernels[kernel.id](LaunchContext{}, &args);
  }
};

/// Calls body(variant) for every instruction set that this processor has, on 1, 2 and 3 threads.
template <class Body>
void for_each_variant(const Body& body) {
  for (const cpu::KernelTable* table : cpu::kernel_tables()) {
    if (!table->supported()) continue;
    for (int threads : {1, 2, 3}) {
      SCOPED_TRACE(std::string(table->variant) + " on " + std::to_string(threads) + " threads");
      set_thread_local_num_threads(threads);
      body(Variant{table});
    }
  }
  set_thread_local_num_threads(0);
}

/// Calls f<T>() for a random floating-point dtype, float most often.
template <class F>
void with_random_float(Random& random, const F& f) {
  switch (random.integer(0, 7)) {
    case 0:
      return f.template operator()<double>();
    case 1:
      return f.template operator()<Half>();
    case 2:
      return f.template operator()<BFloat16>();
    default:
      return f.template operator()<float>();
  }
}

}  // namespace tern::testing
