// Normalisation layers.
#include "layers.h"

namespace tern::python {

namespace {

template <class Options>
auto channel_norm_options() {
  return rows(option("eps", &Options::eps), option("momentum", &Options::momentum),
              option("affine", &Options::affine),
              option("track_running_stats", &Options::track_running_stats));
}
template <class Options>
auto places_and_bias() {
  return rows(option("device", &Options::device), option("dtype", &Options::dtype),
              option("bias", &Options::bias));
}

void bind_channel_norm(py::module_& m) {
  using Layer = nn::ChannelNorm;
  auto c = abstract_layer<Layer>(m, "_NormBase");
  weight_and_bias(c);
  tensor_field(c, "running_mean", &Layer::running_mean);
  tensor_field(c, "running_var", &Layer::running_var);
  tensor_field(c, "num_batches_tracked", &Layer::num_batches_tracked);
  following(c, "num_features", &Layer::num_features);
  following(c, "affine", [](const Layer& self) { return self.weight.defined(); });
  following(c, "track_running_stats", [](const Layer& self) { return self.running_mean.defined(); });
  c.def_property("eps", &Layer::eps, &Layer::set_eps)
      .def_property("momentum", &Layer::momentum, &Layer::set_momentum)
      .def("reset_parameters", &Layer::reset_parameters)
      .def("reset_running_stats", &Layer::reset_running_stats);
}

template <int N>
void bind_batch_norm(py::module_& m) {
  using Options = nn::BatchNormOptions;
  const auto options = std::tuple_cat(channel_norm_options<Options>(), places_and_bias<Options>());
  layer<nn::BatchNormNd<N>, nn::BatchNorm>(m, in_dims<N>("BatchNorm").c_str(),
                                           rows(argument<int64_t>("num_features")), options);
  layer<nn::LazyBatchNormNd<N>, nn::BatchNormNd<N>>(m, in_dims<N>("LazyBatchNorm").c_str(), rows(), options);
}

template <int N>
void bind_instance_norm(py::module_& m) {
  using Options = nn::InstanceNormOptions;
  layer<nn::InstanceNormNd<N>, nn::InstanceNorm>(
      m, in_dims<N>("InstanceNorm").c_str(), rows(argument<int64_t>("num_features")),
      std::tuple_cat(channel_norm_options<Options>(), places_and_bias<Options>()));
  // PyTorch's lazy ones have the defaults of batch norm.
  using Lazy = nn::BatchNormOptions;
  const auto make = [](const Lazy& o) {
    return std::make_shared<nn::LazyInstanceNormNd<N>>(
        Options{o.eps, o.momentum, o.affine, o.bias, o.track_running_stats, o.device, o.dtype});
  };
  layer_by<nn::LazyInstanceNormNd<N>, nn::InstanceNormNd<N>>(
      m, in_dims<N>("LazyInstanceNorm").c_str(), make, rows(),
      std::tuple_cat(channel_norm_options<Lazy>(), places_and_bias<Lazy>()));
}

void bind_sync_batch_norm(py::module_& m) {
  using Options = nn::BatchNormOptions;
  auto c = layer<parallel::SyncBatchNorm, nn::BatchNorm>(
      m, "SyncBatchNorm", rows(argument<int64_t>("num_features")),
      std::tuple_cat(channel_norm_options<Options>(), rows(lacks("process_group", std::monostate())),
                     places_and_bias<Options>()));
  c.def_static(
      "convert_sync_batchnorm",
      [](py::object module, std::monostate) {
        parallel::convert_sync_batchnorm_(module.cast<nn::Module&>());
        return module;
      },
      py::arg("module"), py::arg("process_group") = py::none(), "Changes the module itself, and returns it.");
}

/// What norms over the last dimensions have.
template <class Class>
void shape_attributes(Class& c) {
  using Layer = typename Class::type;
  c.def_property_readonly("normalized_shape", [](const Layer& self) {
     return py::tuple(py::cast(self.normalized_shape()));
   }).def_property("eps", &Layer::eps, &Layer::set_eps);
  following(c, "elementwise_affine", [](const Layer& self) { return self.weight.defined(); });
}

void bind_other_norms(py::module_& m) {
  {
    using Options = nn::LayerNormOptions;
    auto c = layer<nn::LayerNorm>(
        m, "LayerNorm", rows(argument<Ints>("normalized_shape")),
        rows(option("eps", &Options::eps), option("elementwise_affine", &Options::elementwise_affine),
             option("bias", &Options::bias), option("device", &Options::device),
             option("dtype", &Options::dtype)));
    calls(c);
    weight_and_bias(c);
    shape_attributes(c);
  }
  {
    using Options = nn::RMSNormOptions;
    auto c = layer<nn::RMSNorm>(
        m, "RMSNorm", rows(argument<Ints>("normalized_shape")),
        rows(option("eps", &Options::eps), option("elementwise_affine", &Options::elementwise_affine),
             option("device", &Options::device), option("dtype", &Options::dtype)));
    calls(c, rows(argument<Tensor>("x")));
    tensor_field(c, "weight", &nn::RMSNorm::weight);
    shape_attributes(c);
  }
  {
    using Options = nn::GroupNormOptions;
    auto c = layer<nn::GroupNorm>(
        m, "GroupNorm", rows(argument<int64_t>("num_groups"), argument<int64_t>("num_channels")),
        rows(option("eps", &Options::eps), option("affine", &Options::affine),
             option("device", &Options::device), option("dtype", &Options::dtype), lacks("bias", true)));
    calls(c);
    weight_and_bias(c);
    c.def_property_readonly("num_groups", &nn::GroupNorm::num_groups)
        .def_property_readonly("num_channels", &nn::GroupNorm::num_channels)
        .def_property("eps", &nn::GroupNorm::eps, &nn::GroupNorm::set_eps);
    following(c, "affine", [](const nn::GroupNorm& self) { return self.weight.defined(); });
  }
  {
    using Options = nn::LocalResponseNormOptions;
    const auto options =
        rows(option("alpha", &Options::alpha), option("beta", &Options::beta), option("k", &Options::k));
    auto c = layer<nn::LocalResponseNorm>(m, "LocalResponseNorm", rows(argument<int64_t>("size")), options);
    calls(c);
    c.def_readwrite("size", &nn::LocalResponseNorm::size);
    attributes(c, &nn::LocalResponseNorm::options, options);
  }
}

}  // namespace

void bind_norm_layers(py::module_& m) {
  bind_channel_norm(m);
  auto batch_norm = abstract_layer<nn::BatchNorm, nn::ChannelNorm>(m, "_BatchNorm");
  calls(batch_norm);
  bind_batch_norm<1>(m);
  bind_batch_norm<2>(m);
  bind_batch_norm<3>(m);
  bind_sync_batch_norm(m);
  auto instance_norm = abstract_layer<nn::InstanceNorm, nn::ChannelNorm>(m, "_InstanceNorm");
  calls(instance_norm);
  bind_instance_norm<1>(m);
  bind_instance_norm<2>(m);
  bind_instance_norm<3>(m);
  bind_other_norms(m);
}

}  // namespace tern::python
