// The nodes of functions with gradients of one's own.
#include "tern/autograd/function.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <typeindex>
#include <unordered_map>

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/record.h"
#include "tern/base/check.h"
#include "tern/base/type_name.h"

namespace tern::autograd {

namespace detail {
namespace {

/// What a gradient of a tensor looks like.
struct Like {
  Shape shape;
  DType dtype;
  Device device;
};

std::optional<Like> like(const Tensor& x) {
  if (!x.defined()) return std::nullopt;
  return Like{x.shape(), x.dtype(), x.device()};
}

bool holds(const std::vector<Tensor>& list, const Tensor& x) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& y) { return y.impl_ptr() == x.impl_ptr(); });
}

/// One of several results: hands its gradient to the node of all.
class ResultNode final : public Node {
 public:
  ResultNode(const char* name, IntrusivePtr<Node> all, size_t place) : Node(name) {
    stream = all->stream;
    set_inputs({Edge{std::move(all), {}, static_cast<int32_t>(place)}});
  }
  void apply(GradContext&, const Tensor& grad, Tensor* results) override { results[0] = grad; }
  void release_saved() override {}
};

}  // namespace

/// One call of a function.
class CallNode final : public Node {
 public:
  CallNode(const char* name, const std::vector<Tensor>& inputs, FunctionContext context,
           FunctionBackward backward)
      : Node(name), context_(std::move(context)), backward_(std::move(backward)) {
    for (const Tensor& x : inputs) inputs_like_.push_back(like(x));
    set_inputs(tern::detail::edges_of(inputs.data(), inputs.size()));
  }

  /// Makes the tensors its results, and keeps what is to be saved.
  void attach(const std::vector<Tensor>& inputs, const std::vector<Tensor*>& results) {
    const std::vector<Tensor> to_save = std::move(context_.to_save_),
                              constants = std::move(context_.not_differentiable_);
    std::vector<Tensor> returned;
    for (const Tensor* y : results) returned.push_back(*y);
    for (size_t i = 0; i < results.size(); ++i) {
      Tensor& y = *results[i];
      results_like_.push_back(like(y));
      if (!y.defined()) continue;
      if (stream.device != y.device()) stream = current_stream(y.device());
      if (holds(inputs, y) || y.requires_grad()) {  // it has a history of its own, and stays as it is
        y = y.detach();
        meta_of(y).untracked_view = true;
      }
      if (!(is_floating_point(y.dtype()) || is_complex(y.dtype())) || holds(constants, returned[i])) continue;
      tern::detail::attach(y, results.size() == 1 ? self() : result_node(i));
    }
    for (const Tensor& x : to_save) {
      size_t i = 0;
      while (i < returned.size() && returned[i].impl_ptr() != x.impl_ptr()) ++i;
      const bool is_result =
          x.defined() && i < returned.size() && results[i]->requires_grad() && !holds(inputs, x);
      saved_.push_back({Saved(x, is_result), is_result ? std::optional(i) : std::nullopt});
    }
    tern::detail::pending_saves = 0;
  }

  std::vector<Tensor> saved_tensors() const {
    std::vector<Tensor> tensors;
    for (const auto& [saved, result] : saved_)
      tensors.push_back(saved.unpack(result && results_like_.size() > 1 ? *result_node(*result) : *self()));
    return tensors;
  }

  void apply(GradContext& context, const Tensor& grad, Tensor* results) override {
    if (!backward_) tern::detail::throw_second_backward(*this);
    std::vector<Tensor> grads = results_like_.size() == 1 ? std::vector{grad} : context.collected();
    grads.resize(results_like_.size());
    for (size_t i = 0; i < grads.size(); ++i)
      if (const auto& y = results_like_[i]; y && !grads[i].defined() && context_.materialize_grads_)
        grads[i] = filled(y->shape, y->dtype, y->device, 0);
    FunctionContext during = context_;
    during.node_ = this;
    during.grads_ = &context;
    std::vector<Tensor> found = backward_(during, grads);
    const auto is_tensor = [](const auto& x) { return x.has_value(); };
    TERN_CHECK(
        found.size() <= inputs_like_.size() &&
            std::none_of(inputs_like_.begin() + static_cast<int64_t>(found.size()), inputs_like_.end(),
                         is_tensor),
        AutogradError,
        "{}: backward() returned an incorrect number of gradients: expected {}, one for each argument of "
        "forward(), got {}",
        name(), inputs_like_.size(), found.size());
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i].defined()) results[i] = checked(std::move(found[i]), i);
  }

  void release_saved() override {
    if (saved_.empty()) return;
    saved_.clear();
    backward_ = nullptr;
  }

 private:
  IntrusivePtr<Node> self() const { return IntrusivePtr<Node>(const_cast<CallNode*>(this)); }
  IntrusivePtr<Node> result_node(size_t i) const {
    return IntrusivePtr<Node>(new ResultNode(name(), self(), i));
  }

  Tensor checked(Tensor grad, size_t i) const {
    const auto& x = inputs_like_[i];
    TERN_CHECK(x, AutogradError, "{}: backward() returned a gradient for argument {}, which is no tensor",
               name(), i);
    TERN_CHECK(grad.shape() == x->shape, ShapeError,
               "{}: backward() returned an invalid gradient for argument {}: expected shape {}, got {}",
               name(), i, to_string(x->shape), to_string(grad.shape()));
    TERN_CHECK(grad.device() == x->device, DeviceError,
               "{}: backward() returned an invalid gradient for argument {}: expected it on {}, got {}",
               name(), i, x->device.str(), grad.device().str());
    return grad.dtype() == x->dtype ? grad : convert_gradient(grad, x->dtype);
  }

  FunctionContext context_;
  FunctionBackward backward_;
  std::vector<std::optional<Like>> inputs_like_, results_like_;
  std::vector<std::pair<Saved, std::optional<size_t>>> saved_;  // with its number among the results
};

const Tensor& only_gradient(const char* name, const std::vector<Tensor>& grads) {
  TERN_CHECK(grads.size() == 1, AutogradError,
             "{}: backward() takes one gradient, and forward() has {} results: take a std::vector<Tensor>",
             name, grads.size());
  return grads[0];
}

const char* name_of_function(const std::type_info& type) {
  static std::mutex mutex;
  static auto* names = new std::unordered_map<std::type_index, std::string>;  // for good
  std::lock_guard lock(mutex);
  std::string& name = (*names)[type];
  if (name.empty()) name = short_type_name(type);
  return name.c_str();
}

std::vector<InputOfFunction> inputs_of_function(const std::vector<Tensor>& inputs) {
  std::vector<InputOfFunction> list;
  for (const Tensor& x : inputs)
    list.push_back({is_grad_enabled() && x.requires_grad(), x.defined() ? x.version() : 0});
  return list;
}

void record_function(const char* name, const std::vector<Tensor>& inputs, const std::vector<Tensor*>& results,
                     FunctionContext context, FunctionBackward backward) {
  const auto needs_grad = [](const InputOfFunction& x) { return x.needs_grad; };
  if (std::none_of(context.inputs_.begin(), context.inputs_.end(), needs_grad)) return;
  for (size_t i = 0; i < inputs.size(); ++i)
    TERN_CHECK(!inputs[i].defined() || inputs[i].version() == context.inputs_[i].version, AutogradError,
               "{}: forward() changed argument {} in place: change a clone() of it", name, i);
  const IntrusivePtr<CallNode> node(new CallNode(name, inputs, std::move(context), std::move(backward)));
  node->attach(inputs, results);
}

}  // namespace detail

std::vector<Tensor> FunctionContext::saved_tensors() const {
  TERN_CHECK(node_ != nullptr, AutogradError, "saved_tensors: they are there in backward() only");
  return node_->saved_tensors();
}

bool FunctionContext::needs_input_grad(size_t i) const {
  TERN_CHECK(i < inputs_.size(), IndexError, "needs_input_grad: there are {} arguments, no number {}",
             inputs_.size(), i);
  return grads_ != nullptr ? grads_->needs(i) : inputs_[i].needs_grad;
}

}  // namespace tern::autograd
