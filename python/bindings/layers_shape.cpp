// Layers that pad, change sizes and shapes, or the order of elements.
#include "layers.h"

namespace tern::python {

namespace {

template <class Layer, class Sides>
void bind_padding(py::module_& m, const char* name) {
  layer<Layer, nn::Padding>(m, name, rows(argument<Sides>("padding")));
}
template <class Layer, class Sides>
void bind_constant_padding(py::module_& m, const char* name) {
  layer<Layer, nn::Padding>(m, name, rows(argument<Sides>("padding"), argument<Scalar>("value")));
}

void bind_paddings(py::module_& m) {
  auto c = abstract_layer<nn::Padding>(m, "_Padding");
  calls(c);
  c.def_property_readonly("padding", [](const nn::Padding& self) {
     return py::tuple(py::cast(self.padding()));
   }).def_property_readonly("value", [](const nn::Padding& self) { return self.value(); });
  bind_constant_padding<nn::ConstantPad1d, nn::Sides1d>(m, "ConstantPad1d");
  bind_constant_padding<nn::ConstantPad2d, nn::Sides2d>(m, "ConstantPad2d");
  bind_constant_padding<nn::ConstantPad3d, nn::Sides3d>(m, "ConstantPad3d");
  bind_padding<nn::ZeroPad1d, nn::Sides1d>(m, "ZeroPad1d");
  bind_padding<nn::ZeroPad2d, nn::Sides2d>(m, "ZeroPad2d");
  bind_padding<nn::ZeroPad3d, nn::Sides3d>(m, "ZeroPad3d");
  bind_padding<nn::ReflectionPad1d, nn::Sides1d>(m, "ReflectionPad1d");
  bind_padding<nn::ReflectionPad2d, nn::Sides2d>(m, "ReflectionPad2d");
  bind_padding<nn::ReflectionPad3d, nn::Sides3d>(m, "ReflectionPad3d");
  bind_padding<nn::ReplicationPad1d, nn::Sides1d>(m, "ReplicationPad1d");
  bind_padding<nn::ReplicationPad2d, nn::Sides2d>(m, "ReplicationPad2d");
  bind_padding<nn::ReplicationPad3d, nn::Sides3d>(m, "ReplicationPad3d");
  bind_padding<nn::CircularPad1d, nn::Sides1d>(m, "CircularPad1d");
  bind_padding<nn::CircularPad2d, nn::Sides2d>(m, "CircularPad2d");
  bind_padding<nn::CircularPad3d, nn::Sides3d>(m, "CircularPad3d");
}

void bind_upsampling(py::module_& m) {
  using Options = nn::UpsampleOptions;
  auto c = layer<nn::Upsample>(
      m, "Upsample", rows(),
      rows(option_as<Ints>("size", &Options::size),
           option_as<Numbers>("scale_factor", &Options::scale_factor), option("mode", &Options::mode),
           option("align_corners", &Options::align_corners),
           option_as<Flag>("recompute_scale_factor", &Options::recompute_scale_factor)));
  calls(c);
  using Kept = InterpolateOptions;
  c.def_property(
      "size", [](const nn::Upsample& self) { return Ints(self.options().size); },
      [](nn::Upsample& self, const Ints& size) { changeable(self.options()).size = size; });
  c.def_property(
      "scale_factor", [](const nn::Upsample& self) { return Numbers(self.options().scale_factor); },
      [](nn::Upsample& self, const Numbers& factor) { changeable(self.options()).scale_factor = factor; });
  attributes(c, &nn::Upsample::options,
             rows(option("mode", &Kept::mode), option("align_corners", &Kept::align_corners),
                  option("recompute_scale_factor", &Kept::recompute_scale_factor)));
  using Sizes = nn::Upsample2dOptions;
  const auto sizes =
      rows(option_as<Ints>("size", &Sizes::size), option_as<Numbers>("scale_factor", &Sizes::scale_factor));
  layer<nn::UpsamplingNearest2d, nn::Upsample>(m, "UpsamplingNearest2d", rows(), sizes);
  layer<nn::UpsamplingBilinear2d, nn::Upsample>(m, "UpsamplingBilinear2d", rows(), sizes);
}

void bind_folds(py::module_& m) {
  const auto options = rows(option("dilation", &FoldOptions::dilation),
                            option("padding", &FoldOptions::padding), option("stride", &FoldOptions::stride));
  auto unfold = layer<nn::Unfold>(m, "Unfold", rows(argument<Size2>("kernel_size")), options);
  calls(unfold);
  attributes(unfold, &nn::Unfold::options, options);
  unfold.def_property_readonly("kernel_size",
                               [](const nn::Unfold& self) { return attribute_value(self.kernel_size); });
  auto fold = layer<nn::Fold>(m, "Fold", rows(argument<Size2>("output_size"), argument<Size2>("kernel_size")),
                              options);
  calls(fold);
  attributes(fold, &nn::Fold::options, options);
  fold.def_property_readonly("kernel_size",
                             [](const nn::Fold& self) { return attribute_value(self.kernel_size); })
      .def_property_readonly("output_size",
                             [](const nn::Fold& self) { return attribute_value(self.output_size); });
}

}  // namespace

void bind_shape_layers(py::module_& m) {
  bind_paddings(m);
  bind_upsampling(m);
  bind_folds(m);

  LayerClass<nn::Identity> identity(m, "Identity", py::dynamic_attr());
  identity.def(py::init([](const py::args&, const py::kwargs&) { return std::make_shared<nn::Identity>(); }));
  calls(identity);
  copies(identity);
  simple_layer<nn::Flatten>(m, "Flatten", setting("start_dim", &nn::Flatten::start_dim, 1),
                            setting("end_dim", &nn::Flatten::end_dim, -1));
  auto unflatten = layer<nn::Unflatten>(m, "Unflatten",
                                        rows(argument<int64_t>("dim"), argument<Ints>("unflattened_size")));
  calls(unflatten);
  unflatten.def_readwrite("dim", &nn::Unflatten::dim)
      .def_property_readonly("unflattened_size", [](const nn::Unflatten& self) {
        return py::tuple(py::cast(self.unflattened_size));
      });
  simple_layer<nn::PixelShuffle>(m, "PixelShuffle",
                                 setting("upscale_factor", &nn::PixelShuffle::upscale_factor));
  simple_layer<nn::PixelUnshuffle>(m, "PixelUnshuffle",
                                   setting("downscale_factor", &nn::PixelUnshuffle::downscale_factor));
  simple_layer<nn::ChannelShuffle>(m, "ChannelShuffle", setting("groups", &nn::ChannelShuffle::groups));
}

}  // namespace tern::python
