// Gathering of gradients.
#include "tern/optim/grad_batch.h"

#include "tern/base/check.h"

namespace tern::optim {

void GradBatch::add(const Tensor& grad) {
  grads.push_back(grad);
  Tensor rows = grad;
  if (!grad.is_contiguous()) {
    rows = grad.detach().contiguous();
    copied.emplace_back(grad.detach(), rows);
  }
  OptimEntry entry{};
  entry.param = rows.data_ptr();
  entry.grad = rows.data_ptr();
  has_complex |= is_complex(rows.dtype());
  entry.numel = is_complex(rows.dtype()) ? 2 * rows.numel() : rows.numel();
  entry.first = numel;
  numel += entry.numel;
  entries.push_back(entry);
}

void GradBatch::finish() {
  for (auto& [grad, copy] : copied) grad.copy_(copy);
  for (const Tensor& grad : grads) grad.storage()->bump_version();
}

namespace {

void add_to_batches(std::vector<GradBatch>& batches, const Tensor& tensor) {
  const DType dtype = real_dtype(tensor.dtype());
  auto batch = batches.begin();
  while (batch != batches.end() && !(batch->dtype == dtype && batch->device == tensor.device())) ++batch;
  if (batch == batches.end()) batch = batches.insert(batch, GradBatch{dtype, tensor.device()});
  batch->add(tensor);
}

}  // namespace

std::vector<GradBatch> batches_of(const char* op, const std::vector<Tensor>& tensors) {
  std::vector<GradBatch> batches;
  for (const Tensor& tensor : tensors) {
    TERN_CHECK(tensor.defined(), ValueError, "{}: one of the tensors is undefined", op);
    TERN_CHECK(tensor.is_floating_point() || is_complex_computable(tensor.dtype()), DTypeError,
               "{}: takes floating-point or complex tensors, got one of {}", op, name(tensor.dtype()));
    add_to_batches(batches, tensor);
  }
  return batches;
}

std::vector<GradBatch> grad_batches(const char* op, const std::vector<Tensor>& parameters) {
  std::vector<GradBatch> batches;
  for (const Tensor& parameter : parameters) {
    TERN_CHECK(parameter.defined(), ValueError, "{}: one of the parameters is undefined", op);
    if (const Tensor grad = parameter.grad(); grad.defined()) add_to_batches(batches, grad);
  }
  return batches;
}

}  // namespace tern::optim
