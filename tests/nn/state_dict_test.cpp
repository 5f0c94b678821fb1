// state_dict and load_state_dict: names, order, versions, sentences.
#include <gmock/gmock.h>

#include <sstream>

#include "tern/nn/containers.h"
#include "tern/nn/linear.h"
#include "tern/nn/module.h"
#include "tern/nn/norm.h"
#include "tern/nn/state_prefix.h"
#include "tern/ops/creation.h"

namespace tern::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct StateNet : Module {
  Linear fc{2, 3};
  BatchNorm1d bn{3};
  Buffer scratch{zeros({4}), {.persistent = false}};
  Parameter gain{ones({})};
  TERN_MODULE(fc, bn, scratch, gain)
  Tensor forward(const Tensor& x) const { return bn(fc(x)); }
};

std::vector<std::string> names(const StateDict& dict) {
  std::vector<std::string> list;
  for (const auto& [name, tensor] : dict) list.push_back(name);
  return list;
}

/// A dict with tensors of its own.
StateDict copy_of(const Module& module) {
  StateDict copy;
  StateDict dict = module.state_dict();
  for (const auto& [name, tensor] : dict) copy.insert(name, tensor.clone());
  for (const auto& [path, version] : dict.versions()) copy.set_version(path, version);
  return copy;
}

TEST(StateDict, HasPyTorchsNamesOrderAndVersions) {
  StateNet net;
  StateDict dict = net.state_dict();
  EXPECT_THAT(names(dict), ElementsAre("gain", "fc.weight", "fc.bias", "bn.weight", "bn.bias",
                                       "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"));
  EXPECT_THAT(dict.versions(), ElementsAre(std::pair("", 1), std::pair("fc", 1), std::pair("bn", 2)));
  EXPECT_FALSE(dict["fc.weight"].requires_grad());
  net.gain.detach().fill_(5);
  EXPECT_EQ(dict["gain"].item<float>(), 5);
}

TEST(StateDict, LoadsIntoTheSameTensors) {
  StateNet a, b;
  Tensor weight = b.fc.weight;
  a.bn.running_mean.fill_(3);
  IncompatibleKeys keys = b.load_state_dict(a.state_dict());
  EXPECT_TRUE(keys.empty());
  EXPECT_EQ(keys.str(), "<All keys matched successfully>");
  EXPECT_TRUE(weight.is_same(b.fc.weight));
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_EQ(weight.detach().to_vector<float>(), a.fc.weight.detach().to_vector<float>());
  EXPECT_EQ(b.bn.running_mean.to_vector<float>(), std::vector<float>(3, 3));
}

TEST(StateDict, ConvertsDtypesAndAcceptsOneElementForAScalar) {
  StateNet net;
  StateDict dict = copy_of(net);
  dict["fc.weight"] = full({3, 2}, 0.5, {.dtype = float64});
  dict["fc.bias"] = full({3}, 2, {.dtype = int64});
  dict["gain"] = full({1}, 4.0);
  net.load_state_dict(dict);
  EXPECT_EQ(net.fc.weight.dtype(), float32);
  EXPECT_EQ(net.fc.weight.detach().to_vector<float>(), std::vector<float>(6, 0.5F));
  EXPECT_EQ(net.fc.bias.detach().to_vector<float>(), std::vector<float>(3, 2));
  EXPECT_EQ(net.gain.detach().item<float>(), 4);
}

std::string strict_error(Module& module, const StateDict& dict) {
  try {
    module.load_state_dict(dict);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no CheckpointError";
  return {};
}

TEST(StateDict, StrictErrorsHavePyTorchsSentencesAndChangeNothing) {
  StateNet net;
  StateDict dict = copy_of(net);
  dict["fc.bias"] = zeros({3});
  dict["bn.extra"] = zeros({1});
  dict["other.w"] = zeros({1});
  dict["unknown"] = zeros({1});
  dict["fc.weight"] = zeros({3, 3});
  dict["bn.running_var"] = Tensor();
  dict.erase("gain");
  dict.erase("bn.num_batches_tracked");
  std::vector<float> bias = net.fc.bias.detach().to_vector<float>();
  EXPECT_EQ(strict_error(net, dict),
            "Error(s) in loading state_dict for StateNet:\n"
            "\tMissing key(s) in state_dict: \"gain\", \"bn.num_batches_tracked\". \n"
            "\tUnexpected key(s) in state_dict: \"other.w\", \"unknown\", \"bn.extra\". \n"
            "\tsize mismatch for fc.weight: copying a param with shape torch.Size([3, 3]) from checkpoint, "
            "the shape in "
            "current model is torch.Size([3, 2]).\n"
            "\tWhile copying the parameter named \"bn.running_var\", expected torch.Tensor or Tensor-like "
            "object from "
            "checkpoint but received an undefined tensor");
  EXPECT_EQ(net.fc.bias.detach().to_vector<float>(), bias);

  EXPECT_THROW(net.load_state_dict(dict, {.strict = false}), CheckpointError);  // sizes, as in PyTorch
  EXPECT_EQ(net.fc.bias.detach().to_vector<float>(), bias);

  IncompatibleKeys keys = net.load_state_dict(dict, {.strict = false, .on_mismatch = OnMismatch::Skip});
  EXPECT_THAT(keys.missing_keys, ElementsAre("gain", "bn.num_batches_tracked"));
  EXPECT_THAT(keys.unexpected_keys, ElementsAre("other.w", "unknown", "bn.extra"));
  EXPECT_THAT(keys.mismatched, ElementsAre("fc.weight", "bn.running_var"));
  EXPECT_EQ(net.fc.bias.detach().to_vector<float>(), std::vector<float>(3, 0));
  EXPECT_EQ(keys.str(),
            "_IncompatibleKeys(missing_keys=['gain', 'bn.num_batches_tracked'], unexpected_keys=['other.w', "
            "'unknown', "
            "'bn.extra'], mismatched=['fc.weight', 'bn.running_var'])");
}

TEST(StateDict, OldBatchNormHasNoCount) {
  for (bool with_version_1 : {false, true}) {
    StateNet net;
    net.bn.num_batches_tracked.fill_(9);
    StateDict dict;
    for (const auto& [name, tensor] : net.state_dict())
      if (name != "bn.num_batches_tracked") dict.insert(name, tensor.clone());
    if (with_version_1) dict.set_version("bn", 1);
    EXPECT_TRUE(net.load_state_dict(dict).empty());
    EXPECT_EQ(net.bn.num_batches_tracked.item<int64_t>(), 9);
  }
}

TEST(StateDict, AbsentParametersAreUnexpected) {
  Linear linear(2, 3, {.bias = false});
  EXPECT_EQ(strict_error(linear, Linear(2, 3).state_dict()),
            "Error(s) in loading state_dict for Linear:\n\tUnexpected key(s) in state_dict: \"bias\". ");
}

TEST(StateDict, LoadingCountsAsAChangeForBackward) {
  Linear linear(2, 2);
  uint32_t version = linear.weight.version();
  linear.load_state_dict(Linear(2, 2).state_dict());
  EXPECT_GT(linear.weight.version(), version);
}

TEST(StateDict, LosesThePrefixOfAWrapper) {
  struct Wrapper : Module {
    StateNet module;
    void collect_fields(Fields& fields) override { fields.add("module", module); }
  };
  const StateDict plain = Wrapper().module.state_dict();
  StateDict dict = Wrapper().state_dict();
  dict.insert("epoch", ones({}));
  consume_prefix_in_state_dict_if_present(dict, "module.");
  std::vector<std::string> expected = names(plain);
  expected.push_back("epoch");
  EXPECT_EQ(names(dict), expected);
  EXPECT_EQ(dict.versions(), plain.versions());
  EXPECT_EQ(dict.version("bn"), 2);
  dict.erase("epoch");
  StateNet net;
  EXPECT_TRUE(net.load_state_dict(dict).empty());

  // Nothing to take off.
  consume_prefix_in_state_dict_if_present(dict, "module.");
  EXPECT_EQ(names(dict), names(plain));
  EXPECT_EQ(dict.versions(), plain.versions());
}

TEST(StateDict, WithoutPrefixNamesStayApart) {
  StateDict dict{{"gain", ones({})}, {"module.gain", zeros({})}};
  EXPECT_THROW(consume_prefix_in_state_dict_if_present(dict, "module."), CheckpointError);
  EXPECT_THAT(names(dict), ElementsAre("gain", "module.gain"));
}

/// The names of `net`'s dict with `prefix` before them.
StateDict wrapped(const StateNet& net, std::string_view prefix) { return add_prefix(copy_of(net), prefix); }

TEST(StateDict, AWrapperIsNamedWithTheFix) {
  StateNet net;
  for (const char* prefix : {"module.", "_orig_mod.", "model.", "_orig_mod.module.", "backbone.net."}) {
    const StateDict dict = wrapped(net, prefix);
    const std::string error = strict_error(net, dict);
    EXPECT_THAT(error, ::testing::HasSubstr("Missing key(s) in state_dict: \"gain\", \"fc.weight\""));
    EXPECT_THAT(error, ::testing::HasSubstr("load with .prefix = \"auto\""));
    EXPECT_TRUE(net.load_state_dict(dict, {.prefix = "auto"}).empty()) << prefix;
    EXPECT_TRUE(net.load_state_dict(dict, {.prefix = prefix}).empty()) << prefix;
  }
  EXPECT_THAT(strict_error(net, wrapped(net, "module.")),
              ::testing::EndsWith("\n\tNames in the dict begin with 'module.' (torch.nn.DataParallel or "
                                  "DistributedDataParallel): load with .prefix = \"auto\" or \"module.\"."));
  EXPECT_TRUE(net.load_state_dict(copy_of(net), {.prefix = "auto"}).empty());
  EXPECT_TRUE(net.load_state_dict(copy_of(net), {.prefix = "module."}).empty());
}

TEST(StateDict, ThePrefixOfAWrapperIsAdded) {
  struct Wrapper : Module {
    StateNet module;
    void collect_fields(Fields& fields) override { fields.add("module", module); }
  };
  Wrapper wrapper;
  const StateDict dict = copy_of(StateNet());
  EXPECT_THAT(strict_error(wrapper, dict), ::testing::HasSubstr("lack the model's 'module.'"));
  EXPECT_TRUE(wrapper.load_state_dict(dict, {.prefix = "auto"}).empty());
}

TEST(StateDict, AWrappersPrefixGivesWayToTheModels) {
  struct Wrapper : Module {
    StateNet s;
    void collect_fields(Fields& fields) override { fields.add("s", s); }
  };
  Wrapper wrapper;
  const StateDict dict = wrapped(StateNet(), "module._orig_mod.model.");
  EXPECT_THAT(strict_error(wrapper, dict), ::testing::HasSubstr("and lack the model's 's.'"));
  EXPECT_TRUE(wrapper.load_state_dict(dict, {.prefix = "auto"}).empty());
  // One layer's names do not become another's.
  EXPECT_THROW(wrapper.load_state_dict(wrapped(StateNet(), "t."), {.prefix = "auto"}), CheckpointError);
}

TEST(StateDict, PartsOfWrappersInTheMiddle) {
  StateNet net;
  const StateDict dict =
      rename_keys(copy_of(net), {{"^fc\\.", "module.fc._orig_mod."}, {"^(bn|gain)", "module.$1"}});
  EXPECT_THAT(names(dict), ::testing::Contains("module.fc._orig_mod.weight"));
  EXPECT_THAT(strict_error(net, dict),
              ::testing::HasSubstr("'_orig_mod.' (torch.compile), and begin with 'module.'"));
  EXPECT_TRUE(net.load_state_dict(dict, {.prefix = "auto"}).empty());
}

TEST(StateDict, NoFixWhereNoneFits) {
  StateNet net;
  StateDict dict{{"a.x", ones({1})}, {"b.y", ones({1})}};
  EXPECT_THAT(strict_error(net, dict), ::testing::Not(::testing::HasSubstr("auto")));
  EXPECT_THROW(net.load_state_dict(dict, {.prefix = "auto"}), CheckpointError);
  // Two places fit as well as each other.
  Linear one(2, 3);
  dict = StateDict{
      {"a.weight", ones({3, 2})}, {"a.bias", ones({3})}, {"b.weight", ones({3, 2})}, {"b.bias", ones({3})}};
  EXPECT_THAT(strict_error(one, dict), ::testing::Not(::testing::HasSubstr("auto")));
}

TEST(StateDict, OtherNamesBesideThoseOfTheWrapperStayUnexpected) {
  StateNet net;
  StateDict dict = wrapped(net, "model.");
  dict.insert("loss.weight", ones({2}));
  EXPECT_THAT(net.load_state_dict(dict, {.strict = false, .prefix = "auto"}).unexpected_keys,
              ElementsAre("loss.weight"));
  EXPECT_THROW(net.load_state_dict(dict, {.prefix = "auto"}), CheckpointError);
}

TEST(StateDict, SkipsAHeadThatDoesNotFit) {
  StateNet net;
  StateDict dict = copy_of(net);
  dict["fc.weight"] = zeros({10, 2});
  dict["fc.bias"] = zeros({10});
  dict["gain"] = full({}, 7.0);
  const std::vector<float> weight = net.fc.weight.detach().to_vector<float>();
  EXPECT_THAT(strict_error(net, dict), ::testing::HasSubstr(".on_mismatch = OnMismatch::Skip"));
  const IncompatibleKeys keys = net.load_state_dict(dict, {.on_mismatch = OnMismatch::Skip});
  EXPECT_THAT(keys.mismatched, ElementsAre("fc.weight", "fc.bias"));
  EXPECT_EQ(
      keys.reasons.at(1),
      "size mismatch for fc.bias: copying a param with shape torch.Size([10]) from checkpoint, the shape "
      "in current model is torch.Size([3]).");
  EXPECT_EQ(net.fc.weight.detach().to_vector<float>(), weight);
  EXPECT_EQ(net.gain.detach().item<float>(), 7);
  std::ostringstream out;
  out << keys;
  EXPECT_EQ(out.str(),
            "_IncompatibleKeys(missing_keys=[], unexpected_keys=[], mismatched=['fc.weight', 'fc.bias'])");
}

TEST(StateDict, AssignTakesTheDictsTensors) {
  StateNet net;
  net.fc.bias.requires_grad_(false);
  StateDict dict = copy_of(StateNet());
  dict["fc.weight"] = full({3, 2}, 0.5, {.dtype = float64});
  dict["gain"] = full({1}, 4.0);
  net.load_state_dict(dict, {.assign = true});
  EXPECT_EQ(net.fc.weight.dtype(), float64);
  EXPECT_EQ(net.fc.weight.storage(), dict["fc.weight"].storage());
  EXPECT_TRUE(net.fc.weight.requires_grad());
  EXPECT_FALSE(net.fc.bias.requires_grad());
  EXPECT_FALSE(dict["fc.weight"].requires_grad());
  EXPECT_EQ(net.bn.running_mean.storage(), dict["bn.running_mean"].storage());
  EXPECT_EQ(net.gain.dim(), 0);
  EXPECT_EQ(net.gain.storage(), dict["gain"].storage());

  // Nothing changes when there is an error.
  StateDict broken = copy_of(StateNet());
  broken["fc.weight"] = zeros({3, 2}, {.dtype = int64});
  EXPECT_THAT([&] { net.load_state_dict(broken, {.assign = true}); },
              ::testing::ThrowsMessage<CheckpointError>(
                  ::testing::HasSubstr("\"fc.weight\", whose dtype in the checkpoint is int64")));
  EXPECT_EQ(net.bn.running_mean.storage(), dict["bn.running_mean"].storage());
}

TEST(StateDict, NamesByPatterns) {
  const StateDict dict{
      {"backbone.conv.gamma", ones({1})}, {"backbone.fc.beta", ones({1})}, {"head.gamma", ones({1})}};
  EXPECT_THAT(
      names(rename_keys(dict, {{"^backbone\\.", ""}, {"\\.gamma$", ".weight"}, {"\\.beta$", ".bias"}})),
      ElementsAre("conv.weight", "fc.bias", "head.weight"));
  EXPECT_THAT(names(rename_keys(dict, {{"^(\\w+)\\.", "net.$1."}})),
              ElementsAre("net.backbone.conv.gamma", "net.backbone.fc.beta", "net.head.gamma"));
  EXPECT_THROW(rename_keys(dict, {{"(", ""}}), ValueError);
  EXPECT_THROW(rename_keys(dict, {{".*", "x"}}), CheckpointError);
  StateDict versions = copy_of(StateNet());
  EXPECT_EQ(rename_keys(versions, {{"^bn\\.", "norm."}}).version("norm"), 2);
  EXPECT_EQ(add_prefix(versions, "net.").version("net.bn"), 2);
  EXPECT_EQ(strip_prefix(add_prefix(versions, "net."), "net.").versions(), versions.versions());
}

}  // namespace
}  // namespace tern::nn
