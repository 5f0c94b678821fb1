// Sums and counts.
#include "tern/train/metrics.h"

#include <cmath>
#include <limits>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"

namespace tern::train {

void Averages::add(const Tensor& loss, const Tensor& correct, int64_t count) {
  if (count == 0) return;
  pending_.push_back({loss.detach(), correct, count});
  pending_count_ += count;
}

const Averages::Sums& Averages::sums() {
  for (const Pending& batch : pending_) {
    sums_.loss += batch.loss.item<double>() * static_cast<double>(batch.count);
    if (batch.correct.defined()) {
      sums_.correct += batch.correct.item<int64_t>();
      sums_.judged += batch.count;
    }
    sums_.count += batch.count;
  }
  pending_.clear();
  pending_count_ = 0;
  return sums_;
}

double Averages::loss() {
  const Sums& all = sums();
  // Of another NaN, too: its sign means nothing, and would be printed.
  if (all.count == 0 || std::isnan(all.loss)) return std::numeric_limits<double>::quiet_NaN();
  return all.loss / static_cast<double>(all.count);
}

double Averages::accuracy() {
  const Sums& all = sums();
  return all.judged ? static_cast<double>(all.correct) / static_cast<double>(all.judged)
                    : std::numeric_limits<double>::quiet_NaN();
}

bool is_classification(const Tensor& output, const Tensor& target) {
  return target.defined() && output.dim() == 2 && target.dim() == 1 && target.dtype() == int64 &&
         output.size(0) == target.size(0) && output.size(1) > 0;
}

Tensor count_correct(const Tensor& output, const Tensor& target) {
  if (!is_classification(output, target)) return {};
  NoGradGuard no_grad;
  return output.detach().argmax(/*dim=*/1).eq(target).sum();
}

void Confusion::add(const Tensor& output, const Tensor& target) {
  TERN_CHECK(is_classification(output, target), ShapeError,
             "Confusion: output must be scores [N, classes] and target int64 [N], got {} and {}",
             to_string(output.shape()), to_string(target.shape()));
  NoGradGuard no_grad;
  if (classes_ == 0) {
    classes_ = output.size(1);
    counts_.assign(static_cast<size_t>(classes_ * classes_), 0);
  }
  TERN_CHECK(output.size(1) == classes_, ShapeError, "Confusion: a batch has {} classes, those before had {}",
             output.size(1), classes_);
  const Tensor answers = output.detach().argmax(/*dim=*/1).to(kCPU).contiguous();
  const Tensor targets = target.to(kCPU).contiguous();
  const auto* answer = answers.data<const int64_t>();
  const auto* wanted = targets.data<const int64_t>();
  for (int64_t i = 0; i < targets.numel(); ++i) {
    TERN_CHECK(wanted[i] >= 0 && wanted[i] < classes_, DataError,
               "Confusion: target {} of a batch is {}, classes are 0 to {}", i, wanted[i], classes_ - 1);
    ++counts_[static_cast<size_t>(wanted[i] * classes_ + answer[i])];
  }
}

int64_t Confusion::total(int64_t target) const {
  int64_t sum = 0;
  for (int64_t answer = 0; answer < classes_; ++answer) sum += at(target, answer);
  return sum;
}

double Confusion::accuracy(int64_t target) const {
  const int64_t all = total(target);
  return all ? static_cast<double>(at(target, target)) / static_cast<double>(all)
             : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tern::train
