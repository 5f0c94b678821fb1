// AdaptiveLogSoftmaxWithLoss: log probabilities of very many classes.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tern/nn/containers.h"
#include "tern/nn/linear.h"

namespace tern::nn {

struct AdaptiveLogSoftmaxOptions {
  double div_value = 4;    ///< by which the features shrink from each cluster to the next
  bool head_bias = false;  ///< whether `head` has a bias
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// Classes in the order of how often they occur, in clusters that end at `cutoffs`: the first, and one output
/// for each of the others, come from `head`; the others' own from two layers each, which are computed for
/// those samples that need them (Grave et al., "Efficient softmax approximation for GPUs", 2017).
class AdaptiveLogSoftmaxWithLoss final : public Module {
 public:
  /// Throws ValueError unless the cutoffs are rising numbers from 1 to n_classes - 1 and div_value is above
  /// 0.
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs,
                             const AdaptiveLogSoftmaxOptions& options = {});

  Linear head;                  ///< to cutoffs[0] classes and the clusters
  ModuleList<Sequential> tail;  ///< of each cluster two layers without bias
  TERN_MODULE(head, tail)

  /// For x [N, in_features] and classes `target` [N] (int64), or [in_features] and []: the log probability of
  /// each sample's target, in the shape of `target`, and the loss, minus their mean. Blocks the host. Throws
  /// ShapeError for other shapes, DTypeError, ValueError for targets that are no classes.
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& target) const;
  /// Log probabilities of all classes: [N, in_features] to [N, n_classes].
  Tensor log_prob(const Tensor& x) const;
  /// The likeliest class of each sample: [N, in_features] to [N].
  Tensor predict(const Tensor& x) const;

  int64_t in_features() const { return head.in_features(); }
  int64_t n_classes() const noexcept { return cutoffs_.back(); }
  /// Those of the constructor, and n_classes.
  const std::vector<int64_t>& cutoffs() const noexcept { return cutoffs_; }
  double div_value() const noexcept { return options_.div_value; }
  bool head_bias() const noexcept { return options_.head_bias; }

 private:
  std::vector<int64_t> cutoffs_;
  AdaptiveLogSoftmaxOptions options_;
};

}  // namespace tern::nn
