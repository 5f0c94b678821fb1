// What losses and normalisations do.
#include "tern/kernels/work_describe.h"

namespace tern::kernels {
namespace {

constexpr std::string_view kPairLosses[][2] = {
    {"mse_loss", "mse_loss_backward"},
    {"l1_loss", "l1_loss_backward"},
    {"smooth_l1_loss", "smooth_l1_loss_backward"},
    {"huber_loss", "huber_loss_backward"},
    {"binary_cross_entropy", "binary_cross_entropy_backward"},
    {"binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits_backward"},
    {"kl_div", "kl_div_backward"},
    {"kl_div", "kl_div_backward"},
};

int64_t rows_of(const CrossEntropyProblem& p) { return p.batch * p.inner; }
int64_t results_of(const CrossEntropyProblem& p) { return p.reduction == Reduction::None ? rows_of(p) : 1; }

}  // namespace

void describe(const CrossEntropyArgs& args, Work& work) {
  const CrossEntropyProblem& p = args.problem;
  const size_t item = itemsize(p.dtype);
  const int64_t rows = rows_of(p);
  const double numel = static_cast<double>(rows) * static_cast<double>(p.classes);
  // Without smoothing, negative log likelihood reads the targets' elements alone.
  const bool picks = p.log_probabilities && p.label_smoothing == 0;
  work.op = p.log_probabilities ? "nll_loss" : "cross_entropy";
  work.flops = p.log_probabilities ? 2 * static_cast<double>(rows) : 5 * numel;
  writes(work, args.loss, item, results_of(p));
  writes(work, args.saved, compute_size(p.dtype), 2 * rows + 1);
  reads(work, p.input, item, Span(rows * p.classes).touched(picks ? static_cast<double>(rows) : numel));
  reads(work, p.target, sizeof(int64_t), rows);
  reads(work, p.weight, item, p.classes);
}

void describe(const CrossEntropyBackwardArgs& args, Work& work) {
  const CrossEntropyProblem& p = args.problem;
  const size_t item = itemsize(p.dtype);
  const int64_t rows = rows_of(p);
  work.op = p.log_probabilities ? "nll_loss_backward" : "cross_entropy_backward";
  work.flops = p.log_probabilities ? static_cast<double>(rows) : 4 * static_cast<double>(rows * p.classes);
  if (rows == 0) return;
  writes(work, args.grad_input, item, rows * p.classes);
  if (!p.log_probabilities) reads(work, p.input, item, rows * p.classes);
  reads(work, p.target, sizeof(int64_t), rows);
  reads(work, p.weight, item, p.classes);
  reads(work, args.saved, compute_size(p.dtype), 2 * rows + 1);
  reads(work, args.grad_loss, item, results_of(p));
}

void describe(const PairLossArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  work.op = kPairLosses[static_cast<int>(args.op)][0];
  work.flops = 3 * static_cast<double>(args.numel);
  writes(work, args.loss, item, args.reduction == Reduction::None ? args.numel : 1);
  reads(work, args.input, item, args.numel);
  reads(work, args.target, item, args.numel);
}

void describe(const PairLossBackwardArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  work.op = kPairLosses[static_cast<int>(args.op)][1];
  work.flops = 3 * static_cast<double>(args.numel);
  writes(work, args.grad_input, item, args.numel);
  // These are linear in the input.
  const bool linear = args.op == PairLoss::KlDiv || args.op == PairLoss::KlDivLog;
  if (!linear) reads(work, args.input, item, args.numel);
  reads(work, args.target, item, args.numel);
  reads(work, args.grad_loss, item, args.reduction == Reduction::None ? args.numel : 1);
}

namespace {

/// log_probs, targets and lengths; the work of `flops` a step and state.
void describe_ctc(const CtcProblem& p, double flops, Work& work) {
  const size_t item = itemsize(p.dtype);
  work.flops = flops * static_cast<double>(p.batch * p.time * (2 * p.longest + 1));
  reads(work, p.log_probs, item, p.time * p.batch * p.classes);
  reads(work, p.targets, sizeof(int64_t), p.labels);
  reads(work, p.lengths, sizeof(int64_t), 3 * p.batch);
}

}  // namespace

void describe(const CtcLossArgs& args, Work& work) {
  const CtcProblem& p = args.problem;
  writes(work, args.loss, itemsize(p.dtype), p.batch);
  writes(work, args.log_alpha, itemsize(p.dtype), p.batch * p.time * (2 * p.longest + 1));
  describe_ctc(p, 10, work);
}

void describe(const CtcLossBackwardArgs& args, Work& work) {
  const CtcProblem& p = args.problem;
  const size_t item = itemsize(p.dtype);
  writes(work, args.grad_log_probs, item, p.time * p.batch * p.classes);
  describe_ctc(p, 12, work);
  reads(work, args.loss, item, p.batch);
  reads(work, args.log_alpha, item, p.batch * p.time * (2 * p.longest + 1));
  reads(work, args.grad_loss, item, p.batch);
}

void describe(const MultilabelMarginArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  const int64_t numel = args.rows * args.classes;
  work.op = "multilabel_margin_loss";
  work.flops = 3 * static_cast<double>(numel) * static_cast<double>(args.classes);
  writes(work, args.loss, item, args.rows);
  writes(work, args.is_target, 1, numel);
  reads(work, args.input, item, numel);
  reads(work, args.target, sizeof(int64_t), numel);
}

void describe(const MultilabelMarginBackwardArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  const int64_t numel = args.rows * args.classes;
  work.op = "multilabel_margin_loss_backward";
  work.flops = 3 * static_cast<double>(numel) * static_cast<double>(args.classes);
  writes(work, args.grad_input, item, numel);
  reads(work, args.input, item, numel);
  reads(work, args.target, sizeof(int64_t), numel);
  reads(work, args.is_target, 1, numel);
  reads(work, args.grad_loss, item, args.rows);
}

void describe(const BatchNormArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype), param = compute_size(args.dtype);
  const int64_t numel = args.batch * args.channels * args.inner;
  const Access running = args.training ? Access::ReadWrite : Access::Read;
  work.flops = (args.training ? 8 : 4) * static_cast<double>(numel);
  writes(work, args.output, item, numel);
  reads(work, args.input, item, numel);
  reads(work, args.weight, param, args.channels);
  reads(work, args.bias, param, args.channels);
  add_operand(work, running, args.running_mean, param, Span(args.channels));
  add_operand(work, running, args.running_var, param, Span(args.channels));
  writes(work, args.mean, param, args.channels);
  writes(work, args.invstd, param, args.channels);
}

void describe(const BatchNormBackwardArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype), param = compute_size(args.dtype);
  const int64_t numel = args.batch * args.channels * args.inner;
  const bool sums = args.training || args.grad_weight != nullptr || args.grad_bias != nullptr;
  work.flops = ((sums ? 4 : 0) + (args.grad_input != nullptr ? 5 : 0)) * static_cast<double>(numel);
  writes(work, args.grad_input, item, numel);
  writes(work, args.grad_weight, param, args.channels);
  writes(work, args.grad_bias, param, args.channels);
  reads(work, args.grad_output, item, numel);
  reads(work, args.input, item, numel);
  reads(work, args.weight, param, args.channels);
  reads(work, args.mean, param, args.channels);
  reads(work, args.invstd, param, args.channels);
}

void describe(const RowNormArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype), param = compute_size(args.dtype);
  const int64_t numel = args.rows * args.size;
  if (args.rows == 0) return;
  work.op = args.rms ? "rms_norm" : args.groups == 1 && args.inner == 1 ? "layer_norm" : "group_norm";
  work.flops = (args.rms ? 4 : 8) * static_cast<double>(numel);
  const int64_t params = args.groups * (args.size / std::max<int64_t>(args.inner, 1));
  writes(work, args.output, item, numel);
  if (!args.rms) writes(work, args.mean, param, args.rows);
  writes(work, args.invstd, param, args.rows);
  reads(work, args.input, item, numel);
  reads(work, args.weight, param, params);
  reads(work, args.bias, param, params);
}

void describe(const RowNormBackwardArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype), param = compute_size(args.dtype);
  const int64_t numel = args.rows * args.size;
  const bool sums = args.grad_weight != nullptr || args.grad_bias != nullptr;
  work.op = args.rms                              ? "rms_norm_backward"
            : args.groups == 1 && args.inner == 1 ? "layer_norm_backward"
                                                  : "group_norm_backward";
  work.flops = ((sums ? 4 : 0) + (args.grad_input != nullptr ? 9 : 0)) * static_cast<double>(numel);
  const int64_t params = args.groups * (args.size / std::max<int64_t>(args.inner, 1));
  writes(work, args.grad_input, item, numel);
  writes(work, args.grad_weight, param, params);
  writes(work, args.grad_bias, param, params);
  reads(work, args.grad_output, item, numel);
  reads(work, args.input, item, numel);
  if (args.grad_input != nullptr) reads(work, args.weight, param, params);
  if (!args.rms) reads(work, args.mean, param, args.rows);
  reads(work, args.invstd, param, args.rows);
}

}  // namespace tern::kernels
