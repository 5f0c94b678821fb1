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
  entry.numel = rows.numel();
  entry.first = numel;
  numel += entry.numel;
  entries.push_back(entry);
}

void GradBatch::finish() {
  for (auto& [grad, copy] : copied) grad.copy_(copy);
  for (const Tensor& grad : grads) grad.storage()->bump_version();
}

std::vector<GradBatch> grad_batches(const char* op, const std::vector<Tensor>& parameters) {
  std::vector<GradBatch> batches;
  for (const Tensor& parameter : parameters) {
    TERN_CHECK(parameter.defined(), ValueError, "{}: one of the parameters is undefined", op);
    const Tensor grad = parameter.grad();
    if (!grad.defined()) continue;
    auto batch = batches.begin();
    while (batch != batches.end() && !(batch->dtype == grad.dtype() && batch->device == grad.device()))
      ++batch;
    if (batch == batches.end()) batch = batches.insert(batch, GradBatch{grad.dtype(), grad.device()});
    batch->add(grad);
  }
  return batches;
}

}  // namespace tern::optim
