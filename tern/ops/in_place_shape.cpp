// The methods of Tensor that change its shape in place. Changes of elements are in in_place.cpp and
// in_place_functions.cpp.
#include "tern/autograd/record.h"
#include "tern/base/check.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// Gives self the layout and the history of view(self), over the same elements. Views that were taken before
/// keep both of theirs: they name self as their base, whose region they find by their place in the storage.
template <class View>
Tensor& laid_out(const char* op_name, Tensor& self, View view) {
  check_initialized(self);
  // What is recorded, and optimizers, count on the shape of a leaf.
  TERN_CHECK(
      !self.requires_grad() || !self.is_leaf(), AutogradError,
      "{}: a leaf Variable that requires grad is being used in an in-place operation: the form that is "
      "not in place gives a view of it",
      op_name);
  // Recorded always: without its last step the history would give a gradient of the old shape.
  const EnableGradGuard recording;
  const Tensor y = view(self);
  if (GradMeta* meta = find_meta(self)) {
    if (self.requires_grad()) meta->replace_grad_fn(grad_fn_of(y));
    if (meta->grad.defined()) meta->grad = view(meta->grad);
  }
  TensorImpl& impl = self.impl();
  impl.shape = y.shape();
  impl.strides = y.strides();
  impl.refresh();
  self.storage()->bump_version();
  return self;
}

}  // namespace

Tensor& MoreMethods::squeeze_() {
  return laid_out("squeeze_", self(), [](const Tensor& x) { return tern::squeeze(x); });
}
Tensor& MoreMethods::squeeze_dim_(int64_t dim) {
  return laid_out("squeeze_", self(), [&](const Tensor& x) { return tern::squeeze(x, dim); });
}
Tensor& MoreMethods::squeeze_(IntArrayRef dims) {
  return laid_out("squeeze_", self(), [&](const Tensor& x) { return tern::squeeze(x, dims); });
}
Tensor& MoreMethods::unsqueeze_(int64_t dim) {
  return laid_out("unsqueeze_", self(), [&](const Tensor& x) { return tern::unsqueeze(x, dim); });
}
Tensor& MoreMethods::transpose_(int64_t dim0, int64_t dim1) {
  return laid_out("transpose_", self(), [&](const Tensor& x) { return tern::transpose(x, dim0, dim1); });
}
Tensor& MoreMethods::t_() {
  return laid_out("t_", self(), [](const Tensor& x) { return tern::t(x); });
}

}  // namespace tern
