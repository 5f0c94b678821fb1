// How operators record their gradients: `if (tracks_grad(x)) record("exp", y, {x}, backward)`, next to the
// forward.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <type_traits>

#include "tern/autograd/grad_mode.h"
#include "tern/autograd/node.h"

namespace tern {

/// True when the mode records and at least one of the tensors requires a gradient (undefined ones do not).
template <class... Tensors>
inline bool tracks_grad(const Tensors&... tensors) {
  return is_grad_enabled() && (tensors.requires_grad() || ...);
}
bool tracks_grad(const std::vector<Tensor>& tensors);

/// Keeps an input for backward.
inline Saved save(const Tensor& input) { return Saved(input, /*is_output=*/false); }
/// Keeps the operator's own result for backward.
inline Saved save_output(const Tensor& output) { return Saved(output, /*is_output=*/true); }

namespace detail {

extern thread_local int
    pending_saves;  // tensors saved since the last node was made: those that its function holds

[[noreturn]] void throw_second_backward(const Node& node);

/// A node whose backward is a lambda.
template <class F>
class FunctionNode final : public Node {
 public:
  FunctionNode(const char* name, F function)
      : Node(name), function_(std::move(function)), has_saved_(std::exchange(pending_saves, 0) != 0) {}

  void apply(GradContext& context, const Tensor& grad, Tensor* results) override {
    if (!function_) throw_second_backward(*this);
    using Result = std::invoke_result_t<F&, GradContext&, const Tensor&>;
    if constexpr (std::is_same_v<Result, Tensor>) {
      results[0] = (*function_)(context, grad);
    } else {
      Result all = (*function_)(context, grad);
      for (size_t i = 0; i < inputs().size() && i < all.size(); ++i) results[i] = std::move(all[i]);
    }
  }
  void release_saved() override {
    if (has_saved_) function_.reset();
  }

 private:
  std::optional<F> function_;
  bool has_saved_;
};

void attach(const Tensor& output, IntrusivePtr<Node> node);
void attach_in_place(const Tensor& changed, IntrusivePtr<Node> node);
void mark_view(const Tensor& view, const Tensor& base);
void mark_untracked_view(const Tensor& view, const Tensor& base);
std::vector<Edge> edges_of(const Tensor* first, size_t count);

template <class F>
IntrusivePtr<Node> make_node(const char* name, const Tensor* inputs, size_t count, F&& backward) {
  IntrusivePtr<Node> node(new FunctionNode<std::decay_t<F>>(name, std::forward<F>(backward)));
  node->set_inputs(edges_of(inputs, count));
  return node;
}

}  // namespace detail

/// Makes `output` the result of an operator on `inputs`. `backward(GradContext& c, const Tensor& grad)`
/// returns the gradients of the inputs: a Tensor for one input, else std::array or std::vector, undefined
/// where none is needed.
template <class F>
void record(const char* name, const Tensor& output, std::initializer_list<Tensor> inputs, F&& backward) {
  detail::attach(output, detail::make_node(name, inputs.begin(), inputs.size(), std::forward<F>(backward)));
}
template <class F>
void record(const char* name, const Tensor& output, const std::vector<Tensor>& inputs, F&& backward) {
  detail::attach(output, detail::make_node(name, inputs.data(), inputs.size(), std::forward<F>(backward)));
}

/// For operators whose result shares the storage of `base`: call it always, tracked or not, so that a later
/// change in place through the view reaches the history of the base.
template <class F>
void record_view(const char* name, const Tensor& view, const Tensor& base, F&& backward) {
  if (!is_grad_enabled()) {
    if (base.impl_ptr()->autograd) detail::mark_untracked_view(view, base);
    return;
  }
  if (base.requires_grad())
    detail::attach(view, detail::make_node(name, &base, 1, std::forward<F>(backward)));
  detail::mark_view(view, base);
}

/// Call before changing `tensor` in place. Throws AutogradError for a leaf that requires a gradient (in
/// recording mode), ShapeError when elements of the tensor share memory (expand).
void check_in_place(const char* name, const Tensor& tensor);

/// Call after `changed` was changed in place: counts a version and, when tracked, rewrites its history.
/// `inputs` are the operands with the old `changed` among them, as they stand in the formula.
template <class F>
void record_in_place(const char* name, const Tensor& changed, std::initializer_list<Tensor> inputs,
                     F&& backward) {
  changed.storage()->bump_version();
  bool tracked = false;
  for (const Tensor& input : inputs) tracked = tracked || tracks_grad(input);
  if (tracked)
    detail::attach_in_place(
        changed, detail::make_node(name, inputs.begin(), inputs.size(), std::forward<F>(backward)));
  else
    detail::pending_saves = 0;
}

}  // namespace tern
