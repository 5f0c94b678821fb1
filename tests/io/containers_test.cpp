// .npy and .npz, the tar format, TorchScript, shards, distributed checkpoints, whole models: small files made
// here, byte by byte. Files of PyTorch itself are in corpus_test.cpp.
#include <fmt/core.h>

#include "io_testing.h"
#include "tern/io/byte_order.h"
#include "tern/io/format.h"
#include "tern/io/module_tree.h"
#include "tern/io/npy.h"
#include "tern/io/pickle_writer.h"
#include "tern/io/shards_writer.h"
#include "tern/io/zip_writer.h"

namespace tern {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

Value load_text(std::string_view bytes, const LoadOptions& options = {}) {
  return load_from_buffer(bytes_of(bytes), options);
}
/// A literal with the NUL bytes in it.
template <size_t N>
std::string raw(const char (&literal)[N]) {
  return std::string(literal, N - 1);
}
std::string load_error(std::string_view bytes, const LoadOptions& options = {}) {
  return error_of<CheckpointError>([&] { load_text(bytes, options); });
}

// ---- .npy and .npz
// ---------------------------------------------------------------------------------------------------------------

std::string npy(std::string_view header, std::string_view data, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  if (version == 1)
    io::append_le(bytes, static_cast<uint16_t>(header.size()));
  else
    io::append_le(bytes, static_cast<uint32_t>(header.size()));
  return bytes + std::string(header) + std::string(data);
}

TEST(Npy, ReadsEveryFormOfHeader) {
  const std::string data("\1\2\3\4\5\6", 6);
  Tensor rows =
      load_text(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", data)).as_tensor();
  EXPECT_EQ(rows.shape(), IntArrayRef({2, 3}));
  EXPECT_EQ(elements<uint8_t>(rows), (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  Tensor columns =
      load_text(npy("{\"shape\":(2L,3L),\"fortran_order\":True,\"descr\":\"u1\"}\n", data, 2)).as_tensor();
  EXPECT_EQ(elements<uint8_t>(columns), (std::vector<uint8_t>{1, 3, 5, 2, 4, 6}));
  Tensor big = load_text(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (3,)}", data, 3)).as_tensor();
  EXPECT_EQ(elements<int16_t>(big), (std::vector<int16_t>{0x102, 0x304, 0x506}));
  EXPECT_EQ(load_text(npy("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "\7")).as_tensor().dim(),
            0);
  EXPECT_EQ(
      load_text(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5)}", "")).as_tensor().numel(), 0);
}

TEST(Npy, RefusesWhatItIsNot) {
  auto error = [](std::string_view header, std::string_view data = "12345678") {
    return load_error(npy(header, data));
  };
  EXPECT_THAT(error("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), HasSubstr("Python objects"));
  EXPECT_THAT(error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}"),
              HasSubstr("structured"));
  EXPECT_THAT(error("{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}"), HasSubstr("needs 12 bytes"));
  EXPECT_THAT(error("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"), HasSubstr("whole number"));
  EXPECT_THAT(error("{'descr': '<f8', 'fortran_order': False, 'shape': (1+0,)}"),
              HasSubstr("tuple of sizes"));
  EXPECT_THAT(error("{'descr': '<f8', 'fortran_order': False, 'shape': (1)}"), HasSubstr("tuple"));
  EXPECT_THAT(error("{'descr': '<f8', 'fortran_order': False}"), HasSubstr("no key 'shape'"));
  EXPECT_THAT(error("{'descr': '<f8', 'descr': '<f8'}"), HasSubstr("twice"));
  EXPECT_THAT(error("{'descr': '<f8', 'fortran_order': __import__('os'), 'shape': (1,)}"),
              HasSubstr("True or False"));
  EXPECT_THAT(error("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}"), HasSubstr("needs 16 bytes"));
  EXPECT_THAT(error("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}"), HasSubstr("4 more follow"));
  EXPECT_THAT(error("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
              HasSubstr("2^64"));
  EXPECT_THAT(load_error(raw("\x93NUMPY\1\0\xff\xff")), HasSubstr("65535 bytes"));
  EXPECT_THAT(load_error(raw("\x93NUMPY\4\0\1\0{")), HasSubstr("version 4"));
}

TEST(Npy, WrittenAndReadAgain) {
  TemporaryFolder folder;
  for (int i = 0; i < kNumDTypes; ++i) {
    auto dtype = static_cast<DType>(i);
    std::vector<std::byte> bytes(6 * itemsize(dtype), std::byte{1});
    Tensor tensor = io::tensor_from_bytes(bytes, dtype, {2, 3});
    const bool numpy_has_it = dtype <= DType::Complex128 && dtype != DType::BFloat16;
    if (!numpy_has_it) {
      EXPECT_THROW(save_npy(tensor, folder.path() / "a.npy"), DTypeError) << name(dtype);
      continue;
    }
    save_npy(tensor, folder.path() / "a.npy");
    Tensor back = load_npy(folder.path() / "a.npy");
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.shape(), tensor.shape());
    EXPECT_EQ(io::element_bytes(back), bytes) << name(dtype);
  }
  EXPECT_EQ(fs::file_size(folder.path() / "a.npy") % 16, 0u);
}

TEST(Npy, ArchivesKeepNamesAndOrder) {
  TemporaryFolder folder;
  Tensor base = floats({1, 2, 3, 4});
  Tensor grid = Tensor::from_storage(base.storage(), DType::Float32, {2, 2}, {1, 2});
  save_npz({{"z.weight", grid}, {"a", tensor_of<int64_t>({7}, {1})}}, folder.path() / "a.npz");
  StateDict back = load_npz(folder.path() / "a.npz");
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back.begin()->first, "z.weight");
  EXPECT_EQ(elements<float>(back["z.weight"]), (std::vector<float>{1, 3, 2, 4}));
  Value dict = load(folder.path() / "a.npz");
  EXPECT_EQ(elements<int64_t>(dict["a"].as_tensor()), std::vector<int64_t>{7});
  EXPECT_THAT(error_of<CheckpointError>([&] {
                load(folder.path() / "a.npz", {.map_location = {}, .limits = {.tensor_bytes = 10}});
              }),
              HasSubstr("limits.tensor_bytes"));
  EXPECT_THROW(save_npz({}, folder.path() / "b.npz"), ValueError);
  const std::string no_entries = "PK\5\6" + std::string(18, '\0');  // as numpy.savez without arrays writes
  write_text(folder / "empty.npz", no_entries);
  write_text(folder / "empty.pt", no_entries);
  EXPECT_EQ(load(folder / "empty.npz"), Value::dict());
  EXPECT_TRUE(load_npz(folder / "empty.npz").empty());
  EXPECT_THAT(error_of<CheckpointError>([&] { load(folder / "empty.pt"); }), HasSubstr("archive is empty"));
}

// ---- tar
// ---------------------------------------------------------------------------------------------------------------

std::string tar_header(const std::string& name, size_t size, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(124, 11, fmt::format("{:011o}", size));
  header.replace(148, 8, 8, ' ');
  header[156] = type;
  header.replace(257, 5, "ustar");
  unsigned sum = 0;
  for (char c : header) sum += static_cast<uint8_t>(c);
  header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  return header;
}
std::string tar_member(const std::string& name, std::string data, char type = '0') {
  std::string header = tar_header(name, data.size(), type);
  data.resize((data.size() + 511) / 512 * 512);
  return header + data;
}
template <class T>
std::string le(T value) {
  std::string bytes;
  io::append_le(bytes, value);
  return bytes;
}

/// Two tensors on one storage of three floats, and a view of the storage.
struct TarParts {
  std::string info, storages, tensors, tree;

  TarParts() {
    info = raw("\x80\2}X\x10\0\0\0protocol_versionM\xe8\3s.");
    storages = raw("\x80\2K\1.") + raw("\x80\2KeX\3\0\0\0cpuctorch\nFloatStorage\n\x87.") + le(int64_t{3}) +
               raw("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40") + raw("\x80\2](KfKeK\1K\2ta.");
    tensors = raw("\x80\2K\2.") + tensor(1, 101, 3, 1, 0) + tensor(2, 102, 2, 1, 0);
    tree = raw("\x80\2]X\1\0\0\0001QaX\1\0\0\0002Qa.");
  }
  static std::string tensor(int key, int storage, int64_t size, int64_t stride, int64_t offset) {
    std::string id("\x80\2K");
    id += static_cast<char>(key);
    id += 'K';
    id += static_cast<char>(storage);
    return id + "ctorch\nFloatTensor\n\x87." + le(int32_t{1}) + le(int32_t{0}) + le(size) + le(stride) +
           le(offset);
  }
  std::string file() const {
    return tar_member("sys_info", info) + tar_member("pickle", tree) + tar_member("tensors", tensors) +
           tar_member("storages", storages) + std::string(1024, '\0');
  }
};

TEST(TarFormat, TensorsShareTheirStorage) {
  Value root = load_text(TarParts().file());
  Tensor whole = root[0].as_tensor(), part = root[1].as_tensor();
  EXPECT_EQ(elements<float>(whole), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(elements<float>(part), (std::vector<float>{2, 3}));
  EXPECT_EQ(whole.storage(), part.storage());
}

TEST(TarFormat, BrokenFilesAreRefused) {
  TarParts parts;
  parts.tensors = raw("\x80\2K\2.") + TarParts::tensor(1, 101, 3, 2, 0) + TarParts::tensor(2, 102, 2, 1, 0);
  EXPECT_THAT(load_error(parts.file()), HasSubstr("outside"));
  parts.tensors = raw("\x80\2K\2.") + TarParts::tensor(1, 101, 3, 1, 0) + TarParts::tensor(2, 102, 2, 1, 1);
  EXPECT_THAT(load_error(parts.file()), HasSubstr("tensor 2"));
  parts = TarParts();
  parts.tree = raw("\x80\2X\1\0\0\0009Q.");
  EXPECT_THAT(load_error(parts.file()), HasSubstr("no tensor or storage '9'"));
  std::string file = TarParts().file();
  EXPECT_THAT(load_error(file.substr(0, file.size() - 1500)), HasSubstr("incomplete file"));
  file[10] = 'x';
  EXPECT_THAT(load_error(file), HasSubstr("sum is wrong"));
  EXPECT_THAT(load_error(tar_member("sys_info", "") + tar_header("pickle", 0, '1')), HasSubstr("link"));
  EXPECT_THAT(load_error(tar_member("sys_info", "") + tar_member("sys_info", "")), HasSubstr("twice"));
  EXPECT_THAT(load_error(tar_member("pax", "20 size=9999999999\n", 'x') + tar_member("sys_info", "")),
              HasSubstr("another size"));
  EXPECT_THAT(load_error(tar_member("sys_info", "")), HasSubstr("no member 'storages'"));
}

// ---- zip archives of other kinds
// ---------------------------------------------------------------------------------------------------------------

std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  io::MemorySink sink;
  io::ZipWriter zip(sink);
  for (const auto& [name, text] : entries) zip.add(name, text);
  zip.finish();
  return std::string(reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size());
}

/// A tensor of two floats in the entry 0.
std::string two_floats() {
  std::string text = "ctorch._utils\n_rebuild_tensor_v2\n((X";
  text +=
      raw("\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
          "0X\3\0\0\0cpuK\2tQK\0K\2\x85K\1\x85\x89)tR");
  return text;
}
const std::string kTwoFloats("\0\0\x80\x3f\0\0\0\x40", 8);

TEST(TorchScript, ParametersAndConstants) {
  std::string tree = "\x80\2c__torch__.net\nNet\n)\x81}(X" + raw("\1\0\0\0w") + two_floats() + "X" +
                     raw("\3\0\0\0sub") + "c__torch__.net\nSub\n)\x81}X" + raw("\1\0\0\0v") + two_floats() +
                     "sbub.";
  std::string file = zip_of({{"m/data.pkl", tree},
                             {"m/data/0", kTwoFloats},
                             {"m/code/__torch__/net.py", "raise SystemExit"},
                             {"m/constants.pkl", "\x80\2" + two_floats() + "\x85."},
                             {"m/constants/0", raw("\0\0\x40\x40\0\0\x80\x40")},
                             {"m/version", "3\n"}});
  Value root = load_text(file);  // classes of the archive itself are data, also with weights_only
  EXPECT_EQ(root.as_object().class_name(), "__torch__.net.Net");
  EXPECT_EQ(elements<float>(root["__constants__"][0].as_tensor()), (std::vector<float>{3, 4}));
  StateDict dict = state_dict_of(root);
  ASSERT_EQ(dict.size(), 2u);
  EXPECT_EQ(elements<float>(dict["sub.v"]), (std::vector<float>{1, 2}));
  std::string hostile = zip_of({{"m/data.pkl", "\x80\2cos\nsystem\n."}, {"m/constants.pkl", "\x80\2)."}});
  EXPECT_THAT(load_error(hostile), HasSubstr("os.system"));
}

TEST(TorchScript, ModelsOfTorch10) {
  std::string json =
      R"({"mainModule": {"name": "net", "submodules": [{"name": "fc", "parameters": [{"name": "weight", "tensorId": "0"}]}]},
          "tensors": [{"dims": ["2"], "strides": ["1"], "offset": "0", "dataType": "FLOAT", "device": "cpu",
                       "data": {"key": "tensors/0"}, "requiresGrad": true}]})";
  Value root = load_text(zip_of({{"m/version", "1"}, {"m/model.json", json}, {"m/tensors/0", kTwoFloats}}));
  StateDict dict = state_dict_of(root);
  EXPECT_EQ(elements<float>(dict["fc.weight"]), (std::vector<float>{1, 2}));
  EXPECT_TRUE(dict["fc.weight"].requires_grad());
  auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = json;
    text.replace(text.find(from), from.size(), to);
    return load_error(zip_of({{"m/version", "1"}, {"m/model.json", text}, {"m/tensors/0", kTwoFloats}}));
  };
  EXPECT_THAT(broken("\"tensorId\": \"0\"", "\"tensorId\": \"7\""), HasSubstr("no tensor 7"));
  EXPECT_THAT(broken("[\"2\"]", "[\"3\"]"), HasSubstr("outside"));
  EXPECT_THAT(broken("tensors/0", "tensors/1"), HasSubstr("no entry 'tensors/1'"));
  EXPECT_THAT(broken("FLOAT", "STRING"), HasSubstr("'STRING'"));
  EXPECT_THAT(broken("\"mainModule\"", "\"nothing\""), HasSubstr("no mainModule"));
}

TEST(Zip, OtherArchivesAreNamed) {
  EXPECT_THAT(load_error(zip_of({{"MAR-INF/MANIFEST.json", "{}"}, {"net.pth", "x"}})),
              HasSubstr("TorchServe archive (.mar): unpack it and load the model file in it, 'net.pth'"));
  EXPECT_THAT(load_error(zip_of({{"metadata.json", "{}"}, {"config.json", "{}"}, {"model.weights.h5", "x"}})),
              HasSubstr("Keras"));
}

// ---- whole models
// ---------------------------------------------------------------------------------------------------------------

Value object_of(const char* name, Value state) {
  ValueObject object;
  object.callee = GlobalName{"__main__", name};
  object.made = ValueObject::Made::New;
  object.args = Value::tuple();
  object.state = std::move(state);
  object.has_state = true;
  return Value(std::move(object));
}

TEST(ModuleTree, StateDictAsPyTorchs) {
  Tensor weight = floats({1}), mean = floats({2}), scratch = floats({3});
  auto module = [&](Value parameters, Value buffers, Value modules) {
    return object_of("Net", {{"_parameters", parameters},
                             {"_buffers", buffers},
                             {"_non_persistent_buffers_set", Value::set({"scratch"})},
                             {"_modules", modules},
                             {"extra", floats({9})}});
  };
  Value leaf =
      module({{"weight", weight}, {"bias", Value()}}, {{"mean", mean}, {"scratch", scratch}}, Value::dict());
  Value net = module({{"p", weight}}, Value::dict(), {{"a", leaf}, {"none", Value()}, {"b", leaf}});
  StateDict dict = state_dict_of(net);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : dict) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"p", "a.weight", "a.mean", "b.weight", "b.mean"}));
  EXPECT_TRUE(dict["a.weight"].is_same(dict["b.weight"]));
  EXPECT_THAT(error_of<TypeError>([&] { state_dict_of({{"model", net}}); }), HasSubstr("give the entry"));
  Value deep = leaf;
  for (int i = 0; i < 600; ++i) deep = module(Value::dict(), Value::dict(), {{"m", deep}});
  EXPECT_THAT(error_of<CheckpointError>([&] { state_dict_of(deep); }), HasSubstr("nested deeper"));
  Value wide = leaf;
  for (int i = 0; i < 30; ++i) wide = module(Value::dict(), Value::dict(), {{"a", wide}, {"b", wide}});
  EXPECT_THAT(error_of<CheckpointError>([&] { state_dict_of(wide); }), HasSubstr("more than"));
}

// ---- checkpoints of several files
// ---------------------------------------------------------------------------------------------------------------

TEST(Shards, IndexesAreChecked) {
  TemporaryFolder folder;
  const fs::path index = folder.path() / "model.safetensors.index.json";
  save_safetensors({{"a", floats({1})}, {"b", floats({2})}}, folder.path() / "1.safetensors");
  save_safetensors({{"c", floats({3})}}, folder.path() / "2.safetensors");
  auto error = [&](std::string_view text) {
    write_text(index, text);
    return error_of<CheckpointError>([&] { load(index); });
  };
  write_text(
      index,
      R"({"metadata": {"x": [1]}, "weight_map": {"c": "2.safetensors", "a": "1.safetensors", "b": "1.safetensors"}})");
  for (const fs::path& path : {index, folder.path()}) {
    Value root = load(path);
    EXPECT_EQ(root.as_dict().entry(0).key.as_str(), "c");
    EXPECT_EQ(elements<float>(root["b"].as_tensor()), std::vector<float>{2});
  }
  EXPECT_THAT(error(R"({"weight_map": {"a": "1.safetensors", "b": "1.safetensors", "c": "3.safetensors"}})"),
              HasSubstr("'3.safetensors', which is not there"));
  EXPECT_THAT(error(R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors", "c": "2.safetensors"}})"),
              HasSubstr("tensor 'b', which the index says is in '2.safetensors'"));
  EXPECT_THAT(error(R"({"weight_map": {"a": "1.safetensors", "b": "1.safetensors", "d": "1.safetensors"}})"),
              HasSubstr("no tensor 'd'"));
  for (const char* name : {"../x", "/etc/passwd", "a\\\\b", "https://x/y", "..", "", "C:x", "a\\u0000b"})
    EXPECT_THAT(error(std::string(R"({"weight_map": {"a": ")") + name + "\"}}"),
                HasSubstr("is no file name"));
  EXPECT_THAT(error(R"({"weight_map": {"a": "1.safetensors", "a": "1.safetensors"}})"), HasSubstr("twice"));
  EXPECT_THAT(error(R"({"weight_map": {"a": 1}})"), HasSubstr("no text"));
  EXPECT_THAT(error(R"({"weight_map": ["a"]})"), HasSubstr(""));
  EXPECT_THAT(error(R"({"weights": {}})"), HasSubstr("no weight_map"));
  EXPECT_THAT(error("{" + std::string(5000, '[')), HasSubstr(""));
  save_safetensors({{"a", floats({1})}}, folder.path() / "2.safetensors");
  EXPECT_THAT(error(R"({"weight_map": {"b": "1.safetensors", "c": "2.safetensors"}})"),
              HasSubstr("another shard"));
  fs::remove(index);
  EXPECT_THAT(error_of<CheckpointError>([&] { load(folder.path()); }), HasSubstr("neither an index"));
}

TEST(Shards, TheOldModelStaysUntilTheNewIsWhole) {
  TemporaryFolder folder;
  const fs::path path = folder / "m.safetensors";
  const StateDict three{{"a", floats({1})}, {"b", floats({2})}, {"c", floats({3})}};
  const StateDict two{{"a", floats({4})}, {"b", floats({5})}};
  const StateDict wrong{{"a", floats({6})},
                        {"b", floats({7})},
                        {"c", Tensor::from_storage(allocate_storage(16, kCPU), DType::Complex128, {1})}};
  const auto sum = [&] {
    float total = 0;
    for (const auto& [name, tensor] : load(folder.path()).as_state_dict())
      total += elements<float>(tensor)[0];
    return total;
  };
  io::save_safetensors_shards(three, path, 4);
  EXPECT_EQ(folder.entries(), 4u);
  EXPECT_EQ(sum(), 6);
  EXPECT_THAT(error_of<DTypeError>([&] { io::save_safetensors_shards(wrong, path, 4); }),
              HasSubstr("m-00003-of-00003.safetensors': save_safetensors: tensor 'c' has dtype complex128"));
  EXPECT_EQ(folder.entries(), 4u);
  EXPECT_EQ(sum(), 6);
  write_text(folder / "m-00001-of-00009.safetensors", "no index names this");
  EXPECT_EQ(io::save_safetensors_shards(two, path, 4),
            (std::vector<std::string>{"m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors",
                                      "m.safetensors.index.json"}));
  EXPECT_EQ(folder.entries(), 4u);
  EXPECT_EQ(sum(), 9);
  io::save_safetensors_shards(two, path, 100);
  EXPECT_EQ(folder.entries(), 2u);
  EXPECT_EQ(elements<float>(load(path)["b"].as_tensor()), std::vector<float>{5});
  write_text(folder / "m.safetensors.index.json", R"({"weight_map": {"a": "other.safetensors"}})");
  io::save_safetensors_shards(two, path, 100);
  EXPECT_EQ(folder.entries(), 3u) << "an index of another program was removed";
}

TEST(Shards, NamesAreCheckedBeforeAnythingIsWritten) {
  TemporaryFolder folder;
  const StateDict tensors{{"a", floats({1})}, {"b", floats({2})}};
  EXPECT_THAT(
      error_of<ValueError>([&] { io::save_safetensors_shards(tensors, folder / "m\xff.safetensors", 4); }),
      HasSubstr("not UTF-8"));
  EXPECT_EQ(folder.entries(), 0u);
}

/// An object of a class of the distributed metadata.
Value meta_object(const char* name, Value state) {
  Value object = object_of(name, std::move(state));
  object.as_object().callee = GlobalName{"torch.distributed.checkpoint.metadata", name};
  return object;
}

TEST(DistributedCheckpoint, ChunksAreChecked) {
  TemporaryFolder folder;
  // Rows 0 and 1 to 2 of a 3 by 2 matrix, one behind the other in one file, and a number.
  std::vector<std::vector<std::byte>> parts = {save_to_buffer(tensor_of<float>({1, 2}, {1, 2})),
                                               save_to_buffer(tensor_of<float>({3, 4, 5, 6}, {2, 2})),
                                               save_to_buffer(Value(7))};
  std::string data;
  std::vector<size_t> begins;
  for (const auto& part : parts) {
    begins.push_back(data.size());
    data.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  write_text(folder.path() / "__0_0.distcp", data);
  auto size = [](std::vector<int64_t> sizes) { return Value::size(std::move(sizes)); };
  auto write = [&](std::vector<int64_t> second_offset, const std::string& file, std::vector<int64_t> whole) {
    auto chunk = [&](Value offsets, Value sizes) {
      return meta_object("ChunkStorageMetadata", {{"offsets", offsets}, {"sizes", sizes}});
    };
    Value tensor = meta_object("TensorStorageMetadata",
                               {{"size", size(whole)},
                                {"chunks", Value::list({chunk(size({0, 0}), size({1, 2})),
                                                        chunk(size(second_offset), size({2, 2}))})}});
    Value places = Value::dict();
    auto place = [&](const char* name, Value offset, size_t part) {
      Value index = meta_object("MetadataIndex", {{"fqn", name}, {"offset", offset}, {"index", Value()}});
      places.as_dict().set(index, meta_object("_StorageInfo", {{"relative_path", file},
                                                               {"offset", begins[part]},
                                                               {"length", parts[part].size()}}));
    };
    place("m.w", size({0, 0}), 0);
    place("m.w", size(second_offset), 1);
    place("step", Value(), 2);
    Value metadata = meta_object(
        "Metadata", {{"state_dict_metadata",
                      {{"m.w", tensor}, {"step", meta_object("BytesStorageMetadata", Value::dict())}}},
                     {"planner_data", {{"m.w", Value::tuple({"m", "w"})}}},
                     {"storage_data", places}});
    std::string pickle = io::write_pickle(metadata, [](auto&&...) { return io::StorageReference{}; });
    write_text(folder.path() / ".metadata", pickle);
  };
  write({1, 0}, "__0_0.distcp", {3, 2});
  Value root = load(folder.path());
  EXPECT_EQ(elements<float>(root["m"]["w"].as_tensor()), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(root["step"].as_int(), 7);
  auto error = [&] { return error_of<CheckpointError>([&] { load(folder.path()); }); };
  write({0, 0}, "__0_0.distcp", {3, 2});
  EXPECT_THAT(error(), HasSubstr("overlap"));
  write({2, 0}, "__0_0.distcp", {3, 2});
  EXPECT_THAT(error(), HasSubstr("not inside"));
  write({1, 0}, "__0_0.distcp", {4, 2});
  EXPECT_THAT(error(), HasSubstr("6 of the 8 elements"));
  write({1, 0}, "../__0_0.distcp", {3, 2});
  EXPECT_THAT(error(), HasSubstr("is no file name"));
  write({1, 0}, "__1_0.distcp", {3, 2});
  EXPECT_THAT(error(), HasSubstr("is not there"));
  write_text(folder.path() / ".metadata", "\x80\2cos\nsystem\n.");
  EXPECT_THAT(error(), HasSubstr("os.system"));
}

// ---- files given by mistake, limits
// ---------------------------------------------------------------------------------------------------------------

TEST(Format, OtherFilesAreNamed) {
  const std::pair<std::string, const char*> rows[] = {
      {raw("\x08\x07\x12\x07pytorch\x1a\x03"
           "1.9:\x80\x10"),
       "an ONNX model"},
      {raw("\x08\x01\x12\x07\x0a\x05\x0a\x03xyz"), "SavedModel"},
      {raw("\x0a\x10\x0a\x01x\x12\x0bPlaceholder"), "TensorFlow graph"},
      {std::string("index") + std::string(30, '\0') + "\x57\xfb\x80\x8b\x24\x75\x47\xdb",
       "TensorFlow checkpoint"},
      {"model_checkpoint_path: \"model.ckpt-1\"\n", "TensorFlow checkpoint"},
      {raw("\x1c\0\0\0TFL3...."), "TensorFlow Lite"},
      {"Access denied\n", "plain text"},
      {"[1, 2]", "JSON"},
      {"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"},
  };
  for (const auto& [bytes, text] : rows) EXPECT_THAT(load_error(bytes), HasSubstr(text));
  TemporaryFolder folder;
  write_text(folder.path() / "model.ckpt.data-00000-of-00001", raw("\xff\xfe\xfd\0\1"));
  EXPECT_THAT(error_of<CheckpointError>([&] { load(folder.path() / "model.ckpt.data-00000-of-00001"); }),
              HasSubstr("the data of a TensorFlow checkpoint"));
  // Pickles of protocol 0 have no mark.
  EXPECT_EQ(load_text("(dp0\nS'a'\np1\nI1\ns.")["a"].as_int(), 1);
}

TEST(LoadLimits, EachIsKept) {
  auto buffer = save_to_buffer({{"a", floats({1, 2, 3})}, {"b", floats({1, 2, 3})}});
  auto error = [&](const LoadLimits& limits) {
    return error_of<CheckpointError>(
        [&] { load_from_buffer(buffer, {.map_location = {}, .limits = limits}); });
  };
  EXPECT_THAT(error({.tensor_bytes = 20}), HasSubstr("limits.tensor_bytes"));
  EXPECT_THAT(error({.entries = 3}), HasSubstr("limits.entries"));
  EXPECT_THAT(error({.pickle_bytes = 30}), HasSubstr("at most 30 are accepted (limits.pickle_bytes)"));
  EXPECT_THAT(error({.nesting = 0}), HasSubstr("nested deeper than 0"));
  load_from_buffer(buffer, {.map_location = {}, .limits = {.nesting = 2, .entries = 50, .tensor_bytes = 24}});
}

}  // namespace
}  // namespace tern
