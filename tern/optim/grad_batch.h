// All gradients of a dtype on a device, for the fused passes over them: clipping and unscaling. Internal;
// those of a step are gathered in optimizer.cpp.
#pragma once

#include <utility>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/kernels/optim.h"

namespace tern::optim {

/// Tensors of one dtype on one device as a list for kernels, which read and write them. Of complex numbers
/// the parts are, as real ones.
struct GradBatch {
  DType dtype;
  Device device;
  std::vector<Tensor> grads = {};
  std::vector<std::pair<Tensor, Tensor>> copied =
      {};  ///< gradients that are not row-major, and the copies worked on
  std::vector<OptimEntry> entries = {};
  int64_t numel = 0;
  bool has_complex = false;

  OptimList list() const { return {dtype, static_cast<int32_t>(entries.size()), entries.data(), numel}; }
  void add(const Tensor& grad);
  /// After the elements were changed: copies go back, versions are counted.
  void finish();
};

/// Tensors by their dtype and device. Throws ValueError, naming `op`, for an undefined tensor, and DTypeError
/// for one that is neither floating point nor complex.
std::vector<GradBatch> batches_of(const char* op, const std::vector<Tensor>& tensors);

/// The gradients of parameters, of those that have one. Throws ValueError, naming `op`, for an undefined
/// parameter.
std::vector<GradBatch> grad_batches(const char* op, const std::vector<Tensor>& parameters);

}  // namespace tern::optim
