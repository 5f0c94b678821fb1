// LoadOptions: mmap, map_location "auto", reading in parallel, checksums; on devices too.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>

#include "io_testing.h"
#include "placed_checkpoint.h"
#include "tern/device/simulation.h"
#include "tern/io/bulk_read.h"
#include "tern/io/checksum.h"
#include "tern/io/file.h"
#include "tern/io/npy.h"
#include "tern/io/tensor_numbers.h"
#include "tern/io/zip_writer.h"

namespace tern {
namespace {

using testing::HasSubstr;

bool has_gpus() {
  Memory* gpus = find_memory(DeviceType::CUDA);
  return gpus && gpus->device_count() > 0;
}

/// A zip archive as other programs write it: entries behind each other without padding, no checksums.
std::string plain_zip(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out, directory;
  auto number = [](std::string& to, uint64_t value, int bytes) {
    for (; bytes > 0; --bytes, value >>= 8) to += static_cast<char>(value);
  };
  for (const auto& [name, content] : entries) {
    const size_t offset = out.size();
    for (std::string* to : {&out, &directory}) {
      const bool local = to == &out;
      number(*to, local ? 0x04034b50 : 0x02014b50, 4);
      number(*to, 0, local ? 14 : 16);  // versions, flags, method, time, CRC
      number(*to, content.size(), 4);
      number(*to, content.size(), 4);
      number(*to, name.size(), 2);
      number(*to, 0, local ? 2 : 12);
      if (!local) number(*to, offset, 4);
      *to += name;
    }
    out += content;
  }
  const size_t at = out.size();
  out += directory;
  number(out, 0x06054b50, 4);
  number(out, 0, 4);
  number(out, entries.size(), 2);
  number(out, entries.size(), 2);
  number(out, directory.size(), 4);
  number(out, at, 4);
  number(out, 0, 2);
  return out;
}

std::vector<float> range(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 4093);
  return values;
}

TEST(Mmap, TensorsArePartsOfTheFile) {
  TemporaryFolder folder;
  const std::vector<float> values = range(1 << 20);
  Tensor whole = floats(values);
  save({{"whole", whole},
        {"view", Tensor::from_storage(whole.storage(), DType::Float32, {2}, {1}, 5)},
        {"empty", tensor_of<float>({}, {0, 3})},
        {"bools", io::tensor_from_bytes(bytes_of(std::string_view("\0\1", 2)), DType::Bool, {2})},
        {"note", "text"}},
       folder / "a.pt");
  Tensor kept;
  {
    Value file = load(folder / "a.pt", {.mmap = true});
    kept = file["whole"].as_tensor();
    EXPECT_EQ(file["view"].as_tensor().storage(), kept.storage());
    EXPECT_EQ(file["empty"].as_tensor().shape(), (Shape{0, 3}));
    EXPECT_EQ(elements<uint8_t>(file["bools"].as_tensor()), (std::vector<uint8_t>{0, 1}));
    EXPECT_EQ(file["note"].as_str(), "text");
  }
  // The mapping lives as long as a tensor of it, and when the name is gone.
  std::filesystem::remove(folder / "a.pt");
  EXPECT_EQ(elements<float>(kept), values);
}

TEST(Mmap, ChangesStayInMemory) {
  TemporaryFolder folder;
  save(floats({1, 2, 3}), folder / "a.pt");
  const std::string before = read_text(folder / "a.pt");
  Tensor tensor = load(folder / "a.pt", {.mmap = true}).as_tensor();
  static_cast<float*>(tensor.storage()->data())[0] = 9;
  EXPECT_EQ(elements<float>(tensor), (std::vector<float>{9, 2, 3}));
  EXPECT_EQ(read_text(folder / "a.pt"), before);
  save(tensor, folder / "a.pt");  // over the file that it is a part of
  EXPECT_EQ(elements<float>(load(folder / "a.pt").as_tensor()), (std::vector<float>{9, 2, 3}));
  EXPECT_EQ(elements<float>(tensor), (std::vector<float>{9, 2, 3}));
}

TEST(Mmap, Safetensors) {
  TemporaryFolder folder;
  save_safetensors({{"w", floats({1, 2, 3})}, {"i", tensor_of<int64_t>({7}, {})}, {"e", floats({})}},
                   folder / "a.safetensors");
  LoadReport report;
  Value file = load(folder / "a.safetensors", {.mmap = true, .report = &report});
  EXPECT_EQ(elements<float>(file["w"].as_tensor()), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(file["i"].as_float(), 7);
  EXPECT_EQ(file["e"].as_tensor().numel(), 0);
  EXPECT_EQ(report.str(), "");

  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  std::string odd(8, '\0');
  odd[0] = static_cast<char>(header.size());
  write_text(folder / "odd.safetensors", odd + header + std::string("\7\0\0\x80\x3f", 5));
  file = load(folder / "odd.safetensors", {.mmap = true, .report = &report});
  EXPECT_EQ(file["a"].as_float(), 7);
  EXPECT_EQ(file["b"].as_float(), 1);
  EXPECT_EQ(report.copied, 1u);
  EXPECT_THAT(report.str(), HasSubstr("1 storages were copied"));
}

TEST(Mmap, MisalignedDataIsCopied) {
  TemporaryFolder folder;
  int mapped = 0;
  for (size_t shift = 0; shift < 4; ++shift) {
    const std::string folder_name = "a" + std::string(shift, 'b');
    write_text(folder / "a.pt",
               plain_zip({{folder_name + "/data.pkl", pickle_at("cpu")},
                          {folder_name + "/data/0", std::string("\0\0\x80\x3f\0\0\0\x40", 8)},
                          {folder_name + "/version", "3\n"}}));
    LoadReport report;
    Value value = load(folder / "a.pt", {.mmap = true, .report = &report});
    EXPECT_EQ(elements<float>(value.as_tensor()), (std::vector<float>{1, 2}));
    if (report.copied == 0) ++mapped;
  }
  EXPECT_GT(mapped, 0);
  EXPECT_LT(mapped, 4);
}

TEST(Mmap, WhatCannotBeMapped) {
  EXPECT_THAT(error_of<TypeError>([] { load_from_buffer(save_to_buffer(1), {.mmap = true}); }),
              HasSubstr("f must be a file path in order to use the mmap argument"));
  TemporaryFolder folder;
  write_text(folder / "a.pkl",
             "\x80\x02}U\x01"
             "aK\x01s.");
  EXPECT_THAT(error_of<CheckpointError>([&] { load(folder / "a.pkl", {.mmap = true}); }),
              HasSubstr("mmap can only be used with files saved with `torch.save("));
  save_npy(floats({1}), folder / "a.npy");
  EXPECT_THAT(error_of<CheckpointError>([&] { load(folder / "a.npy", {.mmap = true}); }),
              HasSubstr("mmap is for PyTorch's zip format and safetensors, and the file is"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(MmapDeathTest, AFileCutShortIsNamed) {
  TemporaryFolder folder;
  save(floats(range(1 << 20)), folder / "cut.pt");
  EXPECT_EXIT(
      {
        Tensor tensor = load(folder / "cut.pt", {.mmap = true}).as_tensor();
        std::filesystem::resize_file(folder / "cut.pt", 4096);
        elements<float>(tensor);
      },
      testing::KilledBySignal(SIGBUS), "cut.pt' became shorter.*mmap = true");
}
#endif

TEST(Mmap, OpensWithoutReading) {
  TemporaryFolder folder;
  // A sparse file: 2 GiB that were never written.
  const std::string header = R"({"w":{"dtype":"F32","shape":[536870912],"data_offsets":[0,2147483648]}} )";
  std::string begin(8, '\0');
  begin[0] = static_cast<char>(header.size());
  write_text(folder / "large.safetensors", begin + header);
  std::filesystem::resize_file(folder / "large.safetensors", 8 + header.size() + 2147483648);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const auto start = std::chrono::steady_clock::now();
  Value file = load(folder / "large.safetensors", {.map_location = "cpu", .mmap = true});
  SafetensorsFile same = load_safetensors(folder / "large.safetensors", {.mmap = true});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_EQ(file["w"].as_tensor().numel(), 536870912);
  EXPECT_EQ(same.tensors["w"].narrow(0, 536870900, 3).sum().item<float>(), 0);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 << 10);
}

/// Bytes of this process that lie in memory.
size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t whole = 0, resident = 0;
  file >> whole >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(Mmap, NumbersThatAreSummedLeaveMemory) {
  TemporaryFolder folder;
  std::vector<float> values(16 << 20, 0.5f);
  values[0] = 3;
  values.back() = std::numeric_limits<float>::quiet_NaN();
  save({{"bad", floats(values)}, {"good", floats(std::vector<float>(4 << 20, 0.25f))}}, folder / "a.pt",
       {.sync = false});
  values = {};
  const Value file = load(folder / "a.pt", {.mmap = true});
  const Tensor bad = file["bad"].as_tensor(), good = file["good"].as_tensor();
  const size_t before = resident_bytes();
  for (int i = 0; i < 2; ++i) {  // they come back
    const io::NumberSummary summary = io::summarize_numbers(bad, /*drop_pages=*/true);
    EXPECT_EQ(summary.nans, 1);
    EXPECT_EQ(std::get<double>(summary.first[0]), 3);
    EXPECT_EQ(io::summarize_numbers(good, /*drop_pages=*/true).sum, std::complex<double>(1 << 20));
    const Tensor columns = Tensor::from_storage(good.storage(), DType::Float32, {1024, 4096}, {1, 1024});
    EXPECT_EQ(io::summarize_numbers(columns, /*drop_pages=*/true).sum, std::complex<double>(1 << 20));
  }
  EXPECT_LT(resident_bytes(), before + (size_t{8} << 20));
  io::summarize_numbers(good);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_GT(resident_bytes(), before + (size_t{12} << 20));
#endif
  const Tensor here = floats(std::vector<float>(4 << 20, 0.25f));  // no mapping: nothing is dropped
  EXPECT_EQ(io::summarize_numbers(here, /*drop_pages=*/true).sum, std::complex<double>(1 << 20));
  EXPECT_EQ(elements<float>(here), std::vector<float>(4 << 20, 0.25f));
}

TEST(Safetensors, TakesTheOptionsOfLoad) {
  TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  save_safetensors({{"w", floats({1, 2, 3})}, {"b", floats({4})}}, path);
  SafetensorsFile file = load_safetensors(path, {.mmap = true});
  EXPECT_EQ(elements<float>(file.tensors["w"]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(file.metadata.at("format"), "pt");
  *static_cast<float*>(file.tensors["w"].storage()->data()) = 9;  // stays in memory
  EXPECT_EQ(elements<float>(load_safetensors(path).tensors["w"])[0], 1);
  EXPECT_FALSE(load_safetensors(path, {.skip_data = true}).tensors["w"].storage()->data());

  std::vector<std::string> asked;
  auto to_cpu = [&](const std::string& location) -> std::optional<Device> {
    asked.push_back(location);
    return kCPU;
  };
  for (const MapLocation& map : {MapLocation("auto"), MapLocation("cpu"), MapLocation(to_cpu),
                                 MapLocation(std::map<std::string, std::string>{{"cuda:1", "cpu"}})})
    EXPECT_EQ(elements<float>(load_safetensors(path, {.map_location = map}).tensors["b"])[0], 4);
  EXPECT_EQ(asked, std::vector<std::string>{"cpu"});
  const std::string absent = error_of<DeviceError>([&] {
    load_safetensors(path, {.map_location = std::map<std::string, std::string>{{"cpu", "cuda:77"}}});
  });
  EXPECT_THAT(absent, HasSubstr("loading '" + path.string() + "': Attempting to deserialize object on "));
  if (has_gpus()) {
    EXPECT_EQ(load_safetensors(path, {.map_location = "cuda:0", .mmap = true}).tensors["w"].device(),
              Device("cuda:0"));
  }

  LoadOptions limited;
  limited.limits.entries = 1;
  EXPECT_EQ(
      error_of<CheckpointError>([&] { load_safetensors(path, limited); }),
      "loading '" + path.string() + "': the file has 2 tensors; at most 1 are accepted (limits.entries)");
  limited.limits.entries = 2;
  limited.limits.tensor_bytes = 15;
  EXPECT_THAT(error_of<CheckpointError>([&] { load_safetensors(path, limited); }),
              HasSubstr("limits.tensor_bytes"));
  EXPECT_THAT(
      error_of<TypeError>([&] {
        load_safetensors_from_buffer(save_safetensors_to_buffer({{"w", floats({1})}}), {.mmap = true});
      }),
      HasSubstr("f must be a file path in order to use the mmap argument"));
}

TEST(BulkRead, LargeAndSmallWithGapsAndChecksums) {
  std::vector<std::byte> content(50 << 20);
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  auto source = io::view_memory(content);
  std::vector<io::ReadJob> jobs;
  std::vector<Storage> storages;
  auto add = [&](uint64_t offset, uint64_t nbytes, size_t kept) {
    storages.push_back(allocate_storage(kept, kCPU));
    jobs.push_back({offset, nbytes, storages.back().get(), DType::UInt8, false,
                    io::crc32(0, std::span(content).subspan(offset, nbytes))});
  };
  for (size_t i = 0; i < 500; ++i) add(i * 1000, i, i);
  add(600'000, 20'000'001, 20'000'001);
  add(21'000'000, 100'000, 99'999);  // a record longer than its storage
  add(22'000'000, 9'000'000, 10);
  for (size_t i = 0; i < 300; ++i) add(40'000'000 + i * 30'000, 29'000, 29'000);
  auto describe = [](size_t job) { return std::to_string(job); };
  io::fill_storages(*source, jobs, describe);
  for (size_t i = 0; i < jobs.size(); ++i) {
    const size_t count = storages[i]->nbytes();
    if (count != 0) {
      ASSERT_EQ(std::memcmp(storages[i]->data(), content.data() + jobs[i].offset, count), 0) << i;
    }
  }
  for (size_t wrong : {size_t{3}, size_t{500}, size_t{501}, size_t{502}, size_t{700}}) {
    auto broken = jobs;
    broken[wrong].crc = *broken[wrong].crc ^ 1;
    EXPECT_THAT(error_of<CheckpointError>([&] { io::fill_storages(*source, broken, describe); }),
                HasSubstr(std::to_string(wrong) + " is damaged"));
  }
}

TEST(BulkRead, ChecksumOfTwo) {
  const std::string text = "The arctic tern is the bird that travels farthest.";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    uint32_t first = io::crc32(0, bytes_of(text.substr(0, cut))),
             second = io::crc32(0, bytes_of(text.substr(cut)));
    EXPECT_EQ(io::crc32_of_two(first, second, text.size() - cut), io::crc32(0, bytes_of(text)));
  }
}

TEST(Verify, DamageIsFoundAnywhere) {
  TemporaryFolder folder;
  save({{"a", floats(range(3 << 20))}, {"b", floats({5, 6})}}, folder / "a.pt");
  const std::string good = read_text(folder / "a.pt");
  for (size_t at : {good.size() / 4, good.size() / 2, good.size() * 3 / 4}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write_text(folder / "b.pt", bad);
    EXPECT_THAT(error_of<CheckpointError>([&] { load(folder / "b.pt", {.map_location = "cpu"}); }),
                HasSubstr("/data/0' is damaged"));
    EXPECT_NO_THROW(load(folder / "b.pt", {.map_location = "cpu", .verify = false}));
    EXPECT_NO_THROW(load(folder / "b.pt", {.map_location = "cpu", .mmap = true}));
    EXPECT_THAT(error_of<CheckpointError>([&] {
                  load(folder / "b.pt", {.map_location = "cpu", .mmap = true, .verify_mapped = true});
                }),
                HasSubstr("/data/0' is damaged: its CRC is "));
  }
  EXPECT_NO_THROW(load(folder / "a.pt", {.map_location = "cpu", .mmap = true, .verify_mapped = true}));
}

TEST(AutoLocation, ToTheCpuWhereThereIsNoGpu) {
  if (has_gpus()) GTEST_SKIP() << "there is a GPU here";
  LoadReport report;
  for (const char* location : {"cuda:1", "cuda:1", "mps", "cpu"}) {
    Value value = load_from_buffer(checkpoint_at(location), {.map_location = "auto", .report = &report});
    EXPECT_EQ(value.as_tensor().device(), kCPU);
    EXPECT_EQ(elements<float>(value.as_tensor()), (std::vector<float>{1, 2}));
  }
  EXPECT_EQ(report.str(),
            "cuda:1 is not here: what was there (2 storages, 16 bytes) is on cpu\n"
            "mps is not here: what was there (1 storages, 8 bytes) is on cpu");
}

/// Two simulated GPUs for a test, where the process has no GPUs.
class WithTwoGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (has_gpus()) return;
    simulate_gpus({.gpus = 2});
    made_ = true;
  }
  void TearDown() override {
    if (made_) simulate_gpus({.gpus = 0});
  }

 private:
  bool made_ = false;
};

TEST_F(WithTwoGpus, AutoFoldsOntoThoseThatAreThere) {
  LoadReport report;
  auto device = [&](const char* location) {
    return load_from_buffer(checkpoint_at(location), {.map_location = "auto", .report = &report})
        .as_tensor()
        .device();
  };
  EXPECT_EQ(device("cuda:0"), Device("cuda:0"));
  EXPECT_EQ(device("cuda:1"), Device("cuda:1"));
  EXPECT_EQ(device("cuda"), Device("cuda:0"));
  EXPECT_EQ(device("cpu"), kCPU);
  EXPECT_EQ(report.str(), "");
  EXPECT_EQ(device("cuda:3"), Device("cuda:1"));
  EXPECT_EQ(device("cuda:4"), Device("cuda:0"));
  EXPECT_EQ(device("mps"), Device("cuda:0"));
  ASSERT_EQ(report.moved.size(), 3u);
  EXPECT_EQ(report.moved[0].from, "cuda:3");
  EXPECT_THAT(
      error_of<DeviceError>([] { load_from_buffer(checkpoint_at("cuda:3")); }),
      HasSubstr("Attempting to deserialize object on CUDA device 3 but torch.cuda.device_count() is 2. "
                "Please use torch.load with map_location to map your storages to an existing device."));
}

TEST_F(WithTwoGpus, LargeStoragesOnSeveralDevices) {
  TemporaryFolder folder;
  const std::vector<float> values = range(5 << 20);
  Tensor host = floats(values);
  auto on = [&](const char* device) {
    Storage storage = allocate_storage(host.nbytes(), Device(device));
    copy_from_host(*storage, 0, host.storage()->data(), host.nbytes());
    return Tensor::from_storage(std::move(storage), DType::Float32, host.shape());
  };
  save({{"a", on("cuda:0")}, {"b", on("cuda:1")}, {"c", host}}, folder / "a.pt");
  for (bool mmap : {false, true}) {
    Value file = load(folder / "a.pt", {.mmap = mmap});
    EXPECT_EQ(file["a"].as_tensor().device(), Device("cuda:0"));
    EXPECT_EQ(file["b"].as_tensor().device(), Device("cuda:1"));
    EXPECT_EQ(file["c"].as_tensor().device(), kCPU);
    for (const char* name : {"a", "b", "c"}) EXPECT_EQ(elements<float>(file[name].as_tensor()), values);
    file = load(folder / "a.pt", {.map_location = std::map<std::string, std::string>{{"cuda:0", "cuda:1"}}});
    EXPECT_EQ(file["a"].as_tensor().device(), Device("cuda:1"));
    EXPECT_EQ(elements<float>(file["a"].as_tensor()), values);
  }
}

}  // namespace
}  // namespace tern
