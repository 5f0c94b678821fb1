// Losses. Cross entropy and the losses of two tensors are one launch forward
// and one backward; nn re-exports them under PyTorch's names. Formulas stand at
// CrossEntropyProblem and PairLoss in kernels/loss.h.
#pragma once

#include <string_view>

#include "tern/core/tensor.h"
#include "tern/kernels/loss.h"

namespace tern {

/// "none", "mean", "sum" or "batchmean". Throws ValueError for another word.
Reduction parse_reduction(std::string_view word);

struct CrossEntropyOptions {
  Tensor weight = {};           ///< [C], a factor for each class
  int64_t ignore_index = -100;  ///< targets that do not count
  Reduction reduction = Reduction::Mean;
  double label_smoothing = 0;  ///< in [0, 1]
};

/// -log softmax(input)[target]. Input [C], [N, C] or [N, C, d1, ...] of floats;
/// target [], [N] or [N, d1, ...] of int64 class numbers, or class
/// probabilities in the input's shape. The mean is weighted by the targets'
/// class weights. Throws ShapeError, DTypeError, IndexError ("Target 10 is out
/// of bounds."), ValueError for a wrong option.
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {});

struct NllLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
};

/// -input[target] for log probabilities.
Tensor nll_loss(const Tensor& input, const Tensor& target, const NllLossOptions& options = {});

// Losses of two float tensors, which broadcast and are promoted; both may have gradients. Where mse_loss,
// l1_loss, smooth_l1_loss and huber_loss broadcast, stderr tells so once, as PyTorch does.

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
/// Throws ValueError for beta < 0; beta = 0 is l1_loss.
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean,
                      double beta = 1);
/// Throws ValueError unless delta > 0.
Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean,
                  double delta = 1);

// Binary cross entropy; target and input have one shape.

/// Input are probabilities. Throws ValueError for those outside [0, 1].
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                            Reduction reduction = Reduction::Mean);

struct BceWithLogitsOptions {
  Tensor weight = {};      ///< broadcast, a factor for each element
  Tensor pos_weight = {};  ///< broadcast, a factor for the positive part
  Reduction reduction = Reduction::Mean;
};
/// binary_cross_entropy of sigmoid(input), without overflow.
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BceWithLogitsOptions& options = {});

struct KlDivOptions {
  Reduction reduction = Reduction::Mean;
  bool log_target = false;  ///< the target is given as logarithms
};
/// Kullback-Leibler divergence target * (log target - input) for an input of
/// log probabilities.
Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& options = {});

}  // namespace tern
