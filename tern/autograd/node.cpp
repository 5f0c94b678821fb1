// Nodes, and the tensor's side of the graph.
#include "tern/autograd/node.h"

#include <atomic>

#include "tern/autograd/autocast_mode.h"
#include "tern/autograd/grad_mode.h"
#include "tern/autograd/record.h"
#include "tern/autograd/region.h"
#include "tern/base/check.h"
#include "tern/device/scope.h"

namespace tern {

namespace detail {
thread_local bool grad_enabled = true;
constinit thread_local bool autocasting = false;
thread_local int pending_saves = 0;
}  // namespace detail

namespace {
std::atomic<uint64_t> next_sequence{Node::kLast + 1};
}  // namespace

Node::Node(const char* name) : name_(name), sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)) {
  if (detail::observing() && detail::scope.module_path)
    module_path = std::make_unique<const std::string>(*detail::scope.module_path);
}

void destroy(Node* node) {
  thread_local std::vector<Node*>* queue = nullptr;
  if (queue != nullptr) {
    queue->push_back(node);
    return;
  }
  std::vector<Node*> pending{node};
  queue = &pending;
  while (!pending.empty()) {
    Node* next = pending.back();
    pending.pop_back();
    delete next;
  }
  queue = nullptr;
}

Edge gradient_edge(const Tensor& tensor) {
  if (!tensor.requires_grad()) return {};
  if (IntrusivePtr<Node> node = grad_fn_of(tensor)) return {std::move(node), {}};
  check_initialized(tensor);
  return {{}, tensor.impl_ptr()};
}

GradMeta::~GradMeta() {
  if (keeper) keeper->meta = nullptr;
}

void GradMeta::replace_grad_fn(IntrusivePtr<Node> node) {
  if (grad_fn) hooks.insert(hooks.end(), grad_fn->hooks.begin(), grad_fn->hooks.end());
  if (keeper && node) {
    if (grad_fn) grad_fn->keeper = nullptr;
    node->keeper = keeper;
  }
  grad_fn = std::move(node);
}

GradMeta& meta_of(const Tensor& tensor) {
  TensorImpl& impl = tensor.impl();
  if (!impl.autograd) impl.autograd = std::make_unique<GradMeta>();
  return static_cast<GradMeta&>(*impl.autograd);
}

IntrusivePtr<Node> grad_fn_of(const Tensor& tensor) {
  GradMeta* meta = find_meta(tensor);
  if (meta == nullptr) return {};
  if (meta->base.defined()) refresh_view_history(tensor, *meta);
  return meta->grad_fn;
}

}  // namespace tern
