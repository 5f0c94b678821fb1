// Finding the operator whose gradient is the first that is not a number.
#pragma once

#include <vector>

#include "tern/core/tensor.h"

namespace tern {
class Node;
}

namespace tern::autograd {

/// In the scope of this guard, on this thread, backward() and grad() look at every gradient that an operator
/// computes, and throw AutogradError at the first with a NaN: with the operator's name, the shape, and the
/// module in which it was called if that was in the scope of a guard too. Slow: each gradient is waited for.
/// As torch.autograd.detect_anomaly.
class DetectAnomalyGuard {
 public:
  /// With `check_nan = false` only modules are noted down, which errors of backward then name.
  explicit DetectAnomalyGuard(bool check_nan = true);
  ~DetectAnomalyGuard();
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  bool before_;
};

namespace detail {
/// Whether NaN is looked for.
extern constinit thread_local bool checks_nan;
/// Throws for a NaN among the gradients of a node's inputs.
void check_nan(const Node& node, const std::vector<Tensor>& grads);
}  // namespace detail

}  // namespace tern::autograd
