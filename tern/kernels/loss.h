// Arguments of the loss kernels: cross entropy (fused log-softmax and negative log likelihood), losses of two
// tensors of one shape, connectionist temporal classification, and the margins of several labels. Checks and
// gradients of the operators are in tern/ops/loss*.cpp.
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
/// Throws ValueError for inputs and targets of Bce outside [0, 1].
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

/// What the two kernels of connectionist temporal classification have in common (Graves et al.,
/// "Connectionist temporal classification", 2006). A target of n labels is written with blanks around each,
/// as 2 n + 1 states; row s of the states may follow s, s - 1, and s - 2 where that is another label.
struct CtcProblem {
  DType dtype{};               ///< of log_probs, loss and gradients; float32 or float64
  bool zero_infinity = false;  ///< gradients of samples whose loss is infinite are 0 instead of NaN
  int64_t time = 0;
  int64_t batch = 0;
  int64_t classes = 0;
  int64_t blank = 0;
  int64_t longest = 0;               ///< most labels of a sample
  int64_t labels = 0;                ///< elements of `targets`
  const void* log_probs = nullptr;   ///< contiguous [time, batch, classes]
  const int64_t* targets = nullptr;  ///< the labels of all samples
  /// [3, batch]: steps of each sample's input, labels of its target, and where in `targets` they start.
  const int64_t* lengths = nullptr;
};

/// loss[n] = -log of the sum of the probabilities of all paths through the states; infinite where there is
/// none. Leaves the logarithms of the sums of the paths up to each step and state. Throws IndexError for
/// labels outside the classes.
struct CtcLossArgs {
  CtcProblem problem;
  void* loss = nullptr;  ///< [batch]
  void* log_alpha =
      nullptr;  ///< [batch, time, 2 * longest + 1]; what lies past a sample's end is not written
};

/// grad_log_probs = (exp(log_probs) - share of the paths) * grad_loss: the gradient by what log_softmax was
/// made of, as PyTorch gives it; 0 past the end of a sample's input.
struct CtcLossBackwardArgs {
  CtcProblem problem;
  const void* loss = nullptr;       ///< [batch]
  const void* log_alpha = nullptr;  ///< as the forward kernel left it
  const void* grad_loss = nullptr;  ///< [batch]
  void* grad_log_probs = nullptr;   ///< like log_probs
};

/// loss[r] = sum over targets t and classes c that are none of max(0, 1 - (input[r, t] - input[r, c])),
/// divided by the classes. Targets of a row end at the first -1. Throws IndexError for targets outside
/// [-1, classes).
struct MultilabelMarginArgs {
  DType dtype{};  ///< of input, loss and gradients; floating
  int64_t rows = 0;
  int64_t classes = 0;
  const void* input = nullptr;      ///< [rows, classes]
  const int64_t* target = nullptr;  ///< [rows, classes]
  uint8_t* is_target = nullptr;     ///< [rows, classes], written
  void* loss = nullptr;             ///< [rows]
};

struct MultilabelMarginBackwardArgs {
  DType dtype{};
  int64_t rows = 0;
  int64_t classes = 0;
  const void* input = nullptr;
  const int64_t* target = nullptr;
  const uint8_t* is_target = nullptr;
  const void* grad_loss = nullptr;  ///< [rows]
  void* grad_input = nullptr;       ///< [rows, classes]
};

#define TERN_LOSS_KERNELS(X)                          \
  X(cross_entropy, CrossEntropyArgs)                  \
  X(cross_entropy_backward, CrossEntropyBackwardArgs) \
  X(pair_loss, PairLossArgs)                          \
  X(pair_loss_backward, PairLossBackwardArgs)         \
  X(ctc_loss, CtcLossArgs)                            \
  X(ctc_loss_backward, CtcLossBackwardArgs)           \
  X(multilabel_margin, MultilabelMarginArgs)          \
  X(multilabel_margin_backward, MultilabelMarginBackwardArgs)

}  // namespace tern
