// Attention and transformers, as in torch/nn/modules/activation.py and transformer.py.
#include <concepts>
#include <set>
#include <string_view>

#include "tern/nn/attention.h"
#include "tern/nn/transformer.h"
#include "tern/train/module_settings.h"

namespace tern::train {

namespace {

constexpr std::string_view kTransformers = "torch.nn.modules.transformer.";

// ---- modules below

const ValueObject& child(const Reader& in, const std::string& name) {
  const Value* modules = in.find("_modules");
  const Value* found = modules ? modules->find(Value(name)) : nullptr;
  TERN_CHECK(found && found->is_object(), CheckpointError, "the file has no module '{}'", name);
  return found->as_object();
}

nn::AnyModule made(const ValueObject& object) {
  const std::string name = object.class_name();
  const ModuleClass* known = find_module_class(name);
  TERN_CHECK(known, CheckpointError, "the class {} is not supported in a transformer", name);
  return known->make(object);
}
/// The class is looked at first: an object that stands in its own place would never be made.
template <class M>
M made(const Reader& in, const std::string& name) {
  const ValueObject& object = child(in, name);
  const ModuleClass* known = find_module_class(object.class_name());
  TERN_CHECK(!known || known->type == typeid(M), CheckpointError,
             "'{}' is of the class {}, which is not supported there", name, known->name);
  return made(object).as<M>();
}

// ---- attention

Attributes settings(const nn::NonDynamicallyQuantizableLinear& layer) {
  return {{"in_features", layer.in_features()}, {"out_features", layer.out_features()}};
}
nn::AnyModule make(const Reader& in, const nn::NonDynamicallyQuantizableLinear*) {
  return nn::NonDynamicallyQuantizableLinear(in.integer("in_features"), in.integer("out_features"),
                                             {.bias = in.parameter("bias")});
}

Attributes settings(const nn::MultiheadAttention& layer) {
  Attributes all{{"embed_dim", layer.embed_dim()},
                 {"kdim", layer.kdim()},
                 {"vdim", layer.vdim()},
                 {"_qkv_same_embed_dim", layer.in_proj_weight.defined()},
                 {"num_heads", layer.num_heads()},
                 {"dropout", layer.dropout},
                 {"batch_first", layer.batch_first()},
                 {"head_dim", layer.embed_dim() / layer.num_heads()},
                 {"add_zero_attn", layer.add_zero_attn()}};
  // PyTorch has these among its parameters only where there are any.
  if (!layer.bias_k.defined()) all.emplace_back("bias_k", Value());
  if (!layer.bias_v.defined()) all.emplace_back("bias_v", Value());
  return all;
}
nn::AnyModule make(const Reader& in, const nn::MultiheadAttention*) {
  nn::MultiheadAttentionOptions options{.dropout = in.number("dropout"),
                                        .bias = in.parameter("in_proj_bias"),
                                        .add_bias_kv = in.parameter("bias_k"),
                                        .add_zero_attn = in.flag("add_zero_attn", false),
                                        .batch_first = in.flag("batch_first", false)};
  if (in.has("kdim")) options.kdim = in.integer("kdim");
  if (in.has("vdim")) options.vdim = in.integer("vdim");
  return nn::MultiheadAttention(in.integer("embed_dim"), in.integer("num_heads"), options);
}

// ---- layers of transformers

template <class M>
concept TransformerLayer =
    std::same_as<M, nn::TransformerEncoderLayer> || std::same_as<M, nn::TransformerDecoderLayer>;

Value activation_value(const std::string& activation) {
  return activation == "relu" ? Value(GlobalName{"torch.nn.functional", "relu"})
                              : Value(GlobalName{"torch._C._nn", "gelu"});
}
/// As PyTorch's __setstate__ has it, relu when absent.
std::string activation_of(const Reader& in) {
  const Value* value = in.find("activation");
  if (!value) return "relu";
  const std::string name = value->kind() == ValueKind::Global ? value->as_global().name : "";
  TERN_CHECK(name == "relu" || name == "gelu", CheckpointError,
             "activation = {} is not supported, only the functions relu and gelu", value->str(100));
  return name;
}

template <TransformerLayer M>
Attributes settings(const M& layer) {
  Attributes all{{"norm_first", layer.norm_first}, {"activation", activation_value(layer.activation)}};
  if constexpr (std::same_as<M, nn::TransformerEncoderLayer>)
    all.emplace_back("activation_relu_or_gelu", layer.activation == "relu" ? 1 : 2);
  return all;
}
template <TransformerLayer M>
nn::AnyModule make(const Reader& in, const M*) {
  const Reader attention{child(in, "self_attn")};
  M layer(
      attention.integer("embed_dim"), attention.integer("num_heads"),
      {.dim_feedforward = 1, .activation = activation_of(in), .norm_first = in.flag("norm_first", false)});
  layer.self_attn = made<nn::MultiheadAttention>(in, "self_attn");
  layer.linear1 = made<nn::Linear>(in, "linear1");
  layer.dropout = made<nn::Dropout>(in, "dropout");
  layer.linear2 = made<nn::Linear>(in, "linear2");
  layer.norm1 = made<nn::LayerNorm>(in, "norm1");
  layer.norm2 = made<nn::LayerNorm>(in, "norm2");
  layer.dropout1 = made<nn::Dropout>(in, "dropout1");
  layer.dropout2 = made<nn::Dropout>(in, "dropout2");
  if constexpr (std::same_as<M, nn::TransformerDecoderLayer>) {
    layer.multihead_attn = made<nn::MultiheadAttention>(in, "multihead_attn");
    layer.norm3 = made<nn::LayerNorm>(in, "norm3");
    layer.dropout3 = made<nn::Dropout>(in, "dropout3");
  }
  return layer;
}

// ---- stacks

template <class M>
concept TransformerStack = std::same_as<M, nn::TransformerEncoder> || std::same_as<M, nn::TransformerDecoder>;

template <TransformerStack M>
Attributes settings(const M& stack) {
  Attributes all{{"num_layers", static_cast<int64_t>(stack.layers.size())}};
  if (!stack.norm.has_value()) all.emplace_back("norm", Value());
  if constexpr (std::same_as<M, nn::TransformerEncoder>) {
    // Padded positions are computed as they are here.
    all.emplace_back("enable_nested_tensor", false);
    all.emplace_back("use_nested_tensor", false);
    all.emplace_back("mask_check", true);
  }
  return all;
}
/// What follows the layers, or nothing. A stack there could be this one again.
nn::AnyModule made_norm(const Reader& in) {
  const Value* norm = in.at("_modules").find(Value("norm"));
  if (!norm || norm->is_none()) return {};
  TERN_CHECK(norm->is_object() && !norm->as_object().class_name().starts_with(kTransformers), CheckpointError,
             "'norm' is {}, which is not supported there", norm->str(60));
  return made(norm->as_object());
}

template <TransformerStack M>
nn::AnyModule make(const Reader& in, const M*) {
  using Layer = std::remove_cvref_t<decltype(std::declval<M&>().layers[0])>;
  nn::ModuleList<Layer> layers;
  const Reader list{child(in, "layers")};
  std::set<const void*> seen;
  for (const auto& [name, layer] : list.at("_modules").as_dict()) {
    // Without this a small file would make any number of layers.
    TERN_CHECK(seen.insert(layer.identity()).second, CheckpointError,
               "layer '{}' is the same as one before it, which is not supported", name.as_str());
    layers.push_back(made<Layer>(list, name.as_str()));
  }
  return M(std::move(layers), made_norm(in));
}

Attributes settings(const nn::Transformer& net) {
  return {{"d_model", net.d_model()}, {"nhead", net.nhead()}, {"batch_first", net.batch_first()}};
}
nn::AnyModule make(const Reader& in, const nn::Transformer*) {
  const nn::TransformerOptions options{.d_model = in.integer("d_model"),
                                       .nhead = in.integer("nhead"),
                                       .layer = {.batch_first = in.flag("batch_first", false)}};
  return nn::Transformer(made<nn::TransformerEncoder>(in, "encoder"),
                         made<nn::TransformerDecoder>(in, "decoder"), options);
}

template <class M>
ModuleClass row(const char* module, const char* name, std::vector<std::string> parameters = {}) {
  return module_class<M, settings, make>(module, name, std::move(parameters), {});
}

}  // namespace

std::vector<ModuleClass> attention_classes() {
  return {
      row<nn::NonDynamicallyQuantizableLinear>("linear", "NonDynamicallyQuantizableLinear",
                                               {"weight", "bias"}),
      row<nn::MultiheadAttention>(
          "activation", "MultiheadAttention",
          {"in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias"}),
      row<nn::TransformerEncoderLayer>("transformer", "TransformerEncoderLayer"),
      row<nn::TransformerDecoderLayer>("transformer", "TransformerDecoderLayer"),
      row<nn::TransformerEncoder>("transformer", "TransformerEncoder"),
      row<nn::TransformerDecoder>("transformer", "TransformerDecoder"),
      row<nn::Transformer>("transformer", "Transformer"),
  };
}

}  // namespace tern::train
