// The classes of layers over sequences and images: convolution, pooling, padding. Names and settings as in
// torch/nn/modules/*.py.
#include "tern/nn/conv.h"
#include "tern/nn/pad.h"
#include "tern/nn/pool.h"
#include "tern/nn/reshape.h"
#include "tern/train/module_settings.h"

namespace tern::train {

namespace {

// ---- convolution

/// What torch.nn.modules.conv._ConvNd keeps for padding modes other than zeros.
Value reversed_padding(const ConvPadding& padding, Size2 kernel, Size2 dilation, int dims) {
  std::vector<Value> sides;
  const bool same = padding.mode == ConvPadding::kSame;
  auto add = [&](int64_t explicit_size, int64_t kernel_size, int64_t step) {
    const int64_t total = step * (kernel_size - 1);
    sides.emplace_back(same ? total / 2 : explicit_size);
    sides.emplace_back(same ? total - total / 2 : explicit_size);
  };
  add(padding.size.w, kernel.w, dilation.w);
  if (dims == 2) add(padding.size.h, kernel.h, dilation.h);
  return padding.word().empty() ? Value::tuple(sides) : Value::list(sides);
}

Value padding_value(const ConvPadding& padding, int dims) {
  if (!padding.word().empty()) return padding.word();
  return dims == 1 ? single(padding.size.w) : pair(padding.size);
}
ConvPadding padding_of(const Reader& in, int dims) {
  const Value& value = in.at("padding");
  if (value.is_str()) return ConvPadding(std::string_view(value.as_str()));
  return dims == 1 ? ConvPadding(in.one("padding")) : ConvPadding(in.two("padding"));
}

template <class Layer>
Attributes conv2d_settings(const Layer& layer, bool transposed, ConvPadding padding, Size2 output_padding) {
  const auto& o = layer.options();
  const auto& shape = layer.weight.shape();
  const Size2 kernel{shape[2], shape[3]};
  return {{"in_channels", transposed ? shape[0] : shape[1] * o.groups},
          {"out_channels", transposed ? shape[1] * o.groups : shape[0]},
          {"kernel_size", pair(kernel)},
          {"stride", pair(o.stride)},
          {"padding", padding_value(padding, 2)},
          {"dilation", pair(o.dilation)},
          {"transposed", transposed},
          {"output_padding", pair(output_padding)},
          {"groups", o.groups},
          {"padding_mode", "zeros"},
          {"_reversed_padding_repeated_twice", reversed_padding(padding, kernel, o.dilation, 2)}};
}

Attributes settings(const nn::Conv2d& layer) {
  return conv2d_settings(layer, false, layer.options().padding, 0);
}
nn::AnyModule make(const Reader& in, const nn::Conv2d*) {
  in.only("padding_mode", "zeros");
  return nn::Conv2d(in.integer("in_channels"), in.integer("out_channels"), in.two("kernel_size"),
                    {.stride = in.two("stride"),
                     .padding = padding_of(in, 2),
                     .dilation = in.two("dilation"),
                     .groups = in.integer("groups"),
                     .bias = in.parameter("bias")});
}

Attributes settings(const nn::ConvTranspose2d& layer) {
  return conv2d_settings(layer, true, layer.options().padding, layer.options().output_padding);
}
nn::AnyModule make(const Reader& in, const nn::ConvTranspose2d*) {
  in.only("padding_mode", "zeros");
  return nn::ConvTranspose2d(in.integer("in_channels"), in.integer("out_channels"), in.two("kernel_size"),
                             {.stride = in.two("stride"),
                              .padding = in.two("padding"),
                              .output_padding = in.two("output_padding"),
                              .groups = in.integer("groups"),
                              .bias = in.parameter("bias"),
                              .dilation = in.two("dilation")});
}

template <class Layer>
Attributes conv1d_settings(const Layer& layer, bool transposed, const ConvPadding& padding,
                           int64_t output_padding) {
  const auto& o = layer.options();
  const auto& shape = layer.weight.shape();
  return {{"in_channels", transposed ? shape[0] : shape[1] * o.groups},
          {"out_channels", transposed ? shape[1] * o.groups : shape[0]},
          {"kernel_size", single(shape[2])},
          {"stride", single(o.stride)},
          {"padding", padding_value(padding, 1)},
          {"dilation", single(o.dilation)},
          {"transposed", transposed},
          {"output_padding", single(output_padding)},
          {"groups", o.groups},
          {"padding_mode", "zeros"},
          {"_reversed_padding_repeated_twice", reversed_padding(padding, shape[2], o.dilation, 1)}};
}

Attributes settings(const nn::Conv1d& layer) {
  return conv1d_settings(layer, false, layer.options().padding, 0);
}
nn::AnyModule make(const Reader& in, const nn::Conv1d*) {
  in.only("padding_mode", "zeros");
  return nn::Conv1d(in.integer("in_channels"), in.integer("out_channels"), in.one("kernel_size"),
                    {.stride = in.one("stride"),
                     .padding = padding_of(in, 1),
                     .dilation = in.one("dilation"),
                     .groups = in.integer("groups"),
                     .bias = in.parameter("bias")});
}

Attributes settings(const nn::ConvTranspose1d& layer) {
  return conv1d_settings(layer, true, layer.options().padding, layer.options().output_padding);
}
nn::AnyModule make(const Reader& in, const nn::ConvTranspose1d*) {
  in.only("padding_mode", "zeros");
  return nn::ConvTranspose1d(in.integer("in_channels"), in.integer("out_channels"), in.one("kernel_size"),
                             {.stride = in.one("stride"),
                              .padding = in.one("padding"),
                              .output_padding = in.one("output_padding"),
                              .groups = in.integer("groups"),
                              .bias = in.parameter("bias"),
                              .dilation = in.one("dilation")});
}

// ---- pooling

Attributes settings(const nn::MaxPool2d& layer) {
  const auto& o = layer.options();
  return {{"kernel_size", one_or_pair(o.kernel_size)},
          {"stride", one_or_pair(o.stride.value_or(o.kernel_size))},
          {"padding", one_or_pair(o.padding)},
          {"dilation", one_or_pair(o.dilation)},
          {"return_indices", false},
          {"ceil_mode", o.ceil_mode}};
}
nn::AnyModule make(const Reader& in, const nn::MaxPool2d*) {
  in.only("return_indices", false);
  nn::MaxPool2dOptions options{
      .padding = in.two("padding"), .dilation = in.two("dilation"), .ceil_mode = in.flag("ceil_mode", false)};
  if (in.has("stride")) options.stride = in.two("stride");
  return nn::MaxPool2d(in.two("kernel_size"), options);
}
Attributes settings(const nn::AvgPool2d& layer) {
  const auto& o = layer.options();
  return {
      {"kernel_size", one_or_pair(o.kernel_size)}, {"stride", one_or_pair(o.stride.value_or(o.kernel_size))},
      {"padding", one_or_pair(o.padding)},         {"ceil_mode", o.ceil_mode},
      {"count_include_pad", o.count_include_pad},  {"divisor_override", or_none(o.divisor_override)}};
}
nn::AnyModule make(const Reader& in, const nn::AvgPool2d*) {
  nn::AvgPool2dOptions options{.padding = in.two("padding"),
                               .ceil_mode = in.flag("ceil_mode", false),
                               .count_include_pad = in.flag("count_include_pad", true)};
  if (in.has("stride")) options.stride = in.two("stride");
  if (in.has("divisor_override")) options.divisor_override = in.integer("divisor_override");
  return nn::AvgPool2d(in.two("kernel_size"), options);
}
Attributes settings(const nn::MaxPool1d& layer) {
  const auto& o = layer.options();
  return {{"kernel_size", o.kernel_size}, {"stride", o.stride.value_or(o.kernel_size)},
          {"padding", o.padding},         {"dilation", o.dilation},
          {"return_indices", false},      {"ceil_mode", o.ceil_mode}};
}
nn::AnyModule make(const Reader& in, const nn::MaxPool1d*) {
  in.only("return_indices", false);
  nn::MaxPool1dOptions options{
      .padding = in.one("padding"), .dilation = in.one("dilation"), .ceil_mode = in.flag("ceil_mode", false)};
  if (in.has("stride")) options.stride = in.one("stride");
  return nn::MaxPool1d(in.one("kernel_size"), options);
}
Attributes settings(const nn::AvgPool1d& layer) {
  const auto& o = layer.options();
  return {{"kernel_size", single(o.kernel_size)},
          {"stride", single(o.stride.value_or(o.kernel_size))},
          {"padding", single(o.padding)},
          {"ceil_mode", o.ceil_mode},
          {"count_include_pad", o.count_include_pad}};
}
nn::AnyModule make(const Reader& in, const nn::AvgPool1d*) {
  nn::AvgPool1dOptions options{.padding = in.one("padding"),
                               .ceil_mode = in.flag("ceil_mode", false),
                               .count_include_pad = in.flag("count_include_pad", true)};
  if (in.has("stride")) options.stride = in.one("stride");
  return nn::AvgPool1d(in.one("kernel_size"), options);
}

Value adaptive_size(int64_t size) { return size < 0 ? Value() : Value(size); }
int64_t adaptive_size(const Reader& in) { return in.has("output_size") ? in.one("output_size") : -1; }
Value adaptive_size(Size2 size) {
  auto one = [](int64_t n) { return n < 0 ? Value() : Value(n); };
  return Value::tuple({one(size.h), one(size.w)});
}
Attributes settings(const nn::AdaptiveAvgPool2d& layer) {
  return {{"output_size", adaptive_size(layer.output_size())}};
}
nn::AnyModule make(const Reader& in, const nn::AdaptiveAvgPool2d*) {
  return nn::AdaptiveAvgPool2d(in.two("output_size"));
}
Attributes settings(const nn::AdaptiveMaxPool2d& layer) {
  return {{"output_size", adaptive_size(layer.output_size())}, {"return_indices", false}};
}
nn::AnyModule make(const Reader& in, const nn::AdaptiveMaxPool2d*) {
  in.only("return_indices", false);
  return nn::AdaptiveMaxPool2d(in.two("output_size"));
}
Attributes settings(const nn::AdaptiveAvgPool1d& layer) {
  return {{"output_size", adaptive_size(layer.output_size())}};
}
nn::AnyModule make(const Reader& in, const nn::AdaptiveAvgPool1d*) {
  return nn::AdaptiveAvgPool1d(adaptive_size(in));
}
Attributes settings(const nn::AdaptiveMaxPool1d& layer) {
  return {{"output_size", adaptive_size(layer.output_size())}, {"return_indices", false}};
}
nn::AnyModule make(const Reader& in, const nn::AdaptiveMaxPool1d*) {
  in.only("return_indices", false);
  return nn::AdaptiveMaxPool1d(adaptive_size(in));
}

// ---- padding and pixels

Value value_of(const Scalar& number) {
  if (number.kind() == DType::Bool) return number.to_bool();
  return number.is_floating_point() ? Value(number.to_double()) : Value(number.to_int());
}
Scalar scalar_of(const Value& value) {
  if (value.is_bool()) return value.as_bool();
  return value.is_int() ? Scalar(value.as_int()) : Scalar(value.as_float());
}

template <class M>
concept HasValue = std::same_as<M, nn::ConstantPad1d> || std::same_as<M, nn::ConstantPad2d>;
template <class M>
concept Zeros = std::same_as<M, nn::ZeroPad1d> || std::same_as<M, nn::ZeroPad2d>;

template <std::derived_from<nn::Padding> M>
Attributes settings(const M& layer) {
  Attributes all{{"padding", tuple(layer.padding())}};
  if (HasValue<M> || Zeros<M>) all.emplace_back("value", value_of(layer.value()));
  return all;
}
template <std::derived_from<nn::Padding> M>
nn::AnyModule make(const Reader& in, const M*) {
  const std::vector<int64_t> sizes = in.sizes("padding");
  constexpr bool kIsImage =
      std::constructible_from<M, nn::Sides2d> || std::constructible_from<M, nn::Sides2d, Scalar>;
  TERN_CHECK(sizes.size() == (kIsImage ? 4 : 2), CheckpointError, "'padding' is {}, not {} numbers",
             in.at("padding").str(100), kIsImage ? 4 : 2);
  const auto sides = [&] {
    if constexpr (kIsImage)
      return nn::Sides2d(sizes[0], sizes[1], sizes[2], sizes[3]);
    else
      return nn::Sides1d(sizes[0], sizes[1]);
  }();
  if constexpr (Zeros<M>) in.only("value", 0.0);
  if constexpr (HasValue<M>)
    return M(sides, scalar_of(in.at("value")));
  else
    return M(sides);
}

Attributes settings(const nn::PixelShuffle& layer) { return {{"upscale_factor", layer.upscale_factor}}; }
nn::AnyModule make(const Reader& in, const nn::PixelShuffle*) {
  return nn::PixelShuffle(in.integer("upscale_factor"));
}
Attributes settings(const nn::PixelUnshuffle& layer) {
  return {{"downscale_factor", layer.downscale_factor}};
}
nn::AnyModule make(const Reader& in, const nn::PixelUnshuffle*) {
  return nn::PixelUnshuffle(in.integer("downscale_factor"));
}

template <class M>
ModuleClass row(const char* module, const char* name, std::vector<std::string> parameters = {},
                std::vector<std::string> buffers = {}) {
  return module_class<M, settings, make>(module, name, std::move(parameters), std::move(buffers));
}

}  // namespace

std::vector<ModuleClass> image_classes() {
  const std::vector<std::string> both{"weight", "bias"};
  return {
      row<nn::Conv1d>("conv", "Conv1d", both),
      row<nn::Conv2d>("conv", "Conv2d", both),
      row<nn::ConvTranspose1d>("conv", "ConvTranspose1d", both),
      row<nn::ConvTranspose2d>("conv", "ConvTranspose2d", both),
      row<nn::MaxPool1d>("pooling", "MaxPool1d"),
      row<nn::MaxPool2d>("pooling", "MaxPool2d"),
      row<nn::AvgPool1d>("pooling", "AvgPool1d"),
      row<nn::AvgPool2d>("pooling", "AvgPool2d"),
      row<nn::AdaptiveAvgPool1d>("pooling", "AdaptiveAvgPool1d"),
      row<nn::AdaptiveAvgPool2d>("pooling", "AdaptiveAvgPool2d"),
      row<nn::AdaptiveMaxPool1d>("pooling", "AdaptiveMaxPool1d"),
      row<nn::AdaptiveMaxPool2d>("pooling", "AdaptiveMaxPool2d"),
      row<nn::ZeroPad1d>("padding", "ZeroPad1d"),
      row<nn::ZeroPad2d>("padding", "ZeroPad2d"),
      row<nn::ConstantPad1d>("padding", "ConstantPad1d"),
      row<nn::ConstantPad2d>("padding", "ConstantPad2d"),
      row<nn::ReflectionPad1d>("padding", "ReflectionPad1d"),
      row<nn::ReflectionPad2d>("padding", "ReflectionPad2d"),
      row<nn::ReplicationPad1d>("padding", "ReplicationPad1d"),
      row<nn::ReplicationPad2d>("padding", "ReplicationPad2d"),
      row<nn::CircularPad1d>("padding", "CircularPad1d"),
      row<nn::CircularPad2d>("padding", "CircularPad2d"),
      row<nn::PixelShuffle>("pixelshuffle", "PixelShuffle"),
      row<nn::PixelUnshuffle>("pixelshuffle", "PixelUnshuffle"),
  };
}

}  // namespace tern::train
