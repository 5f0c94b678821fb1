// The table of classes. Names and settings as in torch/nn/modules/*.py; settings that older versions of
// PyTorch did not have yet are taken at their defaults.
#include "tern/train/module_classes.h"

#include "tern/base/check.h"
#include "tern/nn/activation.h"
#include "tern/nn/containers.h"
#include "tern/nn/conv.h"
#include "tern/nn/dropout.h"
#include "tern/nn/embedding.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/nn/pool.h"
#include "tern/nn/reshape.h"

namespace tern::train {

namespace {

// ---- settings to values

Value pair(Size2 size) { return Value::tuple({size.h, size.w}); }
/// One number where both are the same, as it is mostly given.
Value one_or_pair(Size2 size) { return size.h == size.w ? Value(size.h) : pair(size); }
Value single(int64_t size) { return Value::tuple({size}); }
Value tuple(const std::vector<int64_t>& sizes) {
  return Value::tuple(std::vector<Value>(sizes.begin(), sizes.end()));
}
template <class T>
Value or_none(const std::optional<T>& value) {
  return value ? Value(*value) : Value();
}

// ---- settings from values

struct Reader {
  const ValueObject& object;

  const Value* find(std::string_view name) const { return object.attribute(name); }
  const Value& at(std::string_view name) const {
    const Value* value = find(name);
    TERN_CHECK(value, CheckpointError, "the object has no attribute '{}'", name);
    return *value;
  }
  int64_t integer(std::string_view name) const { return at(name).as_int(); }
  int64_t integer(std::string_view name, int64_t absent) const {
    const Value* value = find(name);
    return value ? value->as_int() : absent;
  }
  double number(std::string_view name) const { return at(name).as_float(); }
  bool flag(std::string_view name, bool absent) const {
    const Value* value = find(name);
    return value ? value->as_bool() : absent;
  }
  bool has(std::string_view name) const {
    const Value* value = find(name);
    return value && !value->is_none();
  }
  /// A number, or a tuple of one.
  int64_t one(std::string_view name) const {
    const Value& value = at(name);
    if (value.is_int()) return value.as_int();
    const auto& sizes = value.as_sequence();
    TERN_CHECK(sizes.size() == 1, CheckpointError, "'{}' is {}, not one number", name, value.str(100));
    return sizes[0].as_int();
  }
  /// A number for both, or a tuple of two; None stands for -1.
  Size2 two(std::string_view name) const {
    const Value& value = at(name);
    auto size = [](const Value& x) { return x.is_none() ? int64_t{-1} : x.as_int(); };
    if (value.is_int() || value.is_none()) return size(value);
    const auto& sizes = value.as_sequence();
    TERN_CHECK(sizes.size() == 2, CheckpointError, "'{}' is {}, not one or two numbers", name,
               value.str(100));
    return {size(sizes[0]), size(sizes[1])};
  }
  std::vector<int64_t> sizes(std::string_view name) const {
    const Value& value = at(name);
    if (value.is_int()) return {value.as_int()};
    std::vector<int64_t> sizes;
    for (const Value& size : value.as_sequence()) sizes.push_back(size.as_int());
    return sizes;
  }
  /// Refuses a setting that Tern's layer lacks.
  void only(std::string_view name, const Value& wanted) const {
    const Value* value = find(name);
    TERN_CHECK(!value || *value == wanted, CheckpointError, "{} = {} is not supported, only {}", name,
               value->str(100), wanted.str(100));
  }
  bool parameter(const std::string& name) const {
    const Value* parameters = find("_parameters");
    if (!parameters || !parameters->is_dict()) return false;
    const Value* value = parameters->find(name);
    return value && !value->is_none();
  }
};

// ---- convolution

/// What torch.nn.modules.conv._ConvNd keeps for padding modes other than zeros.
Value reversed_padding(const ConvPadding& padding, Size2 kernel, Size2 dilation, int dims) {
  std::vector<Value> sides;
  const bool same = padding.mode == ConvPadding::kSame;
  auto add = [&](int64_t explicit_size, int64_t kernel_size, int64_t step) {
    const int64_t total = step * (kernel_size - 1);
    sides.emplace_back(same ? total / 2 : explicit_size);
    sides.emplace_back(same ? total - total / 2 : explicit_size);
  };
  add(padding.size.w, kernel.w, dilation.w);
  if (dims == 2) add(padding.size.h, kernel.h, dilation.h);
  return padding.word().empty() ? Value::tuple(sides) : Value::list(sides);
}

Value padding_value(const ConvPadding& padding, int dims) {
  if (!padding.word().empty()) return padding.word();
  return dims == 1 ? single(padding.size.w) : pair(padding.size);
}
ConvPadding padding_of(const Reader& in, int dims) {
  const Value& value = in.at("padding");
  if (value.is_str()) return ConvPadding(std::string_view(value.as_str()));
  return dims == 1 ? ConvPadding(in.one("padding")) : ConvPadding(in.two("padding"));
}

template <class Layer>
Attributes conv2d_settings(const Layer& layer, bool transposed, ConvPadding padding, Size2 output_padding) {
  const auto& o = layer.options();
  const auto& shape = layer.weight.shape();
  const Size2 kernel{shape[2], shape[3]};
  return {{"in_channels", transposed ? shape[0] : shape[1] * o.groups},
          {"out_channels", transposed ? shape[1] * o.groups : shape[0]},
          {"kernel_size", pair(kernel)},
          {"stride", pair(o.stride)},
          {"padding", padding_value(padding, 2)},
          {"dilation", pair(o.dilation)},
          {"transposed", transposed},
          {"output_padding", pair(output_padding)},
          {"groups", o.groups},
          {"padding_mode", "zeros"},
          {"_reversed_padding_repeated_twice", reversed_padding(padding, kernel, o.dilation, 2)}};
}

Attributes settings(const nn::Conv2d& layer) {
  return conv2d_settings(layer, false, layer.options().padding, 0);
}
nn::AnyModule make(const Reader& in, const nn::Conv2d*) {
  in.only("padding_mode", "zeros");
  return nn::Conv2d(in.integer("in_channels"), in.integer("out_channels"), in.two("kernel_size"),
                    {.stride = in.two("stride"),
                     .padding = padding_of(in, 2),
                     .dilation = in.two("dilation"),
                     .groups = in.integer("groups"),
                     .bias = in.parameter("bias")});
}

Attributes settings(const nn::ConvTranspose2d& layer) {
  return conv2d_settings(layer, true, layer.options().padding, layer.options().output_padding);
}
nn::AnyModule make(const Reader& in, const nn::ConvTranspose2d*) {
  in.only("padding_mode", "zeros");
  return nn::ConvTranspose2d(in.integer("in_channels"), in.integer("out_channels"), in.two("kernel_size"),
                             {.stride = in.two("stride"),
                              .padding = in.two("padding"),
                              .output_padding = in.two("output_padding"),
                              .groups = in.integer("groups"),
                              .bias = in.parameter("bias"),
                              .dilation = in.two("dilation")});
}

Attributes settings(const nn::Conv1d& layer) {
  const auto& o = layer.options();
  const auto& shape = layer.weight.shape();
  return {{"in_channels", shape[1] * o.groups},
          {"out_channels", shape[0]},
          {"kernel_size", single(shape[2])},
          {"stride", single(o.stride)},
          {"padding", padding_value(o.padding, 1)},
          {"dilation", single(o.dilation)},
          {"transposed", false},
          {"output_padding", single(0)},
          {"groups", o.groups},
          {"padding_mode", "zeros"},
          {"_reversed_padding_repeated_twice", reversed_padding(o.padding, shape[2], o.dilation, 1)}};
}
nn::AnyModule make(const Reader& in, const nn::Conv1d*) {
  in.only("padding_mode", "zeros");
  return nn::Conv1d(in.integer("in_channels"), in.integer("out_channels"), in.one("kernel_size"),
                    {.stride = in.one("stride"),
                     .padding = padding_of(in, 1),
                     .dilation = in.one("dilation"),
                     .groups = in.integer("groups"),
                     .bias = in.parameter("bias")});
}

// ---- linear, embedding, dropout

Attributes settings(const nn::Linear& layer) {
  return {{"in_features", layer.in_features()}, {"out_features", layer.out_features()}};
}
nn::AnyModule make(const Reader& in, const nn::Linear*) {
  return nn::Linear(in.integer("in_features"), in.integer("out_features"), {.bias = in.parameter("bias")});
}

Attributes settings(const nn::Embedding& layer) {
  return {{"num_embeddings", layer.weight.shape()[0]},
          {"embedding_dim", layer.weight.shape()[1]},
          {"padding_idx", or_none(layer.padding_idx())},
          {"max_norm", Value()},
          {"norm_type", 2.0},
          {"scale_grad_by_freq", false},
          {"sparse", false}};
}
nn::AnyModule make(const Reader& in, const nn::Embedding*) {
  in.only("max_norm", Value());
  in.only("scale_grad_by_freq", false);
  in.only("sparse", false);
  nn::EmbeddingOptions options;
  if (in.has("padding_idx")) options.padding_idx = in.integer("padding_idx");
  return nn::Embedding(in.integer("num_embeddings"), in.integer("embedding_dim"), options);
}

Attributes settings(const nn::Dropout& layer) { return {{"p", layer.p}, {"inplace", layer.inplace}}; }
nn::AnyModule make(const Reader& in, const nn::Dropout*) {
  return nn::Dropout(in.number("p"), in.flag("inplace", false));
}

// ---- normalisation

Attributes settings(const nn::BatchNorm& layer) {
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

// ---- activation

template <class M>
concept OnlyInPlace = std::same_as<M, nn::ReLU> || std::same_as<M, nn::SiLU>;
template <class M>
concept WithoutSettings = std::same_as<M, nn::Tanh> || std::same_as<M, nn::Sigmoid> ||
    std::same_as<M, nn::LogSigmoid> || std::same_as<M, nn::Identity> || std::same_as<M, nn::Sequential>;
template <OnlyInPlace M>
Attributes settings(const M& layer) {
  return {{"inplace", layer.inplace}};
}
template <OnlyInPlace M>
nn::AnyModule make(const Reader& in, const M*) {
  return M(in.flag("inplace", false));
}
template <WithoutSettings M>
Attributes settings(const M&) {
  return {};
}
template <WithoutSettings M>
nn::AnyModule make(const Reader&, const M*) {
  return M();
}

Attributes settings(const nn::LeakyReLU& layer) {
  return {{"negative_slope", layer.negative_slope}, {"inplace", layer.inplace}};
}
nn::AnyModule make(const Reader& in, const nn::LeakyReLU*) {
  return nn::LeakyReLU(in.number("negative_slope"), in.flag("inplace", false));
}
Attributes settings(const nn::ELU& layer) { return {{"alpha", layer.alpha}, {"inplace", layer.inplace}}; }
nn::AnyModule make(const Reader& in, const nn::ELU*) {
  return nn::ELU(in.number("alpha"), in.flag("inplace", false));
}
Attributes settings(const nn::GELU& layer) { return {{"approximate", layer.approximate}}; }
nn::AnyModule make(const Reader& in, const nn::GELU*) {
  const Value* approximate = in.find("approximate");
  return approximate ? nn::GELU(approximate->as_str()) : nn::GELU();
}
Attributes settings(const nn::Softplus& layer) {
  return {{"beta", layer.beta}, {"threshold", layer.threshold}};
}
nn::AnyModule make(const Reader& in, const nn::Softplus*) {
  return nn::Softplus(in.number("beta"), in.number("threshold"));
}
template <class M>
requires std::same_as<M, nn::Softmax> || std::same_as<M, nn::LogSoftmax> Attributes settings(const M& layer) {
  return {{"dim", layer.dim}};
}
template <class M>
requires std::same_as<M, nn::Softmax> || std::same_as<M, nn::LogSoftmax> nn::AnyModule make(const Reader& in,
                                                                                            const M*) {
  TERN_CHECK(in.has("dim"), CheckpointError,
             "dim = None is not supported: the dimension then depends on how many the input has");
  return M(in.integer("dim"));
}

// ---- pooling and shapes

Attributes settings(const nn::MaxPool2d& layer) {
  const auto& o = layer.options();
  return {{"kernel_size", one_or_pair(o.kernel_size)},
          {"stride", one_or_pair(o.stride.value_or(o.kernel_size))},
          {"padding", one_or_pair(o.padding)},
          {"dilation", one_or_pair(o.dilation)},
          {"return_indices", false},
          {"ceil_mode", o.ceil_mode}};
}
nn::AnyModule make(const Reader& in, const nn::MaxPool2d*) {
  in.only("return_indices", false);
  nn::MaxPool2dOptions options{
      .padding = in.two("padding"), .dilation = in.two("dilation"), .ceil_mode = in.flag("ceil_mode", false)};
  if (in.has("stride")) options.stride = in.two("stride");
  return nn::MaxPool2d(in.two("kernel_size"), options);
}
Attributes settings(const nn::AvgPool2d& layer) {
  const auto& o = layer.options();
  return {
      {"kernel_size", one_or_pair(o.kernel_size)}, {"stride", one_or_pair(o.stride.value_or(o.kernel_size))},
      {"padding", one_or_pair(o.padding)},         {"ceil_mode", o.ceil_mode},
      {"count_include_pad", o.count_include_pad},  {"divisor_override", or_none(o.divisor_override)}};
}
nn::AnyModule make(const Reader& in, const nn::AvgPool2d*) {
  nn::AvgPool2dOptions options{.padding = in.two("padding"),
                               .ceil_mode = in.flag("ceil_mode", false),
                               .count_include_pad = in.flag("count_include_pad", true)};
  if (in.has("stride")) options.stride = in.two("stride");
  if (in.has("divisor_override")) options.divisor_override = in.integer("divisor_override");
  return nn::AvgPool2d(in.two("kernel_size"), options);
}
Attributes settings(const nn::MaxPool1d& layer) {
  const auto& o = layer.options();
  return {{"kernel_size", o.kernel_size}, {"stride", o.stride.value_or(o.kernel_size)},
          {"padding", o.padding},         {"dilation", o.dilation},
          {"return_indices", false},      {"ceil_mode", o.ceil_mode}};
}
nn::AnyModule make(const Reader& in, const nn::MaxPool1d*) {
  in.only("return_indices", false);
  nn::MaxPool1dOptions options{
      .padding = in.one("padding"), .dilation = in.one("dilation"), .ceil_mode = in.flag("ceil_mode", false)};
  if (in.has("stride")) options.stride = in.one("stride");
  return nn::MaxPool1d(in.one("kernel_size"), options);
}
Attributes settings(const nn::AvgPool1d& layer) {
  const auto& o = layer.options();
  return {{"kernel_size", single(o.kernel_size)},
          {"stride", single(o.stride.value_or(o.kernel_size))},
          {"padding", single(o.padding)},
          {"ceil_mode", o.ceil_mode},
          {"count_include_pad", o.count_include_pad}};
}
nn::AnyModule make(const Reader& in, const nn::AvgPool1d*) {
  nn::AvgPool1dOptions options{.padding = in.one("padding"),
                               .ceil_mode = in.flag("ceil_mode", false),
                               .count_include_pad = in.flag("count_include_pad", true)};
  if (in.has("stride")) options.stride = in.one("stride");
  return nn::AvgPool1d(in.one("kernel_size"), options);
}

Value adaptive_size(Size2 size) {
  auto one = [](int64_t n) { return n < 0 ? Value() : Value(n); };
  return Value::tuple({one(size.h), one(size.w)});
}
Attributes settings(const nn::AdaptiveAvgPool2d& layer) {
  return {{"output_size", adaptive_size(layer.output_size())}};
}
nn::AnyModule make(const Reader& in, const nn::AdaptiveAvgPool2d*) {
  return nn::AdaptiveAvgPool2d(in.two("output_size"));
}
Attributes settings(const nn::AdaptiveMaxPool2d& layer) {
  return {{"output_size", adaptive_size(layer.output_size())}, {"return_indices", false}};
}
nn::AnyModule make(const Reader& in, const nn::AdaptiveMaxPool2d*) {
  in.only("return_indices", false);
  return nn::AdaptiveMaxPool2d(in.two("output_size"));
}

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

// ---- the table

template <class M>
ModuleClass row(const char* module, const char* name, std::vector<std::string> parameters = {},
                std::vector<std::string> buffers = {}) {
  return {std::string("torch.nn.modules.") + module,
          name,
          typeid(M),
          [](const nn::Module& layer) { return settings(static_cast<const M&>(layer)); },
          [](const ValueObject& object) { return make(Reader{object}, static_cast<const M*>(nullptr)); },
          std::move(parameters),
          std::move(buffers)};
}

const std::vector<ModuleClass>& classes() {
  static const std::vector<std::string> both{"weight", "bias"};
  static const std::vector<std::string> statistics{"running_mean", "running_var", "num_batches_tracked"};
  static const std::vector<ModuleClass> table{
      row<nn::Linear>("linear", "Linear", both),
      row<nn::Identity>("linear", "Identity"),
      row<nn::Conv1d>("conv", "Conv1d", both),
      row<nn::Conv2d>("conv", "Conv2d", both),
      row<nn::ConvTranspose2d>("conv", "ConvTranspose2d", both),
      row<nn::BatchNorm1d>("batchnorm", "BatchNorm1d", both, statistics),
      row<nn::BatchNorm2d>("batchnorm", "BatchNorm2d", both, statistics),
      row<nn::LayerNorm>("normalization", "LayerNorm", both),
      row<nn::GroupNorm>("normalization", "GroupNorm", both),
      row<nn::RMSNorm>("normalization", "RMSNorm", {"weight"}),
      row<nn::Embedding>("sparse", "Embedding", {"weight"}),
      row<nn::Dropout>("dropout", "Dropout"),
      row<nn::ReLU>("activation", "ReLU"),
      row<nn::Tanh>("activation", "Tanh"),
      row<nn::Sigmoid>("activation", "Sigmoid"),
      row<nn::LogSigmoid>("activation", "LogSigmoid"),
      row<nn::SiLU>("activation", "SiLU"),
      row<nn::LeakyReLU>("activation", "LeakyReLU"),
      row<nn::ELU>("activation", "ELU"),
      row<nn::GELU>("activation", "GELU"),
      row<nn::Softplus>("activation", "Softplus"),
      row<nn::Softmax>("activation", "Softmax"),
      row<nn::LogSoftmax>("activation", "LogSoftmax"),
      row<nn::MaxPool1d>("pooling", "MaxPool1d"),
      row<nn::MaxPool2d>("pooling", "MaxPool2d"),
      row<nn::AvgPool1d>("pooling", "AvgPool1d"),
      row<nn::AvgPool2d>("pooling", "AvgPool2d"),
      row<nn::AdaptiveAvgPool2d>("pooling", "AdaptiveAvgPool2d"),
      row<nn::AdaptiveMaxPool2d>("pooling", "AdaptiveMaxPool2d"),
      row<nn::Flatten>("flatten", "Flatten"),
      row<nn::Unflatten>("flatten", "Unflatten"),
      row<nn::Sequential>("container", "Sequential"),
  };
  return table;
}

/// The type itself, but what a lazy layer has become.
std::type_index without_laziness(std::type_index type) {
  static const std::pair<std::type_index, std::type_index> lazy[] = {
      {typeid(nn::LazyLinear), typeid(nn::Linear)},
      {typeid(nn::LazyConv1d), typeid(nn::Conv1d)},
      {typeid(nn::LazyConv2d), typeid(nn::Conv2d)},
      {typeid(nn::LazyConvTranspose2d), typeid(nn::ConvTranspose2d)},
      {typeid(nn::LazyBatchNorm1d), typeid(nn::BatchNorm1d)},
      {typeid(nn::LazyBatchNorm2d), typeid(nn::BatchNorm2d)}};
  for (const auto& [before, after] : lazy)
    if (before == type) return after;
  return type;
}

}  // namespace

const ModuleClass* find_module_class(std::string_view module, std::string_view name) {
  for (const ModuleClass& row : classes())
    if (row.name == name && row.module == module) return &row;
  return nullptr;
}

const ModuleClass* find_module_class(std::type_index type) {
  const std::type_index written = without_laziness(type);
  for (const ModuleClass& row : classes())
    if (row.type == written) return &row;
  return nullptr;
}

}  // namespace tern::train
