// The classes of layers over sequences and images: convolution, pooling, padding. Names and settings as in
// torch/nn/modules/*.py.
#include <cmath>

#include "tern/nn/conv.h"
#include "tern/nn/pad.h"
#include "tern/nn/pool.h"
#include "tern/nn/reshape.h"
#include "tern/train/module_settings.h"

namespace tern::train {

namespace {

// ---- convolution

template <class M>
concept Convolution = std::same_as<M, nn::ConvLayer<M::kDims, M::kIsTransposed>>;

/// That of a transposed convolution is sizes alone.
template <Convolution M>
ConvPaddingOf<M::kDims> padding_of(const M& layer) {
  return layer.options().padding;
}

/// What torch.nn.modules.conv._ConvNd keeps for padding modes other than zeros.
template <Convolution M>
Value reversed_padding(const M& layer) {
  const std::vector<int64_t> numbers = layer.reversed_padding();
  const std::vector<Value> sides(numbers.begin(), numbers.end());
  return padding_of(layer).word().empty() ? Value::tuple(sides) : Value::list(sides);
}

template <Convolution M>
Attributes settings(const M& layer) {
  const auto& o = layer.options();
  const auto padding = padding_of(layer);
  SizeOf<M::kDims> output_padding = 0;
  if constexpr (M::kIsTransposed) output_padding = o.output_padding;
  return {{"in_channels", layer.in_channels()},
          {"out_channels", layer.out_channels()},
          {"kernel_size", size_tuple(layer.kernel_size())},
          {"stride", size_tuple(o.stride)},
          {"padding", padding.word().empty() ? size_tuple(nn::explicit_padding<M::kDims>(padding))
                                             : Value(padding.word())},
          {"dilation", size_tuple(o.dilation)},
          {"transposed", M::kIsTransposed},
          {"output_padding", size_tuple(output_padding)},
          {"groups", o.groups},
          {"padding_mode", layer.padding_mode()},
          {"_reversed_padding_repeated_twice", reversed_padding(layer)}};
}

template <Convolution M>
nn::AnyModule make(const Reader& in, const M*) {
  constexpr int N = M::kDims;
  typename M::Options options;
  if constexpr (M::kIsTransposed)
    in.only("padding_mode", "zeros");
  else if (const Value* mode = in.find("padding_mode"))
    options.padding_mode = mode->as_str();
  options.stride = in.size<N>("stride");
  options.dilation = in.size<N>("dilation");
  options.groups = in.integer("groups");
  options.bias = in.parameter("bias");
  if constexpr (M::kIsTransposed) {
    options.padding = in.size<N>("padding");
    options.output_padding = in.size<N>("output_padding");
  } else if (const Value& padding = in.at("padding"); padding.is_str()) {
    options.padding = std::string_view(padding.as_str());
  } else {
    options.padding = in.size<N>("padding");
  }
  return M(in.integer("in_channels"), in.integer("out_channels"), in.size<N>("kernel_size"), options);
}

// ---- pooling

template <class M>
concept MaxPooling = std::same_as<M, nn::MaxPool<M::kDims>>;
template <class M>
concept AvgPooling = std::same_as<M, nn::AvgPool<M::kDims>>;
template <class M>
concept AdaptivePooling = std::same_as<M, nn::AdaptivePool<M::kDims, M::kIsMaximum>>;

template <MaxPooling M>
Attributes settings(const M& layer) {
  const auto& o = layer.options();
  return {{"kernel_size", one_or_tuple(o.kernel_size)},
          {"stride", one_or_tuple(o.stride.value_or(o.kernel_size))},
          {"padding", one_or_tuple(o.padding)},
          {"dilation", one_or_tuple(o.dilation)},
          {"return_indices", layer.return_indices()},
          {"ceil_mode", o.ceil_mode}};
}
template <MaxPooling M>
nn::AnyModule make(const Reader& in, const M*) {
  constexpr int N = M::kDims;
  nn::MaxPoolOptions<N> options{.padding = in.size<N>("padding"),
                                .dilation = in.size<N>("dilation"),
                                .ceil_mode = in.flag("ceil_mode", false),
                                .return_indices = in.flag("return_indices", false)};
  if (in.has("stride")) options.stride = in.size<N>("stride");
  return M(in.size<N>("kernel_size"), options);
}

template <class M>
concept MaxUnpooling = std::same_as<M, nn::MaxUnpool<M::kDims>>;
template <MaxUnpooling M>
Attributes settings(const M& layer) {
  return {{"kernel_size", size_tuple(layer.kernel_size())},
          {"stride", size_tuple(layer.stride())},
          {"padding", size_tuple(layer.padding())}};
}
template <MaxUnpooling M>
nn::AnyModule make(const Reader& in, const M*) {
  constexpr int N = M::kDims;
  return M(in.size<N>("kernel_size"), {.stride = in.size<N>("stride"), .padding = in.size<N>("padding")});
}

template <AvgPooling M>
Attributes settings(const M& layer) {
  const auto& o = layer.options();
  // PyTorch makes tuples of sequences' sizes.
  const auto size = [](auto given) { return M::kDims == 1 ? size_tuple(given) : one_or_tuple(given); };
  Attributes all{{"kernel_size", size(o.kernel_size)},
                 {"stride", size(o.stride.value_or(o.kernel_size))},
                 {"padding", size(o.padding)},
                 {"ceil_mode", o.ceil_mode},
                 {"count_include_pad", o.count_include_pad}};
  if constexpr (M::kDims > 1) all.emplace_back("divisor_override", or_none(o.divisor_override));
  return all;
}
template <AvgPooling M>
nn::AnyModule make(const Reader& in, const M*) {
  constexpr int N = M::kDims;
  nn::AvgPoolOptions<N> options{.padding = in.size<N>("padding"),
                                .ceil_mode = in.flag("ceil_mode", false),
                                .count_include_pad = in.flag("count_include_pad", true)};
  if (in.has("stride")) options.stride = in.size<N>("stride");
  if constexpr (N > 1)
    if (in.has("divisor_override")) options.divisor_override = in.integer("divisor_override");
  return M(in.size<N>("kernel_size"), options);
}

template <class M>
concept LpPooling = std::same_as<M, nn::LPPool<M::kDims>>;
template <LpPooling M>
Attributes settings(const M& layer) {
  const double order = layer.norm_type();
  // Whole orders are mostly given as integers.
  return {{"norm_type", order == std::floor(order) ? Value(static_cast<int64_t>(order)) : Value(order)},
          {"kernel_size", one_or_tuple(layer.kernel_size())},
          {"stride", layer.options().stride ? one_or_tuple(*layer.options().stride) : Value()},
          {"ceil_mode", layer.options().ceil_mode}};
}
template <LpPooling M>
nn::AnyModule make(const Reader& in, const M*) {
  nn::LPPoolOptions<M::kDims> options{.ceil_mode = in.flag("ceil_mode", false)};
  if (in.has("stride")) options.stride = in.size<M::kDims>("stride");
  return M(in.number("norm_type"), in.size<M::kDims>("kernel_size"), options);
}

template <AdaptivePooling M>
Attributes settings(const M& layer) {
  const auto sizes = sizes_of(layer.output_size());
  std::vector<Value> values;
  for (const int64_t size : sizes) values.push_back(size < 0 ? Value() : Value(size));
  Attributes all{{"output_size", is_tuple(layer.output_size()) ? Value::tuple(values) : values[0]}};
  if (M::kIsMaximum) all.emplace_back("return_indices", false);
  return all;
}
template <AdaptivePooling M>
nn::AnyModule make(const Reader& in, const M*) {
  in.only("return_indices", false);
  return M(in.size<M::kDims>("output_size"));
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
concept HasValue = std::same_as<M, nn::ConstantPad1d> || std::same_as<M, nn::ConstantPad2d> ||
    std::same_as<M, nn::ConstantPad3d>;
template <class M>
concept Zeros =
    std::same_as<M, nn::ZeroPad1d> || std::same_as<M, nn::ZeroPad2d> || std::same_as<M, nn::ZeroPad3d>;

template <class M, class Sides>
constexpr bool kTakes = std::constructible_from<M, Sides> || std::constructible_from<M, Sides, Scalar>;
template <class M>
constexpr size_t kPaddedDims = kTakes<M, nn::Sides3d>   ? 3
                               : kTakes<M, nn::Sides2d> ? 2
                                                        : 1;

template <std::derived_from<nn::Padding> M>
Attributes settings(const M& layer) {
  Attributes all{{"padding", tuple(layer.padding())}};
  if (HasValue<M> || Zeros<M>) all.emplace_back("value", value_of(layer.value()));
  return all;
}
template <std::derived_from<nn::Padding> M>
nn::AnyModule make(const Reader& in, const M*) {
  const std::vector<int64_t> sizes = in.sizes("padding");
  constexpr size_t kSides = 2 * kPaddedDims<M>;
  TERN_CHECK(sizes.size() == kSides, CheckpointError, "'padding' is {}, not {} numbers",
             in.at("padding").str(100), kSides);
  const auto sides = [&] {
    if constexpr (kSides == 6)
      return nn::Sides3d(sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]);
    else if constexpr (kSides == 4)
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
      row<nn::Conv3d>("conv", "Conv3d", both),
      row<nn::ConvTranspose1d>("conv", "ConvTranspose1d", both),
      row<nn::ConvTranspose2d>("conv", "ConvTranspose2d", both),
      row<nn::ConvTranspose3d>("conv", "ConvTranspose3d", both),
      row<nn::MaxPool1d>("pooling", "MaxPool1d"),
      row<nn::MaxPool2d>("pooling", "MaxPool2d"),
      row<nn::MaxPool3d>("pooling", "MaxPool3d"),
      row<nn::MaxUnpool1d>("pooling", "MaxUnpool1d"),
      row<nn::MaxUnpool2d>("pooling", "MaxUnpool2d"),
      row<nn::MaxUnpool3d>("pooling", "MaxUnpool3d"),
      row<nn::AvgPool1d>("pooling", "AvgPool1d"),
      row<nn::AvgPool2d>("pooling", "AvgPool2d"),
      row<nn::AvgPool3d>("pooling", "AvgPool3d"),
      row<nn::LPPool1d>("pooling", "LPPool1d"),
      row<nn::LPPool2d>("pooling", "LPPool2d"),
      row<nn::LPPool3d>("pooling", "LPPool3d"),
      row<nn::AdaptiveAvgPool1d>("pooling", "AdaptiveAvgPool1d"),
      row<nn::AdaptiveAvgPool2d>("pooling", "AdaptiveAvgPool2d"),
      row<nn::AdaptiveAvgPool3d>("pooling", "AdaptiveAvgPool3d"),
      row<nn::AdaptiveMaxPool1d>("pooling", "AdaptiveMaxPool1d"),
      row<nn::AdaptiveMaxPool2d>("pooling", "AdaptiveMaxPool2d"),
      row<nn::AdaptiveMaxPool3d>("pooling", "AdaptiveMaxPool3d"),
      row<nn::ZeroPad1d>("padding", "ZeroPad1d"),
      row<nn::ZeroPad2d>("padding", "ZeroPad2d"),
      row<nn::ZeroPad3d>("padding", "ZeroPad3d"),
      row<nn::ConstantPad1d>("padding", "ConstantPad1d"),
      row<nn::ConstantPad2d>("padding", "ConstantPad2d"),
      row<nn::ConstantPad3d>("padding", "ConstantPad3d"),
      row<nn::ReflectionPad1d>("padding", "ReflectionPad1d"),
      row<nn::ReflectionPad2d>("padding", "ReflectionPad2d"),
      row<nn::ReflectionPad3d>("padding", "ReflectionPad3d"),
      row<nn::ReplicationPad1d>("padding", "ReplicationPad1d"),
      row<nn::ReplicationPad2d>("padding", "ReplicationPad2d"),
      row<nn::ReplicationPad3d>("padding", "ReplicationPad3d"),
      row<nn::CircularPad1d>("padding", "CircularPad1d"),
      row<nn::CircularPad2d>("padding", "CircularPad2d"),
      row<nn::CircularPad3d>("padding", "CircularPad3d"),
      row<nn::PixelShuffle>("pixelshuffle", "PixelShuffle"),
      row<nn::PixelUnshuffle>("pixelshuffle", "PixelUnshuffle"),
  };
}

}  // namespace tern::train
