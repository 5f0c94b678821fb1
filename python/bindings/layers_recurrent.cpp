// LSTM, GRU, RNN and their cells; packed sequences.
#include "layers.h"

namespace tern::python {

namespace {

// ---- packed sequences

/// Lengths, sizes and orders: integers of Python or a tensor of them.
struct Lengths {
  std::vector<int64_t> values;
  Lengths(const Ints& ints) : values(ints.values) {}
  Lengths(const Tensor& tensor) {
    if (tensor.defined()) values = tensor.to(DType::Int64).to_vector<int64_t>();
  }
};
using IntsOrTensor = std::variant<Tensor, Ints>;

std::vector<int64_t> lengths_of(const IntsOrTensor& given) {
  return std::visit([](const auto& lengths) { return Lengths(lengths).values; }, given);
}

Tensor order_tensor(const std::vector<int64_t>& order) { return order.empty() ? Tensor() : tensor(order); }

void bind_packed(py::module_& m) {
  using Packed = nn::PackedSequence;
  py::class_<Packed> c(m, "PackedSequence",
                       "Sequences of several lengths, step by step; see pack_padded_sequence.");
  const auto make = [](const Tensor& data, const IntsOrTensor& batch_sizes, const IntsOrTensor& sorted,
                       const IntsOrTensor& unsorted) {
    return Packed{data, lengths_of(batch_sizes), lengths_of(sorted), lengths_of(unsorted)};
  };
  c.def(py::init(make), py::arg("data").none(false), py::arg("batch_sizes").none(false),
        py::arg("sorted_indices") = py::none(), py::arg("unsorted_indices") = py::none())
      .def_property_readonly("data", [](const Packed& self) { return self.data; })
      .def_property_readonly("batch_sizes", [](const Packed& self) { return order_tensor(self.batch_sizes); })
      .def_property_readonly("sorted_indices",
                             [](const Packed& self) { return order_tensor(self.sorted_indices); })
      .def_property_readonly("unsorted_indices",
                             [](const Packed& self) { return order_tensor(self.unsorted_indices); })
      .def_property_readonly("is_cuda", [](const Packed& self) { return self.data.is_cuda(); })
      // As a tuple of these four.
      .def("__iter__",
           [](const py::object& self) {
             return py::iter(py::make_tuple(self.attr("data"), self.attr("batch_sizes"),
                                            self.attr("sorted_indices"), self.attr("unsorted_indices")));
           })
      .def("__getitem__", [](const py::object& self,
                             const py::object& place) { return py::tuple(self).attr("__getitem__")(place); })
      .def("__len__", [](const Packed&) { return 4; })
      .def("to", py::overload_cast<DType>(&Packed::to, py::const_), py::arg("dtype"), ReleaseGil())
      .def("to", py::overload_cast<Device>(&Packed::to, py::const_), py::arg("device"), ReleaseGil())
      .def(
          "cpu", [](const Packed& self) { return self.to(kCPU); }, ReleaseGil())
      .def(
          "cuda", [](const Packed& self) { return self.to(Device(DeviceType::CUDA, -1)); }, ReleaseGil());
}

void bind_packing(py::module_& m) {
  namespace rnn = nn::utils::rnn;
  function(
      m, "pad_sequence",
      [](const TensorIterable& sequences, bool batch_first, double padding_value,
         const std::string& padding_side) {
        return rnn::pad_sequence(sequences.tensors, batch_first, padding_value, padding_side);
      },
      rows(argument<TensorIterable>("sequences"), argument("batch_first", false),
           argument("padding_value", 0.0), argument<std::string>("padding_side", "right")));
  function(
      m, "unpad_sequence",
      [](const Tensor& padded, const IntsOrTensor& lengths, bool batch_first) {
        return rnn::unpad_sequence(padded, lengths_of(lengths), batch_first);
      },
      rows(argument<Tensor>("padded_sequences"), argument<IntsOrTensor>("lengths"),
           argument("batch_first", false)));
  function(
      m, "pack_padded_sequence",
      [](const Tensor& input, const IntsOrTensor& lengths, const rnn::PackOptions& options) {
        return rnn::pack_padded_sequence(input, lengths_of(lengths), options);
      },
      rows(argument<Tensor>("input"), argument<IntsOrTensor>("lengths")),
      rows(option("batch_first", &rnn::PackOptions::batch_first),
           option("enforce_sorted", &rnn::PackOptions::enforce_sorted)));
  function(
      m, "pack_sequence",
      [](const TensorIterable& sequences, bool enforce_sorted) {
        return rnn::pack_sequence(sequences.tensors, enforce_sorted);
      },
      rows(argument<TensorIterable>("sequences"), argument("enforce_sorted", true)));
  function(m, "pad_packed_sequence", &rnn::pad_packed_sequence,
           rows(argument<nn::PackedSequence>("sequence")),
           rows(option("batch_first", &rnn::PadPackedOptions::batch_first),
                option("padding_value", &rnn::PadPackedOptions::padding_value),
                option("total_length", &rnn::PadPackedOptions::total_length)));
  function(m, "unpack_sequence", &rnn::unpack_sequence,
           rows(argument<nn::PackedSequence>("packed_sequences")));
}

// ---- layers

std::string mode_of(const nn::RecurrentBase& layer) {
  if (const auto* plain = layer.as<nn::RNN>())
    return std::string(plain->nonlinearity()) == "tanh" ? "RNN_TANH" : "RNN_RELU";
  return layer.as<nn::LSTM>() ? "LSTM" : "GRU";
}

void bind_recurrent_base(py::module_& m) {
  using Layer = nn::RecurrentBase;
  using Options = nn::RecurrentOptions;
  auto c = abstract_layer<Layer>(m, "RNNBase");
  c.def_property_readonly("mode", &mode_of)
      .def_property_readonly("input_size", &Layer::input_size)
      .def_property_readonly("hidden_size", &Layer::hidden_size)
      .def("reset_parameters", &Layer::reset_parameters)
      .def(
          "flatten_parameters", [](const Layer&) {}, "Does nothing: parameters need no one block of memory.");
  attributes(c, &Layer::options,
             rows(option("batch_first", &Options::batch_first), option("dropout", &Options::dropout)));
  const auto constant = [&](const char* name, auto field) {  // of which the parameters are made
    c.def_property_readonly(name, [field](const Layer& self) { return self.options().*field; });
  };
  constant("num_layers", &Options::num_layers);
  constant("bias", &Options::bias);
  constant("bidirectional", &Options::bidirectional);
  constant("proj_size", &Options::proj_size);
  c.def_property_readonly("_flat_weights_names", [](const Layer& self) {
    std::vector<std::string> names;
    for (const auto& [name, parameter] : self.named_parameters()) names.push_back(name);
    return names;
  });
  c.def_property_readonly("all_weights", [](const Layer& self) {
    py::list all;
    for (const nn::RecurrentParameters& layer : self.layers) {
      py::list its;
      for (const nn::Parameter* parameter :
           {&layer.weight_ih, &layer.weight_hh, &layer.bias_ih, &layer.bias_hh, &layer.weight_hr})
        if (parameter->defined()) its.append(py::cast(*parameter));
      all.append(its);
    }
    return all;
  });
}

/// Called with a batch, or with packed sequences, and a state or none.
template <class State, class Class>
void calls_with_state(Class& c) {
  calls(c, rows(argument<Tensor>("input"), argument<State>("hx", {})));
  calls(c, rows(argument<nn::PackedSequence>("input"), argument<State>("hx", {})));
}

template <class... Before, class Options>
auto recurrent_options(int64_t Options::*num_layers, Before... before) {
  return rows(option("num_layers", num_layers), before..., option("bias", &Options::bias),
              option("batch_first", &Options::batch_first), option("dropout", &Options::dropout),
              option("bidirectional", &Options::bidirectional));
}
template <class Options>
auto places() {
  return rows(option("device", &Options::device), option("dtype", &Options::dtype));
}

void bind_recurrent(py::module_& m) {
  const auto sizes = rows(argument<int64_t>("input_size"), argument<int64_t>("hidden_size"));
  using Options = nn::RecurrentOptions;
  const auto shared = recurrent_options(&Options::num_layers);
  auto lstm = layer<nn::LSTM, nn::RecurrentBase>(
      m, "LSTM", sizes,
      std::tuple_cat(shared, rows(option("proj_size", &Options::proj_size)), places<Options>()));
  calls_with_state<LSTMState>(lstm);
  auto gru = layer<nn::GRU, nn::RecurrentBase>(m, "GRU", sizes, std::tuple_cat(shared, places<Options>()));
  calls_with_state<Tensor>(gru);
  using Plain = nn::RNNOptions;
  auto rnn = layer<nn::RNN, nn::RecurrentBase>(
      m, "RNN", sizes,
      std::tuple_cat(recurrent_options(&Plain::num_layers, option("nonlinearity", &Plain::nonlinearity)),
                     places<Plain>()));
  calls_with_state<Tensor>(rnn);
  rnn.def_property_readonly("nonlinearity", &nn::RNN::nonlinearity);
}

// ---- cells

void bind_cells(py::module_& m) {
  using Base = nn::RecurrentCellBase;
  auto base = abstract_layer<Base>(m, "RNNCellBase");
  tensor_field(base, "weight_ih", &Base::weight_ih);
  tensor_field(base, "weight_hh", &Base::weight_hh);
  tensor_field(base, "bias_ih", &Base::bias_ih);
  tensor_field(base, "bias_hh", &Base::bias_hh);
  base.def_property_readonly("input_size", &Base::input_size)
      .def_property_readonly("hidden_size", &Base::hidden_size)
      .def_property_readonly("bias", [](const Base& self) { return self.bias_ih.defined(); })
      .def("reset_parameters", &Base::reset_parameters);

  const auto sizes = rows(argument<int64_t>("input_size"), argument<int64_t>("hidden_size"));
  const auto tensor_state = rows(argument<Tensor>("input"), argument<Tensor>("hx", {}));
  using Options = nn::RecurrentCellOptions;
  const auto options = std::tuple_cat(rows(option("bias", &Options::bias)), places<Options>());
  auto lstm = layer<nn::LSTMCell, Base>(m, "LSTMCell", sizes, options);
  calls(lstm, rows(argument<Tensor>("input"), argument<LSTMState>("hx", {})));
  auto gru = layer<nn::GRUCell, Base>(m, "GRUCell", sizes, options);
  calls(gru, tensor_state);
  using Plain = nn::RNNCellOptions;
  auto rnn = layer<nn::RNNCell, Base>(
      m, "RNNCell", sizes,
      std::tuple_cat(rows(option("bias", &Plain::bias), option("nonlinearity", &Plain::nonlinearity)),
                     places<Plain>()));
  calls(rnn, tensor_state);
  rnn.def_property_readonly("nonlinearity", &nn::RNNCell::nonlinearity);
}

}  // namespace

void bind_recurrent_layers(py::module_& m) {
  bind_packed(m);
  bind_packing(m);
  bind_recurrent_base(m);
  bind_recurrent(m);
  bind_cells(m);
}

}  // namespace tern::python
