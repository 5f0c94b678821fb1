// Pooling as functions. The layers are in layers_pool.cpp.
#include "functional.h"
#include "pool_rows.h"

namespace tern::python {

namespace {

using Pair = std::pair<Tensor, Tensor>;
using TensorOrPair = std::variant<Tensor, Pair>;

std::string pool_name(const char* name, int n, const char* end = "d") {
  return name + std::to_string(n) + end;
}

/// The options of a max pooling without those that are arguments.
template <int N>
MaxPoolOptions<N> max_options(const GivenSize<N>& kernel_size, const nn::MaxPoolOptions<N>& o) {
  return {.kernel_size = kernel_size,
          .stride = o.stride,
          .padding = o.padding,
          .dilation = o.dilation,
          .ceil_mode = o.ceil_mode};
}

template <int N>
void bind_max_pool(py::module_& m, Tensor (*f)(const Tensor&, const MaxPoolOptions<N>&),
                   Pair (*with_indices)(const Tensor&, const MaxPoolOptions<N>&)) {
  using Options = nn::MaxPoolOptions<N>;
  const auto arguments = rows(argument<Tensor>("input"), argument<GivenSize<N>>("kernel_size"));
  const auto options =
      rows(option_as<OptionalSize<N>>("stride", &Options::stride),
           option_as<GivenSize<N>>("padding", &Options::padding),
           option_as<GivenSize<N>>("dilation", &Options::dilation), option("ceil_mode", &Options::ceil_mode),
           option("return_indices", &Options::return_indices));
  function(
      m, pool_name("max_pool", N).c_str(),
      [f, with_indices](const Tensor& x, const GivenSize<N>& kernel_size, const Options& o) -> TensorOrPair {
        if (o.return_indices) return with_indices(x, max_options<N>(kernel_size, o));
        return f(x, max_options<N>(kernel_size, o));
      },
      arguments, options);
  function(
      m, pool_name("max_pool", N, "d_with_indices").c_str(),
      [with_indices](const Tensor& x, const GivenSize<N>& kernel_size, const Options& o) {
        return with_indices(x, max_options<N>(kernel_size, o));
      },
      arguments, options);
}

template <int N>
void bind_max_unpool(py::module_& m, Tensor (*f)(const Tensor&, const Tensor&, const MaxUnpoolOptions<N>&)) {
  function(
      m, pool_name("max_unpool", N).c_str(),
      [f](const Tensor& x, const Tensor& indices, const GivenSize<N>& kernel_size,
          const OptionalSize<N>& stride, const GivenSize<N>& padding, const Ints& output_size) {
        return f(x, indices,
                 {.kernel_size = kernel_size,
                  .stride = std::optional<SizeOf<N>>(stride),
                  .padding = padding,
                  .output_size = output_size.shape()});
      },
      rows(argument<Tensor>("input"), argument<Tensor>("indices"), argument<GivenSize<N>>("kernel_size"),
           argument<OptionalSize<N>>("stride", std::nullopt),
           argument<GivenSize<N>>("padding", GivenSize<N>(0)), argument("output_size", Ints())));
}

template <int N>
void bind_avg_pool(py::module_& m, Tensor (*f)(const Tensor&, const AvgPoolOptions<N>&)) {
  using Options = AvgPoolOptions<N>;
  const auto options = avg_pool_rows<N, Options>();
  function(
      m, pool_name("avg_pool", N).c_str(),
      [f](const Tensor& x, const GivenSize<N>& kernel_size, Options o) {
        o.kernel_size = kernel_size;
        return f(x, o);
      },
      rows(argument<Tensor>("input"), argument<GivenSize<N>>("kernel_size")), options);
}

template <int N>
void bind_lp_pool(py::module_& m,
                  Tensor (*f)(const Tensor&, double, SizeOf<N>, std::optional<SizeOf<N>>, bool)) {
  function(
      m, pool_name("lp_pool", N).c_str(),
      [f](const Tensor& x, double norm_type, const GivenSize<N>& kernel_size, const OptionalSize<N>& stride,
          bool ceil_mode) {
        return f(x, norm_type, kernel_size, std::optional<SizeOf<N>>(stride), ceil_mode);
      },
      rows(argument<Tensor>("input"), argument<double>("norm_type"), argument<GivenSize<N>>("kernel_size"),
           argument<OptionalSize<N>>("stride", std::nullopt), argument("ceil_mode", false)));
}

template <int N>
void bind_adaptive(py::module_& m, Tensor (*average)(const Tensor&, SizeOf<N>),
                   Tensor (*maximum)(const Tensor&, SizeOf<N>),
                   Pair (*with_indices)(const Tensor&, SizeOf<N>)) {
  const auto arguments = rows(argument<Tensor>("input"), argument<OutputSize<N>>("output_size"));
  function(m, pool_name("adaptive_avg_pool", N).c_str(), average, arguments);
  function(
      m, pool_name("adaptive_max_pool", N).c_str(),
      [maximum, with_indices](const Tensor& x, const OutputSize<N>& size,
                              bool return_indices) -> TensorOrPair {
        if (return_indices) return with_indices(x, size);
        return maximum(x, size);
      },
      std::tuple_cat(arguments, rows(argument("return_indices", false))));
  function(m, pool_name("adaptive_max_pool", N, "d_with_indices").c_str(), with_indices, arguments);
}

}  // namespace

void bind_functional_pool(py::module_& m) {
  bind_max_pool<1>(m, &max_pool1d, &max_pool1d_with_indices);
  bind_max_pool<2>(m, &max_pool2d, &max_pool2d_with_indices);
  bind_max_pool<3>(m, &max_pool3d, &max_pool3d_with_indices);
  bind_max_unpool<1>(m, &max_unpool1d);
  bind_max_unpool<2>(m, &max_unpool2d);
  bind_max_unpool<3>(m, &max_unpool3d);
  bind_avg_pool<1>(m, &avg_pool1d);
  bind_avg_pool<2>(m, &avg_pool2d);
  bind_avg_pool<3>(m, &avg_pool3d);
  bind_lp_pool<1>(m, &lp_pool1d);
  bind_lp_pool<2>(m, &lp_pool2d);
  bind_lp_pool<3>(m, &lp_pool3d);
  bind_adaptive<1>(m, &adaptive_avg_pool1d, &adaptive_max_pool1d, &adaptive_max_pool1d_with_indices);
  bind_adaptive<2>(m, &adaptive_avg_pool2d, &adaptive_max_pool2d, &adaptive_max_pool2d_with_indices);
  bind_adaptive<3>(m, &adaptive_avg_pool3d, &adaptive_max_pool3d, &adaptive_max_pool3d_with_indices);
}

}  // namespace tern::python
