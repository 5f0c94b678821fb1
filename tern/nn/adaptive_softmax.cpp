// Log probabilities in clusters of classes, as in torch/nn/modules/adaptive.py.
#include "tern/nn/adaptive_softmax.h"

#include <cmath>

#include "tern/base/check.h"
#include "tern/nn/layer_support.h"
#include "tern/ops/compare.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"
#include "tern/ops/sort.h"

namespace tern::nn {
namespace {

constexpr const char* kAdaptiveSoftmax = "AdaptiveLogSoftmaxWithLoss";

std::vector<int64_t> checked_cutoffs(std::vector<int64_t> cutoffs, int64_t n_classes) {
  int64_t before = 0;
  for (const int64_t cutoff : cutoffs) {
    TERN_CHECK(cutoff > before && cutoff < n_classes, ValueError,
               "{}: cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
               "where each value is between 1 and n_classes-1, got {} after {} for {} classes",
               kAdaptiveSoftmax, cutoff, before, n_classes);
    before = cutoff;
  }
  TERN_CHECK(!cutoffs.empty(), ValueError, "{}: cutoffs should be a sequence of at least one integer",
             kAdaptiveSoftmax);
  cutoffs.push_back(n_classes);
  return cutoffs;
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes,
                                                       std::vector<int64_t> cutoffs,
                                                       const AdaptiveLogSoftmaxOptions& options)
    : head(at_least(kAdaptiveSoftmax, "in_features", in_features, 1),
           cutoffs.empty() ? 1 : cutoffs[0] + static_cast<int64_t>(cutoffs.size()),
           {.bias = options.head_bias, .device = options.device, .dtype = options.dtype}),
      cutoffs_(checked_cutoffs(std::move(cutoffs), n_classes)),
      options_(options) {
  TERN_CHECK(options.div_value > 0, ValueError, "{}: div_value must be above 0, got {}", kAdaptiveSoftmax,
             options.div_value);
  const LinearOptions plain{.bias = false, .device = options.device, .dtype = options.dtype};
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const double shrink = std::pow(options.div_value, static_cast<double>(i + 1));
    const auto hidden = static_cast<int64_t>(static_cast<double>(in_features) / shrink);
    tail.push_back(
        Sequential{Linear(in_features, hidden, plain), Linear(hidden, cutoffs_[i + 1] - cutoffs_[i], plain)});
  }
}

std::pair<Tensor, Tensor> AdaptiveLogSoftmaxWithLoss::forward(const Tensor& x, const Tensor& target) const {
  TERN_CHECK(
      target.dim() <= 1 && x.dim() == target.dim() + 1 && (target.dim() == 0 || x.size(0) == target.size(0)),
      ShapeError,
      "{}: input and target should have the same size in the batch dimension: an input of 2D and a target "
      "of 1D, or of 1D and 0D, got {} and {}",
      kAdaptiveSoftmax, to_string(x.shape()), to_string(target.shape()));
  TERN_CHECK(target.dtype() == int64, DTypeError, "{}: the target must be int64, got {}", kAdaptiveSoftmax,
             name(target.dtype()));
  if (target.dim() == 0) {
    const auto one = forward(unsqueeze(x, 0), unsqueeze(target, 0));
    return {squeeze(one.first, 0), one.second};
  }
  const int64_t count = target.size(0), first = cutoffs_[0];
  TERN_CHECK(count > 0, ShapeError, "{}: there are no samples: the mean of none is not defined",
             kAdaptiveSoftmax);
  const int64_t lowest = amin(target).item<int64_t>(), highest = amax(target).item<int64_t>();
  TERN_CHECK(lowest >= 0 && highest < n_classes(), ValueError,
             "{}: Target values should be in [0, {}], but values in range [{}, {}] were found",
             kAdaptiveSoftmax, n_classes() - 1, lowest, highest);
  Tensor in_head = clamp_max(target, first);  // that of the class, or of its cluster
  const Tensor head_output = log_softmax(head(x), 1);
  Tensor inside;  // log probabilities in the clusters
  for (size_t i = 0; i < tail.size(); ++i) {
    const int64_t low = cutoffs_[i], high = cutoffs_[i + 1];
    const Tensor rows = where(logical_and(ge(target, low), lt(target, high)))[0];
    if (rows.numel() == 0) continue;
    const Tensor relative = unsqueeze(sub(index_select(target, 0, rows), low), 1);
    const Tensor own =
        gather(log_softmax(tail[static_cast<int64_t>(i)](index_select(x, 0, rows)), 1), 1, relative);
    if (!inside.defined())
      inside = zeros({count}, {.dtype = own.dtype(), .device = own.device(), .requires_grad = false});
    inside = index_copy(inside, 0, rows, squeeze(own, 1));
    in_head = index_fill(in_head, 0, rows, first + static_cast<int64_t>(i));
  }
  Tensor output = squeeze(gather(head_output, 1, unsqueeze(in_head, 1)), 1);
  if (inside.defined()) output = add(output, inside);
  return {output, mean(neg(output))};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& x) const {
  const Tensor head_output = log_softmax(head(x), 1);
  const int64_t first = cutoffs_[0];
  std::vector<Tensor> parts{narrow(head_output, 1, 0, first)};
  for (size_t i = 0; i < tail.size(); ++i) {
    const auto cluster = static_cast<int64_t>(i);
    parts.push_back(add(log_softmax(tail[cluster](x), 1), narrow(head_output, 1, first + cluster, 1)));
  }
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& x) const { return argmax(log_prob(x), 1); }

}  // namespace tern::nn
