// Tensor's methods about gradients.
#include "tern/autograd/engine.h"
#include "tern/autograd/node.h"
#include "tern/base/check.h"

namespace tern {
namespace {

void remove_from(GradHooks& hooks, int64_t number) {
  std::erase_if(hooks, [number](const auto& hook) {
    hook->removed |= hook->number == number;
    return hook->removed;
  });
}

/// Also of numbers that no operator computes on: files say so of them.
bool may_require_grad(DType dtype) {
  return is_floating_point(dtype) || is_complex(dtype) || is_float8(dtype) ||
         dtype == DType::Float4_e2m1fn_x2;
}

}  // namespace

const Tensor& Tensor::requires_grad_(bool wanted) const {
  if (!wanted && !requires_grad()) return *this;
  TERN_CHECK(
      !wanted || may_require_grad(dtype()), DTypeError,
      "requires_grad_: only Tensors of floating point dtype can require gradients, got {}: convert it with "
      "to(float32)",
      name(dtype()));
  TERN_CHECK(wanted || is_leaf(), AutogradError,
             "requires_grad_: you can only change requires_grad flags of leaf variables: use detach() for a "
             "computed tensor");
  meta_of(*this).requires_grad = wanted;
  return *this;
}

bool Tensor::view_requires_grad() const {
  (void)grad_fn_of(*this);
  return impl_->autograd->requires_grad;
}

bool Tensor::is_leaf() const { return !grad_fn_of(*this); }

Tensor Tensor::grad() const {
  GradMeta* meta = find_meta(*this);
  return meta ? meta->grad : Tensor();
}

void Tensor::set_grad(const Tensor& grad) const {
  if (grad.defined()) {
    TERN_CHECK(!grad.is_same(*this), AutogradError,
               "set_grad: can't assign Variable as its own grad: give a clone() of it");
    TERN_CHECK(grad.shape() == shape(), ShapeError,
               "set_grad: the gradient must have the tensor's shape {}, got {}: reshape it",
               to_string(shape()), to_string(grad.shape()));
    TERN_CHECK(grad.dtype() == dtype(), DTypeError,
               "set_grad: the gradient must have the tensor's dtype {}, got {}: convert it with to(dtype)",
               name(dtype()), name(grad.dtype()));
    TERN_CHECK(
        grad.device() == device(), DeviceError,
        "set_grad: the gradient must be on the tensor's device {}, got one on {}: move it with to(device)",
        device().str(), grad.device().str());
  }
  meta_of(*this).grad = grad;
}

void Tensor::retain_grad() const {
  TERN_CHECK(requires_grad(), AutogradError,
             "retain_grad: can't retain_grad on a Tensor that has requires_grad=False: call requires_grad_() "
             "on it or "
             "on what it is computed from");
  IntrusivePtr<Node> node = grad_fn_of(*this);
  if (!node) return;
  GradMeta& meta = meta_of(*this);
  if (!meta.keeper) meta.keeper = IntrusivePtr<GradKeeper>(new GradKeeper(&meta));
  node->keeper = meta.keeper;
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  tern::backward({*this}, {gradient}, retain_graph, create_graph);
}

int64_t Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  TERN_CHECK(requires_grad(), AutogradError,
             "register_hook: cannot register a hook on a tensor that doesn't require gradient: call "
             "requires_grad_() "
             "on it or on what it is computed from");
  TERN_CHECK(static_cast<bool>(hook), ValueError, "register_hook: the hook is an empty function");
  GradMeta& meta = meta_of(*this);
  const IntrusivePtr<Node> node = grad_fn_of(*this);
  (node ? node->hooks : meta.hooks)
      .push_back(std::make_shared<RegisteredHook>(RegisteredHook{meta.next_hook, std::move(hook)}));
  return meta.next_hook++;
}

void Tensor::remove_hook(int64_t number) const {
  if (const IntrusivePtr<Node> node = grad_fn_of(*this)) remove_from(node->hooks, number);
  if (GradMeta* meta = find_meta(*this)) {
    remove_from(meta->hooks, number);
    std::erase_if(meta->accumulated_hooks, [&](const auto& hook) { return hook->number == number; });
  }
}

int64_t Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) const {
  TERN_CHECK(requires_grad() && is_leaf(), AutogradError,
             "register_post_accumulate_grad_hook: post accumulate grad hooks cannot be registered on {}",
             requires_grad() ? "non-leaf tensors: use register_hook" : "tensors that require no gradient");
  TERN_CHECK(static_cast<bool>(hook), ValueError,
             "register_post_accumulate_grad_hook: the hook is an empty function");
  GradMeta& meta = meta_of(*this);
  meta.accumulated_hooks.push_back(
      std::make_shared<const AccumulatedHook>(AccumulatedHook{meta.next_hook, std::move(hook)}));
  return meta.next_hook++;
}

std::string Tensor::grad_fn_name() const {
  IntrusivePtr<Node> node = grad_fn_of(*this);
  return node ? node->name() : "";
}

Tensor& Tensor::detach_() {
  if (GradMeta* meta = find_meta(*this)) {
    TERN_CHECK(!meta->base.defined(), AutogradError, "detach_: can't detach views in-place: use detach()");
    meta->replace_grad_fn(nullptr);
    meta->requires_grad = false;
  }
  return *this;
}

}  // namespace tern
