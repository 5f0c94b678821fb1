// The checkpoints in ../shared/checkpoints: good ones give the tensors that their expected.json names,
// hostile ones an error. TERN_SHARED_DIR names the folder above; without it these tests are skipped.
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "io_testing.h"
#include "tern/io/format.h"

namespace tern {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

/// Kinds of containers that load() reads.
const std::set<std::string> kReadKinds = {"zip", "legacy", "pickle", "safetensors"};
/// Files whose dtypes have no DType.
const std::set<std::string> kUnsupportedDTypes = {"hand_v3_new_dtypes.pt", "st_all_dtypes.safetensors"};

fs::path checkpoints() {
  const char* shared = std::getenv("TERN_SHARED_DIR");
  return shared ? fs::path(shared) / "checkpoints" : fs::path();
}

#define TERN_NEED_CHECKPOINTS() \
  if (!fs::exists(checkpoints())) GTEST_SKIP() << "TERN_SHARED_DIR does not name a folder with checkpoints/"

double float8(uint8_t bits, int exponent_bits, int mantissa_bits, int bias, bool has_infinity) {
  int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1),
      mantissa = bits & ((1 << mantissa_bits) - 1);
  double sign = bits & 0x80 ? -1 : 1;
  if (has_infinity && exponent == (1 << exponent_bits) - 1) return mantissa ? NAN : sign * INFINITY;
  if (!has_infinity && (bits & 0x7f) == 0x7f) return NAN;
  double value = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                               : std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  return sign * value;
}

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
    case DType::Float8_e4m3fn:
      for (uint8_t value : elements<uint8_t>(tensor)) result.push_back(float8(value, 4, 3, 7, false));
      break;
    case DType::Float8_e5m2:
      for (uint8_t value : elements<uint8_t>(tensor)) result.push_back(float8(value, 5, 2, 15, true));
      break;
    default:
      ADD_FAILURE() << "no reader for " << name(tensor.dtype());
  }
  return result;
}

/// Two files name an integer of 615 digits and half of a surrogate pair, which the JSON reader refuses.
std::string readable_json(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t digits = text.find_first_not_of("0123456789", i) - i;
    if (digits > 300) {
      result += '0';
      i += digits;
    } else if (text.compare(i, 3, "\\ud") == 0) {
      result += '?';
      i += 6;
    } else {
      result += text[i++];
    }
  }
  return result;
}

double real_of(const Json& json) {
  if (!json.is_string()) return json.is_boolean() ? json.get<bool>() : json.get<double>();
  std::string text = json;
  return text == "nan" ? NAN : text == "inf" ? INFINITY : -INFINITY;
}
std::complex<double> number_of(const Json& json) {
  if (json.is_array()) return {real_of(json[0]), real_of(json[1])};
  return real_of(json);
}
bool close(double a, double b, double tolerance) {
  if (std::isnan(b)) return std::isnan(a);
  return a == b || std::fabs(a - b) <= tolerance;
}
bool close(std::complex<double> a, std::complex<double> b, double tolerance) {
  return close(a.real(), b.real(), tolerance) && close(a.imag(), b.imag(), tolerance);
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
    auto [found, added] = storages.try_emplace(expected["storage"].get<std::string>(), tensor.storage());
    EXPECT_EQ(found->second, tensor.storage()) << "sharing";
  }
  if (!expected.contains("sum") || tensor.numel() > (1 << 24)) return;
  std::vector<std::complex<double>> values = numbers(tensor);
  std::complex<double> sum = 0;
  for (auto number : values) sum += number;
  double tolerance = 1e-9 * std::fabs(real_of(expected["abs_sum"])) + 1e-300;
  if (!expected.contains("finite_sum")) {
    EXPECT_TRUE(close(sum, number_of(expected["sum"]), tolerance)) << sum << " " << expected["sum"];
  }
  for (size_t i = 0; i < expected["first4"].size(); ++i)
    EXPECT_TRUE(close(values[i], number_of(expected["first4"][i]), 0))
        << i << ": " << values[i] << " " << expected["first4"][i];
}

void compare_file(const fs::path& path) {
  SCOPED_TRACE(path.filename().string());
  Json expected = Json::parse(readable_json(read_text(path.string() + ".expected.json")));
  if (!kReadKinds.contains(expected["kind"].get<std::string>()) ||
      kUnsupportedDTypes.contains(path.filename().string()))
    return;
  if (path.extension() == ".npz") return;
  Value root;
  try {
    root = load(path, {.map_location = "cpu", .weights_only = false});
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
    return;
  }
  std::map<std::string, Storage> storages;
  for (const Json& tensor : expected["tensors"]) {
    std::string kind = tensor["kind"];
    if (kind != "tensor" && kind != "parameter" && kind != "ndarray") continue;
    if (!tensor.contains("sum")) continue;
    SCOPED_TRACE(tensor["path"].get<std::string>());
    const Value* value = walk(root, tensor["parts"]);
    if (!value) {
      ADD_FAILURE() << "there is no such tensor";
      continue;
    }
    try {
      compare_tensor(*value, tensor, storages);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(Corpus, GoodFilesGiveTheExpectedTensors) {
  TERN_NEED_CHECKPOINTS();
  for (const char* folder : {"made", "real"})
    for (const auto& entry : fs::directory_iterator(checkpoints() / folder))
      if (entry.path().string().ends_with(".expected.json")) {
        fs::path file = entry.path();
        file.replace_extension().replace_extension();
        if (fs::is_regular_file(file)) compare_file(file);
      }
  EXPECT_GT(compared, 1000);
}

TEST(Corpus, GoodFilesSurviveSavingAgain) {
  TERN_NEED_CHECKPOINTS();
  LoadOptions options{.map_location = "cpu", .weights_only = false};
  for (const char* folder : {"made", "real"})
    for (const auto& entry : fs::directory_iterator(checkpoints() / folder)) {
      if (!entry.is_regular_file() || !entry.path().filename().string().starts_with("zip_")) continue;
      if (entry.path().extension() == ".json" || fs::file_size(entry.path()) == 0) continue;
      SCOPED_TRACE(entry.path().filename().string());
      Value value;
      try {
        value = load(entry.path(), options);
      } catch (const CheckpointError&) {
        continue;
      }
      EXPECT_EQ(load_from_buffer(save_to_buffer(value), options).str(1 << 20), value.str(1 << 20));
    }
}

TEST(Corpus, BadFilesAreRefused) {
  TERN_NEED_CHECKPOINTS();
  std::istringstream manifest(read_text(checkpoints() / "bad/MANIFEST.tsv"));
  std::string line;
  std::getline(manifest, line);
  while (std::getline(manifest, line)) {
    std::vector<std::string> fields;
    std::istringstream columns(line);
    for (std::string field; std::getline(columns, field, '\t');) fields.push_back(field);
    fs::path path = checkpoints() / "bad" / fields[0];
    if (!fs::is_regular_file(path)) continue;
    SCOPED_TRACE(fields[0] + ": " + fields[2]);
    for (bool weights_only : {true, false}) {
      auto begin = std::chrono::steady_clock::now();
      bool refused = false;
      try {
        load(path, {.map_location = "cpu", .weights_only = weights_only});
      } catch (const CheckpointError&) {
        refused = true;
      } catch (const std::exception& error) {
        ADD_FAILURE() << "another error: " << error.what();
      }
      bool may_be_inert = !weights_only && fields[4].find("stub mode") != std::string::npos;
      EXPECT_TRUE(refused || fields[3] != "REFUSE" || may_be_inert) << "weights_only = " << weights_only;
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
    }
  }
  EXPECT_FALSE(fs::exists("/tmp/PWNED"));
}

}  // namespace
}  // namespace tern
