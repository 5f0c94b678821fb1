// What save writes: the legacy format, only the viewed parts of storages, tensors of a GPU, large entries.
// That PyTorch opens it is in torch_roundtrip.py, that it is safe in save_faults_test.cpp.
#include "tern/io/save.h"

#include "io_testing.h"
#include "tern/io/file.h"
#include "tern/io/zip_reader.h"

namespace tern {
namespace {

using testing::HasSubstr;

Tensor view(const Tensor& base, IntArrayRef shape, IntArrayRef strides, int64_t offset) {
  return Tensor::from_storage(base.storage(), base.dtype(), shape, strides, offset);
}

TEST(Save, LegacyFormatComesBack) {
  Tensor base = floats({0, 1, 2, 3, 4, 5});
  Value value = {
      {"w", base}, {"t", view(base, {3, 2}, {1, 3}, 0)}, {"i", tensor_of<int64_t>({1, -2}, {2})}, {"n", 3}};
  for (int i = 0; i < 12; ++i) value[std::to_string(i)] = floats({static_cast<float>(i)});
  std::vector<std::byte> bytes = save_to_buffer(value, {.format = SaveFormat::Legacy});
  EXPECT_EQ(std::memcmp(bytes.data(), "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.", 15), 0);
  Value back = load_from_buffer(bytes);
  EXPECT_EQ(elements<float>(back["t"].as_tensor()), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(back["t"].as_tensor().storage(), back["w"].as_tensor().storage());
  EXPECT_EQ(elements<int64_t>(back["i"].as_tensor()), (std::vector<int64_t>{1, -2}));
  for (int i = 0; i < 12; ++i) EXPECT_EQ(back[std::to_string(i)].as_float(), i);
  EXPECT_THAT(error_of<ValueError>([] {
                save_to_buffer(io::tensor_from_bytes(bytes_of("ab"), DType::Float8_e5m2, {2}),
                               {.format = SaveFormat::Legacy});
              }),
              HasSubstr("the legacy format is older than float8_e5m2"));
}

TEST(Save, BracesOfOneTypeAreAList) {
  const Tensor x = floats({1}), y = floats({2, 3});
  const Value both = load_from_buffer(save_to_buffer({x, y}));
  ASSERT_TRUE(both.is_list());
  EXPECT_EQ(elements<float>(both[1].as_tensor()), (std::vector<float>{2, 3}));
  EXPECT_EQ(load_from_buffer(save_to_buffer({x}, {.format = SaveFormat::Legacy})).length(), 1u);
  EXPECT_EQ(load_from_buffer(save_to_buffer({"a", "b"})).str(), "['a', 'b']");
  EXPECT_EQ(load_from_buffer(save_to_buffer({{"a", "b"}, {"c", "d"}})).str(), "{'a': 'b', 'c': 'd'}");
  EXPECT_TRUE(load_from_buffer(save_to_buffer({})).is_none());
  TemporaryFolder folder;
  save({1, 2, 3}, folder / "list.pt");
  EXPECT_EQ(load(folder / "list.pt").str(), "[1, 2, 3]");
}

TEST(Save, CompactWritesWhatIsSeen) {
  std::vector<float> numbers(100000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  Tensor base = floats(numbers);
  Tensor head = view(base, {10}, {1}, 5), inside = view(base, {2, 2}, {3, 1}, 8),
         tail = view(base, {4}, {1}, 99990);
  Tensor touching = view(base, {5}, {1}, 15), empty = view(base, {0, 3}, {3, 1}, 70000);
  Value value = Value::list({head, inside, tail, touching, empty, view(floats({1, 2}), {0}, {1}, 1)});
  for (SaveFormat format : {SaveFormat::Zip, SaveFormat::Legacy}) {
    std::vector<std::byte> bytes = save_to_buffer(value, {.format = format, .compact = true});
    EXPECT_LT(bytes.size(), 5000u);
    EXPECT_GT(save_to_buffer(value, {.format = format}).size(), 400000u);
    Value back = load_from_buffer(bytes);
    auto storage = [&](int i) { return back[i].as_tensor().storage(); };
    EXPECT_EQ(elements<float>(back[0].as_tensor()), elements<float>(head));
    EXPECT_EQ(elements<float>(back[1].as_tensor()), (std::vector<float>{8, 9, 11, 12}));
    EXPECT_EQ(elements<float>(back[2].as_tensor()), (std::vector<float>{99990, 99991, 99992, 99993}));
    EXPECT_EQ(elements<float>(back[3].as_tensor()), (std::vector<float>{15, 16, 17, 18, 19}));
    EXPECT_EQ(back[4].as_tensor().shape(), (Shape{0, 3}));
    EXPECT_EQ(storage(0), storage(1));
    EXPECT_NE(storage(0), storage(2));
    EXPECT_NE(storage(0), storage(3));
    EXPECT_EQ(storage(0)->nbytes(), 40u);
  }
}

TEST(Save, TensorsOfAGpuKeepTheirDevice) {
  Memory* gpus = find_memory(DeviceType::CUDA);
  if (!gpus || gpus->device_count() == 0) GTEST_SKIP() << "there is no GPU here";
  std::vector<float> numbers(3 << 20, 1.5f);  // more than one piece
  Tensor on_gpu =
      io::tensor_from_bytes(std::as_bytes(std::span(numbers)), DType::Float32, {3 << 20}, Device("cuda:0"));
  for (SaveFormat format : {SaveFormat::Zip, SaveFormat::Legacy}) {
    Tensor back = load_from_buffer(save_to_buffer(on_gpu, {.format = format})).as_tensor();
    EXPECT_EQ(back.device(), Device("cuda:0"));
    EXPECT_EQ(elements<float>(back), numbers);
  }
}

TEST(Save, SumsOfLargeEntriesAreRight) {
  std::vector<float> numbers(3 << 20);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 7 % 1001);
  TemporaryFolder folder;
  save(floats(numbers), folder / "a.pt");
  EXPECT_EQ(elements<float>(load(folder / "a.pt", {.verify = true}).as_tensor()), numbers);
  std::string file = read_text(folder / "a.pt");
  file[file.size() / 2] ^= 1;
  write_text(folder / "b.pt", file);
  EXPECT_THROW(load(folder / "b.pt", {.verify = true}), CheckpointError);
}

}  // namespace
}  // namespace tern
