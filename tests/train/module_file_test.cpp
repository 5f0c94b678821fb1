// Trees of inert objects to modules: classes that are registered, what has no field, modules that stand in
// several places. Files of PyTorch are in module_roundtrip.py.
#include "tern/train/module_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tern/tern.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

Value in_file(const Value& value) { return load_from_buffer(save_to_buffer(value), {.weights_only = false}); }
Value file_of(const nn::Module& module) { return in_file(module_to_value(module)); }

/// What save_module writes for a `Source`, under a name that means a `Target` from then on.
template <class Target, class Source>
Value written_for(const Source& source) {
  register_module("__main__.Net", typeid(Source), nullptr);
  Value value = file_of(source);
  register_module("__main__.Net", typeid(Target), [](const ValueObject&) { return nn::AnyModule(Target()); });
  return value;
}

Value& set_attribute(Value& object, const std::string& name, Value value) {
  object.as_object().state.as_dict().set(name, std::move(value));
  return object;
}
/// Adds to "_buffers" or "_modules" of an object.
Value with_entry(Value object, const char* dict, const std::string& name, Value entry) {
  Value entries = *object.as_object().attribute(dict);
  entries.as_dict().set(name, std::move(entry));
  return object;
}

struct Scaled : nn::Module {
  explicit Scaled(double scale_ = 1) : scale(scale_) {}
  nn::Linear layer{2, 2};
  double scale;
  TERN_MODULE(layer)
  Tensor forward(const Tensor& x) const { return mul(layer(x), scale); }
};

TEST(LoadModule, AttributesOfARegisteredClass) {
  const auto settings_of = [](const char* name) {
    return [name](const nn::Module& module) {
      return std::vector<std::pair<std::string, Value>>{{name, static_cast<const Scaled&>(module).scale}};
    };
  };
  const auto make = [](const ValueObject& object) {
    return nn::AnyModule(Scaled(object.attribute("scale")->as_float()));
  };
  register_module("__main__.Scaled", typeid(Scaled), make, settings_of("scale"));
  EXPECT_EQ(module_from_value(file_of(Scaled(0.25))).as<Scaled>().scale, 0.25);
  register_module("__main__.Scaled", typeid(Scaled), make, settings_of("training"));
  expect_error<ValueError>([] { module_to_value(Scaled()); },
                           "__main__.Scaled name 'training', which all modules");
}

TEST(SaveModule, RefusesComputedWeights) {
  nn::Linear layer(2, 3);
  nn::utils::weight_norm(layer);
  expect_error<ValueError>([&] { module_to_value(layer); },
                           "the weight of the model is computed by weight_norm");
  nn::utils::remove_weight_norm(layer);
  EXPECT_TRUE(equal(module_from_value(file_of(layer)).as<nn::Linear>().weight, layer.weight));
}

TEST(LoadModule, LayersOfTwoInputs) {
  const Tensor a = tensor({1.0, 2.0, 3.0}).view({1, 3}), b = tensor({2.0, 0.5, -1.0}).view({1, 3});
  const nn::AnyModule cosine = module_from_value(file_of(nn::CosineSimilarity(-1, 0.5))),
                      distance = module_from_value(file_of(nn::PairwiseDistance(3, 0.25, /*keepdim=*/true))),
                      loss = module_from_value(file_of(nn::KLDivLoss({Reduction::BatchMean, true})));
  EXPECT_EQ(cosine.as<nn::CosineSimilarity>().dim, -1);
  EXPECT_EQ(cosine.as<nn::CosineSimilarity>().eps, 0.5);
  EXPECT_TRUE(equal(distance.as<nn::PairwiseDistance>()(a, b), pairwise_distance(a, b, 3, 0.25, true)));
  EXPECT_TRUE(equal(loss.as<nn::KLDivLoss>()(a, b), kl_div(a, b, {Reduction::BatchMean, true})));
}

struct EveryContainer : nn::Module {
  nn::Sequential sequential{nn::Linear(2, 3), nn::ReLU(), nn::Sequential{nn::Linear(3, 2)}};
  nn::ModuleList<> list{nn::Linear(2, 2), nn::BatchNorm1d(2)};
  nn::ModuleDict<> dict{{"a", nn::Linear(2, 1)}};
  nn::AnyModule any = nn::Sequential{nn::Linear(2, 2), nn::BatchNorm1d(2)};
  std::vector<nn::AnyModule> more{nn::Sequential{nn::Linear(1, 1)}, nn::Linear(1, 2)};
  TERN_MODULE(sequential, list, dict, any, more)
  Tensor forward(const Tensor& x) { return x; }
};

TEST(LoadModule, FillsContainersOfRegisteredClasses) {
  EveryContainer net;
  net.sequential.eval();
  net.any->eval();
  const nn::AnyModule loaded = module_from_value(written_for<EveryContainer>(net));
  const StateDict wanted = net.state_dict(), found = loaded->state_dict();
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, tensor] : wanted) EXPECT_TRUE(equal(found.at(name), tensor)) << name;
  const auto modules = net.named_modules(), copies = loaded->named_modules();
  ASSERT_EQ(copies.size(), modules.size());
  for (size_t i = 0; i < modules.size(); ++i)
    EXPECT_EQ(copies[i].second->is_training(), modules[i].second->is_training()) << modules[i].first;
}

struct Head : nn::Module {
  nn::Linear head{1, 1};
  TERN_MODULE(head)
};
struct Extra : nn::Module {
  nn::Linear head{1, 1}, extra{2, 2};
  TERN_MODULE(head, extra)
};
struct Activated : nn::Module {
  nn::Linear head{1, 1};
  nn::Sequential act{nn::ReLU(), nn::Dropout()};
  TERN_MODULE(head, act)
};
struct Mask : nn::Module {
  nn::Linear head{1, 1};
  nn::Buffer mask{ones({3}), {.persistent = false}};
  TERN_MODULE(head, mask)
};
template <int n>
struct Body : nn::Module {
  nn::Sequential body;
  TERN_MODULE(body)
  Body() {
    for (int i = 0; i < n; ++i) body.push_back(nn::ReLU());
  }
};
template <int n>
struct List : nn::Module {
  nn::ModuleList<> blocks{std::vector<nn::AnyModule>(n, nn::Linear(1, 1))};
  TERN_MODULE(blocks)
};
template <int n>
struct Vector : nn::Module {
  std::vector<nn::Linear> blocks{n, nn::Linear(1, 1)};
  TERN_MODULE(blocks)
};

TEST(LoadModule, RefusesWhatHasNoField) {
  const Value buffer = ones({1});
  struct Row {
    std::function<Value()> file;
    std::string error;
  };
  const std::vector<Row> rows{
      {[] { return written_for<Head>(Extra()); }, "the file has a module 'extra', which the module lacks"},
      {[] { return written_for<Head>(Mask()); }, "the file has a buffer 'mask', which the module lacks"},
      {[] { return written_for<Body<1>>(Body<2>()); }, "'body': the file has a module '1'"},
      {[] { return written_for<List<0>>(List<1>()); }, "'blocks': the file has a module '0'"},
      {[] { return written_for<Vector<1>>(List<2>()); }, "the file has a module 'blocks.1'"},
      {[] { return written_for<Vector<0>>(List<1>()); }, "the file has a module 'blocks'"},
      {[&] { return with_entry(file_of(nn::Linear(1, 1)), "_buffers", "mask", buffer); },
       "the file has a buffer 'mask'"},
      {[] { return with_entry(file_of(nn::Linear(1, 1)), "_modules", "act", file_of(nn::ReLU())); },
       "the file has a module 'act'"},
      {[&] { return with_entry(file_of(nn::Sequential()), "_buffers", "mask", buffer); },
       "the file has a buffer 'mask'"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.error);
    const Value file = row.file();
    expect_error<CheckpointError>([&] { module_from_value(file); }, row.error);
  }
}

TEST(LoadModule, NothingIsMissingWhereNothingIs) {
  EXPECT_EQ(module_from_value(written_for<Vector<0>>(List<0>()))->children().size(), 0u);
  EXPECT_EQ(module_from_value(written_for<Vector<2>>(List<2>()))->children().size(), 2u);
  const Value none = with_entry(file_of(nn::Linear(1, 1)), "_modules", "gone", Value());
  EXPECT_EQ(module_from_value(none)->children().size(), 0u);
  EXPECT_EQ(module_from_value(written_for<Head>(Activated()))->children().size(), 1u)
      << "what has no tensors may be a function here";
}

struct LazyHead : nn::Module {
  nn::LazyLinear head{1};
  TERN_MODULE(head)
};

TEST(LoadModule, LazyLayersAreWrittenAsWhatTheyBecame) {
  nn::Sequential net{nn::LazyConv2d(4, 3), nn::LazyBatchNorm2d(), nn::Flatten(), nn::LazyLinear(2)};
  expect_error<ValueError>([&] { module_to_value(net); },
                           "save_module: '0.weight' is uninitialized: LazyConv2d takes its sizes");
  const Tensor x = randn({2, 3, 5, 5});
  net(x);
  const Value file = file_of(net.eval());
  nn::AnyModule read = module_from_value(file);
  EXPECT_EQ(read->str(), net.str());
  EXPECT_TRUE(read.as<nn::Sequential>()[0].is<nn::Conv2d>());
  EXPECT_EQ(read(x).to_vector<float>(), net(x).to_vector<float>());
  // Into a class whose own layers have no sizes yet.
  const nn::AnyModule lazy = module_from_value(written_for<LazyHead>(Head()));
  EXPECT_EQ(lazy.as<LazyHead>().head.in_features(), 1);
}

/// A Sequential that has the same module twice.
Value twice(const Value& module) {
  return with_entry(with_entry(file_of(nn::Sequential()), "_modules", "0", module), "_modules", "1", module);
}

TEST(LoadModule, ModulesThatStandInTwoPlacesShareTensors) {
  nn::AnyModule net = module_from_value(twice(file_of(nn::BatchNorm1d(2))));
  EXPECT_EQ(net->parameters().size(), 2u);
  EXPECT_EQ(net->buffers().size(), 3u);
  EXPECT_EQ(net->children().size(), 2u);
}

TEST(LoadModule, SharingEndsSomewhere) {
  Value net = file_of(nn::Linear(1, 1));
  for (int depth = 0; depth < 60; ++depth) net = twice(net);
  expect_error<CheckpointError>([&] { module_from_value(net); },
                                "more than 65536 modules of the file are modules that stand elsewhere");
  Value itself = file_of(nn::Sequential());
  expect_error<CheckpointError>([&] { module_from_value(with_entry(itself, "_modules", "0", itself)); },
                                "nested deeper than 200");
  const nn::TransformerEncoderLayer layer(4, 2, {.dim_feedforward = 4});
  Value stack = file_of(nn::TransformerEncoder(layer, 1));
  expect_error<CheckpointError>([&] { module_from_value(with_entry(stack, "_modules", "norm", stack)); },
                                "'norm' is ");
  Value inner = file_of(layer);
  expect_error<CheckpointError>([&] { module_from_value(with_entry(inner, "_modules", "linear1", inner)); },
                                "'linear1' is of the class TransformerEncoderLayer");
  const Value one = file_of(layer);
  const Value layers =
      with_entry(with_entry(file_of(nn::ModuleList<>()), "_modules", "0", one), "_modules", "1", one);
  expect_error<CheckpointError>(
      [&] {
        module_from_value(
            with_entry(file_of(nn::TransformerEncoder(layer, 1)), "_modules", "layers", layers));
      },
      "layer '1' is the same as one before it");
  with_entry(itself, "_modules", "0", Value());  // or they would keep themselves alive
  with_entry(stack, "_modules", "norm", Value());
  with_entry(inner, "_modules", "linear1", Value());
}

TEST(LoadModule, TellsOfHooks) {
  LoadReport report;
  Value net = twice(file_of(nn::Linear(1, 1)));
  module_from_value(net, &report);
  EXPECT_TRUE(report.hooks.empty());
  const Value hook = Value(GlobalName{"__main__", "print_shape"});
  with_entry(net, "_state_dict_hooks", "0", hook);
  Value child = *net.as_object().attribute("_modules")->find("0");
  for (const char* dict : {"_forward_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks"})
    with_entry(child, dict, "3", hook);
  module_from_value(net, &report);
  EXPECT_THAT(report.hooks,
              testing::ElementsAre("_state_dict_hooks", "0._forward_hooks", "0._forward_pre_hooks"));
  EXPECT_EQ(report.str(), "hooks were left out: _state_dict_hooks, 0._forward_hooks, 0._forward_pre_hooks");
}

TEST(LoadModule, RefusesSettingsThatLayersLack) {
  Value embedding = file_of(nn::Embedding(3, 2));
  expect_error<CheckpointError>([&] { module_from_value(set_attribute(embedding, "sparse", true)); },
                                "sparse = True is not supported");
}

/// Sets several attributes of an object or, with a path "self_attn", of a module in it.
Value with_settings(Value object, const std::string& child,
                    const std::vector<std::pair<std::string, Value>>& settings) {
  Value inner = child.empty() ? object : *object.as_object().attribute("_modules")->find(Value(child));
  for (const auto& [name, value] : settings) set_attribute(inner, name, value);
  return object;
}

TEST(LoadModule, MakesNoMoreThanTheFileHolds) {
  const int64_t huge = 1000000000;
  const auto linear = [=](int64_t in, int64_t out) {
    return with_settings(file_of(nn::Linear(1, 1, {.bias = false})), "",
                         {{"in_features", in}, {"out_features", out}});
  };
  struct Row {
    Value file;
    std::string error;
  };
  const std::vector<Row> rows{
      {linear(huge, huge), "the 1 numbers that the file holds: a tensor of shape [1000000000, 1000000000]"},
      {linear(512, 513), "a tensor of shape [513, 512] and dtype float32 needs 1050624 bytes, where only"},
      {linear(int64_t{1} << 60, 1), "[1, 1152921504606846976] and dtype float32 needs more bytes than there"},
      {linear(int64_t{1} << 40, int64_t{1} << 40), "too many elements for 64 bits"},
      // A shape that repeats one number is no reason either.
      {with_entry(linear(1 << 20, 1 << 20), "_parameters", "weight", zeros({1}).expand({1 << 20, 1 << 20})),
       "the 1 numbers that the file holds"},
      {with_settings(file_of(nn::Embedding(2, 2)), "", {{"num_embeddings", huge}}), "[1000000000, 2]"},
      {with_settings(file_of(nn::BatchNorm1d(2)), "", {{"num_features", huge}}), "[1000000000]"},
      {with_settings(file_of(nn::Conv2d(1, 1, 3)), "",
                     {{"kernel_size", Value::tuple({int64_t{1} << 20, int64_t{1} << 20})}}),
       "[1, 1, 1048576, 1048576]"},
      {with_settings(file_of(nn::LSTM(1, 1)), "", {{"hidden_size", huge}}), "[4000000000, 1]"},
      {with_settings(file_of(nn::TransformerEncoderLayer(4, 2, {.dim_feedforward = 4})), "self_attn",
                     {{"embed_dim", huge}}),
       "the 136 numbers that the file holds: a tensor of shape [1000000000"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.error);
    const Value net = with_entry(file_of(nn::Sequential()), "_modules", "first", row.file);
    expect_error<CheckpointError>([&] { module_from_value(net); }, "module 'first': ");
    expect_error<CheckpointError>([&] { module_from_value(net); }, row.error);
  }
}

TEST(LoadModule, MakesAsMuchAsTheFileHolds) {
  nn::Sequential net{nn::Linear(600, 700), nn::TransformerDecoderLayer(256, 4, {.dim_feedforward = 8}),
                     nn::LSTM(200, 200, {.num_layers = 2, .bidirectional = true}),
                     nn::Embedding(1000, 400, {.padding_idx = 0}), nn::Conv2d(64, 64, 9)};
  for (const DType dtype : {float32, bfloat16}) {
    net.to(dtype);
    const StateDict wanted = net.state_dict(), found = module_from_value(file_of(net))->state_dict();
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [name, tensor] : wanted) EXPECT_TRUE(equal(found.at(name), tensor)) << name;
  }
}

/// The same with None in place of these parameters or buffers.
Value without(Value object, const char* dict, const std::vector<std::string>& names) {
  for (const std::string& name : names) object = with_entry(object, dict, name, Value());
  return object;
}

TEST(LoadModule, RefusesNoneForWhatALayerNeeds) {
  const nn::LSTM lstm(2, 3);
  const nn::MultiheadAttention attention(4, 2, {.add_bias_kv = true});
  struct Row {
    Value file;
    std::string error;
  };
  const std::vector<Row> rows{
      {without(file_of(nn::Linear(2, 2)), "_parameters", {"weight"}),
       "the model: the parameter 'weight' is None in the file, but a Linear made from the file's settings"},
      {without(file_of(nn::Embedding(2, 2)), "_parameters", {"weight"}), "parameter 'weight' is None"},
      {without(file_of(nn::PReLU()), "_parameters", {"weight"}), "parameter 'weight' is None"},
      {without(file_of(lstm), "_parameters", {"weight_ih_l0"}), "parameter 'weight_ih_l0' is None"},
      {without(file_of(lstm), "_parameters", {"bias_hh_l0"}), "parameter 'bias_hh_l0' is None"},
      {without(file_of(attention), "_parameters", {"bias_v"}), "parameter 'bias_v' is None"},
      {without(file_of(nn::BatchNorm1d(2)), "_buffers", {"running_var"}), "buffer 'running_var' is None"},
      {without(written_for<Mask>(Mask()), "_buffers", {"mask"}), "buffer 'mask' is None"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.error);
    expect_error<CheckpointError>([&] { module_from_value(row.file); }, row.error);
  }
  expect_error<CheckpointError>(
      [] { module_from_value(with_entry(file_of(nn::Linear(2, 2)), "_parameters", "weight", "text")); },
      "the model: the value is ");
}

TEST(LoadModule, TakesNoneForWhatALayerCanLack) {
  const Tensor x = tensor({1.0, 2.0, 4.0, 8.0}, {.dtype = float32}).view({2, 2});
  const auto output = [&](const Value& file) {
    nn::AnyModule layer = module_from_value(file);
    return layer(x);
  };
  nn::Linear linear(2, 2);
  EXPECT_TRUE(equal(output(without(file_of(linear), "_parameters", {"bias"})), mm(x, linear.weight.t())));
  const Value in_class = written_for<Head>(Head());
  without(*in_class.as_object().attribute("_modules")->find("head"), "_parameters", {"bias"});
  EXPECT_FALSE(module_from_value(in_class).as<Head>().head.bias.defined());
  nn::LayerNorm norm(2);
  for (const char* name : {"weight", "bias"})
    EXPECT_TRUE(equal(output(without(file_of(norm), "_parameters", {name})), norm(x))) << name;
  nn::BatchNorm1d batch(2);
  EXPECT_TRUE(equal(output(without(file_of(batch), "_parameters", {"weight"})), batch(x)));
  const Value untracked = without(file_of(batch.eval()), "_buffers", {"running_mean", "running_var"});
  EXPECT_TRUE(equal(output(untracked), batch_norm(x, {}, {}, batch.weight, batch.bias, /*training=*/true)));
}

TEST(LoadModule, ReadsTransformers) {
  manual_seed(0);
  nn::Transformer net(
      {.d_model = 8,
       .nhead = 2,
       .num_encoder_layers = 1,
       .num_decoder_layers = 2,
       .layer = {.dim_feedforward = 12, .dropout = 0.2, .activation = "gelu", .norm_first = true}});
  net.decoder.layers[1].dropout3.p = 0.4;
  net.eval();
  const nn::AnyModule loaded = module_from_value(file_of(net));
  const auto& same = loaded.as<nn::Transformer>();
  EXPECT_EQ(loaded->str(), net.str());
  const Tensor src = randn({5, 2, 8}), tgt = randn({3, 2, 8});
  EXPECT_TRUE(equal(same(src, tgt), net(src, tgt)));
  const nn::MultiheadAttention layer(
      8, 4,
      {.dropout = 0.3, .bias = false, .add_bias_kv = true, .add_zero_attn = true, .kdim = 3, .vdim = 5});
  const nn::AnyModule other = module_from_value(file_of(layer));
  const auto& attention = other.as<nn::MultiheadAttention>();
  EXPECT_EQ(attention.dropout, 0.3);
  EXPECT_EQ(attention.kdim(), 3);
  EXPECT_EQ(attention.vdim(), 5);
  EXPECT_TRUE(attention.add_zero_attn());
  EXPECT_TRUE(equal(attention.bias_k, layer.bias_k));
}

/// What it draws beside its layers, and keeps without naming it a field.
struct Projected : nn::Module {
  nn::Linear layer{3, 3};
  nn::Embedding rows{4, 3, {.padding_idx = 0}};
  nn::Buffer noise{randn({3})};
  std::optional<nn::Linear> hidden;
  TERN_MODULE(layer, rows, noise)
};
struct HidesALayer : Projected {
  HidesALayer() { hidden.emplace(64, 64, nn::LinearOptions{.bias = false}); }
};

template <class Net>
void expect_nothing_drawn() {
  const Net net;
  const Value file = written_for<Net>(net);
  for (const RandomEngine engine : {RandomEngine::Philox, RandomEngine::MersenneTwister}) {
    manual_seed(5, engine);
    const auto before = default_generator().bytes();
    const nn::AnyModule loaded = module_from_value(file);
    EXPECT_EQ(default_generator().bytes(), before);
    for (const auto& [name, tensor] : net.state_dict())
      EXPECT_TRUE(equal(loaded->state_dict().at(name), tensor)) << name;
  }
  manual_seed(0, RandomEngine::Philox);
}

TEST(LoadModule, MovesNoGenerator) {
  expect_nothing_drawn<EveryContainer>();
  expect_nothing_drawn<Projected>();
  const nn::Sequential net{nn::Linear(2, 3), nn::GRU(3, 2), nn::Conv2d(1, 2, 3), nn::Bilinear(1, 2, 3),
                           nn::TransformerEncoderLayer(4, 2, {.dim_feedforward = 4})};
  const auto before = default_generator().bytes();
  const nn::AnyModule loaded = module_from_value(file_of(net));
  EXPECT_EQ(default_generator().bytes(), before);
  for (const auto& [name, tensor] : net.state_dict())
    EXPECT_TRUE(equal(loaded->state_dict().at(name), tensor)) << name;
}

// The file has no numbers for a layer that is no field: it has those of a start.
TEST(LoadModule, WhatNoFieldHoldsIsDrawn) {
  expect_nothing_drawn<HidesALayer>();
  const nn::AnyModule loaded = module_from_value(written_for<HidesALayer>(HidesALayer()));
  const Tensor hidden = loaded.as<HidesALayer>().hidden->weight.detach();
  EXPECT_LE(hidden.abs().max().item<float>(), 1.0f / 8);
  EXPECT_NEAR(hidden.square().mean().item<float>(), 1.0f / 192, 1e-3);
}

TEST(LoadModule, AParameterThatTheFileLacksIsRefused) {
  expect_error<CheckpointError>([] { module_from_value(written_for<Extra>(Head())); },
                                "the file has no module 'extra'");
  Value file = written_for<Head>(Head());
  Value head = *file.as_object().attribute("_modules")->find("head");
  Value parameters = *head.as_object().attribute("_parameters");
  parameters.as_dict().erase("bias");
  expect_error<CheckpointError>([&] { module_from_value(file); }, "'head': the file has no parameter 'bias'");
}

}  // namespace
}  // namespace tern
