// Attention: blocks against the formula, masks and their gradients, rows that see nothing, dropout,
// derivatives, errors. Values beside PyTorch's are in tests/support/operator_rows/attention.py.
#include "tern/ops/attention.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tern/autograd/grad_mode.h"
#include "tern/autograd/gradcheck.h"
#include "tern/device/registry.h"
#include "tern/ops/compare.h"
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
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using testing::below_diagonal;
using testing::by_formula;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kMinusInfinity;

void expect_same_numbers(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_LT((a - b).abs().max().item<double>(), 1e-10 * std::max(1.0, b.abs().max().item<double>()));
}

TEST(Attention, BlocksGiveWhatTheFormulaGives) {
  manual_seed(0);
  struct Case {
    Shape query, key;
    bool is_causal;
  };
  // Scores fill one block, blocks of several matrices, or blocks of some rows. A GPU has larger ones, which
  // the emulator is too slow to fill.
  std::vector<Case> cases = {Case{{2, 3, 5, 4}, {2, 3, 7, 4}, false},
                             Case{{2, 5, 64, 4}, {2, 5, 64, 4}, true},
                             Case{{1, 2, 90, 4}, {1, 2, 30, 4}, true}};
  if (const Device device = get_default_device(); !testing::is_emulated(device)) {
    const bool is_real_gpu = device.is_cuda() && !cuda::get_device_properties(device).simulated;
    const int64_t n = is_real_gpu ? 4096 : 600;
    for (const bool is_causal : {false, true}) cases.push_back({{1, 2, n, 4}, {1, 2, n + 100, 4}, is_causal});
    cases.insert(cases.end(),
                 {Case{{3, 40, 64, 4}, {3, 40, 64, 4}, true}, Case{{1, 2, 900, 4}, {1, 2, 300, 4}, true},
                  Case{{2, n, 4}, {2, n, 4}, false}});
  }
  for (const Case& c : cases) {
    std::vector<Tensor> grads[2];
    Tensor results[2];
    const Tensor given[3] = {randn(c.query, {.dtype = float64}), randn(c.key, {.dtype = float64}),
                             randn(c.key, {.dtype = float64})};
    for (const int way : {0, 1}) {
      std::vector<Tensor> x;
      for (const Tensor& one : given) x.push_back(one.clone().requires_grad_());
      const Tensor visible = c.is_causal ? below_diagonal(x[0].size(-2), x[1].size(-2)) : Tensor();
      results[way] = way ? by_formula(x[0], x[1], x[2], visible)
                         : scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, c.is_causal);
      results[way].backward(given[0]);
      for (const Tensor& one : x) grads[way].push_back(one.grad());
    }
    expect_same_numbers(results[0], results[1]);
    for (size_t i = 0; i < 3; ++i) expect_same_numbers(grads[0][i], grads[1][i]);
    NoGradGuard no_grad;
    expect_same_numbers(scaled_dot_product_attention(given[0], given[1], given[2], {}, 0, c.is_causal),
                        results[1]);
  }
}

TEST(Attention, ScoresOfLongSequencesAreNotKept) {
  constexpr int64_t kLength = 3072;
  const Tensor x = randn({1, 1, kLength, 4}, {.device = kCPU}).requires_grad_();
  Backend& cpu = backend_of(DeviceType::CPU);
  cpu.reset_peak_memory_stats(0);
  const uint64_t before = cpu.memory_stats(0).allocated;
  scaled_dot_product_attention(x, x, x).sum().backward();
  EXPECT_LT(cpu.memory_stats(0).max_allocated - before, uint64_t{kLength * kLength / 2});
}

TEST(Attention, RowsThatSeeNothingAreZeroAndSoAreTheirGradients) {
  manual_seed(0);
  const Tensor mask = tensor({{true, false, true}, {false, false, false}});
  for (const bool is_bool : {true, false}) {
    Tensor x[3] = {randn({2, 4}).requires_grad_(), randn({3, 4}).requires_grad_(),
                   randn({3, 5}).requires_grad_()};
    const Tensor bias = masked_fill(zeros({2, 3}), logical_not(mask), kMinusInfinity);
    const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], is_bool ? mask : bias);
    EXPECT_THAT(y[1].detach().to_vector<float>(), ::testing::Each(0.0f));
    y.sum().backward();
    EXPECT_THAT(x[0].grad()[1].to_vector<float>(), ::testing::Each(0.0f));
    EXPECT_THAT(x[1].grad()[1].to_vector<float>(), ::testing::Each(0.0f));
    for (const Tensor& one : x) EXPECT_TRUE(isfinite(one.grad()).all().item<bool>());
  }
}

TEST(Attention, MasksHaveGradients) {
  const auto numbers = [](IntArrayRef shape) { return randn(shape, {.dtype = float64}).requires_grad_(); };
  manual_seed(0);
  const std::vector<Tensor> x{numbers({2, 3, 4}), numbers({2, 5, 4}), numbers({2, 5, 2}), numbers({3, 5})};
  EXPECT_NO_THROW(gradcheck(
      [](const std::vector<Tensor>& v) { return scaled_dot_product_attention(v[0], v[1], v[2], v[3]); }, x));
}

TEST(Attention, DerivativesAgreeWithDifferences) {
  manual_seed(0);
  const auto numbers = [](IntArrayRef shape) { return randn(shape, {.dtype = float64}).requires_grad_(); };
  const Tensor visible =
      tensor({{true, false, true, true}, {false, false, false, false}, {true, true, false, true}});
  using Inputs = std::vector<Tensor>;
  const Inputs x{numbers({2, 3, 4}), numbers({2, 4, 4}), numbers({2, 4, 2})};
  const std::function<Tensor(const Inputs&)> functions[] = {
      [](const Inputs& v) { return scaled_dot_product_attention(v[0], v[1], v[2]); },
      [&](const Inputs& v) { return scaled_dot_product_attention(v[0], v[1], v[2], visible); },
      [](const Inputs& v) {
        return scaled_dot_product_attention(v[0], v[1], v[2], {}, 0, /*is_causal=*/true, 0.3);
      }};
  for (const auto& f : functions) {
    EXPECT_NO_THROW(gradcheck(f, x));
    EXPECT_NO_THROW(gradgradcheck(f, x));
  }
  const Inputs heads{numbers({4, 3, 2}), numbers({2, 4, 2}), numbers({2, 4, 3})};
  const auto grouped = [](const Inputs& v) {
    return scaled_dot_product_attention(v[0], v[1], v[2], {}, 0, false, {}, /*enable_gqa=*/true);
  };
  EXPECT_NO_THROW(gradcheck(grouped, heads));
  EXPECT_NO_THROW(gradgradcheck(grouped, heads));
  for (const bool batch_first : {true, false}) {
    const auto side_by_side = [&](const Inputs& v) {
      return detail::attention_of_heads(v[0], v[1], v[2], {.heads = 2, .batch_first = batch_first});
    };
    const Inputs apart{numbers({2, 3, 4}), numbers({batch_first ? 2 : 5, batch_first ? 5 : 3, 4}),
                       numbers({batch_first ? 2 : 5, batch_first ? 5 : 3, 6})};
    EXPECT_NO_THROW(gradcheck(side_by_side, apart));
    EXPECT_NO_THROW(gradgradcheck(side_by_side, apart));
    const auto packed = [&](const Inputs& v) {
      return detail::attention_of_packed(v[0], {.heads = 2, .batch_first = batch_first});
    };
    EXPECT_NO_THROW(gradcheck(packed, {numbers({2, 3, 12})}));
    EXPECT_NO_THROW(gradgradcheck(packed, {numbers({2, 3, 12})}));
  }
}

TEST(Attention, DropsTheSameWeightsForwardAndBackward) {
  manual_seed(3);
  // With values that are a matrix of ones on the diagonal the result is the weights.
  Tensor query = randn({1, 6, 4}), key = randn({1, 6, 4}), value = eye(6).unsqueeze(0).requires_grad_();
  const Tensor y = scaled_dot_product_attention(query, key, value, {}, /*dropout_p=*/0.5);
  y.sum().backward();
  const Tensor weights = softmax(matmul(query, mT(key)) / 2, -1), kept = ne(y.detach(), 0);
  EXPECT_TRUE(allclose(y.detach(), where(kept, weights * 2, 0.0), 1e-5, 1e-6));
  EXPECT_GT(kept.to(float32).mean().item<double>(), 0.2);
  EXPECT_LT(kept.to(float32).mean().item<double>(), 0.8);
  EXPECT_TRUE(allclose(value.grad(), y.detach().sum(1).unsqueeze(-1).expand({1, 6, 6}), 1e-5, 1e-6));

  manual_seed(3, RandomEngine::MersenneTwister);
  const std::vector<Tensor> x{randn({2, 3, 4}, {.dtype = float64}).requires_grad_(),
                              randn({2, 5, 4}, {.dtype = float64}).requires_grad_(),
                              randn({2, 5, 2}, {.dtype = float64}).requires_grad_()};
  for (const RandomEngine engine : {RandomEngine::MersenneTwister, RandomEngine::Philox}) {
    const auto f = [&](const std::vector<Tensor>& v) {
      manual_seed(7, engine);
      return scaled_dot_product_attention(v[0], v[1], v[2], {}, 0.4);
    };
    EXPECT_NO_THROW(gradcheck(f, x));
    EXPECT_NO_THROW(gradgradcheck(f, x));
  }
  EXPECT_THAT(scaled_dot_product_attention(query, key, value, {}, 1.0).detach().to_vector<float>(),
              ::testing::Each(0.0f));
}

TEST(Attention, RefusesWrongArguments) {
  const Tensor query = zeros({2, 3, 4}), key = zeros({2, 5, 4}), value = zeros({2, 5, 6});
  const auto error = [&](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask = {},
                         bool causal = false, double p = 0) {
    return message_of([&] { scaled_dot_product_attention(q, k, v, mask, p, causal); });
  };
  EXPECT_THAT(error(query[0][0], key, value),
              HasSubstr("to all be at least 2 dimensional, but got query.dim: 1"));
  EXPECT_THAT(error(query, zeros({2, 5, 3}), value), HasSubstr("query and key must have the same last size"));
  EXPECT_THAT(error(query, key, zeros({2, 4, 6})),
              HasSubstr("key and value must have the same number of rows"));
  EXPECT_THAT(error(query, zeros({3, 5, 4}), value), HasSubstr("scaled_dot_product_attention"));
  EXPECT_THAT(error(query, key.to(float64), value),
              HasSubstr("to have the same dtype, but got query.dtype: float32"));
  EXPECT_THAT(error(query.to(int64), key.to(int64), value.to(int64)), HasSubstr("not implemented for int64"));
  EXPECT_THAT(error(query, key, value, zeros({4, 5})),
              HasSubstr("attn_mask of shape [4, 5] does not broadcast"));
  EXPECT_THAT(error(query, key, value, zeros({3, 5}, {.dtype = int64})), HasSubstr("attn_mask.dtype: int64"));
  EXPECT_THAT(error(query, key, value, zeros({3, 5}), /*causal=*/true), HasSubstr("when is_causal=True"));
  EXPECT_THAT(error(query, key, value, {}, false, 1.5), HasSubstr("between 0 and 1, but got 1.5"));
  EXPECT_THAT(
      message_of([&] {
        scaled_dot_product_attention(zeros({3, 3, 4}), key, value, {}, 0, false, {}, /*enable_gqa=*/true);
      }),
      HasSubstr("must divide the number of heads in query"));
}

}  // namespace
}  // namespace tern
