// Attaching nodes to tensors; changes in place, through views too.
#include "tern/autograd/record.h"

#include "tern/autograd/region.h"
#include "tern/base/check.h"

namespace tern {

bool tracks_grad(const std::vector<Tensor>& tensors) {
  if (!is_grad_enabled()) return false;
  for (const Tensor& tensor : tensors)
    if (tensor.requires_grad()) return true;
  return false;
}

void check_in_place(const char* name, const Tensor& tensor) {
  check_initialized(tensor);
  for (size_t d = 0; d < tensor.shape().size(); ++d)
    TERN_CHECK(tensor.shape()[d] <= 1 || tensor.strides()[d] != 0, ShapeError,
               "{}: more than one element of the written-to tensor refers to a single memory location (shape "
               "{}, strides {}): "
               "clone() it first",
               name, to_string(tensor.shape()), to_string(tensor.strides()));
  if (!is_grad_enabled()) return;
  GradMeta* meta = find_meta(tensor);
  if (meta == nullptr) return;
  TERN_CHECK(!tensor.requires_grad() || !tensor.is_leaf(), AutogradError,
             "{}: a leaf Variable that requires grad is being used in an in-place operation: change it "
             "inside a NoGradGuard, or "
             "change a clone()",
             name);
  TERN_CHECK(
      !meta->untracked_view, AutogradError,
      "{}: a view that was taken in a NoGradGuard of a tensor that requires grad, or an argument that a "
      "Function returned, is changed in place outside of it: take the view and change it both inside, or "
      "both outside, or change a clone()",
      name);
  TERN_CHECK(!meta->base.defined() || !meta->base.requires_grad() || !meta->base.is_leaf(), AutogradError,
             "{}: a view of a leaf Variable that requires grad is being used in an in-place operation: "
             "change it inside a "
             "NoGradGuard, or change a clone()",
             name);
}

namespace detail {

void throw_second_backward(const Node& node) {
  TERN_THROW(AutogradError,
             "{}: Trying to backward through the graph a second time: its saved tensors were freed by the "
             "first backward(). "
             "Specify retain_graph=true there if the graph is needed again",
             node.name());
}

std::vector<Edge> edges_of(const Tensor* first, size_t count) {
  std::vector<Edge> edges;
  edges.reserve(count);
  for (size_t i = 0; i < count; ++i) edges.push_back(gradient_edge(first[i]));
  return edges;
}

void attach(const Tensor& output, IntrusivePtr<Node> node) {
  node->stream = current_stream(output.device());
  GradMeta& meta = meta_of(output);
  meta.requires_grad = true;
  meta.grad_fn = std::move(node);
}

void mark_view(const Tensor& view, const Tensor& base) {
  GradMeta& meta = meta_of(view);
  meta.is_view = true;
  GradMeta* base_meta = find_meta(base);
  meta.base = base_meta && base_meta->base.defined() ? base_meta->base : base;
  GradMeta* root = find_meta(meta.base);
  meta.base_rewrites = root ? root->rewrites : 0;
}

void mark_untracked_view(const Tensor& view, const Tensor& base) {
  if (base.requires_grad() || find_meta(base)->untracked_view) meta_of(view).untracked_view = true;
}

void attach_in_place(const Tensor& changed, IntrusivePtr<Node> node) {
  node->stream = current_stream(changed.device());
  GradMeta& meta = meta_of(changed);
  if (meta.base.defined()) {
    rewrite_base_history(changed, meta, std::move(node));
    return;
  }
  meta.requires_grad = true;
  meta.replace_grad_fn(std::move(node));
  ++meta.rewrites;
}

}  // namespace detail
}  // namespace tern
