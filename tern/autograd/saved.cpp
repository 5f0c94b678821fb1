// Tensors kept for backward, themselves or packed.
#include <utility>

#include "tern/autograd/grad_mode.h"
#include "tern/autograd/node.h"
#include "tern/autograd/record.h"
#include "tern/autograd/saved_hooks.h"
#include "tern/base/check.h"

namespace tern {

namespace {
constinit thread_local const autograd::SavedTensorsHooks* innermost_hooks = nullptr;
}  // namespace

/// What hooks do belongs to no node that is being made, even where they throw.
struct PackingScope {
  const autograd::SavedTensorsHooks* hooks = std::exchange(innermost_hooks, nullptr);
  int pending_saves = detail::pending_saves;
  NoGradGuard no_grad;
  PackingScope() = default;
  PackingScope(const PackingScope&) = delete;
  PackingScope& operator=(const PackingScope&) = delete;
  ~PackingScope() {
    detail::pending_saves = pending_saves;
    innermost_hooks = hooks;
  }

  /// What the innermost that packs it keeps in place of the tensor; empty where none does.
  autograd::SavedTensorsHooks::Unpack pack(const Tensor& tensor) const {
    for (const auto* asked = hooks; asked != nullptr; asked = asked->before_)
      if (auto unpack = asked->pack_(tensor)) return unpack;
    return {};
  }
};

namespace autograd {
SavedTensorsHooks::SavedTensorsHooks(Pack pack)
    : pack_(std::move(pack)), before_(std::exchange(innermost_hooks, this)) {}
SavedTensorsHooks::~SavedTensorsHooks() { innermost_hooks = before_; }
}  // namespace autograd

struct Saved::Packed {
  autograd::SavedTensorsHooks::Unpack unpack;
  Shape shape;
  DType dtype;
  Device device;
  IntrusivePtr<Node> history;  ///< of an input; a result has the node that saves it

  Tensor unpacked(const char* name) const {
    const PackingScope scope;
    Tensor tensor = unpack();
    TERN_CHECK(
        tensor.defined() && tensor.shape() == shape && tensor.dtype() == dtype && tensor.device() == device,
        AutogradError,
        "{}: what a hook kept in place of a saved tensor gave back another one: expected {} of shape {} "
        "on {}, got {}",
        name, tern::name(dtype), to_string(shape), device.str(),
        tensor.defined() ? fmt::format("{} of shape {} on {}", tern::name(tensor.dtype()),
                                       to_string(tensor.shape()), tensor.device().str())
                         : "none");
    return tensor;
  }
};

Saved::Saved(const Tensor& tensor, bool is_output) : is_output_(is_output) {
  const bool packs = innermost_hooks != nullptr && tensor.defined() &&
                     (is_output || !tensor.requires_grad() || !tensor.is_leaf());
  if (packs) [[unlikely]] {
    IntrusivePtr<Node> history;
    if (!is_output && tensor.requires_grad()) history = grad_fn_of(tensor);
    const PackingScope scope;
    if (auto unpack = scope.pack(tensor.detach()))
      packed_ = std::make_shared<Packed>(
          Packed{std::move(unpack), tensor.shape(), tensor.dtype(), tensor.device(), std::move(history)});
  }
  if (tensor.defined() && packed_ == nullptr) {
    tensor_ = is_output ? tensor.detach() : tensor;
    version_ = tensor.version();
  }
  ++detail::pending_saves;
}

Tensor Saved::unpack(const Node& node) const { return unpack(node.name(), &node); }

Tensor Saved::unpack(const char* name, const Node* node) const {
  if (packed_ == nullptr) {
    if (!tensor_.defined()) return {};
    TERN_CHECK(tensor_.version() == version_, AutogradError,
               "{}: one of the variables needed for gradient computation has been modified by an inplace "
               "operation: the {} of {} "
               "(a {} tensor of shape {}) is at version {}; expected version {} instead. Change a clone() of "
               "it, or use the form "
               "of the operator that is not in place",
               name, is_output_ ? "result" : "input", name, tern::name(tensor_.dtype()),
               to_string(tensor_.shape()), tensor_.version(), version_);
  }
  const Tensor tensor = packed_ ? packed_->unpacked(name) : tensor_;
  IntrusivePtr<Node> history;
  if (is_output_)
    history = IntrusivePtr<Node>(const_cast<Node*>(node));
  else if (packed_)
    history = packed_->history;
  if (!history || !is_grad_enabled()) return tensor;
  Tensor recorded = tensor.detach();
  GradMeta& meta = meta_of(recorded);
  meta.requires_grad = true;
  meta.grad_fn = std::move(history);
  return recorded;
}

}  // namespace tern
