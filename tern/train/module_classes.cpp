// The table of classes; activations are in module_classes_activation.cpp, layers over sequences and images in
// module_classes_images.cpp, losses in module_classes_loss.cpp. Names and settings as in
// torch/nn/modules/*.py; settings that older versions of PyTorch did not have yet are taken at their
// defaults.
#include "tern/train/module_classes.h"

#include "tern/nn/adaptive_softmax.h"
#include "tern/nn/containers.h"
#include "tern/nn/conv.h"
#include "tern/nn/distance.h"
#include "tern/nn/dropout.h"
#include "tern/nn/embedding.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/nn/reshape.h"
#include "tern/train/module_settings.h"

namespace tern::train {

namespace {

// ---- linear, embedding, dropout

Attributes settings(const nn::Linear& layer) {
  return {{"in_features", layer.in_features()}, {"out_features", layer.out_features()}};
}
nn::AnyModule make(const Reader& in, const nn::Linear*) {
  return nn::Linear(in.integer("in_features"), in.integer("out_features"), {.bias = in.parameter("bias")});
}

/// Settings of both layers that look up rows.
template <class Options>
void read_lookup(const Reader& in, Options& options) {
  in.only("sparse", false);
  if (in.has("padding_idx")) options.padding_idx = in.integer("padding_idx");
  if (in.has("max_norm")) options.max_norm = in.number("max_norm");
  options.norm_type = in.number("norm_type", 2);
  options.scale_grad_by_freq = in.flag("scale_grad_by_freq", false);
}

Attributes settings(const nn::Embedding& layer) {
  return {{"num_embeddings", layer.weight.shape()[0]},
          {"embedding_dim", layer.weight.shape()[1]},
          {"padding_idx", or_none(layer.padding_idx())},
          {"max_norm", or_none(layer.options().max_norm)},
          {"norm_type", layer.options().norm_type},
          {"scale_grad_by_freq", layer.options().scale_grad_by_freq},
          {"sparse", false}};
}
nn::AnyModule make(const Reader& in, const nn::Embedding*) {
  nn::EmbeddingOptions options;
  read_lookup(in, options);
  return nn::Embedding(in.integer("num_embeddings"), in.integer("embedding_dim"), options);
}

Attributes settings(const nn::Bilinear& layer) {
  const Shape& shape = layer.weight.shape();
  return {{"in1_features", shape[1]}, {"in2_features", shape[2]}, {"out_features", shape[0]}};
}
nn::AnyModule make(const Reader& in, const nn::Bilinear*) {
  return nn::Bilinear(in.integer("in1_features"), in.integer("in2_features"), in.integer("out_features"),
                      {.bias = in.parameter("bias")});
}

Attributes settings(const nn::EmbeddingBag& layer) {
  return {{"num_embeddings", layer.weight.shape()[0]},
          {"embedding_dim", layer.weight.shape()[1]},
          {"max_norm", or_none(layer.options().max_norm)},
          {"norm_type", layer.options().norm_type},
          {"scale_grad_by_freq", layer.options().scale_grad_by_freq},
          {"mode", bag_mode_word(layer.mode())},
          {"sparse", false},
          {"include_last_offset", layer.include_last_offset()},
          {"padding_idx", or_none(layer.padding_idx())}};
}
nn::AnyModule make(const Reader& in, const nn::EmbeddingBag*) {
  nn::EmbeddingBagOptions options{.mode = parse_bag_mode(in.at("mode").as_str()),
                                  .include_last_offset = in.flag("include_last_offset", false)};
  read_lookup(in, options);
  return nn::EmbeddingBag(in.integer("num_embeddings"), in.integer("embedding_dim"), options);
}

template <class M>
concept SomeDropout = std::same_as<M, nn::Dropout> || std::same_as<M, nn::Dropout1d> ||
    std::same_as<M, nn::Dropout2d> || std::same_as<M, nn::Dropout3d> || std::same_as<M, nn::AlphaDropout> ||
    std::same_as<M, nn::FeatureAlphaDropout>;
template <SomeDropout M>
Attributes settings(const M& layer) {
  return {{"p", layer.p}, {"inplace", layer.inplace}};
}
template <SomeDropout M>
nn::AnyModule make(const Reader& in, const M*) {
  return M(in.number("p"), in.flag("inplace", false));
}

// ---- normalisation

template <std::derived_from<nn::ChannelNorm> M>
Attributes settings(const M& layer) {
  return {{"num_features", layer.num_features()},
          {"eps", layer.eps()},
          {"momentum", or_none(layer.momentum())},
          {"affine", layer.weight.defined()},
          {"track_running_stats", layer.running_mean.defined()}};
}
template <class M>
requires std::derived_from<M, nn::BatchNorm> nn::AnyModule make(const Reader& in, const M*) {
  nn::BatchNormOptions options{.eps = in.number("eps"),
                               .affine = in.flag("affine", true),
                               .bias = in.parameter("bias"),
                               .track_running_stats = in.flag("track_running_stats", true)};
  options.momentum = in.has("momentum") ? std::optional(in.number("momentum")) : std::nullopt;
  return M(in.integer("num_features"), options);
}

template <std::derived_from<nn::InstanceNorm> M>
nn::AnyModule make(const Reader& in, const M*) {
  nn::InstanceNormOptions options{.eps = in.number("eps"),
                                  .affine = in.flag("affine", false),
                                  .bias = in.parameter("bias"),
                                  .track_running_stats = in.flag("track_running_stats", false)};
  options.momentum = in.has("momentum") ? std::optional(in.number("momentum")) : std::nullopt;
  return M(in.integer("num_features"), options);
}

Attributes settings(const nn::LayerNorm& layer) {
  return {{"normalized_shape", tuple(layer.normalized_shape())},
          {"eps", layer.eps()},
          {"elementwise_affine", layer.weight.defined()}};
}
nn::AnyModule make(const Reader& in, const nn::LayerNorm*) {
  return nn::LayerNorm(in.sizes("normalized_shape"),
                       {.eps = in.number("eps"),
                        .elementwise_affine = in.flag("elementwise_affine", true),
                        .bias = in.parameter("bias")});
}

Attributes settings(const nn::RMSNorm& layer) {
  return {{"normalized_shape", tuple(layer.normalized_shape())},
          {"eps", or_none(layer.eps())},
          {"elementwise_affine", layer.weight.defined()}};
}
nn::AnyModule make(const Reader& in, const nn::RMSNorm*) {
  nn::RMSNormOptions options{.elementwise_affine = in.flag("elementwise_affine", true)};
  if (in.has("eps")) options.eps = in.number("eps");
  return nn::RMSNorm(in.sizes("normalized_shape"), options);
}

Attributes settings(const nn::LocalResponseNorm& layer) {
  return {{"size", layer.size},
          {"alpha", layer.options.alpha},
          {"beta", layer.options.beta},
          {"k", layer.options.k}};
}
nn::AnyModule make(const Reader& in, const nn::LocalResponseNorm*) {
  return nn::LocalResponseNorm(in.integer("size"),
                               {.alpha = in.number("alpha"), .beta = in.number("beta"), .k = in.number("k")});
}

Attributes settings(const nn::GroupNorm& layer) {
  return {{"num_groups", layer.num_groups()},
          {"num_channels", layer.num_channels()},
          {"eps", layer.eps()},
          {"affine", layer.weight.defined()}};
}
nn::AnyModule make(const Reader& in, const nn::GroupNorm*) {
  return nn::GroupNorm(in.integer("num_groups"), in.integer("num_channels"),
                       {.eps = in.number("eps"), .affine = in.flag("affine", true)});
}

// ---- shapes

Attributes settings(const nn::Flatten& layer) {
  return {{"start_dim", layer.start_dim}, {"end_dim", layer.end_dim}};
}
nn::AnyModule make(const Reader& in, const nn::Flatten*) {
  return nn::Flatten(in.integer("start_dim", 1), in.integer("end_dim", -1));
}
Attributes settings(const nn::Unflatten& layer) {
  return {{"dim", layer.dim}, {"unflattened_size", tuple(layer.unflattened_size)}};
}
nn::AnyModule make(const Reader& in, const nn::Unflatten*) {
  return nn::Unflatten(in.integer("dim"), in.sizes("unflattened_size"));
}

// ---- without settings

template <class M>
concept WithoutSettings = std::same_as<M, nn::Identity> || std::same_as<M, nn::Sequential>;
template <WithoutSettings M>
Attributes settings(const M&) {
  return {};
}
template <WithoutSettings M>
nn::AnyModule make(const Reader&, const M*) {
  return M();
}

// ---- parameters

/// The parameter under this name. What else such containers may hold in PyTorch are plain attributes.
nn::Parameter parameter_of(const Reader& in, const std::string& name) {
  const Value* found = in.at("_parameters").find(Value(name));
  TERN_CHECK(found && found->is_tensor(), CheckpointError, "'{}' is not a parameter", name);
  const Tensor tensor = found->as_tensor();
  return nn::Parameter(tensor, tensor.requires_grad());
}

Attributes settings(const nn::ParameterList& layer) {
  return {{"_size", static_cast<int64_t>(layer.size())}};
}
nn::AnyModule make(const Reader& in, const nn::ParameterList*) {
  nn::ParameterList list;
  const auto held = static_cast<int64_t>(in.at("_parameters").length());
  const int64_t size = in.integer("_size", held);  // since PyTorch 1.12
  for (int64_t i = 0; i < size; ++i) list.append(parameter_of(in, std::to_string(i)));
  return list;
}

Attributes settings(const nn::ParameterDict& layer) {
  Value keys = Value::dict();
  for (const auto& [name, parameter] : layer) keys.as_dict().set(name, Value());
  return {{"_keys", keys}};
}
nn::AnyModule make(const Reader& in, const nn::ParameterDict*) {
  nn::ParameterDict dict;
  const Value* keys = in.find("_keys");  // since PyTorch 1.12
  for (const auto& [name, none] : (keys ? *keys : in.at("_parameters")).as_dict())
    dict.insert(name.as_str(), parameter_of(in, name.as_str()));
  return dict;
}

// ---- clusters of classes

Attributes settings(const nn::AdaptiveLogSoftmaxWithLoss& layer) {
  std::vector<Value> cutoffs(layer.cutoffs().begin(), layer.cutoffs().end());
  const auto clusters = static_cast<int64_t>(layer.tail.size());
  return {{"in_features", layer.in_features()},
          {"n_classes", layer.n_classes()},
          {"cutoffs", Value::list(cutoffs)},
          {"div_value", layer.div_value()},
          {"head_bias", layer.head_bias()},
          {"shortlist_size", layer.cutoffs()[0]},
          {"n_clusters", clusters},
          {"head_size", layer.cutoffs()[0] + clusters}};
}
nn::AnyModule make(const Reader& in, const nn::AdaptiveLogSoftmaxWithLoss*) {
  std::vector<int64_t> cutoffs = in.sizes("cutoffs");
  if (!cutoffs.empty()) cutoffs.pop_back();  // n_classes
  return nn::AdaptiveLogSoftmaxWithLoss(
      in.integer("in_features"), in.integer("n_classes"), cutoffs,
      {.div_value = in.number("div_value", 4), .head_bias = in.flag("head_bias", false)});
}

// ---- distances

Attributes settings(const nn::CosineSimilarity& layer) { return {{"dim", layer.dim}, {"eps", layer.eps}}; }
nn::AnyModule make(const Reader& in, const nn::CosineSimilarity*) {
  return nn::CosineSimilarity(in.integer("dim"), in.number("eps"));
}
Attributes settings(const nn::PairwiseDistance& layer) {
  return {{"norm", layer.p}, {"eps", layer.eps}, {"keepdim", layer.keepdim}};
}
nn::AnyModule make(const Reader& in, const nn::PairwiseDistance*) {
  return nn::PairwiseDistance(in.number("norm"), in.number("eps"), in.flag("keepdim", false));
}

// ---- the table

template <class M>
ModuleClass row(const char* module, const char* name, std::vector<std::string> parameters = {},
                std::vector<std::string> buffers = {}) {
  return module_class<M, settings, make>(module, name, std::move(parameters), std::move(buffers));
}

std::vector<ModuleClass> all_classes() {
  const std::vector<std::string> both{"weight", "bias"};
  const std::vector<std::string> statistics{"running_mean", "running_var", "num_batches_tracked"};
  std::vector<ModuleClass> table{
      row<nn::Linear>("linear", "Linear", both),
      row<nn::Bilinear>("linear", "Bilinear", both),
      row<nn::Identity>("linear", "Identity"),
      row<nn::BatchNorm1d>("batchnorm", "BatchNorm1d", both, statistics),
      row<nn::BatchNorm2d>("batchnorm", "BatchNorm2d", both, statistics),
      row<nn::BatchNorm3d>("batchnorm", "BatchNorm3d", both, statistics),
      row<nn::InstanceNorm1d>("instancenorm", "InstanceNorm1d", both, statistics),
      row<nn::InstanceNorm2d>("instancenorm", "InstanceNorm2d", both, statistics),
      row<nn::InstanceNorm3d>("instancenorm", "InstanceNorm3d", both, statistics),
      row<nn::LayerNorm>("normalization", "LayerNorm", both),
      row<nn::GroupNorm>("normalization", "GroupNorm", both),
      row<nn::RMSNorm>("normalization", "RMSNorm", {"weight"}),
      row<nn::Embedding>("sparse", "Embedding", {"weight"}),
      row<nn::EmbeddingBag>("sparse", "EmbeddingBag", {"weight"}),
      row<nn::LocalResponseNorm>("normalization", "LocalResponseNorm"),
      row<nn::Dropout>("dropout", "Dropout"),
      row<nn::Dropout1d>("dropout", "Dropout1d"),
      row<nn::Dropout2d>("dropout", "Dropout2d"),
      row<nn::Dropout3d>("dropout", "Dropout3d"),
      row<nn::AlphaDropout>("dropout", "AlphaDropout"),
      row<nn::FeatureAlphaDropout>("dropout", "FeatureAlphaDropout"),
      row<nn::Flatten>("flatten", "Flatten"),
      row<nn::Unflatten>("flatten", "Unflatten"),
      row<nn::CosineSimilarity>("distance", "CosineSimilarity"),
      row<nn::PairwiseDistance>("distance", "PairwiseDistance"),
      row<nn::AdaptiveLogSoftmaxWithLoss>("adaptive", "AdaptiveLogSoftmaxWithLoss"),
      row<nn::Sequential>("container", "Sequential"),
      row<nn::ParameterList>("container", "ParameterList"),
      row<nn::ParameterDict>("container", "ParameterDict"),
  };
  for (const auto more : {activation_classes, attention_classes, image_classes, loss_classes,
                          recurrent_classes, resize_classes})
    for (ModuleClass& row : more()) table.push_back(std::move(row));
  return table;
}

const std::vector<ModuleClass>& classes() {
  static const std::vector<ModuleClass> table = all_classes();
  return table;
}

/// The type itself, but what a lazy layer has become.
std::type_index without_laziness(std::type_index type) {
  static const std::pair<std::type_index, std::type_index> lazy[] = {
      {typeid(nn::LazyLinear), typeid(nn::Linear)},
      {typeid(nn::LazyConv1d), typeid(nn::Conv1d)},
      {typeid(nn::LazyConv2d), typeid(nn::Conv2d)},
      {typeid(nn::LazyConv3d), typeid(nn::Conv3d)},
      {typeid(nn::LazyConvTranspose1d), typeid(nn::ConvTranspose1d)},
      {typeid(nn::LazyConvTranspose2d), typeid(nn::ConvTranspose2d)},
      {typeid(nn::LazyConvTranspose3d), typeid(nn::ConvTranspose3d)},
      {typeid(nn::LazyBatchNorm1d), typeid(nn::BatchNorm1d)},
      {typeid(nn::LazyBatchNorm2d), typeid(nn::BatchNorm2d)},
      {typeid(nn::LazyBatchNorm3d), typeid(nn::BatchNorm3d)},
      {typeid(nn::LazyInstanceNorm1d), typeid(nn::InstanceNorm1d)},
      {typeid(nn::LazyInstanceNorm2d), typeid(nn::InstanceNorm2d)},
      {typeid(nn::LazyInstanceNorm3d), typeid(nn::InstanceNorm3d)}};
  for (const auto& [before, after] : lazy)
    if (before == type) return after;
  return type;
}

}  // namespace

const ModuleClass* find_module_class(std::string_view python_name) {
  const size_t dot = python_name.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  for (const ModuleClass& row : classes())
    if (row.name == python_name.substr(dot + 1) && row.module == python_name.substr(0, dot)) return &row;
  return nullptr;
}

const ModuleClass* find_module_class(std::type_index type) {
  const std::type_index written = without_laziness(type);
  for (const ModuleClass& row : classes())
    if (row.type == written) return &row;
  return nullptr;
}

}  // namespace tern::train
