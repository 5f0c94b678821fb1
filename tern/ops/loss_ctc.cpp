// Connectionist temporal classification with its gradient.
#include <algorithm>
#include <limits>

#include "tern/ops/autocast_rules.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/loss.h"
#include "tern/ops/loss_common.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

constexpr const char* kCtc = "ctc_loss";

/// Lengths on the host; waits for those on a GPU.
std::vector<int64_t> lengths_of(const char* name_of_lengths, const Tensor& lengths) {
  TERN_CHECK(is_integral(lengths.dtype()), DTypeError,
             "{}: {} must be integral, got {}: convert them with to(int64)", kCtc, name_of_lengths,
             name(lengths.dtype()));
  TERN_CHECK(lengths.dim() <= 1, ShapeError, "{}: {} must be one number for each sample, got {}", kCtc,
             name_of_lengths, to_string(lengths.shape()));
  return cast(lengths, DType::Int64).to(kCPU).to_vector<int64_t>();
}

/// The table that kernels read: of each sample the input's length, the target's, and where that starts.
std::vector<int64_t> check_lengths(const Tensor& targets, int64_t time, int64_t batch, IntArrayRef inputs,
                                   IntArrayRef labels) {
  const auto count = static_cast<size_t>(batch);
  TERN_CHECK(inputs.size() == count && labels.size() == count, ShapeError,
             "{}: input_lengths and target_lengths must be of size batch_size, {}, got {} and {}", kCtc,
             batch, inputs.size(), labels.size());
  const bool padded = targets.dim() == 2;
  TERN_CHECK(targets.dim() == 1 || (padded && targets.size(0) == batch), ShapeError,
             "{}: expected targets [{}, S], or [S] one behind the other, got {}", kCtc, batch,
             to_string(targets.shape()));
  std::vector<int64_t> table(3 * count);
  int64_t start = 0;
  for (size_t n = 0; n < count; ++n) {
    TERN_CHECK(inputs[n] >= 0 && inputs[n] <= time, ValueError,
               "{}: Expected input_lengths to have value at least 0 and at most {}, but got value {}", kCtc,
               time, inputs[n]);
    TERN_CHECK(labels[n] >= 0, ValueError,
               "{}: Expected target_lengths to have value at least 0, but got value {}", kCtc, labels[n]);
    const int64_t room = padded ? targets.size(1) : targets.size(0) - start;
    TERN_CHECK(labels[n] <= room, ShapeError,
               "{}: targets {} have no room for the {} labels of sample {}: {} are left", kCtc,
               to_string(targets.shape()), labels[n], n, room);
    table[n] = inputs[n];
    table[count + n] = labels[n];
    table[2 * count + n] = start;
    start += padded ? targets.size(1) : labels[n];
  }
  TERN_CHECK(start == targets.numel(), ShapeError,
             "{}: targets have {} labels, but target_lengths add up to {}", kCtc, targets.numel(), start);
  return table;
}

/// One loss for each sample. All was checked.
Tensor sample_losses(CtcProblem p, const Tensor& x, const Tensor& targets, const Tensor& lengths) {
  const auto set_tensors = [](CtcProblem& problem, const Tensor& input, const Tensor& labels,
                              const Tensor& table) {
    problem.log_probs = input.data_ptr();
    problem.targets = static_cast<const int64_t*>(labels.data_ptr());
    problem.lengths = static_cast<const int64_t*>(table.data_ptr());
  };
  const Tensor loss = empty_of({p.batch}, x), log_alpha = empty_of({p.batch, p.time, 2 * p.longest + 1}, x);
  CtcLossArgs args;
  args.problem = p;
  set_tensors(args.problem, x, targets, lengths);
  args.loss = loss.data_ptr();
  args.log_alpha = log_alpha.data_ptr();
  launch(current_stream(x.device()), kernels::ctc_loss, args);
  if (tracks_grad(x))
    record(kCtc, loss, {x},
           [p, set_tensors, x_ = save(x), targets_ = save(targets), lengths_ = save(lengths),
            log_alpha_ = save(log_alpha), loss_ = save_output(loss)](GradContext& c, const Tensor& g_given) {
             const Tensor log_probs = c[x_], labels = c[targets_], table = c[lengths_];
             const Tensor alpha = c[log_alpha_], losses = c[loss_], g = contiguous(g_given);
             const Tensor grad = empty_of(log_probs.shape(), log_probs);
             CtcLossBackwardArgs back;
             back.problem = p;
             set_tensors(back.problem, log_probs, labels, table);
             back.loss = losses.data_ptr();
             back.log_alpha = alpha.data_ptr();
             back.grad_loss = g.data_ptr();
             back.grad_log_probs = grad.data_ptr();
             launch(current_stream(log_probs.device()), kernels::ctc_loss_backward, back);
             return differentiable_once(kCtc, grad, log_probs, g);
           });
  return loss;
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                IntArrayRef target_lengths, const CtcLossOptions& o) {
  if (autocasts_on_cpu(log_probs)) [[unlikely]]
    return autocast_float32(
        [&](const Tensor& x, const Tensor& t) { return ctc_loss(x, t, input_lengths, target_lengths, o); },
        log_probs, targets);
  check_same_device(kCtc, {{"log_probs", log_probs}, {"targets", targets}});
  check_reduction(kCtc, o.reduction);
  const DType dtype = log_probs.dtype();
  TERN_CHECK(dtype == DType::Float32 || dtype == DType::Float64, DTypeError,
             "{}: not implemented for {}: convert log_probs with to(float32)", kCtc, name(dtype));
  TERN_CHECK(is_integral(targets.dtype()), DTypeError,
             "{}: expected targets to be class numbers, got {}: convert them with to(int64)", kCtc,
             name(targets.dtype()));
  TERN_CHECK(log_probs.dim() == 2 || log_probs.dim() == 3, ShapeError,
             "{}: expected log_probs [T, N, C] or [T, C], got {}", kCtc, to_string(log_probs.shape()));
  TERN_CHECK(log_probs.numel() != 0, ShapeError, "{}: log_probs tensor must not be empty, got {}", kCtc,
             to_string(log_probs.shape()));
  const bool batched = log_probs.dim() == 3;
  const Tensor x = contiguous(batched ? log_probs : unsqueeze(log_probs, 1));
  CtcProblem p;
  p.dtype = dtype;
  p.zero_infinity = o.zero_infinity;
  p.time = x.size(0);
  p.batch = x.size(1);
  p.classes = x.size(2);
  p.blank = o.blank;
  TERN_CHECK(o.blank >= 0 && o.blank < p.classes, ValueError,
             "{}: blank must be in label range: got {} for {} classes", kCtc, o.blank, p.classes);
  const std::vector<int64_t> table = check_lengths(targets, p.time, p.batch, input_lengths, target_lengths);
  p.longest = *std::max_element(target_lengths.begin(), target_lengths.end());
  p.labels = targets.numel();
  Tensor loss = sample_losses(p, x, contiguous(cast(targets, DType::Int64)),
                              tensor(table, {.dtype = int64, .device = x.device()}));
  if (o.zero_infinity) loss = where(eq(loss, std::numeric_limits<double>::infinity()), 0, loss);
  if (o.reduction == Reduction::Mean) {
    std::vector<double> divisors;
    for (const int64_t labels : target_lengths)
      divisors.push_back(static_cast<double>(std::max<int64_t>(1, labels)));
    loss = div(loss, tensor(divisors, {.dtype = dtype, .device = x.device()}));
  }
  return reduced(batched ? loss : reshape(loss, IntArrayRef()), o.reduction);
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcLossOptions& options) {
  return ctc_loss(log_probs, targets, lengths_of("input_lengths", input_lengths),
                  lengths_of("target_lengths", target_lengths), options);
}

}  // namespace tern
