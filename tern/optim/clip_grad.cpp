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
  TERN_CHECK(!batch.has_complex || norm_type == 2, DTypeError,
             "clip_grad_norm_: of complex gradients only the norm of order 2 is there, not that of order {}",
             norm_type);
  DType dtype = batch.dtype == float64 ? float64 : float32;
  Tensor norm = empty_contiguous(Shape{}, 1, dtype, batch.device);
  launch(current_stream(batch.device), kernels::optim_norm,
         {.list = batch.list(), .norm_type = norm_type, .out = norm.data_ptr()});
  return norm;
}

void check_norm_type(const char* op, double norm_type) {
  TERN_CHECK(norm_type >= 0, ValueError, "{}: norm_type must be 0, positive or infinity, got {}", op,
             norm_type);
}

Tensor total_norm_of(const char* op, const std::vector<GradBatch>& batches, ClipGradNormOptions options) {
  const double p = options.norm_type;
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
    TERN_CHECK(
        std::isfinite(norm.item<double>()), ValueError,
        "{}: the total norm of order {} for gradients from `parameters` is non-finite, so it cannot be "
        "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
        "error_if_nonfinite to false",
        op, p);
  }
  return norm;
}

void clip_with_norm(std::vector<GradBatch>& batches, double max_norm, const Tensor& norm) {
  for (GradBatch& batch : batches) {
    Tensor here = norm.to(batch.device);
    launch(current_stream(batch.device), kernels::optim_clip_norm,
           {.list = batch.list(), .norm_dtype = here.dtype(), .norm = here.data_ptr(), .max_norm = max_norm});
    batch.finish();
  }
}

}  // namespace

Tensor get_total_norm(const std::vector<Tensor>& tensors, ClipGradNormOptions options) {
  check_norm_type("get_total_norm", options.norm_type);
  const NoGradGuard no_grad;
  return total_norm_of("get_total_norm", batches_of("get_total_norm", tensors), options);
}

void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm, const Tensor& total_norm) {
  constexpr const char* op = "clip_grads_with_norm_";
  TERN_CHECK(max_norm >= 0, ValueError, "{}: max_norm must not be negative, got {}", op, max_norm);
  TERN_CHECK(total_norm.defined() && total_norm.dim() == 0, ShapeError,
             "{}: total_norm must be a 0-d tensor, got {}", op,
             total_norm.defined() ? to_string(total_norm.shape()) : "an undefined tensor");
  TERN_CHECK(total_norm.dtype() == float32 || total_norm.dtype() == float64, DTypeError,
             "{}: total_norm must be float32 or float64, got {}", op, name(total_norm.dtype()));
  const NoGradGuard no_grad;
  std::vector<GradBatch> batches = grad_batches(op, parameters);
  clip_with_norm(batches, max_norm, total_norm.detach());
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, ClipGradNormOptions options) {
  check_norm_type("clip_grad_norm_", options.norm_type);
  TERN_CHECK(max_norm >= 0, ValueError, "clip_grad_norm_: max_norm must not be negative, got {}", max_norm);
  const NoGradGuard no_grad;
  std::vector<GradBatch> batches = grad_batches("clip_grad_norm_", parameters);
  const Tensor norm = total_norm_of("clip_grad_norm_", batches, options);
  clip_with_norm(batches, max_norm, norm);
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  TERN_CHECK(clip_value >= 0, ValueError, "clip_grad_value_: clip_value must not be negative, got {}",
             clip_value);
  NoGradGuard no_grad;
  for (GradBatch& batch : grad_batches("clip_grad_value_", parameters)) {
    TERN_CHECK(!batch.has_complex, DTypeError,
               "clip_grad_value_: complex numbers have no order: clip_grad_norm_ takes them");
    launch(current_stream(batch.device), kernels::optim_clip_value,
           {.list = batch.list(), .clip_value = clip_value});
    batch.finish();
  }
}

}  // namespace tern::optim
