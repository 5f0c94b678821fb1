// Activation functions and dropout as layers.
#include "functional.h"
#include "layers.h"

namespace tern::python {

namespace {

/// A layer whose last setting is `inplace`: then it changes its input, and returns that.
template <class Layer, class... Settings>
void bind_inplace(py::module_& m, const char* name, const Settings&... settings) {
  auto c = layer_of_settings<Layer>(m, name, settings..., setting("inplace", &Layer::inplace, false));
  const auto forward = [](Layer& self, const Tensor& x) {
    constexpr bool kKeepsInput = !std::is_same_v<Layer, nn::ReLU>;
    return maybe_in_place(
        x, self.inplace, [&](const Tensor& given) { return self.forward(given); }, kKeepsInput);
  };
  const auto call = [forward](Layer& self, const Tensor& x) {
    if (self.hooks()) return nn::detail::call(self, x);
    return nn::detail::call_inside(self, [&] { return forward(self, x); });
  };
  method(c, "forward", forward, rows(argument<Tensor>("input")));
  method(c, "__call__", call, rows(argument<Tensor>("input")));
}
/// Layers of one number and `inplace`.
template <class Layer>
void bind_with_number(py::module_& m, const char* name, const char* number, double Layer::*field,
                      double by_default) {
  bind_inplace<Layer>(m, name, setting(number, field, by_default));
}
template <class Layer>
void bind_of_dim(py::module_& m, const char* name) {
  simple_layer<Layer>(m, name, setting("dim", &Layer::dim, std::nullopt));
}

void bind_prelu(py::module_& m) {
  using Options = nn::PReLUOptions;
  auto c = layer<nn::PReLU>(m, "PReLU", rows(argument<int64_t>("num_parameters", 1)),
                            rows(option("init", &Options::init), option("device", &Options::device),
                                 option("dtype", &Options::dtype)));
  calls(c);
  tensor_field(c, "weight", &nn::PReLU::weight);
  following(c, "num_parameters", [](const nn::PReLU& self) { return self.weight.numel(); });
  c.def_property_readonly("init", &nn::PReLU::init);
}

}  // namespace

void bind_activation_layers(py::module_& m) {
  simple_layer<nn::Tanh>(m, "Tanh");
  simple_layer<nn::Sigmoid>(m, "Sigmoid");
  simple_layer<nn::LogSigmoid>(m, "LogSigmoid");
  simple_layer<nn::Softsign>(m, "Softsign");
  simple_layer<nn::Tanhshrink>(m, "Tanhshrink");
  simple_layer<nn::Softmax2d>(m, "Softmax2d");
  bind_inplace<nn::ReLU>(m, "ReLU");
  bind_inplace<nn::ReLU6>(m, "ReLU6");
  bind_inplace<nn::SiLU>(m, "SiLU");
  bind_inplace<nn::Mish>(m, "Mish");
  bind_inplace<nn::SELU>(m, "SELU");
  bind_inplace<nn::Hardswish>(m, "Hardswish");
  bind_inplace<nn::Hardsigmoid>(m, "Hardsigmoid");
  bind_with_number(m, "LeakyReLU", "negative_slope", &nn::LeakyReLU::negative_slope, 0.01);
  bind_with_number(m, "ELU", "alpha", &nn::ELU::alpha, 1);
  bind_with_number(m, "CELU", "alpha", &nn::CELU::alpha, 1);
  simple_layer<nn::Hardshrink>(m, "Hardshrink", setting("lambd", &nn::Hardshrink::lambd, 0.5));
  simple_layer<nn::Softshrink>(m, "Softshrink", setting("lambd", &nn::Softshrink::lambd, 0.5));
  simple_layer<nn::GELU>(m, "GELU", setting("approximate", &nn::GELU::approximate, "none"));
  simple_layer<nn::GLU>(m, "GLU", setting("dim", &nn::GLU::dim, -1));
  bind_of_dim<nn::Softmax>(m, "Softmax");
  bind_of_dim<nn::Softmin>(m, "Softmin");
  bind_of_dim<nn::LogSoftmax>(m, "LogSoftmax");
  simple_layer<nn::Softplus>(m, "Softplus", setting("beta", &nn::Softplus::beta, 1),
                             setting("threshold", &nn::Softplus::threshold, 20));
  bind_inplace<nn::Threshold>(m, "Threshold", setting("threshold", &nn::Threshold::threshold),
                              setting("value", &nn::Threshold::value));
  bind_inplace<nn::RReLU>(m, "RReLU", setting("lower", &nn::RReLU::lower, 1.0 / 8),
                          setting("upper", &nn::RReLU::upper, 1.0 / 3));
  bind_inplace<nn::Hardtanh>(m, "Hardtanh", setting("min_val", &nn::Hardtanh::min_val, -1),
                             setting("max_val", &nn::Hardtanh::max_val, 1));
  bind_prelu(m);

  bind_with_number(m, "Dropout", "p", &nn::Dropout::p, 0.5);
  bind_with_number(m, "Dropout1d", "p", &nn::Dropout1d::p, 0.5);
  bind_with_number(m, "Dropout2d", "p", &nn::Dropout2d::p, 0.5);
  bind_with_number(m, "Dropout3d", "p", &nn::Dropout3d::p, 0.5);
  bind_with_number(m, "AlphaDropout", "p", &nn::AlphaDropout::p, 0.5);
  bind_with_number(m, "FeatureAlphaDropout", "p", &nn::FeatureAlphaDropout::p, 0.5);
}

}  // namespace tern::python
