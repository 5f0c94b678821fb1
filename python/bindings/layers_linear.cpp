// Linear and Bilinear, tables of vectors, and distances between vectors.
#include "layers.h"

namespace tern::python {

namespace {

void bind_linear(py::module_& m) {
  const auto options =
      rows(option("bias", &nn::LinearOptions::bias), option("device", &nn::LinearOptions::device),
           option("dtype", &nn::LinearOptions::dtype));
  auto linear = layer<nn::Linear>(
      m, "Linear", rows(argument<int64_t>("in_features"), argument<int64_t>("out_features")), options);
  calls(linear);
  weight_and_bias(linear);
  following(linear, "in_features", &nn::Linear::in_features);
  following(linear, "out_features", &nn::Linear::out_features);
  linear.def("reset_parameters", &nn::Linear::reset_parameters);
  layer<nn::LazyLinear, nn::Linear>(m, "LazyLinear", rows(argument<int64_t>("out_features")), options);
  layer<nn::NonDynamicallyQuantizableLinear, nn::Linear>(
      m, "NonDynamicallyQuantizableLinear",
      rows(argument<int64_t>("in_features"), argument<int64_t>("out_features")), options);

  auto bilinear =
      layer<nn::Bilinear>(m, "Bilinear",
                          rows(argument<int64_t>("in1_features"), argument<int64_t>("in2_features"),
                               argument<int64_t>("out_features")),
                          options);
  calls(bilinear, rows(argument<Tensor>("input1"), argument<Tensor>("input2")));
  weight_and_bias(bilinear);
  const char* const names[] = {"out_features", "in1_features", "in2_features"};
  for (int64_t dim = 0; dim < 3; ++dim)
    following(bilinear, names[dim], [dim](const nn::Bilinear& self) { return self.weight.size(dim); });
  bilinear.def("reset_parameters", &nn::Bilinear::reset_parameters);
}

/// `from_pretrained(embeddings, freeze, options)`.
template <class Class, class Options>
void from_pretrained(Class& c, const Options& options) {
  using Layer = typename Class::type;
  const auto arguments = rows(argument<Tensor>("embeddings"), argument("freeze", true));
  const auto make = [](const Tensor& embeddings, bool freeze, const auto& given) {
    return std::make_shared<Layer>(Layer::from_pretrained(embeddings, freeze, given));
  };
  detail::declare(arguments, options, [&](auto... declared) {
    c.def_static("from_pretrained", detail::with_options(make, arguments, options), declared...);
  });
}

/// The attributes of tables.
template <class Class>
void table_attributes(Class& c) {
  using Layer = typename Class::type;
  tensor_field(c, "weight", &Layer::weight);
  following(c, "num_embeddings", [](const Layer& self) { return self.weight.size(0); });
  following(c, "embedding_dim", [](const Layer& self) { return self.weight.size(1); });
  c.def_property_readonly("padding_idx", &Layer::padding_idx);
  using Options = std::decay_t<decltype(std::declval<const Layer&>().options())>;
  attributes(c, &Layer::options,
             rows(option("max_norm", &Options::max_norm), option("norm_type", &Options::norm_type),
                  option("scale_grad_by_freq", &Options::scale_grad_by_freq)));
  c.def("reset_parameters", &Layer::reset_parameters);
}

void bind_embeddings(py::module_& m) {
  const auto sizes = rows(argument<int64_t>("num_embeddings"), argument<int64_t>("embedding_dim"));
  const auto not_sparse = lacks("sparse", false);
  const auto no_weight = lacks("_weight", std::monostate());
  {
    using Options = nn::EmbeddingOptions;
    const auto padding_idx = option("padding_idx", &Options::padding_idx);
    const auto max_norm = option("max_norm", &Options::max_norm);
    const auto norm_type = option("norm_type", &Options::norm_type);
    const auto by_freq = option("scale_grad_by_freq", &Options::scale_grad_by_freq);
    auto c = layer<nn::Embedding>(
        m, "Embedding", sizes,
        rows(padding_idx, max_norm, norm_type, by_freq, not_sparse, no_weight, lacks("_freeze", false),
             option("device", &Options::device), option("dtype", &Options::dtype)));
    calls(c);
    table_attributes(c);
    from_pretrained(c, rows(padding_idx, max_norm, norm_type, by_freq, not_sparse));
  }
  {
    using Options = nn::EmbeddingBagOptions;
    const auto max_norm = option("max_norm", &Options::max_norm);
    const auto norm_type = option("norm_type", &Options::norm_type);
    const auto by_freq = option("scale_grad_by_freq", &Options::scale_grad_by_freq);
    const auto mode = option("mode", &Options::mode);
    const auto last = option("include_last_offset", &Options::include_last_offset);
    const auto padding_idx = option("padding_idx", &Options::padding_idx);
    auto c = layer<nn::EmbeddingBag>(
        m, "EmbeddingBag", sizes,
        rows(max_norm, norm_type, by_freq, mode, not_sparse, no_weight, last, padding_idx,
             option("device", &Options::device), option("dtype", &Options::dtype)));
    calls(c, rows(argument<Tensor>("input"), argument<Tensor>("offsets", {}),
                  argument<Tensor>("per_sample_weights", {})));
    table_attributes(c);
    c.def_property_readonly("mode", &nn::EmbeddingBag::mode)
        .def_property_readonly("include_last_offset", &nn::EmbeddingBag::include_last_offset);
    from_pretrained(c, rows(max_norm, norm_type, by_freq, mode, not_sparse, last, padding_idx));
  }
}

void bind_distances(py::module_& m) {
  const auto two = rows(argument<Tensor>("x1"), argument<Tensor>("x2"));
  auto cosine = layer_of_settings<nn::CosineSimilarity>(m, "CosineSimilarity",
                                                        setting("dim", &nn::CosineSimilarity::dim, 1),
                                                        setting("eps", &nn::CosineSimilarity::eps, 1e-8));
  calls(cosine, two);
  auto distance = layer_of_settings<nn::PairwiseDistance>(
      m, "PairwiseDistance", setting("p", &nn::PairwiseDistance::p, 2),
      setting("eps", &nn::PairwiseDistance::eps, 1e-6),
      setting("keepdim", &nn::PairwiseDistance::keepdim, false));
  calls(distance, two);
}

}  // namespace

void bind_linear_layers(py::module_& m) {
  bind_linear(m);
  bind_embeddings(m);
  bind_distances(m);
}

}  // namespace tern::python
