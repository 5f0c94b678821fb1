// save and load in PyTorch's zip format and in safetensors: round trips, sharing, places, errors.
#include "tern/io/serialize.h"

#include "io_testing.h"
#include "placed_checkpoint.h"
#include "tern/io/npy.h"

namespace tern {
namespace {

using testing::HasSubstr;

Value round_trip(const Value& value, const LoadOptions& options = {}) {
  return load_from_buffer(save_to_buffer(value), options);
}

TEST(Serialize, DictToFileAndBack) {
  TemporaryFolder folder;
  StateDict state{{"fc.weight", tensor_of<float>({1, 2, 3, 4, 5, 6}, {2, 3})}, {"fc.bias", floats({7, 8})}};
  state.set_version("", 1);
  state.set_version("fc", 1);
  save({{"epoch", 3}, {"model", state}, {"note", "text"}}, folder / "model.pt");
  EXPECT_EQ(folder.entries(), 1u);
  Value back = load(folder / "model.pt");
  EXPECT_EQ(back["epoch"].as_int(), 3);
  StateDict model = back["model"].as_state_dict();
  EXPECT_EQ(elements<float>(model["fc.weight"]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(model["fc.weight"].shape(), (Shape{2, 3}));
  EXPECT_EQ(model.version("fc"), 1);
}

TEST(Serialize, PartsOfATemporaryOutliveIt) {
  TemporaryFolder folder;
  save({{"list", Value::list({1, 2, 3})}, {"text", "a text too long to be held in place"}}, folder / "a.pt");
  auto read = [&] { return load(folder / "a.pt"); };
  int64_t sum = 0;
  for (const Value& item : read()["list"].as_list()) sum += item.as_int();
  EXPECT_EQ(sum, 6);
  const Value& list = read()["list"];
  EXPECT_EQ(list.as_list().size(), 3u);
  const std::string& text = read()["text"].as_str();
  EXPECT_EQ(text, "a text too long to be held in place");
  size_t entries = 0;
  for (const auto& entry : read().as_dict()) entries += entry.key.as_str().size();
  EXPECT_EQ(entries, 8u);
}

TEST(Serialize, TensorAsRoot) {
  Tensor back = round_trip(tensor_of<int64_t>({1, -2}, {2})).as_tensor();
  EXPECT_EQ(elements<int64_t>(back), (std::vector<int64_t>{1, -2}));
}

TEST(Serialize, EveryDTypeBitForBit) {
  for (int i = 0; i < kNumDTypes; ++i) {
    auto dtype = static_cast<DType>(i);
    if (is_quantized(dtype)) continue;  // not without a scale
    std::vector<std::byte> bytes(6 * itemsize(dtype));
    for (size_t b = 0; b < bytes.size(); ++b)
      bytes[b] = static_cast<std::byte>(dtype == DType::Bool ? b % 2 : b * 37 + 11);
    Tensor back = round_trip(io::tensor_from_bytes(bytes, dtype, {2, 3})).as_tensor();
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(io::element_bytes(back), bytes) << name(dtype);
  }
}

TEST(Serialize, ViewsKeepSharing) {
  Tensor base = tensor_of<float>({0, 1, 2, 3, 4, 5}, {6});
  Tensor grid = Tensor::from_storage(base.storage(), DType::Float32, {2, 3}, {3, 1});
  Tensor columns = Tensor::from_storage(base.storage(), DType::Float32, {3, 2}, {1, 3});
  Tensor tail = Tensor::from_storage(base.storage(), DType::Float32, {2}, {1}, 4);
  Tensor wide = Tensor::from_storage(base.storage(), DType::Float32, {3, 4}, {0, 1}, 1);
  Value back = round_trip(Value::list({base, grid, columns, tail, wide, base}));
  EXPECT_EQ(elements<float>(back[2].as_tensor()), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(elements<float>(back[3].as_tensor()), (std::vector<float>{4, 5}));
  EXPECT_EQ(elements<float>(back[4].as_tensor()), (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(back[i].as_tensor().storage(), back[0].as_tensor().storage());
  EXPECT_TRUE(back[0].as_tensor().is_same(back[5].as_tensor()));
  EXPECT_FALSE(back[0].as_tensor().is_same(back[1].as_tensor()));
}

TEST(Serialize, EmptyAndScalar) {
  Value back =
      round_trip({{"empty", tensor_of<float>({}, {0, 3})}, {"scalar", tensor_of<double>({2.5}, {})}});
  EXPECT_EQ(back["empty"].as_tensor().shape(), (Shape{0, 3}));
  EXPECT_EQ(back["scalar"].as_tensor().dim(), 0);
  EXPECT_EQ(back["scalar"].as_float(), 2.5);
}

TEST(Serialize, RequiresGradIsKept) {
  for (const DType dtype : {DType::Float32, DType::Complex64, DType::Complex32, DType::Float8_e5m2,
                            DType::Float8_e8m0fnu, DType::Float4_e2m1fn_x2}) {
    const std::string number(itemsize(dtype), '\0');
    const Tensor weight = io::tensor_from_bytes(bytes_of(number), dtype, {1}),
                 fixed = io::tensor_from_bytes(bytes_of(number), dtype, {1});
    weight.requires_grad_(true);
    Value back = round_trip(Value::list({weight, fixed, weight}));
    EXPECT_TRUE(back[0].as_tensor().requires_grad()) << name(dtype);
    EXPECT_FALSE(back[1].as_tensor().requires_grad()) << name(dtype);
    EXPECT_TRUE(back[2].as_tensor().is_same(back[0].as_tensor())) << name(dtype);
  }
  EXPECT_THROW(tensor_of<int64_t>({1}, {1}).requires_grad_(), DTypeError);
}

TEST(Serialize, ManySmallAndOneLarge) {
  std::vector<Value> items;
  for (int i = 0; i < 3000; ++i) items.push_back(floats({static_cast<float>(i)}));
  std::vector<float> large(3 << 20);
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i % 1000);
  items.push_back(floats(large));
  Value back = round_trip(Value::list(items));
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(back[i].as_float(), i);
  EXPECT_EQ(elements<float>(back[3000].as_tensor()), large);
}

TEST(Serialize, OneStorageHasOneType) {
  Tensor base = floats({1, 2});
  Tensor bits = Tensor::from_storage(base.storage(), DType::Int32, {2});
  EXPECT_THAT(
      error_of<ValueError>([&] {
        save_to_buffer(Value::list({base, bits}));
      }),
      HasSubstr("Cannot save multiple tensors or storages that view the same data as different types"));
}

TEST(Serialize, BytesOfOneStorageMayHaveSeveralClasses) {
  const std::string numbers = "0123456789abcdef";
  const Tensor bytes = io::tensor_from_bytes(bytes_of(numbers), DType::UInt8, {16});
  const auto seen_as = [&](DType dtype, int64_t first, int64_t count) {
    return Tensor::from_storage(bytes.storage(), dtype, {count}, {1}, first);
  };
  const Tensor empty = tensor_of<float>({}, {0});
  const Value values[] = {
      Value::list({seen_as(DType::Float8_e5m2, 0, 16), bytes}),
      Value::list({bytes, seen_as(DType::UInt32, 1, 2)}),
      Value::list({seen_as(DType::UInt32, 1, 3), seen_as(DType::UInt8, 3, 2), seen_as(DType::UInt16, 7, 1)}),
      Value::list({seen_as(DType::UInt64, 1, 1), Value(StorageValue{bytes.storage(), DType::UInt8, 16})}),
      Value::list({empty, Tensor::from_storage(empty.storage(), DType::Int32, {0})}),
  };
  for (const Value& value : values)
    for (bool compact : {false, true}) {
      const Value back = load_from_buffer(save_to_buffer(value, {.compact = compact}));
      ASSERT_EQ(back.length(), value.length());
      for (size_t i = 0; i < value.length(); ++i) {
        const Value& was = value.as_list()[i];
        const Value& is = back.as_list()[i];
        ASSERT_EQ(is.kind(), was.kind());
        if (!was.is_tensor()) {
          EXPECT_EQ(is.as_storage().numel, 16);
          EXPECT_EQ(is.as_storage().dtype, DType::UInt8);
          continue;
        }
        EXPECT_EQ(is.as_tensor().dtype(), was.as_tensor().dtype());
        EXPECT_EQ(io::element_bytes(is.as_tensor()), io::element_bytes(was.as_tensor()));
        EXPECT_EQ(is.as_tensor().storage(), back.as_list()[0].as_tensor().storage());
      }
    }
}

TEST(Serialize, TreesWithoutTheirNumbersAreNotSaved) {
  TemporaryFolder folder;
  save({{"w", floats({1, 2})}, {"x", floats({3})}}, folder / "a.pt");
  const Value tree = load(folder / "a.pt", {.skip_data = true});
  const StateDict tensors = tree.as_state_dict();
  const std::function<void()> uses[] = {
      [&] { save(tree, folder / "b.pt"); }, [&] { save_safetensors(tensors, folder / "b.safetensors"); },
      [&] { save_npy(tensors["w"], folder / "b.npy"); }, [&] { tree["x"].as_float(); }};
  for (const auto& use : uses) EXPECT_THAT(error_of<ValueError>(use), HasSubstr("loaded with skip_data"));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(Serialize, LongTextsAndBytesComeBack) {
  const std::string bytes(40 << 20, '\xff'), text(70 << 20, 'x'), number(2000, '\x55');
  const Value back = round_trip({{"b", Value::bytes(bytes)}, {"t", text}, {"n", Value::integer(number)}});
  EXPECT_TRUE(back["b"].as_bytes() == bytes);
  EXPECT_TRUE(back["t"].as_str() == text);
  EXPECT_TRUE(back["n"].resolve().integer_bytes() == number);
  const auto file = save_to_buffer(text);
  EXPECT_THAT(
      error_of<CheckpointError>([&] { load_from_buffer(file, {.limits = {.pickle_bytes = 1 << 20}}); }),
      HasSubstr("at most 1048576 are accepted (limits.pickle_bytes)"));
  const auto stream = save_to_buffer(text, {.format = SaveFormat::Legacy});
  EXPECT_THAT(
      error_of<CheckpointError>([&] { load_from_buffer(stream, {.limits = {.pickle_bytes = 1 << 20}}); }),
      HasSubstr("limits.pickle_bytes"));
}

TEST(Serialize, FailedSaveLeavesTheOldFile) {
  TemporaryFolder folder;
  save(1, folder / "a.pt");
  std::string before = read_text(folder / "a.pt");
  EXPECT_THROW(save(StateDict{{"\xff", floats({1})}}, folder / "a.pt"), ValueError);
  EXPECT_EQ(read_text(folder / "a.pt"), before);
  std::string message = error_of<ValueError>([&] { save({{"w", Tensor()}}, folder / "a.pt"); });
  EXPECT_THAT(message,
              HasSubstr("saving '" + (folder / "a.pt").string() + "': the value['w'] cannot be saved"));
  EXPECT_EQ(read_text(folder / "a.pt"), before);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(Serialize, ErrorsSayWhatTheFileIs) {
  TemporaryFolder folder;
  auto error = [&](std::string_view content) {
    write_text(folder / "f", content);
    return error_of<CheckpointError>([&] { load(folder / "f"); });
  };
  EXPECT_THAT(error(""), HasSubstr("the file is empty"));
  EXPECT_THAT(error("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
  EXPECT_THAT(error("\n<!DOCTYPE HTML><html>"), HasSubstr("HTML page"));
  EXPECT_THAT(error("GGUF...."), HasSubstr("GGUF"));
  EXPECT_THAT(error("\x1f\x8b\x8...."), HasSubstr("gzip"));
  EXPECT_THAT(error("BZh91AY&SY"), HasSubstr("bzip2"));
  EXPECT_THAT(error("\3757zXZ...."), HasSubstr("xz-compressed"));
  EXPECT_THAT(error("\x28\xb5\x2f\xfd...."), HasSubstr("zstd"));
  EXPECT_THAT(error("Rar!\x1a\7...."), HasSubstr("RAR"));
  EXPECT_THAT(error("PK\3\4 and then nothing that is a zip archive"), HasSubstr("cut short"));
  EXPECT_THAT(error_of<IoError>([&] { load(folder / "absent.pt"); }), HasSubstr("No such file"));
}

TEST(Serialize, NegatedViewsOfOneStorageAsTwoDtypes) {
  // _rebuild_tensor_v3(storage of 8 bytes, 0, (count,), (1,), False, {}, dtype, {'neg': True}).
  auto negated = [](const std::string& dtype, char count) {
    return "ctorch._utils\n_rebuild_tensor_v3\n((U\x07storagectorch\nUntypedStorage\nU\x01"
           "0U\x03"
           "cpuK\x08tQK" +
           std::string(1, '\0') + "K" + count + "\x85K\x01\x85\x89}ctorch\n" + dtype + "\n}U\x03neg\x88stR";
  };
  const Value both =
      load_from_buffer(checkpoint_of("\x80\x02](" + negated("float64", 1) + negated("float32", 2) + "e."));
  EXPECT_EQ(elements<float>(both[1].as_tensor()), (std::vector<float>{-1, -2}));
  const auto wide = elements<uint64_t>(both[0].as_tensor());
  EXPECT_EQ(wide, (std::vector<uint64_t>{0xC00000003F800000}));  // only the sign of the whole is turned
}

TEST(MapLocation, AbsentDevicesInPyTorchsWords) {
  Memory* gpus = find_memory(DeviceType::CUDA);
  if (gpus && gpus->device_count() > 0) GTEST_SKIP() << "there is a GPU here";
  EXPECT_THAT(error_of<DeviceError>([] { load_from_buffer(checkpoint_at("cuda:1")); }),
              HasSubstr("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
                        "False. If you are running on a "
                        "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to "
                        "map your storages to the CPU."));
  auto values = [](const LoadOptions& options) {
    return elements<float>(load_from_buffer(checkpoint_at("cuda:1"), options).as_tensor());
  };
  std::vector<float> expected{1, 2};
  EXPECT_EQ(values({.map_location = "cpu"}), expected);
  EXPECT_EQ(values({.map_location = kCPU}), expected);
  EXPECT_EQ(values({.map_location = std::map<std::string, std::string>{{"cuda:1", "cpu"}}}), expected);
  EXPECT_EQ(values({.map_location = std::function<std::optional<Device>(const std::string&)>(
                        [](const std::string& location) {
                          EXPECT_EQ(location, "cuda:1");
                          return std::optional(kCPU);
                        })}),
            expected);
  EXPECT_THROW(values({.map_location = std::map<std::string, std::string>{{"cuda:0", "cpu"}}}), DeviceError);
}

TEST(MapLocation, TakesDevicesTablesAndFunctions) {
  const std::string text = "cpu";
  const LoadOptions rows[] = {
      {.map_location = "cpu"},
      {.map_location = text},
      {.map_location = kCPU},
      {.map_location = Device(text)},
      {.map_location = {{"cuda:1", "cpu"}}},
      {.map_location = {{"cuda:0", 1}, {"cuda:1", kCPU}}},
      {.map_location = MapLocation({{"cuda:1", "cpu"}})},
      {.map_location = std::map<std::string, std::string>{{"cuda:1", "cpu"}}},
      {.map_location = [](const std::string&) { return kCPU; }},
      {.map_location = [&](std::string_view place) { return place == "cuda:1" ? text : "cuda:0"; }},
      {.map_location = [](const std::string&) -> std::optional<Device> { return kCPU; }},
  };
  for (const LoadOptions& options : rows) {
    SCOPED_TRACE(&options - rows);
    EXPECT_EQ(elements<float>(load_from_buffer(checkpoint_at("cuda:1"), options).as_tensor()),
              (std::vector<float>{1, 2}));
  }
}

TEST(MapLocation, AnIntegerIsTheNumberOfAGpu) {
  Memory* gpus = find_memory(DeviceType::CUDA);
  const int count = gpus ? gpus->device_count() : 0;
  for (int number : {0, 1}) {
    const MapLocation map = number;
    if (number < count)
      EXPECT_EQ(map("cpu"), Device(number));
    else
      EXPECT_THROW(map("cpu"), DeviceError);
  }
}

TEST(MapLocation, AnEmptyFunctionIsRefused) {
  const std::function<std::optional<Device>(const std::string&)> none;
  EXPECT_THAT(error_of<ValueError>([&] { load_from_buffer({}, {.map_location = none}); }),
              HasSubstr("map_location"));
  const std::function<Device(std::string_view)> other;
  EXPECT_THAT(error_of<ValueError>([&] { load_from_buffer({}, {.map_location = other}); }),
              HasSubstr("map_location"));
}

TEST(MapLocation, UnknownPlaces) {
  EXPECT_THAT(
      error_of<CheckpointError>([] { load_from_buffer(checkpoint_at("quantum:0")); }),
      HasSubstr(
          "don't know how to restore data location of torch.storage.UntypedStorage (tagged with quantum:0)"));
  EXPECT_THROW(load_from_buffer(checkpoint_at("cuda:-1")), CheckpointError);
  EXPECT_THROW(load_from_buffer(checkpoint_at("cuda:99999999999")), CheckpointError);
  EXPECT_EQ(elements<float>(load_from_buffer(checkpoint_at("quantum:0"), {.map_location = "cpu"}).as_tensor())
                .size(),
            2u);
}

/// A stream file of one tensor of two floats; `keys` and `data` are what follows the tree.
std::string stream_file(const std::string& numel, const std::string& keys, const std::string& data) {
  using namespace std::string_literals;
  return "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}."s +
         "\x80\x02"
         "ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU\x01"
         "7U\x03"
         "cpu" +
         numel +
         "NtQK\0K\x02\x85K\x01\x85\x89"
         "ccollections\nOrderedDict\n)RtR."s +
         keys + data;
}

TEST(Stream, ReadsFilesFromBeforeTheZipFormat) {
  using namespace std::string_literals;
  std::string keys =
                  "\x80\x02]U\x01"
                  "7a.",
              data = "\2\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40"s;
  auto load_text = [](const std::string& text) { return load_from_buffer(bytes_of(text)); };
  auto error = [&](const std::string& text) { return error_of<CheckpointError>([&] { load_text(text); }); };
  EXPECT_EQ(elements<float>(load_text(stream_file("K\x02", keys, data) + "junk").as_tensor()),
            (std::vector<float>{1, 2}));
  EXPECT_THAT(error(stream_file("K\x03", keys, data)),
              HasSubstr("3 elements in the pickle and 2 in the data"));
  EXPECT_THAT(error(stream_file("J\xff\xff\xff\x7f", keys, data)), HasSubstr("more than the file"));
  EXPECT_THAT(error(stream_file("K\x02", "\x80\x02].", data)), HasSubstr("no data for storage '7'"));
  EXPECT_THAT(error(stream_file("K\x02",
                                "\x80\x02](U\x01"
                                "7U\x01"
                                "7e.",
                                data)),
              HasSubstr("listed twice"));
  EXPECT_THAT(error(stream_file("K\x02",
                                "\x80\x02"
                                "cos\nsystem\n.",
                                data)),
              HasSubstr("only numbers and texts"));
  std::string whole = stream_file("K\x02", keys, data);
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(load_text(whole.substr(0, length)), CheckpointError);
}

TEST(Stream, PlainPicklesHoldStreamFiles) {
  std::string text =
      "\x80\x02}U\x01"
      "aK\x01s.";
  EXPECT_EQ(load_from_buffer(bytes_of(text)).str(), "{'a': 1}");
  EXPECT_THAT(error_of<CheckpointError>([&] { load_from_buffer(bytes_of(text + "x")); }),
              HasSubstr("it is no plain pickle"));
}

TEST(Safetensors, RoundTrip) {
  TemporaryFolder folder;
  StateDict state{{"w", tensor_of<float>({1, 2, 3, 4}, {2, 2})},
                  {"b", io::tensor_from_bytes({}, DType::Bool, {0})},
                  {"i", tensor_of<int64_t>({5}, {})},
                  {"quote\"\u00e4", tensor_of<uint8_t>({1, 2, 3}, {3})}};
  state.insert("transposed", Tensor::from_storage(state["w"].storage(), DType::Float32, {2, 2}, {1, 2}));
  save_safetensors(state, folder / "m.safetensors", {{"format", "pt"}, {"epoch", "3"}});
  SafetensorsFile back = load_safetensors(folder / "m.safetensors");
  EXPECT_EQ(back.metadata.at("epoch"), "3");
  ASSERT_EQ(back.tensors.size(), state.size());
  EXPECT_EQ(back.tensors.begin()->first, "i");  // the widest type comes first, so that all are aligned
  for (const auto& [name, tensor] : state) {
    EXPECT_EQ(back.tensors[name].dtype(), tensor.dtype()) << name;
    EXPECT_EQ(back.tensors[name].shape(), tensor.shape()) << name;
    EXPECT_EQ(io::element_bytes(back.tensors[name]), io::element_bytes(tensor)) << name;
  }
  EXPECT_EQ(load(folder / "m.safetensors")["i"].as_float(), 5);
  std::string raw = read_text(folder / "m.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, raw.data(), 8);
  EXPECT_EQ(length % 8, 0u);
}

TEST(Safetensors, LengthsOfHeadersThatLookLikeOtherFormats) {
  for (size_t length : {640, 896, 1152, 1408, 35615}) {
    std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
    header.resize(length, ' ');
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    file += header + "\7";
    EXPECT_EQ(elements<uint8_t>(load_from_buffer(bytes_of(file))["a"].as_tensor()), std::vector<uint8_t>{7})
        << length;
  }
}

TEST(Safetensors, WrongHeaders) {
  auto error = [](std::string header, size_t data = 8) {
    std::string file(8, '\0');
    uint64_t length = header.size();
    std::memcpy(file.data(), &length, 8);
    file += header + std::string(data, '\0');
    return error_of<CheckpointError>([&] { load_safetensors_from_buffer(bytes_of(file)); });
  };
  auto one = [](const std::string& fields) { return R"({"a":{)" + fields + "}}"; };
  EXPECT_THAT(error(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])")),
              HasSubstr("needs 8 bytes, but its data_offsets give it 4"));
  EXPECT_THAT(error(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), 9),
              HasSubstr("need 8 bytes, but there are 9"));
  EXPECT_THAT(error(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), 7), HasSubstr("incomplete"));
  EXPECT_THAT(error(one(R"("dtype":"F32","shape":[2],"data_offsets":[4,12])"), 12),
              HasSubstr("no gap or overlap"));
  EXPECT_THAT(error(one(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8])")),
              HasSubstr("needs more than 2^64 bytes"));
  EXPECT_THAT(error(one(R"("dtype":"Q32","shape":[2],"data_offsets":[0,8])")),
              HasSubstr("unknown dtype 'Q32'"));
  EXPECT_THAT(error(one(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])")), HasSubstr("not whole"));
  EXPECT_THAT(error(one(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])")), HasSubstr("negative"));
  EXPECT_THAT(error(one(R"("dtype":"F32","data_offsets":[0,8])")), HasSubstr("has no shape"));
  EXPECT_THAT(error(one(R"("dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8])")),
              HasSubstr("twice"));
  EXPECT_THAT(
      error(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"\u0061":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})"),
      HasSubstr("'a' is there twice"));
  EXPECT_THAT(error(R"({"__metadata__":{"a":1}})", 0), HasSubstr("does not belong"));
  EXPECT_THAT(error("{" + std::string(100000, '['), 0), HasSubstr("is wrong"));
  EXPECT_THAT(error(one(R"("x":)" + std::string(100000, '[')), 0), HasSubstr("nested too deep"));
  EXPECT_THAT(error("[]", 0), HasSubstr("not an object"));
  EXPECT_THAT(error("{}  x", 0), HasSubstr("not JSON"));
  EXPECT_THAT(error(std::string("{}\0", 3), 0), HasSubstr("NUL"));
  EXPECT_THAT(error_of<CheckpointError>([] { load_safetensors_from_buffer(bytes_of("\1\2\3\4")); }),
              HasSubstr("too few"));
}

TEST(Safetensors, UnknownFieldsAreSkipped) {
  std::string header =
      R"({"a":{"extra":{"x":[1,{"y":null}]},"dtype":"U8","more":true,"shape":[1],"data_offsets":[0,1]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  file += header + "\x07";
  EXPECT_EQ(elements<uint8_t>(load_safetensors_from_buffer(bytes_of(file)).tensors["a"]),
            std::vector<uint8_t>{7});
}

TEST(Safetensors, WriterRefuses) {
  EXPECT_THAT(error_of<DTypeError>([] {
                save_safetensors_to_buffer({{"c", io::tensor_from_bytes({}, DType::Complex128, {0})}});
              }),
              HasSubstr("complex128, which the format lacks"));
  EXPECT_THROW(save_safetensors_to_buffer({{"__metadata__", floats({1})}}), ValueError);
  EXPECT_THROW(save_safetensors_to_buffer({{"\xff", floats({1})}}), ValueError);
  EXPECT_THROW(save_safetensors_to_buffer({{"u", Tensor()}}), ValueError);
}

}  // namespace
}  // namespace tern
