// Arguments of the loss kernels: cross entropy (fused log-softmax and negative log likelihood), and losses of
// two tensors of one shape. Reductions, checks and gradients of the operators are in tern/ops/loss.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

/// How the losses of the elements become the result.
enum class Reduction : uint8_t {
  None,  ///< one loss for each element
  Mean,
  Sum,
  BatchMean,  ///< sum / size(0); kl_div only, kernels do not see it
};

/// What the two cross-entropy kernels have in common. The input is contiguous [batch, classes, inner],
/// targets are [batch, inner] (a "row" is one of them). With p = softmax(input), t the target and e the label
/// smoothing, the loss of a row is (1 - e) * weight[t] * -log p[t] + e / classes * sum over c of weight[c] *
/// -log p[c]; 0 where t is `ignore_index`. The mean divides by the sum of weight[t] over the rows that count.
struct CrossEntropyProblem {
  DType dtype{};                   ///< of input, loss and gradients; floating
  bool log_probabilities = false;  ///< the input is log p already (negative log likelihood)
  Reduction reduction = Reduction::Mean;
  int64_t batch = 0;
  int64_t classes = 0;
  int64_t inner = 0;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  const void* input = nullptr;
  const int64_t* target = nullptr;
  const void* weight = nullptr;  ///< [classes] of `dtype`, or null
};

/// Writes the loss ([batch, inner] for Reduction::None, else one number) and what backward needs, in the
/// compute type (float for 16-bit floats): the maximum m of each row, log(sum(exp(row - m))) of each row,
/// then the mean's divisor. Throws IndexError for a target outside the classes. Sums do not depend on the
/// number of threads.
struct CrossEntropyArgs {
  CrossEntropyProblem problem;
  void* loss = nullptr;
  void* saved = nullptr;  ///< [2 * batch * inner + 1]
};

/// grad_input = gradient of the loss times grad_loss (one number, or [batch, inner] for Reduction::None).
struct CrossEntropyBackwardArgs {
  CrossEntropyProblem problem;
  const void* saved = nullptr;
  const void* grad_loss = nullptr;
  void* grad_input = nullptr;
};

/// Losses l(x, y) of an element x of the input and y of the target.
enum class PairLoss : uint8_t {
  Mse,            ///< (x - y)^2
  L1,             ///< |x - y|
  SmoothL1,       ///< parameter beta: 0.5 (x - y)^2 / beta where |x - y| < beta, else |x - y| - 0.5 beta
  Huber,          ///< parameter delta: 0.5 (x - y)^2 where |x - y| <= delta, else delta (|x - y| - 0.5 delta)
  Bce,            ///< -(y log x + (1 - y) log(1 - x)), logarithms at least -100
  BceWithLogits,  ///< Bce of sigmoid(x)
  KlDiv,          ///< y log y - y x, where 0 log 0 is 0
  KlDivLog,       ///< exp(y) (y - x)
};

/// loss[i] = l(input[i], target[i]), or their sum times `scale`. Everything is contiguous and of `dtype`.
/// Throws ValueError for inputs of Bce outside [0, 1].
struct PairLossArgs {
  PairLoss op{};
  DType dtype{};
  Reduction reduction = Reduction::Mean;
  int64_t numel = 0;
  double parameter = 0;
  double scale = 1;  ///< 1 / numel for the mean
  const void* input = nullptr;
  const void* target = nullptr;
  void* loss = nullptr;
};

/// grad_input[i] = scale * grad_loss[i or 0] * dl/dx.
struct PairLossBackwardArgs {
  PairLoss op{};
  DType dtype{};
  Reduction reduction = Reduction::Mean;
  int64_t numel = 0;
  double parameter = 0;
  double scale = 1;
  const void* input = nullptr;
  const void* target = nullptr;
  const void* grad_loss = nullptr;
  void* grad_input = nullptr;
};

#define TERN_LOSS_KERNELS(X)                          \
  X(cross_entropy, CrossEntropyArgs)                  \
  X(cross_entropy_backward, CrossEntropyBackwardArgs) \
  X(pair_loss, PairLossArgs)                          \
  X(pair_loss_backward, PairLossBackwardArgs)

}  // namespace tern
