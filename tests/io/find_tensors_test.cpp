// Which tensors a tree of values has, and what they are called.
#include "tern/io/find_tensors.h"

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

}  // namespace
}  // namespace tern
