// Functions with gradients of one's own, as torch.autograd.Function.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "tern/autograd/grad_mode.h"
#include "tern/autograd/node.h"

namespace tern::autograd {

class FunctionContext;

namespace detail {
class CallNode;
struct InputOfFunction {
  bool needs_grad;
  uint32_t version;  ///< when forward() began
};
using FunctionBackward = std::function<std::vector<Tensor>(FunctionContext&, const std::vector<Tensor>&)>;
void record_function(const char* name, const std::vector<Tensor>& inputs, const std::vector<Tensor*>& results,
                     FunctionContext context, FunctionBackward backward);
}  // namespace detail

/// What forward() and backward() of one call tell each other, besides the fields of the Function.
class FunctionContext {
 public:
  /// In forward: keeps tensors for backward, inputs and results or others; once, the last call counts.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  /// In backward: those tensors, with their history where gradients are recorded. Throws AutogradError for
  /// one that was changed in place since.
  std::vector<Tensor> saved_tensors() const;
  /// Whether a gradient of argument `i` is wanted, counted as backward() returns them.
  bool needs_input_grad(size_t i) const;
  /// In forward: results through which no gradient flows. Those that are not floating point need not be
  /// named.
  void mark_non_differentiable(std::vector<Tensor> results) { not_differentiable_ = std::move(results); }
  /// In forward: whether backward is given zeros (true, at first) or an undefined tensor for a result that
  /// nothing depended on.
  void set_materialize_grads(bool value) { materialize_grads_ = value; }

 private:
  friend class detail::CallNode;
  friend void detail::record_function(const char*, const std::vector<Tensor>&, const std::vector<Tensor*>&,
                                      FunctionContext, detail::FunctionBackward);
  template <class>
  friend class Function;

  std::vector<Tensor> to_save_, not_differentiable_;
  bool materialize_grads_ = true;
  std::vector<detail::InputOfFunction> inputs_;
  const detail::CallNode* node_ = nullptr;  // in backward
  const GradContext* grads_ = nullptr;      // in backward
};

namespace detail {

/// Whether a type is a tensor, or a vector, array, pair, tuple or optional of what holds some.
template <class T>
struct HoldsTensors : std::is_base_of<Tensor, T> {};
template <class T>
inline constexpr bool holds_tensors = HoldsTensors<std::remove_cvref_t<T>>::value;
template <class T>
struct HoldsTensors<std::vector<T>> : std::bool_constant<holds_tensors<T>> {};
template <class T, size_t N>
struct HoldsTensors<std::array<T, N>> : std::bool_constant<holds_tensors<T>> {};
template <class T>
struct HoldsTensors<std::optional<T>> : std::bool_constant<holds_tensors<T>> {};
template <class A, class B>
struct HoldsTensors<std::pair<A, B>> : std::bool_constant<holds_tensors<A> || holds_tensors<B>> {};
template <class... Ts>
struct HoldsTensors<std::tuple<Ts...>> : std::bool_constant<(holds_tensors<Ts> || ...)> {};

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

/// Calls `visit` with every tensor of an argument or a result, and `other()` for what holds none.
template <class T, class Visit, class Other>
void each_tensor(T& value, const Visit& visit, const Other& other) {
  using Value = std::remove_const_t<T>;
  if constexpr (!holds_tensors<Value>) {
    other();
  } else if constexpr (std::is_base_of_v<Tensor, Value>) {
    visit(value);
  } else if constexpr (IsOptional<Value>::value) {
    if (value)
      each_tensor(*value, visit, other);
    else
      other();
  } else if constexpr (requires { value.begin(); }) {
    for (auto& x : value) each_tensor(x, visit, other);
  } else {
    std::apply([&](auto&... x) { (each_tensor(x, visit, other), ...); }, value);
  }
}

/// Undefined in the places of what is none.
template <class T>
std::vector<Tensor> tensors_of(const T& value) {
  std::vector<Tensor> tensors;
  each_tensor(
      value, [&](const Tensor& x) { tensors.push_back(x); }, [&] { tensors.emplace_back(); });
  return tensors;
}

/// The gradient of the one result, for a backward() that takes one.
const Tensor& only_gradient(const char* name, const std::vector<Tensor>& grads);

/// The name of errors and profiles; kept for good.
const char* name_of_function(const std::type_info& type);
std::vector<InputOfFunction> inputs_of_function(const std::vector<Tensor>& inputs);

}  // namespace detail

/// A function whose gradient is written by hand: because the operators' own is slow, wrong for the purpose (a
/// straight-through estimator), or not there.
///
///     struct Clip : autograd::Function<Clip> {
///       double most = 0;
///       Tensor forward(autograd::FunctionContext& context, const Tensor& x, double at_most) {
///         most = at_most;
///         context.save_for_backward({x});
///         return clamp(x, -most, most);
///       }
///       std::vector<Tensor> backward(const autograd::FunctionContext& context, const Tensor& grad) {
///         return {grad * (context.saved_tensors()[0].abs() <= most), {}};
///       }
///     };
///     Tensor y = Clip::apply(x, 0.5);
///
/// apply() makes an object, calls forward() without recording, and returns what it returns: a tensor, or a
/// vector, array, pair, tuple or optional of what holds some. Fields of the object are there again in
/// backward(); both functions may be static as well. A field must not hold a result, which would keep itself
/// for ever: save_for_backward() does. backward() is given the gradient of the one result as a Tensor, or
/// those of all in a std::vector<Tensor>. It returns a gradient for each argument of forward(), undefined for
/// those that are no tensors or need none; at the end these may be left out. A vector or tuple among the
/// arguments counts as what it holds. What backward() does is recorded for second derivatives, and it may be
/// called again with retain_graph.
///
/// An argument that is returned as it is becomes a view that must not be changed in place (AutogradError).
/// Errors: AutogradError for a number of gradients other than that of arguments, ShapeError and DeviceError
/// for one that does not fit its input; one of another dtype is converted. AutogradError where forward() has
/// changed an input in place, and where backward() takes one gradient of several results.
template <class Derived>
class Function {
 public:
  template <class... Args>
  static auto apply(const Args&... args) {
    const auto self = std::make_shared<Derived>();
    FunctionContext context;
    const std::vector<Tensor> inputs = detail::tensors_of(std::tie(args...));
    context.inputs_ = detail::inputs_of_function(inputs);
    auto result = [&] {
      NoGradGuard no_grad;
      return self->forward(context, args...);
    }();
    static_assert(detail::holds_tensors<decltype(result)>,
                  "forward() returns a tensor, or a vector, array, pair, tuple or optional that holds some");
    std::vector<Tensor*> results;
    detail::each_tensor(
        result, [&](Tensor& x) { results.push_back(&x); }, [] {});
    detail::record_function(
        detail::name_of_function(typeid(Derived)), inputs, results, std::move(context),
        [self](FunctionContext& c, const std::vector<Tensor>& grads) {
          if constexpr (requires { self->backward(c, grads); })
            return detail::tensors_of(self->backward(c, grads));
          else
            return detail::tensors_of(
                self->backward(c, detail::only_gradient(detail::name_of_function(typeid(Derived)), grads)));
        });
    return result;
  }
};

}  // namespace tern::autograd
