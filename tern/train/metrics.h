// What is measured while training and testing: running averages, counts of right answers, the confusion
// table. Writing it down is in run_log.h.
#pragma once

#include <cstdint>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::train {

/// Loss and accuracy over samples. Tensors that are added stay where they are until a number is asked for:
/// only then does the host wait for the device.
class Averages {
 public:
  /// Plain numbers: what a checkpoint keeps.
  struct Sums {
    double loss = 0;      ///< of all samples
    int64_t correct = 0;  ///< right answers
    int64_t judged = 0;   ///< samples for which there is a right answer
    int64_t count = 0;    ///< samples
    bool operator==(const Sums&) const = default;
  };

  Averages() = default;
  explicit Averages(const Sums& sums) : sums_(sums) {}

  /// One batch of `count` samples: its mean loss (one element), and how many answers are right (undefined
  /// where that is not a question).
  void add(const Tensor& loss, const Tensor& correct, int64_t count);
  /// The sums so far. Blocks until the values are there.
  const Sums& sums();
  void reset() { *this = Averages(); }

  /// Samples so far. Does not block.
  int64_t count() const noexcept { return sums_.count + pending_count_; }
  /// Mean over the samples, NaN without any. Blocks.
  double loss();
  /// Fraction of right answers, NaN where there are none to judge. Blocks.
  double accuracy();

 private:
  struct Pending {
    Tensor loss;
    Tensor correct;
    int64_t count;
  };

  Sums sums_;
  std::vector<Pending> pending_;
  int64_t pending_count_ = 0;
};

/// True when `output` [N, C] are scores of classes and `target` [N] their numbers.
bool is_classification(const Tensor& output, const Tensor& target);

/// How many rows of `output` [N, C] are largest at `target` [N]: an int64 tensor without dimensions, no
/// gradient. Undefined where that makes no sense (is_classification).
Tensor count_correct(const Tensor& output, const Tensor& target);

/// For each class how often each class was the answer.
class Confusion {
 public:
  /// Adds the answers of a batch: `output` [N, C], `target` [N]. Blocks. Throws DataError for a target
  /// outside the classes.
  void add(const Tensor& output, const Tensor& target);

  int64_t classes() const noexcept { return classes_; }
  /// How often `answer` was given for samples of class `target`.
  int64_t at(int64_t target, int64_t answer) const {
    return counts_.at(static_cast<size_t>(target * classes_ + answer));
  }
  /// Samples of a class.
  int64_t total(int64_t target) const;
  /// Fraction of right answers among the samples of a class, NaN without any.
  double accuracy(int64_t target) const;

 private:
  int64_t classes_ = 0;
  std::vector<int64_t> counts_;
};

}  // namespace tern::train
