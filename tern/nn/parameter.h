// Parameter and Buffer: the tensors that a module owns. Modules themselves are in nn/module.h.
#pragma once

#include <utility>

#include "tern/core/tensor.h"

namespace tern::nn {

/// A tensor that is learned: it requires a gradient and shows up in parameters() and state_dict(). A
/// default-constructed one is absent (`bias=None` in PyTorch). Copies are the same parameter: `output.weight
/// = embedding.weight` ties two.
struct Parameter : Tensor {
  Parameter() = default;
  /// Takes the numbers of `data` as a new leaf, sharing its storage. Throws DTypeError when a gradient is
  /// required and the dtype is not floating point.
  explicit Parameter(const Tensor& data, bool requires_grad = true) : Tensor(data.detach()) {
    requires_grad_(requires_grad);
  }
};

struct BufferOptions {
  bool persistent = true;
};

/// A tensor that belongs to a module's state without being learned (running statistics). It moves with the
/// module and, when persistent, is saved. A default-constructed one is absent.
struct Buffer : Tensor {
  Buffer() = default;
  explicit Buffer(const Tensor& data, BufferOptions options = {})
      : Tensor(data), persistent(options.persistent) {}
  Buffer& operator=(const Tensor& data) {
    Tensor::operator=(data);
    return *this;
  }

  bool persistent = true;
};

}  // namespace tern::nn
