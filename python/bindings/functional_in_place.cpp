// Activation functions and dropout with torch.nn.functional's argument `inplace`, and their names in place
// (relu_).
#include "functional.h"

namespace tern::python {

namespace {

/// `f(input, settings...)` as `name(input, settings..., inplace=False)`.
template <class F, class... Settings>
void bind_with_inplace(py::module_& m, const char* name, F f, const Settings&... settings) {
  function(
      m, name,
      [f](const Tensor& x, const typename Settings::Type&... values, bool in_place) {
        return maybe_in_place(x, in_place, [&](const Tensor& given) { return f(given, values...); });
      },
      rows(argument<Tensor>("input"), settings..., argument("inplace", false)));
}
/// And as `name_(input, settings...)`.
template <class F, class... Settings>
void bind_both(py::module_& m, const char* name, F f, const Settings&... settings) {
  bind_with_inplace(m, name, f, settings...);
  function(
      m, (std::string(name) + "_").c_str(),
      [f](const Tensor& x, const typename Settings::Type&... values) {
        return maybe_in_place(x, true, [&](const Tensor& given) { return f(given, values...); });
      },
      rows(argument<Tensor>("input"), settings...));
}

template <class F>
void bind_dropout(py::module_& m, const char* name, F f, bool training = true) {
  bind_with_inplace(m, name, f, argument("p", 0.5), argument("training", training));
}

}  // namespace

void bind_functional_in_place(py::module_& m) {
  bind_both(m, "relu", [](const Tensor& x) { return relu(x); });
  bind_both(m, "selu", [](const Tensor& x) { return selu(x); });
  bind_both(
      m, "elu", [](const Tensor& x, double alpha) { return elu(x, alpha); }, argument("alpha", 1.0));
  bind_both(
      m, "celu", [](const Tensor& x, double alpha) { return celu(x, alpha); }, argument("alpha", 1.0));
  bind_both(
      m, "leaky_relu", [](const Tensor& x, double slope) { return leaky_relu(x, slope); },
      argument("negative_slope", 0.01));
  bind_both(
      m, "hardtanh", [](const Tensor& x, double min, double max) { return hardtanh(x, min, max); },
      argument("min_val", -1.0), argument("max_val", 1.0));
  bind_both(
      m, "threshold", [](const Tensor& x, double least, double value) { return threshold(x, least, value); },
      argument<double>("threshold"), argument<double>("value"));
  bind_both(
      m, "rrelu",
      [](const Tensor& x, double lower, double upper, bool training) {
        return rrelu(x, lower, upper, training);
      },
      argument("lower", 1.0 / 8), argument("upper", 1.0 / 3), argument("training", false));
  bind_with_inplace(m, "relu6", [](const Tensor& x) { return relu6(x); });
  bind_with_inplace(m, "silu", [](const Tensor& x) { return silu(x); });
  bind_with_inplace(m, "mish", [](const Tensor& x) { return mish(x); });
  bind_with_inplace(m, "hardswish", [](const Tensor& x) { return hardswish(x); });
  bind_with_inplace(m, "hardsigmoid", [](const Tensor& x) { return hardsigmoid(x); });

  bind_dropout(m, "dropout",
               [](const Tensor& x, double p, bool training) { return dropout(x, p, training); });
  bind_dropout(m, "dropout1d",
               [](const Tensor& x, double p, bool training) { return dropout1d(x, p, training); });
  bind_dropout(m, "dropout2d",
               [](const Tensor& x, double p, bool training) { return dropout2d(x, p, training); });
  bind_dropout(m, "dropout3d",
               [](const Tensor& x, double p, bool training) { return dropout3d(x, p, training); });
  bind_dropout(
      m, "alpha_dropout",
      [](const Tensor& x, double p, bool training) { return alpha_dropout(x, p, training); },
      /*training=*/false);
  bind_dropout(
      m, "feature_alpha_dropout",
      [](const Tensor& x, double p, bool training) { return feature_alpha_dropout(x, p, training); },
      /*training=*/false);
}

}  // namespace tern::python
