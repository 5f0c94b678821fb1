// Losses. Cross entropy and the losses of two tensors are one launch forward
// and one backward; nn re-exports them under PyTorch's names. Formulas stand at
// CrossEntropyProblem and PairLoss in kernels/loss.h. Rankings, embeddings and margins
// are in ops/loss_margin.h. A loss whose one option is the reduction takes it as
// an argument, the others take a struct of options.
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

struct SmoothL1LossOptions {
  Reduction reduction = Reduction::Mean;
  double beta = 1;  ///< differences below are squared; 0 is l1_loss
};
/// Throws ValueError for beta < 0.
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossOptions& options = {});

struct HuberLossOptions {
  Reduction reduction = Reduction::Mean;
  double delta = 1;  ///< differences up to it are squared
};
/// Throws ValueError unless delta > 0.
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossOptions& options = {});

// Binary cross entropy; target and input have one shape.

struct BceOptions {
  Tensor weight = {};  ///< broadcast, a factor for each element
  Reduction reduction = Reduction::Mean;
};
/// Input and target are probabilities. Throws ValueError for those outside [0, 1]; on GPUs at the next wait.
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const BceOptions& options = {});

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

// Negative log likelihoods. Input and target broadcast.

struct PoissonNllLossOptions {
  bool log_input = true;  ///< the input is the logarithm of the rate
  bool full = false;      ///< with Stirling's approximation of log(target!) for targets above 1
  double eps = 1e-8;      ///< added to an input that is no logarithm, before its logarithm is taken
  Reduction reduction = Reduction::Mean;
};
/// exp(input) - target * input, or input - target * log(input + eps), for counts with a Poisson distribution.
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNllLossOptions& options = {});

struct GaussianNllLossOptions {
  bool full = false;  ///< with the constant log(2 pi) / 2
  double eps = 1e-6;  ///< the least variance that is computed with; gradients do not know of it
  Reduction reduction = Reduction::Mean;
};
/// (log(var) + (input - target)^2 / var) / 2 for a target with a normal distribution of mean `input`. Var has
/// the input's shape with at most one dimension of size 1, or without the last dimension; else throws
/// ShapeError. Throws ValueError for a negative var; on GPUs, where the host would have to wait, the loss of
/// one is NaN.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNllLossOptions& options = {});
/// The same variance everywhere.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, double var,
                         const GaussianNllLossOptions& options = {});

struct CtcLossOptions {
  int64_t blank = 0;  ///< class of the blank
  Reduction reduction = Reduction::Mean;
  bool zero_infinity = false;  ///< infinite losses and their gradients become 0
};
/// Connectionist temporal classification (Graves et al., 2006): -log of the probability that the labels of
/// `targets`, with blanks and repetitions, are what log_probs ([T, N, C] or [T, C], float32 or float64, of
/// log_softmax) tell; infinite where the input is too short for that. Targets are [N, S] or, one behind the
/// other, [sum of target_lengths]. The mean is over the samples' losses, each divided by the length of its
/// target. As in PyTorch, the gradient is right only for log_probs that log_softmax made, and can not be
/// differentiated again (NotImplementedError); log_probs of -infinity have a gradient of 0. Throws ShapeError
/// (for empty log_probs too), DTypeError, ValueError for lengths that are too large or negative and for a
/// blank that is no class, IndexError for a label that is none.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                IntArrayRef target_lengths, const CtcLossOptions& options = {});
/// Lengths are integers, [N] or [] for log_probs [T, C]; best on the CPU: for those on a GPU the host waits.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcLossOptions& options = {});

}  // namespace tern
