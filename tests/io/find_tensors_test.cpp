// Which tensors a tree of values has, and what they are called.
#include "tern/io/find_tensors.h"

#include <fmt/ranges.h>

#include <tuple>

#include "io_testing.h"
#include "placed_checkpoint.h"

namespace tern {
namespace {

/// The opcodes of a tensor of the floats 1 and 2.
std::string tensor_opcodes() {
  const std::string pickle = pickle_at("cpu");
  return pickle.substr(2, pickle.size() - 3);
}

/// What torch._tensor._rebuild_from_type_v2(function, my.Class, arguments, state) is in a file.
std::vector<std::string> names_in(const std::string& function, const std::string& arguments,
                                  const std::string& state) {
  const std::string pickle =
      "\x80\x02"
      "ctorch._tensor\n_rebuild_from_type_v2\n(" +
      function + "cmy\nClass\n" + arguments + state + "tR.";
  std::vector<std::string> names;
  for (const io::FoundTensor& found :
       io::find_tensors(load_from_buffer(checkpoint_of(pickle), {.weights_only = false})))
    names.push_back(found.path + ":" + found.dtype + to_string(found.shape));
  return names;
}

TEST(FindTensors, OfSubclasses) {
  using Names = std::vector<std::string>;
  const std::string tensor = tensor_opcodes();
  const std::string wrapper = "ctorch._utils\n_rebuild_wrapper_subclass\n";
  const std::string attribute =
                        "}U\x04"
                        "half" +
                        tensor + "s",
                    slots = "}" + attribute + "\x86";
  // The numbers of a DTensor are in a tensor of its own.
  EXPECT_EQ(names_in(wrapper, ")", slots), (Names{"half:float32[2]"}));
  EXPECT_EQ(names_in(wrapper, ")", attribute), (Names{"half:float32[2]"}));
  // A tensor that Python calls to make is one, and may have attributes in __dict__ and in __slots__.
  const std::string id = "X\x07" + std::string(3, '\0') +
                         "storagectorch\nFloatStorage\nU\x01"
                         "0U\x03"
                         "cpuK\x02tQ";
  const std::string strided = "((" + id + "K" + std::string(1, '\0') +
                              "K\x02\x85K\x01\x85\x89"
                              "ccollections\nOrderedDict\n)Rt";
  const std::string rebuild = "ctorch._utils\n_rebuild_tensor_v2\n";
  EXPECT_EQ(names_in(rebuild, strided, attribute), (Names{":float32[2]", "half:float32[2]"}));
  EXPECT_EQ(names_in(rebuild, strided, slots), (Names{":float32[2]", "half:float32[2]"}));
  EXPECT_EQ(names_in(rebuild, strided, "N"), (Names{":float32[2]"}));
  // One without a storage.
  const std::string meta = "(ctorch\nfloat32\nK\x03\x85K\x01\x85\x89t";
  EXPECT_EQ(names_in("ctorch._utils\n_rebuild_meta_tensor_no_storage\n", meta, attribute),
            (Names{":float32[3]", "half:float32[2]"}));
}

TEST(FindTensors, OfSetsAndWithTensorsAsKeys) {
  const Tensor one = floats({1}), two = floats({1, 2});
  Value state = Value::dict(), root = Value::dict();
  for (const Tensor& key : {one, two}) state[key] = Value({{"step", key}});
  root["set"] = Value::set(std::vector<Value>{one, two});
  root["frozen"] = Value::tuple({Value::frozen_set(std::vector<Value>{two})});
  root["state"] = state;
  root[Value::tuple({1, "a"})] = one;
  std::vector<std::string> names;
  for (const io::FoundTensor& found : io::find_tensors(root))
    names.push_back(found.path + to_string(found.shape));
  EXPECT_THAT(names, testing::ElementsAre("set.0[1]", "set.1[2]", "frozen.0.0[2]", "state.0.step[1]",
                                          "state.1.step[2]", "(1, 'a')[1]"));
}

Value a_module() {
  ValueObject object;
  object.callee = GlobalName{"my", "Net"};
  object.state = {{"_parameters", Value::dict()}, {"_buffers", Value::dict()}, {"_modules", Value::dict()}};
  return object;
}

TEST(FindStateDict, TheModelAmongOtherThings) {
  const Tensor t = floats({1});
  const Value dotted = {{"fc.weight", t}, {"fc.bias", t}}, plain = {{"weight", t}, {"bias", t}},
              side = {{"mean", t}, {"std", t}};
  const auto with = [](const Value& dict, std::vector<std::pair<Value, Value>> entries) {
    Value root = Value::dict();
    for (const auto& [key, value] : dict.as_dict()) root[key] = value;
    for (const auto& [key, value] : entries) root[key] = value;
    return root;
  };
  const auto fresh = [&](const Value& dict) { return with(dict, {}); };
  struct Row {
    const char* what;
    Value root;
    std::vector<std::string> found;  ///< keys joined by dots; "" is the root
  };
  for (const Row& row : std::vector<Row>{
           {"a state dict", dotted, {""}},
           {"a layer", plain, {""}},
           {"numbers beside", with(dotted, {{"epoch", 3}, {"best", 0.5}, {"args", "x"}}), {""}},
           {"tensors beside", with(dotted, {{"epoch", 3}, {"stats", side}}), {""}},
           {"a list of tensors beside", with(dotted, {{"losses", Value::list({t, t, t})}}), {""}},
           {"an empty dict and a model beside",
            with(dotted, {{"cfg", Value::dict()}, {"ema", dotted}}),
            {""}},
           {"a number as key", with(dotted, {{7, t}, {8, 1}, {9, side}}), {""}},
           {"a usual key without dots beside", with(dotted, {{"params", side}}), {""}},
           {"a layer and tensors", with(plain, {{"stats", side}}), {""}},
           {"usual key", {{"model", dotted}, {"ema", fresh(dotted)}, {"loss", t}}, {"model"}},
           {"usual key of a layer", {{"state_dict", plain}, {"loss", t}, {"rng", t}}, {"state_dict"}},
           {"usual key and a name with a dot", {{"best.loss", t}, {"net", dotted}}, {"net"}},
           {"usual key below another", {{"run", {{"model", dotted}, {"ema", fresh(dotted)}}}}, {"run.model"}},
           {"other key", {{"epoch", 3}, {"mine", dotted}}, {"mine"}},
           {"other key of a layer", {{"epoch", 3}, {"mine", plain}}, {"mine"}},
           {"other key and tensors", {{"mine", dotted}, {"stats", side}, {"loss", t}}, {"mine"}},
           {"an optimizer",
            {{"mine", plain}, {"optimizer", {{"lr", t}}}, {"optim_d", {{"a.b", t}}}},
            {"mine"}},
           {"an optimizer alone", {{"state", {{0, {{"exp_avg", t}}}}}, {"param_groups", 1}}, {}},
           {"two models", {{"a", dotted}, {"b", fresh(dotted)}, {"stats", side}}, {"a", "b"}},
           {"two layers", {{"a", plain}, {"b", side}}, {"a", "b"}},
           {"two below a usual key",
            {{"model", {{"encoder", dotted}, {"decoder", fresh(dotted)}}}, {"other", plain}},
            {"model.encoder", "model.decoder"}},
           {"one dict at two places", {{"a", dotted}, {"b", dotted}}, {"a"}},
           {"too deep", {{"a", {{"b", {{"c", dotted}}}}}}, {}},
           {"a whole model", {{"model", a_module()}, {"loss", t}, {"stats", side}, {"ema", dotted}}, {}},
           {"a whole model and its state dict",
            {{"net", a_module()}, {"state_dict", dotted}},
            {"state_dict"}},
           {"no names", {{0, t}, {1, t}}, {}},
           {"no dict", Value::list({t}), {}},
           {"no tensors", {{"a", 1}, {"b", {{"c", 2}}}}, {}}}) {
    std::vector<std::string> found;
    for (const io::FoundStateDict& each : io::find_state_dicts(row.root))
      found.push_back(fmt::format("{}", fmt::join(each.keys, ".")));
    EXPECT_EQ(found, row.found) << row.what;
    EXPECT_EQ(io::find_state_dict(row.root).has_value(), found.size() == 1) << row.what;
  }
}

TEST(FindStateDict, DictsInsideThemselves) {
  Value root = Value::dict(), other = Value::dict();
  root["a"] = other;
  root["model"] = root;
  other["root"] = root;
  other["w"] = floats({1});
  const auto found = io::find_state_dict(root);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->dict.is_same(other));
  EXPECT_EQ(found->keys, std::vector<std::string>{"a"});
  root.break_cycles();
}

TEST(FindStateDict, EntriesOfModules) {
  const Value text("x"), tensor = floats({1});
  for (const auto& [key, value, expected] :
       std::vector<std::tuple<Value, Value, bool>>{{"weight", tensor, true},
                                                   {"0.weight", tensor, true},
                                                   {"_extra_state", text, true},
                                                   {"0._extra_state", text, true},
                                                   {"fc._packed_params.dtype", Value(DType::QInt8), true},
                                                   {"epoch", text, false},
                                                   {"_metadata", Value::dict(), false},
                                                   {0, tensor, false}})
    EXPECT_EQ(io::is_module_entry(key, value), expected) << key.str();
}

}  // namespace
}  // namespace tern
