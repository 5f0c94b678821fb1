// The checkpoints in ../shared/checkpoints: good ones give the tensors that their expected.json names,
// hostile ones an error. TERN_SHARED_DIR names the folder above; without it these tests are skipped.
#include <fmt/core.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "io_testing.h"
#include "tern/core/dtype.h"
#include "tern/io/module_tree.h"
#include "tests/support/checkpoint_corpus.h"

namespace tern {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::vector<std::complex<double>> numbers(const Tensor& tensor) {
  std::vector<std::complex<double>> result;
  auto all = [&]<class T>(T) {
    for (T value : elements<T>(tensor)) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        result.push_back(static_cast<float>(value));
      else if constexpr (std::is_arithmetic_v<T>)
        result.push_back(static_cast<double>(value));
      else
        result.push_back(value);
    }
  };
  switch (tensor.dtype()) {
    case DType::Bool:
    case DType::UInt8:
      all(uint8_t{});
      break;
    case DType::Int8:
      all(int8_t{});
      break;
    case DType::Int16:
      all(int16_t{});
      break;
    case DType::Int32:
      all(int32_t{});
      break;
    case DType::Int64:
      all(int64_t{});
      break;
    case DType::UInt16:
      all(uint16_t{});
      break;
    case DType::UInt32:
      all(uint32_t{});
      break;
    case DType::UInt64:
      all(uint64_t{});
      break;
    case DType::Float16:
      all(Half{});
      break;
    case DType::BFloat16:
      all(BFloat16{});
      break;
    case DType::Float32:
      all(float{});
      break;
    case DType::Float64:
      all(double{});
      break;
    case DType::Complex64:
      for (auto value : elements<std::complex<float>>(tensor)) result.push_back(std::complex<double>(value));
      break;
    case DType::Complex128:
      all(std::complex<double>{});
      break;
    case DType::QUInt8:
      all(uint8_t{});
      break;
    case DType::QInt8:
      all(int8_t{});
      break;
    case DType::QInt32:
      all(int32_t{});
      break;
    case DType::Float8_e4m3fn:
    case DType::Float8_e5m2:
    case DType::Float8_e4m3fnuz:
    case DType::Float8_e5m2fnuz:
    case DType::Float8_e8m0fnu:
      for (uint8_t bits : elements<uint8_t>(tensor)) result.push_back(float8_value(tensor.dtype(), bits));
      break;
    default:
      ADD_FAILURE() << "no reader for " << name(tensor.dtype());
  }
  return result;
}

/// One step of a path of expected.json: keys as text, positions in decimal, an object's state merged in at
/// its place.
const Value* step(const Value& value, const std::string& part) {
  if (value.is_dict()) {
    for (const auto& [key, entry] : value.as_dict())
      if ((key.is_str() ? key.as_str() : key.str()) == part) return &entry;
    return nullptr;
  }
  if (value.is_list() || value.is_tuple()) {
    return part.find_first_not_of("0123456789") == std::string::npos && !part.empty()
               ? value.find(Value(std::stoll(part)))
               : nullptr;
  }
  if (!value.is_object()) return nullptr;
  const ValueObject& object = value.as_object();
  if (part == "__args__") return &object.args;
  if (part == "__state__") return &object.state;
  for (const auto& [key, entry] : object.entries)
    if ((key.is_str() ? key.as_str() : key.str()) == part) return &entry;
  if (part.find_first_not_of("0123456789") == std::string::npos && !part.empty()) {
    auto position = static_cast<size_t>(std::stoull(part));
    if (position < object.items.size()) return &object.items[position];
  }
  return object.attribute(part);
}

const Value* walk(const Value& root, const Json& parts) {
  const Value* value = &root;
  for (const Json& part : parts)
    if (!part.is_string() || !(value = step(*value, part.get<std::string>()))) return nullptr;
  return value;
}

/// What refusing a file may take beside its own size.
constexpr size_t kMaxExtraMemory = size_t{256} << 20;

/// How many tensors the test has seen.
int compared = 0;

void compare_tensor(const Value& value, const Json& expected, std::map<std::string, Storage>& storages) {
  Tensor tensor = value.as_tensor();
  ++compared;
  EXPECT_EQ(name(tensor.dtype()), expected["dtype"].get<std::string>());
  std::vector<int64_t> shape = expected["shape"];
  EXPECT_EQ(tensor.shape(), IntArrayRef(shape));
  std::string kind = expected["kind"];
  if (kind != "ndarray" && expected.contains("stride")) {
    std::vector<int64_t> stride = expected["stride"];
    EXPECT_EQ(tensor.strides(), IntArrayRef(stride));
    // A storage that is a part of another (files of 2017) counts from its own begin there.
    int64_t held = static_cast<int64_t>(tensor.storage()->nbytes() / itemsize(tensor.dtype()));
    if (held == expected["storage_numel"].get<int64_t>()) {
      EXPECT_EQ(tensor.storage_offset(), expected["offset"].get<int64_t>());
    }
  }
  if (expected.contains("requires_grad")) {
    EXPECT_EQ(tensor.requires_grad(), expected["requires_grad"].get<bool>());
  }
  if (expected.contains("storage") && !expected.contains("metadata") && !expected.contains("view_of")) {
    // Constants of TorchScript have keys of their own.
    std::string path = expected.value("path", "");
    std::string key =
        (path.starts_with("__constants__") ? "constant " : "") + expected["storage"].get<std::string>();
    auto [found, added] = storages.try_emplace(key, tensor.storage());
    EXPECT_EQ(found->second, tensor.storage()) << "sharing";
  }
  if (!expected.contains("sum") || tensor.numel() > (1 << 24)) return;
  std::vector<std::complex<double>> values = numbers(tensor);
  std::complex<double> sum = 0;
  for (auto number : values) sum += number;
  double tolerance = 1e-9 * std::fabs(number_of(expected["abs_sum"]).real()) + 1e-300;
  if (!expected.contains("finite_sum")) {
    EXPECT_TRUE(close(sum, number_of(expected["sum"]), tolerance)) << sum << " " << expected["sum"];
  }
  for (size_t i = 0; i < expected["first4"].size(); ++i)
    EXPECT_TRUE(close(values[i], number_of(expected["first4"][i]), 0))
        << i << ": " << values[i] << " " << expected["first4"][i];
}

/// (layout, (indices, values, size)): the parts of a sparse tensor.
void compare_sparse(const Value& value, const Json& expected, std::map<std::string, Storage>& storages) {
  const std::vector<Value>& args = value.as_object().args.as_tuple();
  EXPECT_EQ(args[0].as_layout(), expected["layout"].get<std::string>());
  const std::vector<Value>& parts = args[1].as_sequence();
  std::vector<int64_t> shape = expected["shape"];
  size_t size_at = 0;
  for (size_t i = 0; i < expected["parts"].size(); ++i) {
    if (expected["parts"][i].is_object()) compare_tensor(parts[i], expected["parts"][i], storages);
    if (expected["parts"][i].is_array() && size_at == 0) size_at = i;
  }
  EXPECT_EQ(parts.at(size_at).as_size(), shape);
  ++compared;
}

/// (dtype, size, stride, requires_grad): a tensor without numbers.
void compare_meta(const Value& value, const Json& expected) {
  const std::vector<Value>& args = value.as_object().args.as_tuple();
  std::vector<int64_t> shape = expected["shape"];
  EXPECT_EQ(name(args[0].as_dtype()), expected["dtype"].get<std::string>());
  ASSERT_EQ(args[1].length(), shape.size());
  for (size_t i = 0; i < shape.size(); ++i) EXPECT_EQ(args[1].as_sequence()[i].as_int(), shape[i]);
  ++compared;
}

void compare_storage(const Value& value, const Json& expected) {
  StorageValue held = value.as_storage();
  ++compared;
  EXPECT_EQ(name(held.dtype), expected["dtype"].get<std::string>());
  if (!expected.contains("first4")) return;
  Tensor tensor = Tensor::from_storage(held.storage, held.dtype, {held.numel}, {1}, held.offset);
  std::vector<std::complex<double>> values = numbers(tensor);
  for (size_t i = 0; i < expected["first4"].size(); ++i)
    EXPECT_TRUE(close(values.at(i), number_of(expected["first4"][i]), 0)) << i;
}

void compare_any(const Value& value, const Json& expected, std::map<std::string, Storage>& storages) {
  const std::string kind = expected["kind"];
  if (kind == "sparse") return compare_sparse(value, expected, storages);
  if (kind == "meta") return compare_meta(value, expected);
  if (kind == "storage") return compare_storage(value, expected);
  if (kind == "ndarray" && !expected.contains("sum")) {  // of texts, dates, objects: kept as its parts
    EXPECT_TRUE(value.is_object() && value.as_object().has_state);
    return;
  }
  compare_tensor(value, expected, storages);
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

int values_compared = 0;

/// A scalar of the file; those that the file's readers describe by a type of their own are left out.
void compare_value(const Value& value, const Json& expected) {
  ++values_compared;
  if (expected.is_null()) {
    EXPECT_TRUE(value.is_none());
  } else if (expected.is_boolean()) {
    EXPECT_EQ(value.as_bool(), expected.get<bool>());
  } else if (expected.is_number_integer()) {
    if (value.kind() == ValueKind::Int) {
      EXPECT_EQ(value.as_int(), expected.get<int64_t>());
    }
  } else if (expected.is_number_float()) {
    if (value.is_float()) {
      EXPECT_TRUE(close(value.as_float(), expected.get<double>(), 0));
    }
  } else if (expected.is_string()) {
    // Long texts are cut with an ellipsis, characters outside the basic plane were lost (read_expected).
    std::string text = expected;
    if (text.ends_with("\xe2\x80\xa6")) text.resize(text.size() - 3);
    text = text.substr(0, text.find('?'));
    if (value.is_str()) {  // else the text describes a value of another kind
      EXPECT_TRUE(value.as_str().starts_with(text)) << value.str() << " " << text;
    }
  } else if (expected.contains("bytes_hex")) {
    EXPECT_EQ(hex(value.as_bytes()).substr(0, expected["bytes_hex"].get<std::string>().size()),
              expected["bytes_hex"].get<std::string>());
    EXPECT_EQ(value.length(), expected["len"].get<size_t>());
  } else if (expected.contains("set")) {
    EXPECT_EQ(value.as_set().size(), expected["set"].size());
  } else if (expected.contains("complex")) {
    EXPECT_EQ(value.as_complex(), number_of(expected["complex"]));
  } else if (expected.contains("torch.Size")) {
    EXPECT_EQ(value.as_size(), expected["torch.Size"].get<std::vector<int64_t>>());
  } else if (expected.contains("numpy_scalar") && expected["numpy_scalar"].is_number()) {
    EXPECT_TRUE(close(value.as_float(), expected["numpy_scalar"].get<double>(), 0));
  } else if (expected.contains("global")) {
    std::string name = value.kind() == ValueKind::DType ? "torch." + std::string(tern::name(value.as_dtype()))
                                                        : value.as_global().full();
    EXPECT_EQ(name, expected["global"].get<std::string>());
  }
}

/// The value at "a.b.c", where keys may have full stops in them too.
const Value* walk_text(const Value& value, std::string_view path) {
  if (path.empty()) return &value;
  for (size_t dot = path.find('.');; dot = path.find('.', dot + 1)) {
    const std::string part(path.substr(0, dot));
    if (const Value* next = step(value, part)) {
      if (dot == std::string_view::npos) return next;
      if (const Value* found = walk_text(*next, path.substr(dot + 1))) return found;
    }
    if (dot == std::string_view::npos) return nullptr;
  }
}

void compare_modules(const Value& root, const Json& modules, std::map<std::string, Storage>& storages) {
  for (const Json& expected : modules) {
    const Value* module = walk_text(root, expected["path"].get<std::string>());
    ASSERT_TRUE(module && (is_module_object(*module) || module->is_tensor() || module->is_object()));
    // What the description calls a module may be a container of parameters that is none.
    if (!is_module_object(*module)) continue;
    EXPECT_EQ(module->as_object().class_name(), expected["class"].get<std::string>());
    StateDict dict = state_dict_of(*module);
    std::vector<std::string> names, wanted;
    for (const auto& [name, tensor] : dict) names.push_back(name);
    for (const Json& tensor : expected["state_dict"]) {
      wanted.push_back(tensor["name"]);
      SCOPED_TRACE(wanted.back());
      if (const Tensor* found = dict.find(wanted.back())) compare_tensor(*found, tensor, storages);
    }
    EXPECT_EQ(names, wanted);
  }
}

void compare_file(const fs::path& path) {
  SCOPED_TRACE(path.filename().string());
  Json expected = read_expected(path.string() + ".expected.json");
  Value root;
  try {
    root = load(path, {.map_location = "cpu", .weights_only = false});
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
    return;
  }
  std::map<std::string, Storage> storages;
  try {
    for (const Json& tensor : expected["tensors"]) {
      SCOPED_TRACE(tensor["path"].get<std::string>());
      const Value* value = tensor["kind"] == "sparse" ? walk_text(root, tensor["path"].get<std::string>())
                                                      : walk(root, tensor["parts"]);
      if (!value)
        ADD_FAILURE() << "there is no such tensor";
      else
        compare_any(*value, tensor, storages);
    }
    const Json scalars = expected.value("values", Json::object());
    for (const auto& [place, scalar] : scalars.items()) {
      SCOPED_TRACE(place);
      // Some descriptions shorten paths ("np.dtype", "..."); a tensor stands where an object is merged in.
      if (const Value* value = walk_text(root, place)) compare_value(*value, scalar);
    }
    compare_modules(root, expected.value("modules", Json::array()), storages);
    if (expected.contains("state_dict_of_the_module")) {
      Json names = Json::array();
      for (const auto& [name, tensor] : state_dict_of(root)) {
        std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
        names.push_back({name, shape});
      }
      EXPECT_EQ(names, expected["state_dict_of_the_module"]);
    }
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

/// Paths and shapes of the tensors in made/sharded/expected.json, in a dict of names.
void compare_shards(const Value& root) {
  Json expected = read_expected(shared_checkpoints() / "made/sharded/expected.json");
  std::map<std::string, Storage> storages;
  EXPECT_EQ(root.length(), expected["tensors"].size());
  for (Json tensor : expected["tensors"]) {
    tensor["kind"] = "ndarray";
    tensor["abs_sum"] = tensor["sum"];
    compare_tensor(root[tensor["path"].get<std::string>()], tensor, storages);
  }
}

TEST(Corpus, GoodFilesGiveTheExpectedTensors) {
  TERN_NEED_CHECKPOINTS();
  for (const char* folder : {"made", "real"})
    for (const auto& entry : fs::directory_iterator(shared_checkpoints() / folder))
      if (entry.path().string().ends_with(".expected.json")) {
        fs::path file = entry.path();
        file.replace_extension().replace_extension();
        ASSERT_TRUE(fs::is_regular_file(file)) << file;
        compare_file(file);
      }
  EXPECT_GT(compared, 2000);
  EXPECT_GT(values_compared, 4000);
}

TEST(Corpus, ShardsAreMergedByTheirIndex) {
  TERN_NEED_CHECKPOINTS();
  const fs::path folder = shared_checkpoints() / "made/sharded";
  compare_shards(load(folder / "model.safetensors.index.json"));
  compare_shards(load(folder / "pytorch_model.bin.index.json"));
  EXPECT_THAT(error_of<CheckpointError>([&] { load(folder); }), testing::HasSubstr("several indexes"));
}

TEST(Corpus, DistributedCheckpointsArePutTogether) {
  TERN_NEED_CHECKPOINTS();
  Value root = load(shared_checkpoints() / "made/dcp_onefile");
  Tensor weight = root["model.w"].as_tensor();
  EXPECT_EQ(weight.shape(), IntArrayRef({2, 3}));
  EXPECT_EQ(weight.dtype(), DType::Float32);
  EXPECT_EQ(root["epoch"].kind(), ValueKind::Int);
  EXPECT_TRUE(Value(root["cfg"]).is_dict());
}

/// Files without tensors for us: what they are said to be.
TEST(Corpus, OtherFilesAreNamed) {
  TERN_NEED_CHECKPOINTS();
  const std::pair<const char*, const char*> rows[] = {
      {"made/zip_proto0.pt", "persistent id is written as text"},
      {"made/legacy_proto0.pt", "persistent id is written as text"},
      {"real/lfs_pointer_optimizer.pt", "Git LFS pointer"},
      {"real/t7_lua_torch.t7", "Lua Torch7"},
      {"real/nested_sb3_ppo.zip", "unpack it and load 'policy"},
      {"real/tar_burn_synthetic.tar", "no member"},
      {"real/model.safetensors.index.json", "'model-00001-of-00006.safetensors', which is not there"},
      {"real/pytorch_model.bin.index.json", "which is not there"},
      {"real/mal_picklescan_dns.npy", "Python objects"},
      {"bad/onnx_like.onnx", "ONNX"},
  };
  for (const auto& [file, text] : rows)
    EXPECT_THAT(error_of<CheckpointError>([&, &path = file] { load(shared_checkpoints() / path); }),
                testing::HasSubstr(text))
        << file;
  for (const auto& entry : fs::directory_iterator(shared_checkpoints() / "real"))
    if (entry.path().filename().string().starts_with("mal_")) {
      EXPECT_THROW(load(entry.path(), {.map_location = "cpu"}), CheckpointError) << entry.path();
    }
  EXPECT_FALSE(fs::exists("/tmp/PWNED"));
}

TEST(Corpus, GoodFilesSurviveSavingAgain) {
  TERN_NEED_CHECKPOINTS();
  LoadOptions options{.map_location = "cpu", .weights_only = false};
  for (const char* folder : {"made", "real"})
    for (const auto& entry : fs::directory_iterator(shared_checkpoints() / folder)) {
      if (!fs::exists(entry.path().string() + ".expected.json")) continue;
      // In these two of 2017 a part of a storage stands without a tensor, which the zip format cannot say.
      const std::string file = entry.path().filename().string();
      if (file == "hand_legacy_views.pt" || file == "legacy_bumblebee_storage_view.pt") continue;
      SCOPED_TRACE(entry.path().filename().string());
      try {
        Value value = load(entry.path(), options);
        EXPECT_EQ(load_from_buffer(save_to_buffer(value), options).str(1 << 20), value.str(1 << 20));
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif

/// The kernel's figure for this process in bytes: "VmRSS", or "VmHWM", its highest value.
size_t memory_figure(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
  return 0;
}
/// Sets VmHWM to what is in use now; false where the system does not let us.
bool reset_peak() { return bool(std::ofstream("/proc/self/clear_refs") << "5" << std::flush); }

TEST(Corpus, BadFilesAreRefused) {
  TERN_NEED_CHECKPOINTS();
  for (const auto& [path, what, verdict, remark] : bad_checkpoints()) {
    SCOPED_TRACE(what);
    for (bool weights_only : {true, false}) {
      const bool measured = kMemoryIsOurs && reset_peak();
      const size_t before = memory_figure("VmRSS");
      auto begin = std::chrono::steady_clock::now();
      bool refused = false;
      try {
        load(path, {.map_location = "cpu", .weights_only = weights_only});
      } catch (const CheckpointError&) {
        refused = true;
      } catch (const std::exception& error) {
        ADD_FAILURE() << "another error: " << error.what();
      }
      bool may_be_inert = !weights_only && remark.find("stub mode") != std::string::npos;
      EXPECT_TRUE(refused || verdict != "REFUSE" || may_be_inert) << "weights_only = " << weights_only;
      EXPECT_LT(std::chrono::steady_clock::now() - begin, kMaxAnswerTime);
      if (measured) {
        EXPECT_LE(memory_figure("VmHWM"), before + fs::file_size(path) + kMaxExtraMemory);
      }
    }
  }
  EXPECT_FALSE(fs::exists("/tmp/PWNED"));
}

}  // namespace
}  // namespace tern
