// Running the recorded graph backward.
#pragma once

#include <functional>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

/// Adds the gradients of `outputs` with respect to all leaves to their `grad()`. An undefined or missing
/// gradient means 1 for an output of one element; one of another dtype is converted. Frees what was saved
/// unless `retain_graph`; with `create_graph` the computation of the gradients is itself recorded. Throws
/// AutogradError.
void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients = {},
              bool retain_graph = false, bool create_graph = false);

/// Calls `callback` when the run of backward() or grad() that the calling thread is in has gone through the
/// graph; not when that ends with an exception. For hooks. Throws AutogradError outside of a run.
void when_backward_ends(std::function<void()> callback);
/// Whether the calling thread is in such a run, as in a hook or in what checkpoint() computes again.
bool is_in_backward() noexcept;

struct GradOptions {
  bool retain_graph = false;
  bool create_graph = false;  ///< implies retain_graph
  bool allow_unused =
      false;  ///< an input that the outputs do not depend on gets an undefined gradient, not an error
};

/// The gradients of `outputs` with respect to `inputs` (leaves or not), as torch.autograd.grad; no leaf's
/// `grad()` is touched. Throws ValueError without inputs.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& gradients = {}, GradOptions options = {});

}  // namespace tern
