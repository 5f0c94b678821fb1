// Attention in one kernel: of 16-bit floats on GPUs, of float32 too on the CPU; when that is taken, and that
// it gives what the formula gives in float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/base/parallel.h"
#include "tern/device/cuda.h"
#include "tern/device/launch.h"
#include "tern/device/registry.h"
#include "tern/ops/attention.h"
#include "tern/ops/attention_fused.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"
#include "tests/ops/attention_testing.h"
#include "tests/support/emulated.h"

namespace tern {
namespace {

/// Counts the launches of the kernels while it lives.
class FusedLaunches final : public LaunchObserver {
 public:
  FusedLaunches() : before_(set_launch_observer(this)) {}
  ~FusedLaunches() override {
    const Device device = get_default_device();  // whose work tells of its end
    backend_of(device.type).synchronize_device(device.index);
    set_launch_observer(before_);
  }
  uint64_t started(const Activity& activity) noexcept override {
    const std::string_view name = activity.name;
    if (name == "attention" || name == "attention_backward") ++count_;
    return 0;
  }
  void ran(uint64_t, Clock::time_point, Clock::time_point) noexcept override {}
  int count() const { return count_; }
  /// Where the default device has both kernels, else nothing; the CPU's is tested by itself.
  void expect(int wanted) const {
    if (!get_default_device().is_cpu()) {
      EXPECT_EQ(count_, wanted);
    }
  }

 private:
  LaunchObserver* before_;
  std::atomic<int> count_ = 0;
};

/// Whether the default device has the kernels, for as few scores as there are here.
bool has_fused_kernels() {
  const Device device = get_default_device();
  if (device.is_cpu()) return false;
  const char* wanted = std::getenv("TERN_CUDA_ATTENTION");
  return cuda::get_device_properties(device).simulated || (wanted && wanted == std::string_view("always"));
}

Tensor exact_attention(const Tensor& query, const Tensor& key, const Tensor& value, bool is_causal) {
  return testing::by_formula(query, key, value,
                             is_causal ? testing::below_diagonal(query.size(-2), key.size(-2)) : Tensor());
}

struct FusedCase {
  std::string name;
  Shape query, key;
  int64_t value_width;
  bool is_fused;
  std::function<Tensor(const Tensor&)> layout = [](const Tensor& x) { return x; };

  /// Of query, key and value.
  std::array<Shape, 3> shapes() const {
    Shape value = key;
    value.back() = value_width;
    return {query, key, value};
  }
  std::array<Tensor, 3> operands(DType dtype) const {
    std::array<Tensor, 3> made;
    for (size_t i = 0; i < 3; ++i) made[i] = layout(randn(shapes()[i]).to(dtype));
    return made;
  }
};

/// Heads beside each other in memory.
Tensor side_by_side(const Tensor& x) { return permute(contiguous(permute(x, {0, 2, 1, 3})), {0, 2, 1, 3}); }

const std::vector<FusedCase>& fused_cases() {
  const auto turned = [](const Tensor& x) { return mT(contiguous(mT(x))); };
  const auto wide = [](const Tensor& x) { return narrow(cat({x, x}, -1), -1, x.size(-1), x.size(-1)); };
  static const std::vector<FusedCase> all = {
      {"heads", {2, 3, 70, 16}, {2, 3, 90, 16}, 8, true},
      {"more rows than columns", {1, 2, 90, 8}, {1, 2, 64, 8}, 16, true},
      {"heads side by side", {2, 3, 65, 16}, {2, 3, 65, 16}, 16, true, side_by_side},
      {"parts of wider rows", {2, 2, 64, 8}, {2, 2, 64, 8}, 8, true, wide},
      {"one matrix", {64, 16}, {66, 16}, 16, true},
      {"one dimension of the batch", {3, 64, 8}, {3, 70, 8}, 8, true},
      {"three", {2, 2, 2, 64, 8}, {2, 2, 2, 64, 8}, 8, true},
      {"keys that all share", {3, 64, 8}, {1, 64, 8}, 8, true},
      {"keys that heads share", {2, 3, 64, 8}, {2, 1, 64, 8}, 8, true},
      {"keys that the batch shares", {2, 3, 64, 8}, {1, 3, 64, 8}, 8, false},
      {"few rows", {2, 3, 63, 16}, {2, 3, 90, 16}, 16, false},
      {"few columns", {2, 3, 70, 16}, {2, 3, 63, 16}, 16, false},
      {"widths that are no groups", {2, 3, 70, 12}, {2, 3, 70, 12}, 16, false},
      {"wide heads", {1, 64, 136}, {1, 64, 136}, 136, false},
      {"columns apart", {2, 64, 8}, {2, 64, 8}, 8, false, turned},
  };
  return all;
}

/// Calls f(c, dtype, is_causal) for all of them, from one seed each.
template <class F>
void for_each_fused_case(const F& f) {
  for (const DType dtype : {bfloat16, float16})
    for (const FusedCase& c : fused_cases())
      for (const bool is_causal : {false, true}) {
        SCOPED_TRACE(c.name + (is_causal ? ", causal, " : ", ") + std::string(name(dtype)));
        manual_seed(0);
        f(c, dtype, is_causal);
      }
}

/// No product is computed here besides, so that this also runs where the real cuDNN makes the plans.
TEST(AttentionFused, TakesEveryLayout) {
  const int once = has_fused_kernels() ? 1 : 0;
  for_each_fused_case([&](const FusedCase& c, DType dtype, bool is_causal) {
    if (!c.is_fused || (dtype == float16 && is_causal)) return;
    const auto [query, key, value] = c.operands(dtype);
    const FusedLaunches launches;
    scaled_dot_product_attention(query, key, value, {}, 0, is_causal);
    launches.expect(once);
    const Tensor leaf = query.clone().requires_grad_();
    const Tensor y = scaled_dot_product_attention(c.layout(leaf), key, value, {}, 0, is_causal);
    y.backward(ones(y.shape(), {.dtype = dtype}));
    launches.expect(3 * once);
  });
  const Tensor query = randn({2, 6, 64, 8}).to(bfloat16).requires_grad_(),
               key = randn({2, 2, 70, 8}).to(bfloat16);
  const FusedLaunches launches;
  const Tensor y = scaled_dot_product_attention(query, key, key, {}, 0, false, {}, /*enable_gqa=*/true);
  y.backward(ones(y.shape(), {.dtype = bfloat16}));
  launches.expect(2 * once);
}

TEST(AttentionFused, GivesWhatTheFormulaGives) {
  const bool is_fused = has_fused_kernels();
  for_each_fused_case([&](const FusedCase& c, DType dtype, bool is_causal) {
    const auto [query, key, value] = c.operands(dtype);
    const FusedLaunches launches;
    const Tensor y = scaled_dot_product_attention(query, key, value, {}, 0, is_causal);
    launches.expect(c.is_fused && is_fused ? 1 : 0);
    EXPECT_EQ(y.dtype(), dtype);
    const Tensor wanted = exact_attention(query.to(float32), key.to(float32), value.to(float32), is_causal);
    ASSERT_EQ(y.shape(), wanted.shape());
    EXPECT_LT((y.to(float32) - wanted).abs().max().item<float>(), 0.03);
  });
}

TEST(AttentionFused, GradientsAreThoseOfTheFormula) {
  const bool is_fused = has_fused_kernels();
  for_each_fused_case([&](const FusedCase& c, DType dtype, bool is_causal) {
    std::vector<Tensor> given, exact;
    for (const Shape& shape : c.shapes()) {
      given.push_back(randn(shape).to(dtype).requires_grad_());
      exact.push_back(given.back().detach().to(float32).requires_grad_());
    }
    const FusedLaunches launches;
    const Tensor y = scaled_dot_product_attention(c.layout(given[0]), c.layout(given[1]), c.layout(given[2]),
                                                  {}, 0, is_causal);
    const Tensor direction = randn(y.shape()).to(dtype);
    y.backward(direction);
    launches.expect(c.is_fused && is_fused ? 2 : 0);
    exact_attention(exact[0], exact[1], exact[2], is_causal).backward(direction.to(float32));
    for (size_t i = 0; i < 3; ++i) {
      const Tensor& wanted = exact[i].grad();
      EXPECT_LT((given[i].grad().to(float32) - wanted).abs().max().item<float>(),
                0.02 * wanted.abs().max().item<float>())
          << "of the operand " << i;
    }
  });
}

TEST(AttentionFused, GradientsOfSomeOperandsAndOfASum) {
  manual_seed(0);
  Tensor query = randn({2, 2, 64, 8}).to(bfloat16), key = randn({2, 2, 64, 8}).to(bfloat16),
         value = randn({2, 2, 64, 8}).to(bfloat16).requires_grad_();
  scaled_dot_product_attention(query, key, value).sum().backward();
  EXPECT_FALSE(query.grad().defined());
  const Tensor exact = value.detach().to(float32).requires_grad_();
  exact_attention(query.to(float32), key.to(float32), exact, false).sum().backward();
  EXPECT_LT((value.grad().to(float32) - exact.grad()).abs().max().item<float>(), 0.03);
}

/// The same launch gives the same bits; parts are other plans, whose engines may add in another order.
TEST(AttentionFused, GradientsAreRepeatableAndComeInParts) {
  if (!has_fused_kernels()) GTEST_SKIP() << "there is no kernel";
  manual_seed(0);
  NoGradGuard no_grad;
  const auto numbers = [] { return randn({5, 3, 64, 8}).to(bfloat16); };
  detail::Heads heads;
  for (Tensor* x : {&heads.query, &heads.key, &heads.value, &heads.output}) *x = numbers();
  const detail::AttentionSettings settings{.scale = 0.3, .is_causal = true};
  const Tensor grad = numbers();
  Tensor log_sums;
  ASSERT_TRUE(detail::attend_fused(heads, settings, &log_sums));
  std::vector<detail::Heads> results;
  const std::pair<int64_t, int> most_and_launches[] = {
      {1 << 28, 1}, {1 << 28, 1}, {6 * 4096, 3}, {2 * 4096, 10}, {1, 15}};
  for (const auto& entry : most_and_launches) {
    const int64_t most = entry.first;
    const int wanted = entry.second;
    detail::Heads& grads = results.emplace_back();
    grads.output = grad;
    for (Tensor* x : {&grads.query, &grads.key, &grads.value}) *x = numbers();
    const FusedLaunches launches;
    EXPECT_TRUE(detail::attend_backward_fused(heads, grads, settings, log_sums, most));
    EXPECT_EQ(launches.count(), wanted) << most;
    const auto same = [&](const Tensor& x, const Tensor& y) {
      return wanted == 1 ? equal(x, y) : allclose(x.to(float32), y.to(float32), 0.02, 0.02);
    };
    EXPECT_TRUE(same(grads.query, results[0].query)) << most;
    EXPECT_TRUE(same(grads.key, results[0].key)) << most;
    EXPECT_TRUE(same(grads.value, results[0].value)) << most;
  }
}

TEST(AttentionFused, GroupsOfHeadsShareKeys) {
  manual_seed(0);
  for (const bool is_side_by_side : {false, true}) {
    std::vector<Tensor> given, exact;
    for (const Shape& shape : {Shape{2, 6, 64, 8}, Shape{2, 2, 70, 8}, Shape{2, 2, 70, 16}}) {
      const Tensor x = randn(shape).to(bfloat16);
      exact.push_back(x.to(float32).requires_grad_());
      given.push_back((is_side_by_side ? side_by_side(x) : x).requires_grad_());
    }
    const FusedLaunches launches;
    const Tensor y =
        scaled_dot_product_attention(given[0], given[1], given[2], {}, 0, false, {}, /*enable_gqa=*/true);
    y.backward(ones(y.shape(), {.dtype = bfloat16}));
    launches.expect(has_fused_kernels() ? 2 : 0);
    const Tensor wanted = exact_attention(exact[0], repeat_interleave(exact[1], 3, 1),
                                          repeat_interleave(exact[2], 3, 1), false);
    wanted.backward(ones(wanted.shape()));
    EXPECT_LT((y.detach().to(float32) - wanted.detach()).abs().max().item<float>(), 0.03);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_LT((given[i].grad().to(float32) - exact[i].grad()).abs().max().item<float>(),
                0.02 * std::max(1.0f, exact[i].grad().abs().max().item<float>()))
          << "of the operand " << i;
  }
}

TEST(AttentionFused, HeadsOfOneProjection) {
  manual_seed(0);
  const Tensor packed = randn({2, 64, 3 * 2 * 8}).to(bfloat16);
  for (const bool batch_first : {true, false}) {
    const Tensor given =
        (batch_first ? packed : contiguous(transpose(packed, 0, 1))).clone().requires_grad_();
    const FusedLaunches launches;
    const Tensor y = detail::attention_of_packed(given, {.heads = 2, .batch_first = batch_first});
    y.backward(ones(y.shape(), {.dtype = bfloat16}));
    launches.expect(has_fused_kernels() ? 2 : 0);
    const Tensor exact = given.detach().to(float32).requires_grad_();
    const auto part = [&](int64_t i) {
      return detail::split_heads(narrow(exact, -1, i * 16, 16), 2, batch_first);
    };
    const Tensor wanted = detail::join_heads(exact_attention(part(0), part(1), part(2), false), batch_first);
    wanted.backward(ones(wanted.shape()));
    EXPECT_LT((y.detach().to(float32) - wanted.detach()).abs().max().item<float>(), 0.03);
    EXPECT_LT((given.grad().to(float32) - exact.grad()).abs().max().item<float>(), 0.05);
  }
}

TEST(AttentionFused, WhereThereAreManyScores) {
  const Device device = get_default_device();
  if (device.is_cpu() || testing::is_emulated(device))
    GTEST_SKIP() << "for GPUs that are fast, real or simulated";
  const Tensor x = randn({1, 16, 512, 8}).to(bfloat16).requires_grad_();
  const FusedLaunches launches;
  const Tensor y = scaled_dot_product_attention(x, x, x);
  y.backward(ones(y.shape(), {.dtype = bfloat16}));
  launches.expect(2);
}

TEST(AttentionFused, NotWhereMoreIsAskedFor) {
  const Tensor x = randn({2, 64, 8}).to(bfloat16);
  const FusedLaunches launches;
  scaled_dot_product_attention(x, x, x, zeros({64, 64}));
  scaled_dot_product_attention(x, x, x, {}, /*dropout_p=*/0.5);
  scaled_dot_product_attention(x.to(float32), x.to(float32), x.to(float32));
  launches.expect(0);
}

/// Of shapes whose blocks and panels are not whole, too.
TEST(AttentionFused, OnTheCpu) {
  if (!get_default_device().is_cpu()) GTEST_SKIP() << "about the CPU";
  std::vector<FusedCase> cases = fused_cases();
  for (FusedCase& c : cases) c.is_fused = c.name != "keys that the batch shares" && c.name != "columns apart";
  cases.push_back({"several blocks of rows and of columns", {2, 331, 20}, {2, 1100, 20}, 37, true});
  cases.push_back({"more columns than a row sees", {1, 40, 8}, {1, 300, 8}, 8, true});
  cases.push_back({"more heads than parts are wanted", {40, 200, 5}, {40, 20, 5}, 3, true});
  cases.push_back({"few enough", {2, 16, 3}, {2, 17, 3}, 1, true});
  cases.push_back({"too few rows", {2, 15, 8}, {2, 90, 8}, 8, false});
  cases.push_back({"too few columns", {2, 90, 8}, {2, 15, 8}, 8, false});
  for (const DType dtype : {float32, bfloat16, float16})
    for (const FusedCase& c : cases)
      for (const bool is_causal : {false, true}) {
        SCOPED_TRACE(c.name + (is_causal ? ", causal, " : ", ") + std::string(name(dtype)));
        manual_seed(0);
        std::vector<Tensor> given, exact;
        for (const Shape& shape : c.shapes()) {
          given.push_back(randn(shape).to(dtype).requires_grad_());
          exact.push_back(given.back().detach().to(float64).requires_grad_());
        }
        const auto attention = [&] {
          return scaled_dot_product_attention(c.layout(given[0]), c.layout(given[1]), c.layout(given[2]), {},
                                              0, is_causal);
        };
        const FusedLaunches launches;
        const Tensor y = attention(), direction = randn(y.shape()).to(dtype);
        y.backward(direction);
        NoGradGuard no_grad;
        EXPECT_LT((attention() - y).abs().max().item<float>(), dtype == float32 ? 2e-6 : 0.02);
        // Some processors have products of bfloat16 that are faster.
        if (dtype != bfloat16) {
          EXPECT_EQ(launches.count(), c.is_fused ? 3 : 0);
        }
        Tensor wanted;
        {
          EnableGradGuard grad;
          wanted = exact_attention(exact[0], exact[1], exact[2], is_causal);
          wanted.backward(direction.to(float64));
        }
        EXPECT_LT((y.to(float64) - wanted).abs().max().item<double>(), dtype == float32 ? 2e-6 : 0.03);
        for (size_t i = 0; i < 3; ++i) {
          const Tensor& of_exact = exact[i].grad();
          EXPECT_LT((given[i].grad().to(float64) - of_exact).abs().max().item<double>(),
                    (dtype == float32 ? 2e-6 : 0.02) * std::max(1.0, of_exact.abs().max().item<double>()))
              << "of the operand " << i;
        }
      }
}

TEST(AttentionFused, GroupsOfHeadsOnTheCpu) {
  if (!get_default_device().is_cpu()) GTEST_SKIP() << "about the CPU";
  manual_seed(0);
  std::vector<Tensor> given, exact;
  for (const Shape& shape : {Shape{2, 6, 64, 8}, Shape{2, 2, 70, 8}, Shape{2, 2, 70, 16}}) {
    given.push_back(randn(shape).requires_grad_());
    exact.push_back(given.back().detach().requires_grad_());
  }
  const FusedLaunches launches;
  const Tensor y =
      scaled_dot_product_attention(given[0], given[1], given[2], {}, 0, false, {}, /*enable_gqa=*/true);
  y.backward(ones(y.shape()));
  EXPECT_EQ(launches.count(), 2);
  const Tensor wanted =
      exact_attention(exact[0], repeat_interleave(exact[1], 3, 1), repeat_interleave(exact[2], 3, 1), false);
  wanted.backward(ones(y.shape()));
  EXPECT_LT((y.detach() - wanted.detach()).abs().max().item<float>(), 2e-6);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_LT((given[i].grad() - exact[i].grad()).abs().max().item<float>(), 2e-5) << "of the operand " << i;
}

/// However many threads there are.
TEST(AttentionFused, TheSameBitsOnTheCpu) {
  if (!get_default_device().is_cpu()) GTEST_SKIP() << "about the CPU";
  manual_seed(0);
  const Tensor x = randn({2, 500, 8}).requires_grad_();
  std::vector<Tensor> grads;
  const int before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    grads.push_back(grad({scaled_dot_product_attention(x, x, x, {}, 0, true).sum()}, {x})[0]);
  }
  set_num_threads(before);
  EXPECT_TRUE(equal(grads[0], grads[1]));
}

TEST(AttentionFused, NanStaysInItsRow) {
  Tensor query = ones({1, 64, 8}).to(bfloat16);
  const Tensor key = ones({1, 64, 8}).to(bfloat16);
  query.slice(1, 5, 6).fill_(std::numeric_limits<double>::quiet_NaN());
  const Tensor is_nan = isnan(scaled_dot_product_attention(query, key, key));
  EXPECT_EQ(is_nan.sum().item<int64_t>(), 8);
  EXPECT_TRUE(is_nan.slice(1, 5, 6).all().item<bool>());
}

}  // namespace
}  // namespace tern
