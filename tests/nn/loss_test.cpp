// Losses as modules: that they pass their options on, and what they print. Values are those of the functions.
#include "tern/nn/loss.h"

#include <gtest/gtest.h>

#include "tern/nn/loss_margin.h"
#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/softmax.h"

namespace tern::nn {
namespace {

TEST(LossModules, PassTheirOptionsOn) {
  manual_seed(0);
  const Tensor x = randn({4, 3}), y = randn({4, 3}), z = randn({4, 3}), w = tensor({1.0, 2.0, 3.0}),
               signs = tensor({1.0, -1.0, 1.0, -1.0}), t = tensor({0, 2, 1, 2}), positive = exp(y);
  const auto same = [](const Tensor& module, const Tensor& function) {
    EXPECT_TRUE(equal(module, function)) << module.str() << "\n" << function.str();
  };
  const MarginRankingLossOptions ranking{.margin = 0.5, .reduction = Reduction::Sum};
  same(MarginRankingLoss(ranking)(x, y, sign(z)), margin_ranking_loss(x, y, sign(z), ranking));
  const HingeEmbeddingLossOptions hinge{.margin = 0.5, .reduction = Reduction::None};
  same(HingeEmbeddingLoss(hinge)(x, sign(z)), hinge_embedding_loss(x, sign(z), hinge));
  const CosineEmbeddingLossOptions cosine{.margin = 0.5, .reduction = Reduction::Sum};
  same(CosineEmbeddingLoss(cosine)(x, y, signs), cosine_embedding_loss(x, y, signs, cosine));
  const TripletMarginLossOptions triplet{
      .margin = 2, .p = 3, .eps = 0.1, .swap = true, .reduction = Reduction::None};
  same(TripletMarginLoss(triplet)(x, y, z), triplet_margin_loss(x, y, z, triplet));
  same(TripletMarginWithDistanceLoss({.swap = true})(x, y, z), triplet_margin_loss(x, y, z, {.swap = true}));
  const MultiMarginLossOptions multi{.p = 2, .margin = 0.5, .weight = w, .reduction = Reduction::Sum};
  same(MultiMarginLoss(multi)(x, t), multi_margin_loss(x, t, multi));
  const Tensor labels = tensor({{0, 2, -1}, {1, -1, 0}, {-1, 0, 0}, {2, 1, 0}});
  same(MultiLabelMarginLoss(Reduction::Sum)(x, labels), multilabel_margin_loss(x, labels, Reduction::Sum));
  const MultilabelSoftMarginLossOptions soft{.weight = w, .reduction = Reduction::None};
  same(MultiLabelSoftMarginLoss(soft)(x, gt(z, 0)), multilabel_soft_margin_loss(x, gt(z, 0), soft));
  same(SoftMarginLoss(Reduction::Sum)(x, sign(z)), soft_margin_loss(x, sign(z), Reduction::Sum));
  const PoissonNllLossOptions poisson{
      .log_input = false, .full = true, .eps = 0.1, .reduction = Reduction::Sum};
  same(PoissonNLLLoss(poisson)(positive, positive), poisson_nll_loss(positive, positive, poisson));
  const GaussianNllLossOptions gaussian{.full = true, .eps = 0.5, .reduction = Reduction::Sum};
  same(GaussianNLLLoss(gaussian)(x, z, positive), gaussian_nll_loss(x, z, positive, gaussian));
  same(GaussianNLLLoss(gaussian)(x, z, 2.0), gaussian_nll_loss(x, z, 2.0, gaussian));
  const Tensor logs = log_softmax(x, 1);
  const CtcLossOptions ctc{.blank = 2, .reduction = Reduction::Sum, .zero_infinity = true};
  const std::vector<int64_t> steps{4}, lengths{2};
  same(CTCLoss(ctc)(logs, tensor({0, 1}), steps, lengths), ctc_loss(logs, tensor({0, 1}), {4}, {2}, ctc));
  same(CTCLoss(ctc)(logs, tensor({0, 1}), tensor(4), tensor(2)),
       ctc_loss(logs, tensor({0, 1}), {4}, {2}, ctc));
  MultiMarginLoss weighted(multi);
  weighted.to(float64);
  EXPECT_EQ(weighted.weight.dtype(), float64);
  EXPECT_EQ(weighted.state_dict().size(), 1u);
}

TEST(LossModules, PrintWithoutSettings) {
  EXPECT_EQ(TripletMarginLoss({.margin = 2}).str(), "TripletMarginLoss()");
  EXPECT_EQ(MultiMarginLoss().str(), "MultiMarginLoss()");
  EXPECT_EQ(MultiLabelSoftMarginLoss().str(), "MultiLabelSoftMarginLoss()");
  EXPECT_EQ(CTCLoss().str(), "CTCLoss()");
  EXPECT_EQ(PoissonNLLLoss().str(), "PoissonNLLLoss()");
}

}  // namespace
}  // namespace tern::nn
