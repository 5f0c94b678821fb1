// Tensors as handles: storages, layouts, detached aliases, undefined ones; foreign memory; state dicts.
#include "tern/core/tensor.h"

#include <gtest/gtest.h>

#include <array>

#include "tern/base/error.h"
#include "tern/core/memory.h"
#include "tern/core/state_dict.h"

namespace tern {
namespace {

Storage bytes(size_t nbytes) { return allocate_storage(nbytes, kCPU); }

TEST(Tensor, HandlesShare) {
  const Tensor x = Tensor::from_storage(bytes(24), float32, {2, 3});
  const Tensor same = x;
  EXPECT_TRUE(same.is_same(x));
  EXPECT_FALSE(x.detach().is_same(x));
  EXPECT_EQ(x.detach().storage(), x.storage());
  EXPECT_EQ(x.dim(), 2);
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.nbytes(), 24u);
  EXPECT_EQ(x.size(-1), 3);
  EXPECT_EQ(x.stride(0), 3);
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(x.device(), kCPU);
  x.data<float>()[5] = 7;
  EXPECT_EQ(same.data<float>()[5], 7);
}

TEST(Tensor, LayoutsMustFitTheirStorage) {
  const Storage storage = bytes(40);  // ten floats
  struct Row {
    Shape shape;
    Strides strides;
    int64_t offset;
    bool fits;
  };
  const int64_t huge = int64_t{1} << 62;
  const Row rows[] = {{{10}, {1}, 0, true},          {{11}, {1}, 0, false},
                      {{10}, {1}, 1, false},         {{5}, {2}, 1, true},
                      {{5}, {2}, 2, false},          {{2, 5}, {5, 1}, 0, true},
                      {{2, 5}, {1, 2}, 0, true},     {{100}, {0}, 9, true},
                      {{100}, {0}, 10, false},       {{0}, {1}, 10, true},
                      {{0}, {1}, 100, true},         {{3, 0}, {1, 1}, huge, true},
                      {{0}, {1}, -1, false},         {{}, {}, 9, true},
                      {{}, {}, 10, false},           {{2}, {1}, -1, false},
                      {{2}, {-1}, 5, false},         {{2}, {huge}, 0, false},
                      {{huge, 8}, {1, 1}, 0, false}, {{3, 3}, {huge, huge}, 0, false},
                      {{1}, {huge}, 0, true}};
  for (const Row& row : rows) {
    auto make = [&] { return Tensor::from_storage(storage, float32, row.shape, row.strides, row.offset); };
    if (row.fits)
      EXPECT_NO_THROW(make()) << to_string(row.shape) << to_string(row.strides) << row.offset;
    else
      EXPECT_THROW(make(), ShapeError) << to_string(row.shape) << to_string(row.strides) << row.offset;
  }
  EXPECT_THROW(Tensor::from_storage(storage, float32, {2, 2}, {1}), ShapeError);
  EXPECT_EQ(Tensor::from_storage(storage, float32, {0}, {1}, 100).storage_offset(), 10)
      << "an empty tensor's address stays inside";
}

TEST(Tensor, OffsetsCountElements) {
  const Storage storage = bytes(40);
  const Tensor x = Tensor::from_storage(storage, float32, {2}, {1}, 3);
  EXPECT_EQ(static_cast<char*>(x.data_ptr()) - static_cast<char*>(storage->data()), 12);
  EXPECT_EQ(x.storage_offset(), 3);
}

TEST(Tensor, UndefinedOnesThrow) {
  const Tensor x;
  EXPECT_FALSE(x.defined());
  EXPECT_FALSE(x.requires_grad());
  EXPECT_THROW(x.shape(), ValueError);
  EXPECT_THROW(x.dtype(), ValueError);
  EXPECT_THROW(x.data<float>(), ValueError);
  EXPECT_TRUE(x.is_same(Tensor()));
}

TEST(Tensor, DataIsOfTheRightType) {
  const Tensor x = Tensor::from_storage(bytes(8), int64, {1});
  EXPECT_NO_THROW(x.data<int64_t>());
  EXPECT_NO_THROW(x.data<const int64_t>());
  EXPECT_THROW(x.data<float>(), DTypeError);
}

TEST(Storage, VersionsAreShared) {
  const Tensor x = Tensor::from_storage(bytes(8), float32, {2});
  EXPECT_EQ(x.version(), 0u);
  x.detach().storage()->bump_version();
  EXPECT_EQ(x.version(), 1u);
}

TEST(Storage, ForeignMemoryIsReleasedOnce) {
  std::array<float, 4> memory = {1, 2, 3, 4};
  int released = 0;
  {
    const Tensor x = Tensor::from_storage(
        storage_from_blob(memory.data(), sizeof memory, [&] { ++released; }), float32, {4});
    const Tensor alias = x.detach();
    EXPECT_EQ(alias.data<float>(), memory.data());
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_NO_THROW(storage_from_blob(memory.data(), sizeof memory, {}));
}

TEST(Memory, CopiesStayInsideTheStorage) {
  const Storage storage = bytes(16);
  char host[16] = "fifteen letters";
  copy_from_host(*storage, 0, host, 16);
  char back[4];
  copy_to_host(back, *storage, 8, 4);
  EXPECT_EQ(std::string(back, 4), std::string(host + 8, 4));
  EXPECT_THROW(copy_to_host(back, *storage, 14, 4), IndexError);
  EXPECT_THROW(copy_from_host(*storage, ~size_t{0}, host, 4), IndexError);
  EXPECT_THROW(copy_to_host(back, *storage, 4, ~size_t{0}), IndexError);
  EXPECT_NO_THROW(copy_to_host(back, *storage, 16, 0));
}

TEST(Memory, AskingForTooMuchIsAnError) {
  for (size_t nbytes : {~size_t{0}, ~size_t{0} - 4095, size_t{1} << 62})
    EXPECT_THROW(bytes(nbytes), OutOfMemoryError) << nbytes;
  EXPECT_THROW(empty_contiguous({int64_t{1} << 61, 2}, int64_t{1} << 62, float64, kCPU), OutOfMemoryError);
  EXPECT_NO_THROW(bytes(0));
}

TEST(Memory, ResolvesDevices) {
  EXPECT_EQ(resolve_device("cpu"), kCPU);
  if (find_memory(DeviceType::CUDA)) GTEST_SKIP() << "there is a GPU";
  EXPECT_THROW(resolve_device("cuda"), DeviceError);
  EXPECT_THROW(allocate_storage(1, "cuda:0"), DeviceError);
}

TEST(StateDict, KeepsTheOrderOfInsertion) {
  StateDict dict;
  const Tensor a = Tensor::from_storage(bytes(4), float32, {1}), b = a.detach();
  dict.insert("z", a);
  dict.insert("a", a);
  dict["m"] = b;
  dict.insert("z", b);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : dict) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"z", "a", "m"}));
  EXPECT_TRUE(dict.at("z").is_same(b)) << "replaced where it stood";
  EXPECT_TRUE(dict.erase("a"));
  EXPECT_FALSE(dict.erase("a"));
  EXPECT_EQ(dict.size(), 2u);
  EXPECT_TRUE(dict.at("m").is_same(b)) << "found after an earlier one was erased";
  EXPECT_EQ(dict.find("a"), nullptr);
  EXPECT_THROW(dict.at("a"), IndexError);
  dict.clear();
  EXPECT_TRUE(dict.empty());
}

TEST(StateDict, Versions) {
  StateDict dict;
  EXPECT_EQ(dict.version("bn"), std::nullopt);
  dict.set_version("", 1);
  dict.set_version("bn", 2);
  dict.set_version("bn", 3);
  EXPECT_EQ(dict.version("bn"), 3);
  EXPECT_EQ(dict.versions(), (std::vector<std::pair<std::string, int64_t>>{{"", 1}, {"bn", 3}}));
}

}  // namespace
}  // namespace tern
