// Clipping of gradients, in one pass over all of a dtype on a device.
#include "tern/optim/clip_grad.h"

#include <cmath>
#include <utility>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/kernels/list.h"
#include "tern/optim/grad_batch.h"

namespace tern::optim {
namespace {

Tensor norm_of(const GradBatch& batch, double norm_type) {
  DType dtype = batch.dtype == float64 ? float64 : float32;
  Tensor norm = empty_contiguous(Shape{}, 1, dtype, batch.device);
  launch(current_stream(batch.device), kernels::optim_norm,
         {.list = batch.list(), .norm_type = norm_type, .out = norm.data_ptr()});
  return norm;
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, ClipGradNormOptions options) {
  const double p = options.norm_type;
  TERN_CHECK(p >= 0, ValueError, "clip_grad_norm_: norm_type must be 0, positive or infinity, got {}", p);
  TERN_CHECK(max_norm >= 0, ValueError, "clip_grad_norm_: max_norm must not be negative, got {}", max_norm);
  NoGradGuard no_grad;
  std::vector<GradBatch> batches = grad_batches("clip_grad_norm_", parameters);
  Tensor norm;
  if (batches.empty()) {
    norm = empty_contiguous(Shape{}, 1, float32, kCPU);
    norm.fill_(0);
    return norm;
  }
  if (batches.size() == 1) {
    norm = norm_of(batches.front(), p);
  } else {
    // The norm of the norms. For 0 each is a count, and they are added up.
    bool wide = false;
    for (const GradBatch& batch : batches) wide = wide || batch.dtype == float64;
    std::vector<Tensor> norms;
    for (const GradBatch& batch : batches)
      norms.push_back(norm_of(batch, p).to(batches.front().device, wide ? float64 : float32));
    GradBatch joined{norms.front().dtype(), norms.front().device()};
    for (const Tensor& each : norms) joined.add(each);
    norm = norm_of(joined, p == 0 ? 1 : p);
  }
  if (options.error_if_nonfinite) {
    TERN_CHECK(std::isfinite(norm.item<double>()), ValueError,
               "clip_grad_norm_: the total norm of order {} for gradients from `parameters` is non-finite, "
               "so it cannot be "
               "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
               "error_if_nonfinite to false",
               p);
  }
  for (GradBatch& batch : batches) {
    Tensor here = norm.to(batch.device);
    launch(current_stream(batch.device), kernels::optim_clip_norm,
           {.list = batch.list(), .norm_dtype = here.dtype(), .norm = here.data_ptr(), .max_norm = max_norm});
    batch.finish();
  }
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  TERN_CHECK(clip_value >= 0, ValueError, "clip_grad_value_: clip_value must not be negative, got {}",
             clip_value);
  NoGradGuard no_grad;
  for (GradBatch& batch : grad_batches("clip_grad_value_", parameters)) {
    launch(current_stream(batch.device), kernels::optim_clip_value,
           {.list = batch.list(), .clip_value = clip_value});
    batch.finish();
  }
}

}  // namespace tern::optim
