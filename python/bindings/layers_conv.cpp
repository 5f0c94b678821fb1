// Convolutions and transposed convolutions.
#include "layers.h"
#include "tern/base/check.h"

namespace tern::python {

namespace {

template <int N>
auto conv_options() {
  using Options = nn::ConvOptions<N>;
  return rows(option_as<GivenSize<N>>("stride", &Options::stride),
              option_as<GivenPadding<N>>("padding", &Options::padding),
              option_as<GivenSize<N>>("dilation", &Options::dilation), option("groups", &Options::groups),
              option("bias", &Options::bias), option("padding_mode", &Options::padding_mode),
              option("device", &Options::device), option("dtype", &Options::dtype));
}

template <int N>
auto transposed_options() {
  using Options = nn::ConvTransposeOptions<N>;
  return rows(option_as<GivenSize<N>>("stride", &Options::stride),
              option_as<GivenSize<N>>("padding", &Options::padding),
              option_as<GivenSize<N>>("output_padding", &Options::output_padding),
              option("groups", &Options::groups), option("bias", &Options::bias),
              option_as<GivenSize<N>>("dilation", &Options::dilation),
              lacks<std::string>("padding_mode", "zeros"), option("device", &Options::device),
              option("dtype", &Options::dtype));
}

/// The numbers of a padding as a tuple, or its word.
template <int N, class Padding>
py::object padding_attribute(const Padding& padding) {
  if constexpr (requires { padding.word(); }) {
    if (!padding.word().empty()) return py::str(std::string(padding.word()));
    return size_tuple(nn::explicit_padding<N>(padding));
  } else {
    return size_tuple(padding);
  }
}

template <class Class>
void conv_attributes(Class& c) {
  using Layer = typename Class::type;
  weight_and_bias(c);
  c.def("reset_parameters", &Layer::reset_parameters);
  using Size = GivenSize<Layer::kDims>;
  following(c, "in_channels", &Layer::in_channels);
  following(c, "out_channels", &Layer::out_channels);
  following(c, "kernel_size", [](const Layer& self) { return size_tuple(self.kernel_size()); });
  c.def_property(
      "groups", [](const Layer& self) { return self.options().groups; },
      [](Layer& self, int64_t groups) { changeable(self.options()).groups = groups; });
  c.def_property(
      "stride", [](const Layer& self) { return size_tuple(self.options().stride); },
      [](Layer& self, Size stride) { changeable(self.options()).stride = stride; });
  c.def_property(
      "dilation", [](const Layer& self) { return size_tuple(self.options().dilation); },
      [](Layer& self, Size dilation) { changeable(self.options()).dilation = dilation; });
  using Padding = std::conditional_t<Layer::kIsTransposed, Size, GivenPadding<Layer::kDims>>;
  c.def_property(
      "padding", [](const Layer& self) { return padding_attribute<Layer::kDims>(self.options().padding); },
      [](Layer& self, Padding padding) { changeable(self.options()).padding = padding; });
  c.def_property_readonly("padding_mode", &Layer::padding_mode);
  if constexpr (Layer::kIsTransposed)
    c.def_property(
        "output_padding", [](const Layer& self) { return size_tuple(self.options().output_padding); },
        [](Layer& self, Size padding) { changeable(self.options()).output_padding = padding; });
  c.def_property_readonly("transposed", [](const Layer&) { return Layer::kIsTransposed; });
}

template <int N>
void bind_conv(py::module_& m) {
  using Layer = nn::ConvLayer<N, false>;
  auto c = layer<Layer>(m, in_dims<N>("Conv").c_str(),
                        rows(argument<int64_t>("in_channels"), argument<int64_t>("out_channels"),
                             argument<GivenSize<N>>("kernel_size")),
                        conv_options<N>());
  calls(c);
  conv_attributes(c);
  layer<nn::LazyConvLayer<N, false>, Layer>(
      m, in_dims<N>("LazyConv").c_str(),
      rows(argument<int64_t>("out_channels"), argument<GivenSize<N>>("kernel_size")), conv_options<N>());
}

/// A transposed convolution to images of output_size, which its stride leaves a choice of.
template <int N>
Tensor to_output_size(const nn::ConvLayer<N, true>& layer, const Tensor& x,
                      const std::vector<int64_t>& output_size) {
  TERN_CHECK(output_size.size() >= N && output_size.size() <= static_cast<size_t>(x.dim()), ShapeError,
             "{}: output_size has {} elements, expected {}, or {} with those before the sizes",
             layer.class_name(), output_size.size(), N, x.dim());
  auto options = layer.options();
  const auto kernel = sizes_of(layer.kernel_size()), stride = sizes_of(options.stride);
  const auto padding = sizes_of(options.padding), dilation = sizes_of(options.dilation);
  auto added = sizes_of(options.output_padding);
  for (size_t d = 0; d < N; ++d) {
    const int64_t wanted = output_size[output_size.size() - N + d];
    const int64_t input = x.size(static_cast<int64_t>(d) - N);
    const int64_t least = (input - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel[d] - 1) + 1;
    TERN_CHECK(wanted >= least && wanted < least + stride[d], ValueError,
               "{}: output_size asks for {} in dimension {}, but sizes from {} to {} are possible for an "
               "input of {}",
               layer.class_name(), wanted, d, least, least + stride[d] - 1, input);
    added[d] = wanted - least;
  }
  options.output_padding = size_from(added);
  if constexpr (N == 1) return conv_transpose1d(x, layer.weight, layer.bias, options);
  if constexpr (N == 2) return conv_transpose2d(x, layer.weight, layer.bias, options);
  if constexpr (N == 3) return conv_transpose3d(x, layer.weight, layer.bias, options);
}

template <int N>
void bind_transposed(py::module_& m) {
  using Layer = nn::ConvLayer<N, true>;
  auto c = layer<Layer>(m, in_dims<N>("ConvTranspose").c_str(),
                        rows(argument<int64_t>("in_channels"), argument<int64_t>("out_channels"),
                             argument<GivenSize<N>>("kernel_size")),
                        transposed_options<N>());
  calls(c);
  const auto with_size = [](Layer& self, const Tensor& x, const Ints& output_size) {
    if (output_size.values.empty()) return nn::detail::call(self, x);
    return nn::detail::call_inside(self, [&] { return to_output_size<N>(self, x, output_size.values); });
  };
  for (const char* name : {"__call__", "forward"})
    method(c, name, with_size, rows(argument<Tensor>("input"), argument("output_size", Ints())));
  conv_attributes(c);
  layer<nn::LazyConvLayer<N, true>, Layer>(
      m, in_dims<N>("LazyConvTranspose").c_str(),
      rows(argument<int64_t>("out_channels"), argument<GivenSize<N>>("kernel_size")),
      transposed_options<N>());
}

}  // namespace

void bind_conv_layers(py::module_& m) {
  bind_conv<1>(m);
  bind_conv<2>(m);
  bind_conv<3>(m);
  bind_transposed<1>(m);
  bind_transposed<2>(m);
  bind_transposed<3>(m);
}

}  // namespace tern::python
