// Pooling and its reverse. The functions are in functional_pool.cpp.
#include "layers.h"
#include "pool_rows.h"

namespace tern::python {

namespace {

/// Both ways to call a layer that gives maxima, or maxima and their places.
template <class Class, class Wanted>
void calls_with_indices(Class& c, Wanted return_indices) {
  using Layer = typename Class::type;
  using Result = std::variant<Tensor, std::pair<Tensor, Tensor>>;
  method(
      c, "__call__",
      [return_indices](Layer& self, const Tensor& x) -> Result {
        if (!return_indices(self)) return nn::detail::call(self, x);
        return nn::detail::call_inside(self, [&] { return self.forward_with_indices(x); });
      },
      rows(argument<Tensor>("input")));
  method(
      c, "forward",
      [return_indices](Layer& self, const Tensor& x) -> Result {
        if (!return_indices(self)) return self.forward(x);
        return self.forward_with_indices(x);
      },
      rows(argument<Tensor>("input")));
}

/// That of the kernel's size, unless it is said.
template <int N, class Class>
void windows_stride(Class& c) {
  using Layer = typename Class::type;
  c.def_property(
      "stride",
      [](const Layer& self) {
        return attribute_value(self.options().stride.value_or(self.options().kernel_size));
      },
      [](Layer& self, OptionalSize<N> stride) {
        auto& own = changeable(self.options()).stride;
        own.reset();
        if (stride) own = SizeOf<N>(*stride);
      });
}

template <int N>
void bind_max_pool(py::module_& m) {
  using Layer = nn::MaxPool<N>;
  using Options = nn::MaxPoolOptions<N>;
  auto c = layer<Layer>(
      m, in_dims<N>("MaxPool").c_str(), rows(argument<GivenSize<N>>("kernel_size")),
      rows(option_as<OptionalSize<N>>("stride", &Options::stride),
           option_as<GivenSize<N>>("padding", &Options::padding),
           option_as<GivenSize<N>>("dilation", &Options::dilation),
           option("return_indices", &Options::return_indices), option("ceil_mode", &Options::ceil_mode)));
  calls_with_indices(c, [](const Layer& self) { return self.return_indices(); });
  c.def_property_readonly("return_indices", &Layer::return_indices);
  using Kept = tern::MaxPoolOptions<N>;
  attributes(
      c, &Layer::options,
      rows(option_as<GivenSize<N>>("kernel_size", &Kept::kernel_size),
           option_as<GivenSize<N>>("padding", &Kept::padding),
           option_as<GivenSize<N>>("dilation", &Kept::dilation), option("ceil_mode", &Kept::ceil_mode)));
  windows_stride<N>(c);
}

template <int N>
void bind_max_unpool(py::module_& m) {
  using Layer = nn::MaxUnpool<N>;
  using Options = nn::MaxUnpoolOptions<N>;
  auto c = layer<Layer>(m, in_dims<N>("MaxUnpool").c_str(), rows(argument<GivenSize<N>>("kernel_size")),
                        rows(option_as<OptionalSize<N>>("stride", &Options::stride),
                             option_as<GivenSize<N>>("padding", &Options::padding)));
  const auto arguments =
      rows(argument<Tensor>("input"), argument<Tensor>("indices"), argument("output_size", Ints()));
  method(
      c, "__call__",
      [](Layer& self, const Tensor& x, const Tensor& indices, const Ints& size) {
        return nn::detail::call(self, x, indices, size.shape());
      },
      arguments);
  method(
      c, "forward",
      [](Layer& self, const Tensor& x, const Tensor& indices, const Ints& size) {
        return self.forward(x, indices, size.shape());
      },
      arguments);
  c.def_property_readonly("kernel_size", [](const Layer& self) { return size_tuple(self.kernel_size()); });
  c.def_property_readonly("stride", [](const Layer& self) { return size_tuple(self.stride()); });
  c.def_property_readonly("padding", [](const Layer& self) { return size_tuple(self.padding()); });
}

template <int N>
void bind_avg_pool(py::module_& m) {
  using Layer = nn::AvgPool<N>;
  using Options = nn::AvgPoolOptions<N>;
  using Kept = tern::AvgPoolOptions<N>;
  const auto options = avg_pool_rows<N, Options>();
  auto c =
      layer<Layer>(m, in_dims<N>("AvgPool").c_str(), rows(argument<GivenSize<N>>("kernel_size")), options);
  calls(c);
  attributes(c, &Layer::options,
             rows(option_as<GivenSize<N>>("kernel_size", &Kept::kernel_size),
                  option_as<GivenSize<N>>("padding", &Kept::padding), option("ceil_mode", &Kept::ceil_mode),
                  option("count_include_pad", &Kept::count_include_pad)));
  if constexpr (N > 1)
    attributes(c, &Layer::options, rows(option("divisor_override", &Kept::divisor_override)));
  windows_stride<N>(c);
}

template <int N>
void bind_lp_pool(py::module_& m) {
  using Layer = nn::LPPool<N>;
  using Options = nn::LPPoolOptions<N>;
  auto c = layer<Layer>(
      m, in_dims<N>("LPPool").c_str(),
      rows(argument<double>("norm_type"), argument<GivenSize<N>>("kernel_size")),
      rows(option_as<OptionalSize<N>>("stride", &Options::stride), option("ceil_mode", &Options::ceil_mode)));
  calls(c);
  c.def_property_readonly("norm_type", &Layer::norm_type);
  c.def_property_readonly("kernel_size",
                          [](const Layer& self) { return attribute_value(self.kernel_size()); });
  attributes(
      c, &Layer::options,
      rows(option_as<OptionalSize<N>>("stride", &Options::stride), option("ceil_mode", &Options::ceil_mode)));
}

template <int N, bool kMaximum>
void bind_adaptive_pool(py::module_& m, const char* name) {
  using Layer = nn::AdaptivePool<N, kMaximum>;
  auto c = layer<Layer>(m, in_dims<N>(name).c_str(), rows(argument<OutputSize<N>>("output_size")));
  calls(c);
  c.def_property(
      "output_size", [](const Layer& self) { return OutputSize<N>(self.output_size()); },
      [](Layer& self, const OutputSize<N>& size) { self.set_output_size(size); });
}

template <int N>
void bind_pools(py::module_& m) {
  bind_max_pool<N>(m);
  bind_max_unpool<N>(m);
  bind_avg_pool<N>(m);
  bind_lp_pool<N>(m);
  bind_adaptive_pool<N, false>(m, "AdaptiveAvgPool");
  bind_adaptive_pool<N, true>(m, "AdaptiveMaxPool");
}

}  // namespace

void bind_pool_layers(py::module_& m) {
  bind_pools<1>(m);
  bind_pools<2>(m);
  bind_pools<3>(m);
}

}  // namespace tern::python
