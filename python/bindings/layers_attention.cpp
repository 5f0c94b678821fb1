// MultiheadAttention and transformers.
#include "layers.h"

namespace tern::python {

namespace {

void bind_attention(py::module_& m) {
  using Layer = nn::MultiheadAttention;
  using Options = nn::MultiheadAttentionOptions;
  auto c = layer<Layer>(m, "MultiheadAttention",
                        rows(argument<int64_t>("embed_dim"), argument<int64_t>("num_heads")),
                        rows(option("dropout", &Options::dropout), option("bias", &Options::bias),
                             option("add_bias_kv", &Options::add_bias_kv),
                             option("add_zero_attn", &Options::add_zero_attn), option("kdim", &Options::kdim),
                             option("vdim", &Options::vdim), option("batch_first", &Options::batch_first),
                             option("device", &Options::device), option("dtype", &Options::dtype)));
  using Masks = nn::AttentionMasks;
  calls(c, rows(argument<Tensor>("query"), argument<Tensor>("key"), argument<Tensor>("value")),
        rows(option("key_padding_mask", &Masks::key_padding_mask),
             option("need_weights", &Masks::need_weights), option("attn_mask", &Masks::attn_mask),
             option("average_attn_weights", &Masks::average_attn_weights),
             option("is_causal", &Masks::is_causal)));
  tensor_field(c, "in_proj_weight", &Layer::in_proj_weight);
  tensor_field(c, "q_proj_weight", &Layer::q_proj_weight);
  tensor_field(c, "k_proj_weight", &Layer::k_proj_weight);
  tensor_field(c, "v_proj_weight", &Layer::v_proj_weight);
  tensor_field(c, "in_proj_bias", &Layer::in_proj_bias);
  tensor_field(c, "bias_k", &Layer::bias_k);
  tensor_field(c, "bias_v", &Layer::bias_v);
  module_field(c, "out_proj", &Layer::out_proj);
  c.def_readwrite("dropout", &Layer::dropout)
      .def_property_readonly("embed_dim", &Layer::embed_dim)
      .def_property_readonly("num_heads", &Layer::num_heads)
      .def_property_readonly("head_dim",
                             [](const Layer& self) { return self.embed_dim() / self.num_heads(); })
      .def_property_readonly("kdim", &Layer::kdim)
      .def_property_readonly("vdim", &Layer::vdim)
      .def_property_readonly("add_zero_attn", &Layer::add_zero_attn)
      .def_property("batch_first", &Layer::batch_first, &Layer::set_batch_first);
}

// ---- layers of transformers

auto transformer_options() {
  using Options = nn::TransformerLayerOptions;
  return rows(option("layer_norm_eps", &Options::layer_norm_eps),
              option("batch_first", &Options::batch_first), option("norm_first", &Options::norm_first),
              option("bias", &Options::bias), option("device", &Options::device),
              option("dtype", &Options::dtype));
}
auto transformer_sizes() {
  using Options = nn::TransformerLayerOptions;
  return rows(option("dim_feedforward", &Options::dim_feedforward), option("dropout", &Options::dropout),
              option_as<ActivationName>("activation", &Options::activation));
}

auto encoder_masks(const char* mask) {
  using Masks = nn::EncoderMasks;
  return rows(option(mask, &Masks::mask), option("src_key_padding_mask", &Masks::src_key_padding_mask),
              option_as<Flag>("is_causal", &Masks::is_causal));
}
auto decoder_masks() {
  using Masks = nn::DecoderMasks;
  return rows(option("tgt_mask", &Masks::tgt_mask), option("memory_mask", &Masks::memory_mask),
              option("tgt_key_padding_mask", &Masks::tgt_key_padding_mask),
              option("memory_key_padding_mask", &Masks::memory_key_padding_mask),
              option_as<Flag>("tgt_is_causal", &Masks::tgt_is_causal),
              option_as<Flag>("memory_is_causal", &Masks::memory_is_causal));
}

/// A layer of an encoder or a decoder.
template <class Layer>
LayerClass<Layer> transformer_layer(py::module_& m, const char* name) {
  auto c = layer<Layer>(m, name, rows(argument<int64_t>("d_model"), argument<int64_t>("nhead")),
                        std::tuple_cat(transformer_sizes(), transformer_options()));
  module_field(c, "self_attn", &Layer::self_attn);
  module_field(c, "linear1", &Layer::linear1);
  module_field(c, "dropout", &Layer::dropout);
  module_field(c, "linear2", &Layer::linear2);
  module_field(c, "norm1", &Layer::norm1);
  module_field(c, "norm2", &Layer::norm2);
  module_field(c, "dropout1", &Layer::dropout1);
  module_field(c, "dropout2", &Layer::dropout2);
  c.def_readwrite("norm_first", &Layer::norm_first);
  c.def_property_readonly("activation", [](const Layer& self) { return self.activation; });
  return c;
}

// ---- stacks of them

/// What stands at the end of a stack: a copy that shares its tensors.
nn::AnyModule norm_of(const std::shared_ptr<nn::Module>& norm) {
  if (!norm) return {};
  if (const auto* layer_norm = norm->as<nn::LayerNorm>()) return *layer_norm;
  if (const auto* rms_norm = norm->as<nn::RMSNorm>()) return *rms_norm;
  throw TypeError("norm: expected a LayerNorm, an RMSNorm or None, got " + norm->class_name());
}

/// The list of a stack's layers, whose elements keep the list alive.
template <class Layer>
void bind_list(py::module_& m, const char* name) {
  using List = nn::ModuleList<Layer>;
  auto c = abstract_layer<List>(m, name);
  copies(c);
  c.def("__len__", [](const List& self) { return self.size(); });
  c.def("__getitem__", [](const std::shared_ptr<List>& self, int64_t index) {
    return std::shared_ptr<Layer>(self, &(*self)[index]);
  });
}

template <class Stack, class Layer, class Hints = std::tuple<>>
LayerClass<Stack> stack_of(py::module_& m, const char* name, const char* list_name,
                           const char* layer_argument, const Hints& hints = {}) {
  bind_list<Layer>(m, list_name);
  const auto make = [](const std::shared_ptr<Layer>& layer, int64_t num_layers,
                       const std::shared_ptr<nn::Module>& norm) {
    check_forward("a stack of layers", *layer);
    return std::make_shared<Stack>(*layer, num_layers, norm_of(norm));
  };
  const auto arguments =
      rows(argument<std::shared_ptr<Layer>>(layer_argument), argument<int64_t>("num_layers"),
           argument<std::shared_ptr<nn::Module>>("norm", nullptr));
  auto c = layer_by<Stack>(m, name, make, arguments, hints);
  module_field(c, "layers", &Stack::layers);
  c.def_property_readonly("num_layers", [](const Stack& self) { return self.layers.size(); });
  c.def_property_readonly("norm", [](const std::shared_ptr<Stack>& self) -> std::shared_ptr<nn::Module> {
    if (!self->norm.has_value()) return nullptr;
    return {self, &self->norm.get()};
  });
  return c;
}

void bind_encoder(py::module_& m) {
  auto one = transformer_layer<nn::TransformerEncoderLayer>(m, "TransformerEncoderLayer");
  calls(one, rows(argument<Tensor>("src")), encoder_masks("src_mask"));
  auto stack = stack_of<nn::TransformerEncoder, nn::TransformerEncoderLayer>(
      m, "TransformerEncoder", "_EncoderLayers", "encoder_layer",
      rows(ignores("enable_nested_tensor", true), ignores("mask_check", true)));
  calls(stack, rows(argument<Tensor>("src")), encoder_masks("mask"));
}

void bind_decoder(py::module_& m) {
  using Layer = nn::TransformerDecoderLayer;
  const auto arguments = rows(argument<Tensor>("tgt"), argument<Tensor>("memory"));
  auto one = transformer_layer<Layer>(m, "TransformerDecoderLayer");
  calls(one, arguments, decoder_masks());
  module_field(one, "multihead_attn", &Layer::multihead_attn);
  module_field(one, "norm3", &Layer::norm3);
  module_field(one, "dropout3", &Layer::dropout3);
  auto stack =
      stack_of<nn::TransformerDecoder, Layer>(m, "TransformerDecoder", "_DecoderLayers", "decoder_layer");
  calls(stack, arguments, decoder_masks());
}

void bind_transformer(py::module_& m) {
  using Layer = nn::Transformer;
  const auto make = [](int64_t d_model, int64_t nhead, int64_t encoder_layers, int64_t decoder_layers,
                       const nn::TransformerLayerOptions& layer) {
    return std::make_shared<Layer>(
        nn::TransformerOptions{d_model, nhead, encoder_layers, decoder_layers, layer});
  };
  const auto no_module = std::monostate();
  auto c = layer_by<Layer>(
      m, "Transformer", make,
      rows(argument<int64_t>("d_model", 512), argument<int64_t>("nhead", 8),
           argument<int64_t>("num_encoder_layers", 6), argument<int64_t>("num_decoder_layers", 6)),
      std::tuple_cat(transformer_sizes(),
                     rows(lacks("custom_encoder", no_module), lacks("custom_decoder", no_module)),
                     transformer_options()));
  using Masks = nn::TransformerMasks;
  calls(c, rows(argument<Tensor>("src"), argument<Tensor>("tgt")),
        rows(option("src_mask", &Masks::src_mask), option("tgt_mask", &Masks::tgt_mask),
             option("memory_mask", &Masks::memory_mask),
             option("src_key_padding_mask", &Masks::src_key_padding_mask),
             option("tgt_key_padding_mask", &Masks::tgt_key_padding_mask),
             option("memory_key_padding_mask", &Masks::memory_key_padding_mask),
             option_as<Flag>("src_is_causal", &Masks::src_is_causal),
             option_as<Flag>("tgt_is_causal", &Masks::tgt_is_causal),
             option_as<Flag>("memory_is_causal", &Masks::memory_is_causal)));
  module_field(c, "encoder", &Layer::encoder);
  module_field(c, "decoder", &Layer::decoder);
  c.def("_reset_parameters", &Layer::reset_parameters)
      .def_property_readonly("d_model", &Layer::d_model)
      .def_property_readonly("nhead", &Layer::nhead)
      .def_property_readonly("batch_first", &Layer::batch_first)
      .def_static(
          "generate_square_subsequent_mask",
          [](int64_t size, std::optional<Device> device, std::optional<DType> dtype) {
            return Layer::generate_square_subsequent_mask(size, {.dtype = dtype, .device = device});
          },
          py::arg("sz"), py::arg("device") = py::none(), py::arg("dtype") = py::none());
}

}  // namespace

void bind_attention_layers(py::module_& m) {
  bind_attention(m);
  bind_encoder(m);
  bind_decoder(m);
  bind_transformer(m);
}

}  // namespace tern::python
