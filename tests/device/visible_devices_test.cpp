// CUDA_VISIBLE_DEVICES: what is left, and which entry is wrong.
#include "tern/device/visible_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(VisibleDevices, EachForm) {
  const std::vector<GpuIdentity> gpus = {
      {"GPU-aa11", {"MIG-1a", "MIG-2b"}, true}, {"GPU-aa22", {}, true}, {"GPU-bb33", {}, true}};
  struct Row {
    const char* text;
    int count;
    int wrong_entry;  ///< -1: none
    const char* fault;
  };
  const Row rows[] = {
      {"0", 1, -1, ""},
      {"0,1,2", 3, -1, ""},
      {" 2 , 0 ", 2, -1, ""},
      {"+1", 1, -1, ""},
      {"0,", 1, -1, ""},
      {"", 0, -1, ""},
      {"  ", 0, -1, ""},
      {"3", 0, 0, "the GPUs here are 0 to 2"},
      {"0,3,1", 1, 1, "out of range"},
      {"99999999999", 0, 0, "out of range"},
      {"-1", 0, 0, "negative"},
      {"0,-1,1", 1, 1, "negative"},
      {"0,,1", 1, 1, "empty"},
      {",0", 0, 0, "empty"},
      {"all", 0, 0, "not a number"},
      {"cuda:0", 0, 0, "not a number"},
      {"NoDevFiles", 0, 0, "hides every GPU"},
      {"0,NoDevFiles", 1, 1, "hides every GPU"},
      {"1,1", 0, 1, "twice"},
      {"0,1,0", 0, 2, "twice"},
      {"0,3,0", 1, 1, "out of range"},
      {"GPU-bb", 1, -1, ""},
      {"GPU-bb33,GPU-aa1", 2, -1, ""},
      {"GPU-aa", 0, 0, "2 GPUs have UUIDs that begin so"},
      {"GPU-cc", 0, 0, "no GPU here has this UUID"},
      {"GPU-bb,GPU-bb33", 0, 1, "twice"},
      {"GPU-bb,0", 1, 1, "none of its kind"},
      {"0,GPU-bb", 1, 1, "a UUID among numbers"},
      {"MIG-1a", 1, -1, ""},
      {"MIG-9", 0, 0, "no MIG device here"},
      {"MIG-GPU-aa11/1/0", 1, -1, ""},
      {"MIG-GPU-bb33/1/0", 0, 0, "no MIG device here"},
      {"MIG-1a,GPU-aa11", 1, 1, "none of its kind"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const VisibleDevices visible = read_visible_devices(row.text, gpus);
    EXPECT_EQ(visible.count, row.count);
    int wrong = -1;
    for (size_t i = 0; i < visible.entries.size() && wrong < 0; ++i)
      if (!visible.entries[i].fault.empty()) wrong = static_cast<int>(i);
    EXPECT_EQ(wrong, row.wrong_entry);
    if (wrong >= 0 && row.wrong_entry == wrong) {
      EXPECT_THAT(visible.entries[static_cast<size_t>(wrong)].fault, ::testing::HasSubstr(row.fault));
    }
  }
}

TEST(VisibleDevices, NamesTheGpuOfAnEntry) {
  const std::vector<GpuIdentity> gpus = {{"GPU-a", {"MIG-x"}, true}, {"GPU-b", {}, true}};
  EXPECT_EQ(read_visible_devices("GPU-b,GPU-a", gpus).entries[0].gpu, 1);
  EXPECT_EQ(read_visible_devices("1", gpus).entries[0].gpu, 1);
  EXPECT_EQ(read_visible_devices("MIG-x", gpus).entries[0].gpu, 0);
  const VisibleEntry odd = read_visible_devices("1gpu", gpus).entries[0];
  EXPECT_EQ(odd.gpu, 1);
  EXPECT_EQ(odd.remark, "CUDA reads it as 1");
}

TEST(VisibleDevices, WhatIsNotKnownIsNotJudged) {
  EXPECT_EQ(read_visible_devices("7,GPU-x", {}).count, 1);
  EXPECT_EQ(read_visible_devices("7", {}).count, 1);
  EXPECT_EQ(read_visible_devices("GPU-x", {}).count, 1);
  EXPECT_EQ(read_visible_devices("GPU-x", {{"", {}, false}}).count, 1);
  EXPECT_EQ(read_visible_devices("MIG-x", {{"GPU-a", {}, false}}).count, 1);
  EXPECT_EQ(read_visible_devices("5", {{"", {}, false}}).count, 0);
}

TEST(VisibleDevices, ALongTextIsCut) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + ",";
  EXPECT_LE(read_visible_devices(text, {}).entries.size(), 256u);
}

}  // namespace
}  // namespace tern
