// The classes of torch/nn/modules/activation.py.
#include "tern/nn/activation.h"

#include "tern/train/module_settings.h"

namespace tern::train {
namespace {

template <class M>
concept OnlyInPlace = std::same_as<M, nn::ReLU> || std::same_as<M, nn::SiLU> || std::same_as<M, nn::Mish> ||
    std::same_as<M, nn::SELU> || std::same_as<M, nn::Hardswish> || std::same_as<M, nn::Hardsigmoid>;
template <class M>
concept WithoutSettings =
    std::same_as<M, nn::Tanh> || std::same_as<M, nn::Sigmoid> || std::same_as<M, nn::LogSigmoid> ||
    std::same_as<M, nn::Softsign> || std::same_as<M, nn::Tanhshrink> || std::same_as<M, nn::Softmax2d>;
template <OnlyInPlace M>
Attributes settings(const M& layer) {
  return {{"inplace", layer.inplace}};
}
template <OnlyInPlace M>
nn::AnyModule make(const Reader& in, const M*) {
  return M(in.flag("inplace", false));
}
template <WithoutSettings M>
Attributes settings(const M&) {
  return {};
}
template <WithoutSettings M>
nn::AnyModule make(const Reader&, const M*) {
  return M();
}

Attributes settings(const nn::LeakyReLU& layer) {
  return {{"negative_slope", layer.negative_slope}, {"inplace", layer.inplace}};
}
nn::AnyModule make(const Reader& in, const nn::LeakyReLU*) {
  return nn::LeakyReLU(in.number("negative_slope"), in.flag("inplace", false));
}
Attributes settings(const nn::RReLU& layer) {
  return {{"lower", layer.lower}, {"upper", layer.upper}, {"inplace", layer.inplace}};
}
nn::AnyModule make(const Reader& in, const nn::RReLU*) {
  return nn::RReLU(in.number("lower"), in.number("upper"), in.flag("inplace", false));
}
template <class M>
concept WithAlpha = std::same_as<M, nn::ELU> || std::same_as<M, nn::CELU>;
template <WithAlpha M>
Attributes settings(const M& layer) {
  return {{"alpha", layer.alpha}, {"inplace", layer.inplace}};
}
template <WithAlpha M>
nn::AnyModule make(const Reader& in, const M*) {
  return M(in.number("alpha"), in.flag("inplace", false));
}

template <class M>
concept WithLambda = std::same_as<M, nn::Hardshrink> || std::same_as<M, nn::Softshrink>;
template <WithLambda M>
Attributes settings(const M& layer) {
  return {{"lambd", layer.lambd}};
}
template <WithLambda M>
nn::AnyModule make(const Reader& in, const M*) {
  return M(in.number("lambd"));
}

Attributes settings(const nn::Hardtanh& layer) {
  return {{"min_val", layer.min_val}, {"max_val", layer.max_val}, {"inplace", layer.inplace}};
}
nn::AnyModule make(const Reader& in, const nn::Hardtanh*) {
  return nn::Hardtanh(in.number("min_val"), in.number("max_val"), in.flag("inplace", false));
}
Attributes settings(const nn::ReLU6& layer) {
  return {{"min_val", 0.0}, {"max_val", 6.0}, {"inplace", layer.inplace}};
}
nn::AnyModule make(const Reader& in, const nn::ReLU6*) { return nn::ReLU6(in.flag("inplace", false)); }
Attributes settings(const nn::Threshold& layer) {
  return {{"threshold", layer.threshold}, {"value", layer.value}, {"inplace", layer.inplace}};
}
nn::AnyModule make(const Reader& in, const nn::Threshold*) {
  return nn::Threshold(in.number("threshold"), in.number("value"), in.flag("inplace", false));
}
Attributes settings(const nn::GLU& layer) { return {{"dim", layer.dim}}; }
nn::AnyModule make(const Reader& in, const nn::GLU*) { return nn::GLU(in.integer("dim")); }
Attributes settings(const nn::PReLU& layer) {
  return {{"num_parameters", layer.weight.numel()}, {"init", layer.init()}};
}
nn::AnyModule make(const Reader& in, const nn::PReLU*) {
  return nn::PReLU(in.integer("num_parameters"), {.init = in.number("init", 0.25)});
}
Attributes settings(const nn::GELU& layer) { return {{"approximate", layer.approximate}}; }
nn::AnyModule make(const Reader& in, const nn::GELU*) {
  const Value* approximate = in.find("approximate");
  return approximate ? nn::GELU(approximate->as_str()) : nn::GELU();
}
Attributes settings(const nn::Softplus& layer) {
  return {{"beta", layer.beta}, {"threshold", layer.threshold}};
}
nn::AnyModule make(const Reader& in, const nn::Softplus*) {
  return nn::Softplus(in.number("beta"), in.number("threshold"));
}
template <class M>
concept OverDim =
    std::same_as<M, nn::Softmax> || std::same_as<M, nn::Softmin> || std::same_as<M, nn::LogSoftmax>;
template <OverDim M>
Attributes settings(const M& layer) {
  return {{"dim", layer.dim ? Value(*layer.dim) : Value()}};
}
template <OverDim M>
nn::AnyModule make(const Reader& in, const M*) {
  return in.has("dim") ? M(in.integer("dim")) : M();
}

template <class M>
ModuleClass row(const char* module, const char* name, std::vector<std::string> parameters = {},
                std::vector<std::string> buffers = {}) {
  return module_class<M, settings, make>(module, name, std::move(parameters), std::move(buffers));
}

}  // namespace

std::vector<ModuleClass> activation_classes() {
  return {
      row<nn::ReLU>("activation", "ReLU"),
      row<nn::Tanh>("activation", "Tanh"),
      row<nn::Sigmoid>("activation", "Sigmoid"),
      row<nn::LogSigmoid>("activation", "LogSigmoid"),
      row<nn::SiLU>("activation", "SiLU"),
      row<nn::LeakyReLU>("activation", "LeakyReLU"),
      row<nn::RReLU>("activation", "RReLU"),
      row<nn::ELU>("activation", "ELU"),
      row<nn::GELU>("activation", "GELU"),
      row<nn::Softplus>("activation", "Softplus"),
      row<nn::Softmax>("activation", "Softmax"),
      row<nn::Softmin>("activation", "Softmin"),
      row<nn::Softmax2d>("activation", "Softmax2d"),
      row<nn::LogSoftmax>("activation", "LogSoftmax"),
      row<nn::Hardtanh>("activation", "Hardtanh"),
      row<nn::ReLU6>("activation", "ReLU6"),
      row<nn::Hardswish>("activation", "Hardswish"),
      row<nn::Hardsigmoid>("activation", "Hardsigmoid"),
      row<nn::Mish>("activation", "Mish"),
      row<nn::SELU>("activation", "SELU"),
      row<nn::CELU>("activation", "CELU"),
      row<nn::Softsign>("activation", "Softsign"),
      row<nn::Tanhshrink>("activation", "Tanhshrink"),
      row<nn::Hardshrink>("activation", "Hardshrink"),
      row<nn::Softshrink>("activation", "Softshrink"),
      row<nn::Threshold>("activation", "Threshold"),
      row<nn::GLU>("activation", "GLU"),
      row<nn::PReLU>("activation", "PReLU", {"weight"}),
  };
}

}  // namespace tern::train
