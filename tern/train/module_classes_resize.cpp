// The classes of layers that give images another size or order: upsampling, blocks, channels. Names
// and settings as in torch/nn/modules/*.py.
#include "tern/nn/reshape.h"
#include "tern/nn/upsample.h"
#include "tern/train/module_settings.h"

namespace tern::train {
namespace {

/// A number for all dimensions, or a tuple; None where there is none.
template <class T>
Value number_or_tuple(const std::vector<T>& values) {
  if (values.empty()) return {};
  if (values.size() == 1) return values[0];
  return Value::tuple(std::vector<Value>(values.begin(), values.end()));
}
std::vector<double> factors(const Reader& in) {
  if (!in.has("scale_factor")) return {};
  const Value& value = in.at("scale_factor");
  if (!value.is_tuple() && !value.is_list()) return {value.as_float()};
  std::vector<double> all;
  for (const Value& factor : value.as_sequence()) all.push_back(factor.as_float());
  return all;
}

template <std::derived_from<nn::Upsample> M>
Attributes settings(const M& layer) {
  const InterpolateOptions& o = layer.options();
  return {{"name", layer.class_name()},
          {"size", number_or_tuple(o.size)},
          {"scale_factor", number_or_tuple(o.scale_factor)},
          {"mode", o.mode},
          {"align_corners", or_none(o.align_corners)},
          {"recompute_scale_factor", o.recompute_scale_factor ? Value(true) : Value()}};
}
template <std::derived_from<nn::Upsample> M>
nn::AnyModule make(const Reader& in, const M*) {
  const std::vector<int64_t> size = in.has("size") ? in.sizes("size") : std::vector<int64_t>();
  if constexpr (std::same_as<M, nn::Upsample>) {
    nn::UpsampleOptions options{.size = size, .scale_factor = factors(in), .mode = in.at("mode").as_str()};
    if (in.has("align_corners")) options.align_corners = in.at("align_corners").as_bool();
    if (in.has("recompute_scale_factor"))
      options.recompute_scale_factor = in.at("recompute_scale_factor").as_bool();
    return nn::Upsample(options);
  } else {
    const M layer({.size = size, .scale_factor = factors(in)});
    in.only("mode", layer.options().mode);
    in.only("align_corners", or_none(layer.options().align_corners));
    return layer;
  }
}

Attributes block_settings(Size2 kernel_size, const FoldOptions& o) {
  return {{"kernel_size", one_or_tuple(kernel_size)},
          {"dilation", one_or_tuple(o.dilation)},
          {"padding", one_or_tuple(o.padding)},
          {"stride", one_or_tuple(o.stride)}};
}
FoldOptions blocks_of(const Reader& in) {
  return {
      .dilation = in.size<2>("dilation"), .padding = in.size<2>("padding"), .stride = in.size<2>("stride")};
}
Attributes settings(const nn::Unfold& layer) { return block_settings(layer.kernel_size, layer.options); }
nn::AnyModule make(const Reader& in, const nn::Unfold*) {
  return nn::Unfold(in.size<2>("kernel_size"), blocks_of(in));
}
Attributes settings(const nn::Fold& layer) {
  Attributes all = block_settings(layer.kernel_size, layer.options);
  all.insert(all.begin(), {"output_size", one_or_tuple(layer.output_size)});
  return all;
}
nn::AnyModule make(const Reader& in, const nn::Fold*) {
  return nn::Fold(in.size<2>("output_size"), in.size<2>("kernel_size"), blocks_of(in));
}

Attributes settings(const nn::ChannelShuffle& layer) { return {{"groups", layer.groups}}; }
nn::AnyModule make(const Reader& in, const nn::ChannelShuffle*) {
  return nn::ChannelShuffle(in.integer("groups"));
}

template <class M>
ModuleClass row(const char* module, const char* name) {
  return module_class<M, settings, make>(module, name, {}, {});
}

}  // namespace

std::vector<ModuleClass> resize_classes() {
  return {
      row<nn::Upsample>("upsampling", "Upsample"),
      row<nn::UpsamplingNearest2d>("upsampling", "UpsamplingNearest2d"),
      row<nn::UpsamplingBilinear2d>("upsampling", "UpsamplingBilinear2d"),
      row<nn::Unfold>("fold", "Unfold"),
      row<nn::Fold>("fold", "Fold"),
      row<nn::ChannelShuffle>("channelshuffle", "ChannelShuffle"),
  };
}

}  // namespace tern::train
