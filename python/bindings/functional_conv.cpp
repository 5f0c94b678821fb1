// Convolutions as functions.
#include "functional.h"

namespace tern::python {

namespace {

auto tensors() {
  return rows(argument<Tensor>("input"), argument<Tensor>("weight"), argument<Tensor>("bias", {}));
}

template <int N>
void bind_conv(py::module_& m, const char* name,
               Tensor (*f)(const Tensor&, const Tensor&, const Tensor&, const ConvOptions<N>&)) {
  using Options = ConvOptions<N>;
  function(m, name, f, tensors(),
           rows(option_as<GivenSize<N>>("stride", &Options::stride),
                option_as<GivenPadding<N>>("padding", &Options::padding),
                option_as<GivenSize<N>>("dilation", &Options::dilation), option("groups", &Options::groups)));
}

template <int N>
void bind_transposed(py::module_& m, const char* name,
                     Tensor (*f)(const Tensor&, const Tensor&, const Tensor&,
                                 const ConvTransposeOptions<N>&)) {
  using Options = ConvTransposeOptions<N>;
  function(m, name, f, tensors(),
           rows(option_as<GivenSize<N>>("stride", &Options::stride),
                option_as<GivenSize<N>>("padding", &Options::padding),
                option_as<GivenSize<N>>("output_padding", &Options::output_padding),
                option("groups", &Options::groups), option_as<GivenSize<N>>("dilation", &Options::dilation)));
}

}  // namespace

void bind_functional_conv(py::module_& m) {
  bind_conv<1>(m, "conv1d", &conv1d);
  bind_conv<2>(m, "conv2d", &conv2d);
  bind_conv<3>(m, "conv3d", &conv3d);
  bind_transposed<1>(m, "conv_transpose1d", &conv_transpose1d);
  bind_transposed<2>(m, "conv_transpose2d", &conv_transpose2d);
  bind_transposed<3>(m, "conv_transpose3d", &conv_transpose3d);
}

}  // namespace tern::python
