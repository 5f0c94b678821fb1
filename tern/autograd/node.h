// The recorded graph: nodes (one for each recorded operator call), their edges to the inputs' history, and
// the tensors saved for backward. Operators use autograd/record.h; the walk over the graph is in
// autograd/engine.cpp.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/device/stream.h"

namespace tern {

class Node;
struct GradMeta;

/// Where a gradient goes next: to the node that computed the input, or into a leaf. Empty when no gradient is
/// wanted.
struct Edge {
  IntrusivePtr<Node> node;
  IntrusivePtr<TensorImpl> leaf;
  /// Its place in GradContext::collected(); without one, gradients of several edges are added up.
  int32_t place = -1;
  explicit operator bool() const noexcept { return node || leaf; }
};

/// The history of a tensor as an edge.
Edge gradient_edge(const Tensor& tensor);

/// A tensor kept for backward, with the version that it had.
class Saved {
 public:
  Saved() = default;
  /// `is_output`: the tensor is the result of the operator that saves it, and must not keep that operator's
  /// node alive.
  Saved(const Tensor& tensor, bool is_output);
  /// The tensor as it was, saved by `node`, a result of which it is if it is any. Throws AutogradError naming
  /// the operator when it was changed in place since.
  Tensor unpack(const Node& node) const;
  /// Of an input, saved by what is no node.
  Tensor unpack(const char* name) const { return unpack(name, nullptr); }

 private:
  struct Packed;
  Tensor unpack(const char* name, const Node* node) const;

  Tensor tensor_;
  std::shared_ptr<const Packed> packed_;  ///< in its place, where saved_hooks.h says so
  uint32_t version_ = 0;
  bool is_output_ = false;
};

/// What a backward function is given besides the gradient.
class GradContext {
 public:
  GradContext(const Node& node, const bool* wanted, const std::vector<Tensor>& collected)
      : node_(node), wanted_(wanted), collected_(collected) {}
  /// The saved tensor; see Saved::unpack.
  Tensor operator[](const Saved& saved) const { return saved.unpack(node_); }
  /// Whether a gradient of input `i` is wanted.
  bool needs(size_t i) const { return wanted_[i]; }
  /// The gradients that came by edges with places; undefined, or beyond the end, where none came.
  const std::vector<Tensor>& collected() const { return collected_; }

 private:
  const Node& node_;
  const bool* wanted_;
  const std::vector<Tensor>& collected_;
};

using GradHook = std::function<Tensor(const Tensor&)>;

/// A hook under the number that remove_hook() takes.
struct RegisteredHook {
  int64_t number;
  GradHook call;
  bool removed = false;  ///< for lists that remove_hook() cannot reach
};
using GradHooks = std::vector<std::shared_ptr<RegisteredHook>>;

/// A hook on a leaf whose gradient has been accumulated.
struct AccumulatedHook {
  int64_t number;
  std::function<void(const Tensor&)> call;
};

/// How a node finds the tensor that keeps the gradient of its result: either may go before the other.
struct GradKeeper : RefCounted {
  explicit GradKeeper(GradMeta* keeping) : meta(keeping) {}
  GradMeta* meta;  ///< null when the tensor is gone
};

/// One recorded call of an operator with one differentiable result.
class Node : public RefCounted {
 public:
  explicit Node(const char* name);
  virtual ~Node() = default;
  /// Of a node that comes in backward only when nothing else can go on.
  static constexpr uint64_t kLast = 0;

  /// The operator's name.
  const char* name() const noexcept { return name_; }
  /// Nodes recorded later have higher numbers.
  uint64_t sequence() const noexcept { return sequence_; }
  const std::vector<Edge>& inputs() const noexcept { return inputs_; }
  void set_inputs(std::vector<Edge> inputs) { inputs_ = std::move(inputs); }

  /// Gradients of the inputs, in `results[0..inputs)`, from the gradient of the result. Undefined means zero.
  virtual void apply(GradContext& context, const Tensor& grad, Tensor* results) = 0;
  /// Lets go of the saved tensors.
  virtual void release_saved() = 0;

  /// The stream that the result was computed on: its gradient is too, as in PyTorch.
  Stream stream;
  /// The module that was called, kept while somebody observes launches; null otherwise.
  std::unique_ptr<const std::string> module_path;
  /// Hooks on the gradient of the result.
  GradHooks hooks;
  /// Of a result that keeps its gradient.
  IntrusivePtr<GradKeeper> keeper;

 protected:
  Node(const char* name, uint64_t sequence) : name_(name), sequence_(sequence) {}

 private:
  const char* name_;
  uint64_t sequence_;
  std::vector<Edge> inputs_;
};

/// Frees a node; chains of any length are freed without recursion.
void destroy(Node* node);

/// What autograd keeps for a tensor.
struct GradMeta final : AutogradMeta {
  ~GradMeta() override;
  /// After a change in place: the gradient that is kept is the new node's from now on, hooks stay with the
  /// old one. Null after detach_(), where the old node goes on with both.
  void replace_grad_fn(IntrusivePtr<Node> node);

  /// Of a view of a tensor that requires a gradient, taken while nothing was recorded: changing it in place
  /// where gradients are recorded would go unnoticed.
  bool untracked_view = false;
  IntrusivePtr<Node> grad_fn;  ///< null for leaves
  Tensor grad;
  /// Of a leaf: its hooks. Else those on nodes that it had before.
  GradHooks hooks;
  std::vector<std::shared_ptr<const AccumulatedHook>> accumulated_hooks;  ///< of a leaf
  int64_t next_hook = 0;
  IntrusivePtr<GradKeeper> keeper;  ///< of a computed tensor that keeps its gradient
  /// Of a view: the tensor whose storage it shows, and that tensor's number of in-place changes that
  /// `grad_fn` knows of.
  Tensor base;
  uint32_t base_rewrites = 0;
  /// Of a base: how often its history was rewritten by in-place changes of views.
  uint32_t rewrites = 0;
};

/// The tensor's GradMeta; null when it has none.
inline GradMeta* find_meta(const Tensor& tensor) noexcept {
  return tensor.defined() ? static_cast<GradMeta*>(tensor.impl_ptr()->autograd.get()) : nullptr;
}
/// The tensor's GradMeta; makes one.
GradMeta& meta_of(const Tensor& tensor);
/// The node that computed the tensor; null for leaves. A view whose base was changed through another view
/// gets its new history here.
IntrusivePtr<Node> grad_fn_of(const Tensor& tensor);

}  // namespace tern
