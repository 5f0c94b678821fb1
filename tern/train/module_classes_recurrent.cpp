// Recurrent layers and cells, as in torch/nn/modules/rnn.py.
#include <concepts>

#include <fmt/format.h>

#include "tern/nn/rnn.h"
#include "tern/train/module_settings.h"

namespace tern::train {

namespace {

// ---- layers

template <class M>
constexpr bool kIsPlain = std::same_as<M, nn::RNN>;

template <class M>
std::string mode(const M& layer) {
  if constexpr (kIsPlain<M>)
    return std::string(layer.nonlinearity()) == "tanh" ? "RNN_TANH" : "RNN_RELU";
  else
    return std::same_as<M, nn::LSTM> ? "LSTM" : "GRU";
}

template <std::derived_from<nn::RecurrentBase> M>
Attributes settings(const M& layer) {
  const nn::RecurrentOptions& o = layer.options();
  Attributes all{
      {"mode", mode(layer)},
      {"input_size", layer.input_size()},
      {"hidden_size", layer.hidden_size()},
      {"num_layers", o.num_layers},
      {"bias", o.bias},
      {"batch_first", o.batch_first},
      {"dropout", o.dropout},
      {"bidirectional", o.bidirectional},
      {"proj_size", o.proj_size},
      // PyTorch's __setstate__ makes the lists of weights from the settings where there are no names.
      {"_all_weights", Value::list({Value::list({Value()})})}};
  if constexpr (kIsPlain<M>) all.emplace_back("nonlinearity", std::string(layer.nonlinearity()));
  return all;
}

/// What a file says is no reason to make more layers than it has.
void check_layers(const Reader& in) {
  for (int64_t i = 0; i < in.integer("num_layers"); ++i) {
    const std::string weight = fmt::format("weight_hh_l{}", i);
    TERN_CHECK(in.parameter(weight), CheckpointError, "the file has no parameter '{}'", weight);
  }
}

template <std::derived_from<nn::RecurrentBase> M>
nn::AnyModule make(const Reader& in, const M*) {
  if (!std::same_as<M, nn::LSTM>) in.only("proj_size", int64_t{0});
  check_layers(in);
  const auto with = [&](auto options) {
    options.num_layers = in.integer("num_layers");
    options.bias = in.flag("bias", true);
    options.batch_first = in.flag("batch_first", false);
    options.dropout = in.number("dropout", 0);
    options.bidirectional = in.flag("bidirectional", false);
    if constexpr (!kIsPlain<M>) options.proj_size = in.integer("proj_size", 0);
    return M(in.integer("input_size"), in.integer("hidden_size"), options);
  };
  if constexpr (kIsPlain<M>)
    return with(nn::RNNOptions{.nonlinearity = in.at("mode").as_str() == "RNN_RELU" ? "relu" : "tanh"});
  else
    return with(nn::RecurrentOptions());
}

// ---- cells

template <std::derived_from<nn::RecurrentCellBase> M>
Attributes settings(const M& cell) {
  Attributes all{{"input_size", cell.input_size()},
                 {"hidden_size", cell.hidden_size()},
                 {"bias", cell.bias_ih.defined()}};
  if constexpr (std::same_as<M, nn::RNNCell>)
    all.emplace_back("nonlinearity", std::string(cell.nonlinearity()));
  return all;
}

template <std::derived_from<nn::RecurrentCellBase> M>
nn::AnyModule make(const Reader& in, const M*) {
  const auto with = [&](auto options) {
    options.bias = in.flag("bias", true);
    return M(in.integer("input_size"), in.integer("hidden_size"), options);
  };
  if constexpr (std::same_as<M, nn::RNNCell>)
    return with(nn::RNNCellOptions{.nonlinearity = in.at("nonlinearity").as_str()});
  else
    return with(nn::RecurrentCellOptions());
}

template <class M>
ModuleClass row(const char* name, std::vector<std::string> parameters = {}) {
  return module_class<M, settings, make>("rnn", name, std::move(parameters), {});
}

}  // namespace

std::vector<ModuleClass> recurrent_classes() {
  const std::vector<std::string> of_cells{"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
  return {
      row<nn::LSTM>("LSTM"),
      row<nn::GRU>("GRU"),
      row<nn::RNN>("RNN"),
      row<nn::LSTMCell>("LSTMCell", of_cells),
      row<nn::GRUCell>("GRUCell", of_cells),
      row<nn::RNNCell>("RNNCell", of_cells),
  };
}

}  // namespace tern::train
