// Reading and writing of safetensors. The rules are those of the reference implementation
// (huggingface/safetensors, safetensors/src/tensor.rs), and its text where the implementation is more
// lenient.
#include "tern/io/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/io/bulk_read.h"
#include "tern/io/byte_order.h"
#include "tern/io/format.h"
#include "tern/io/load_budget.h"
#include "tern/io/mapped_file.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/utf8.h"

namespace tern::io {

namespace {

constexpr uint64_t kMaxHeader = 100'000'000;
constexpr std::string_view kMetadata = "__metadata__";

/// In the order in which the reference writes tensors, from last to first.
constexpr std::pair<std::string_view, DType> kTypes[] = {{"BOOL", DType::Bool},
                                                         {"F4", DType::Float4_e2m1fn_x2},
                                                         {"F6_E2M3", DType::Float6_e2m3fn_x4},
                                                         {"F6_E3M2", DType::Float6_e3m2fn_x4},
                                                         {"U8", DType::UInt8},
                                                         {"I8", DType::Int8},
                                                         {"F8_E5M2", DType::Float8_e5m2},
                                                         {"F8_E4M3", DType::Float8_e4m3fn},
                                                         {"F8_E8M0", DType::Float8_e8m0fnu},
                                                         {"F8_E4M3FNUZ", DType::Float8_e4m3fnuz},
                                                         {"F8_E5M2FNUZ", DType::Float8_e5m2fnuz},
                                                         {"I16", DType::Int16},
                                                         {"U16", DType::UInt16},
                                                         {"F16", DType::Float16},
                                                         {"BF16", DType::BFloat16},
                                                         {"I32", DType::Int32},
                                                         {"U32", DType::UInt32},
                                                         {"F32", DType::Float32},
                                                         {"C64", DType::Complex64},
                                                         {"F64", DType::Float64},
                                                         {"I64", DType::Int64},
                                                         {"U64", DType::UInt64}};

/// How many of the format's numbers one element holds.
int64_t packed_count(DType dtype) {
  if (dtype == DType::Float4_e2m1fn_x2) return 2;
  return dtype == DType::Float6_e2m3fn_x4 || dtype == DType::Float6_e3m2fn_x4 ? 4 : 1;
}

std::optional<size_t> rank_of(DType dtype) {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i].second == dtype) return i;
  return std::nullopt;
}

/// Takes the header's JSON event by event. Its form is fixed, so that nothing is nested deeper than four
/// levels, and unknown fields of a tensor are skipped.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
  std::string error;

  bool start_object(size_t) override {
    if (skipping_ > 0) return skip(+1);
    switch (place_) {
      case Place::Outside:
        place_ = Place::Root;
        return true;
      case Place::Entry:
        place_ = is_metadata_ ? Place::Metadata : Place::Tensor;
        fields_ = {};
        return true;
      case Place::Field:
        if (field_ == Field::Other) return skip(+1);
        [[fallthrough]];
      default:
        return wrong("an object");
    }
  }

  bool end_object() override {
    if (skipping_ > 0) return skip(-1);
    switch (place_) {
      case Place::Root:
        place_ = Place::Done;
        return true;
      case Place::Metadata:
        place_ = Place::Root;
        return true;
      case Place::Tensor: {
        if (!fields_.dtype || !fields_.shape || !fields_.offsets)
          return fail(fmt::format("tensor '{}' has no {}", shown(),
                                  !fields_.dtype   ? "dtype"
                                  : !fields_.shape ? "shape"
                                                   : "data_offsets"));
        if (numbers_in_offsets_ != 2)
          return fail(
              fmt::format("tensor '{}': data_offsets has {} numbers, not 2", shown(), numbers_in_offsets_));
        if (int64_t packed = packed_count(tensor_.dtype); packed != 1) {
          if (tensor_.shape.empty() || tensor_.shape.back() % packed != 0)
            return fail(
                fmt::format("tensor '{}' of shape {} has rows that are no multiple of {} numbers, which "
                            "{} needs to be whole bytes",
                            shown(), to_string(tensor_.shape), packed, name(tensor_.dtype)));
          tensor_.shape.back() /= packed;
        }
        tensors.push_back(std::move(tensor_));
        place_ = Place::Root;
        return true;
      }
      default:
        return wrong("the end of an object");
    }
  }

  bool key(std::string& text) override {
    if (skipping_ > 0) return true;
    switch (place_) {
      case Place::Root:
        if (!names_.insert(text).second)
          return fail(fmt::format("the name '{}' is there twice", text.substr(0, 100)));
        is_metadata_ = text == kMetadata;
        tensor_ = SafetensorsEntry{};
        tensor_.name = std::move(text);
        metadata_names_.clear();
        place_ = Place::Entry;
        return true;
      case Place::Metadata:
        if (!metadata_names_.insert(text).second)
          return fail(fmt::format("the metadata name '{}' is there twice", text.substr(0, 100)));
        metadata_key_ = std::move(text);
        place_ = Place::MetadataValue;
        return true;
      case Place::Tensor: {
        field_ = text == "dtype"          ? Field::DType
                 : text == "shape"        ? Field::Shape
                 : text == "data_offsets" ? Field::Offsets
                                          : Field::Other;
        bool* seen = field_ == Field::DType   ? &fields_.dtype
                     : field_ == Field::Shape ? &fields_.shape
                                              : &fields_.offsets;
        if (field_ != Field::Other && std::exchange(*seen, true))
          return fail(fmt::format("tensor '{}' has the field {} twice", shown(), text));
        place_ = Place::Field;
        return true;
      }
      default:
        return wrong("a key");
    }
  }

  bool start_array(size_t) override {
    if (skipping_ > 0) return skip(+1);
    if (place_ != Place::Field || field_ == Field::DType) return wrong("an array");
    if (field_ == Field::Other) return skip(+1);
    place_ = field_ == Field::Shape ? Place::Shape : Place::Offsets;
    numbers_in_offsets_ = field_ == Field::Offsets ? 0 : numbers_in_offsets_;
    return true;
  }

  bool end_array() override {
    if (skipping_ > 0) return skip(-1);
    if (place_ != Place::Shape && place_ != Place::Offsets) return wrong("the end of an array");
    place_ = Place::Tensor;
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (skipped_value()) return true;
    if (place_ == Place::Shape) {
      if (tensor_.shape.size() == kMaxRank)
        return fail(fmt::format("tensor '{}' has more than {} dimensions", shown(), kMaxRank));
      if (value > static_cast<uint64_t>(INT64_MAX))
        return fail(fmt::format("tensor '{}' has a size over 2^63", shown()));
      tensor_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ == Place::Offsets) {
      if (++numbers_in_offsets_ <= 2) (numbers_in_offsets_ == 1 ? tensor_.begin : tensor_.end) = value;
      return true;
    }
    return wrong("a number");
  }

  bool string(std::string& text) override {
    if (skipped_value()) return true;
    if (place_ == Place::MetadataValue) {
      metadata[metadata_key_] = std::move(text);
      place_ = Place::Metadata;
      return true;
    }
    if (place_ == Place::Field && field_ == Field::DType) {
      for (const auto& [type_name, dtype] : kTypes) {
        if (type_name != text) continue;
        tensor_.dtype = dtype;
        place_ = Place::Tensor;
        return true;
      }
      return fail(fmt::format("tensor '{}' has the unknown dtype '{}'", shown(), text.substr(0, 40)));
    }
    return wrong("a string");
  }

  bool null() override {
    if (place_ == Place::Entry && is_metadata_) {  // MLX writes it; the reference reads it as: none
      place_ = Place::Root;
      return true;
    }
    return skipped_value() || wrong("null");
  }
  bool boolean(bool) override { return skipped_value() || wrong("a bool"); }
  bool number_integer(int64_t) override { return skipped_value() || wrong("a negative number"); }
  bool number_float(double, const std::string&) override {
    return skipped_value() || wrong("a number that is not whole");
  }
  bool binary(nlohmann::json::binary_t&) override { return wrong("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    return fail(fmt::format("byte {} is not JSON", position));
  }

 private:
  enum class Place { Outside, Root, Entry, Metadata, MetadataValue, Tensor, Field, Shape, Offsets, Done };
  enum class Field { DType, Shape, Offsets, Other };

  bool fail(std::string message) {
    if (error.empty()) error = std::move(message);
    return false;
  }
  bool wrong(std::string_view what) {
    if (place_ == Place::Outside) return fail(fmt::format("it is {}, not an object", what));
    return fail(fmt::format("{} stands where it does not belong{}", what,
                            tensor_.name.empty() ? "" : fmt::format(" ('{}')", shown())));
  }
  bool skip(int levels) {
    skipping_ += levels;
    if (skipping_ > 8) return fail("it is nested too deep");
    if (skipping_ == 0) place_ = Place::Tensor;
    return true;
  }
  /// A plain value inside, or as, an unknown field.
  bool skipped_value() {
    if (skipping_ > 0) return true;
    if (place_ != Place::Field || field_ != Field::Other) return false;
    place_ = Place::Tensor;
    return true;
  }
  std::string shown() const { return tensor_.name.substr(0, 100); }

  Place place_ = Place::Outside;
  Field field_ = Field::Other;
  struct {
    bool dtype = false, shape = false, offsets = false;
  } fields_;
  int numbers_in_offsets_ = 0;
  int skipping_ = 0;
  bool is_metadata_ = false;
  SafetensorsEntry tensor_;
  std::string metadata_key_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> metadata_names_;
};

/// Sorts by place and checks that the tensors cover [0, data_size) without gap or overlap.
void check_layout(std::vector<SafetensorsEntry>& tensors, uint64_t data_size) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t position = 0;
  for (const SafetensorsEntry& info : tensors) {
    std::string shown = info.name.substr(0, 100);
    TERN_CHECK(info.begin == position && info.end >= info.begin, CheckpointError,
               "tensor '{}' lies at bytes {} to {}, but the one before it ends at {}: there may be no gap or "
               "overlap",
               shown, info.begin, info.end, position);
    uint64_t nbytes = itemsize(info.dtype);
    bool overflow = false;
    for (int64_t size : info.shape)
      overflow = overflow || __builtin_mul_overflow(nbytes, static_cast<uint64_t>(size), &nbytes);
    TERN_CHECK(!overflow && nbytes == info.end - info.begin, CheckpointError,
               "tensor '{}' of shape {} and dtype {} needs {} bytes, but its data_offsets give it {}", shown,
               to_string(info.shape), name(info.dtype), overflow ? "more than 2^64" : std::to_string(nbytes),
               info.end - info.begin);
    position = info.end;
    TERN_CHECK(position <= data_size, CheckpointError,
               "tensor '{}' ends at byte {}, but there are only {} (incomplete file?)", shown, position,
               data_size);
  }
  TERN_CHECK(position == data_size, CheckpointError, "the tensors need {} bytes, but there are {}", position,
             data_size);
}

}  // namespace

SafetensorsHeader read_safetensors_header(const ByteSource& source) {
  TERN_CHECK(source.size() >= 8, CheckpointError, "safetensors: {} bytes are too few for a header",
             source.size());
  std::byte length_bytes[8];
  source.read_at(0, length_bytes);
  auto length = load_le<uint64_t>(length_bytes);
  TERN_CHECK(length <= kMaxHeader, CheckpointError,
             "safetensors: the header has {} bytes; at most {} are allowed", length, kMaxHeader);
  TERN_CHECK(length <= source.size() - 8, CheckpointError,
             "safetensors: the header has {} bytes, but the file only {}", length, source.size());
  std::vector<std::byte> header = source.read(8, length);
  std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  TERN_CHECK(is_utf8(text), CheckpointError, "safetensors: the header is not UTF-8");
  TERN_CHECK(text.find('\0') == std::string_view::npos, CheckpointError,
             "safetensors: the header has a NUL byte");
  HeaderReader reader;
  bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  TERN_CHECK(parsed, CheckpointError, "safetensors: the header is wrong: {}", reader.error);
  with_context("safetensors", [&] { check_layout(reader.tensors, source.size() - 8 - length); });

  return {std::move(reader.tensors), std::move(reader.metadata), 8 + length};
}

SafetensorsFile read_safetensors(const ByteSource& source, const LoadOptions& options) {
  SafetensorsHeader header = read_safetensors_header(source);
  TERN_CHECK(header.tensors.size() <= options.limits.entries, CheckpointError,
             "the file has {} tensors; at most {} are accepted (limits.entries)", header.tensors.size(),
             options.limits.entries);
  LoadBudget(options.limits, source.size()).take_tensor(source.size() - header.data_begin);
  SafetensorsFile file;
  file.metadata = std::move(header.metadata);
  if (options.skip_data) {
    for (const SafetensorsEntry& info : header.tensors)
      file.tensors.insert(info.name,
                          Tensor::from_storage(storage_from_blob(nullptr, info.end - info.begin, [] {}),
                                               info.dtype, info.shape));
    return file;
  }
  const Device device = options.map_location("cpu");
  std::shared_ptr<MappedFile> mapping;
  if (options.mmap && device.is_cpu()) mapping = map_for_tensors(source);
  std::vector<ReadJob> jobs;
  std::vector<size_t> job_tensors;
  for (size_t i = 0; i < header.tensors.size(); ++i) {
    const SafetensorsEntry& info = header.tensors[i];
    const size_t nbytes = info.end - info.begin;
    const uint64_t offset = header.data_begin + info.begin;
    Storage storage;
    if (mapping && nbytes != 0) {
      storage = mapped_storage(mapping, offset, nbytes, info.dtype);
      if (!storage && options.report) ++options.report->copied;
    }
    if (!storage) {
      storage = allocate_storage(nbytes, device);
      jobs.push_back({offset, nbytes, storage.get(), info.dtype});
      job_tensors.push_back(i);
    }
    file.tensors.insert(info.name, Tensor::from_storage(std::move(storage), info.dtype, info.shape));
  }
  fill_storages(source, jobs, [&](size_t job) {
    return fmt::format("tensor '{}'", header.tensors[job_tensors[job]].name.substr(0, 100));
  });
  return file;
}

void write_safetensors(const StateDict& tensors, const std::map<std::string, std::string>& metadata,
                       ByteSink& sink) {
  struct Item {
    std::string_view name;
    const Tensor* tensor;
    size_t rank;
  };
  std::vector<Item> items;
  for (const auto& [name, tensor] : tensors) {
    TERN_CHECK(name != kMetadata, ValueError, "save_safetensors: the name '{}' is reserved", kMetadata);
    TERN_CHECK(is_utf8(name), ValueError, "save_safetensors: the name of a tensor is not UTF-8");
    TERN_CHECK(tensor.defined(), ValueError, "save_safetensors: tensor '{}' is undefined", name);
    check_initialized(tensor);
    auto rank = rank_of(tensor.dtype());
    TERN_CHECK(rank, DTypeError,
               "save_safetensors: tensor '{}' has dtype {}, which the format lacks: save() writes it", name,
               tern::name(tensor.dtype()));
    items.push_back({name, &tensor, *rank});
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.name < b.name;
  });

  std::string json = "{";
  auto quoted = [](std::string_view text) { return nlohmann::json(std::string(text)).dump(); };
  if (!metadata.empty()) {
    json += quoted(kMetadata) + ":{";
    for (const auto& [key, value] : metadata) {
      TERN_CHECK(is_utf8(key) && is_utf8(value), ValueError, "save_safetensors: the metadata is not UTF-8");
      json += (json.back() == '{' ? "" : ",") + quoted(key) + ":" + quoted(value);
    }
    json += "}";
  }
  uint64_t position = 0;
  for (const Item& item : items) {
    uint64_t end = position + item.tensor->nbytes();
    std::string shape;
    int64_t packed = packed_count(item.tensor->dtype());
    TERN_CHECK(packed == 1 || item.tensor->dim() > 0, ValueError,
               "save_safetensors: tensor '{}' of dtype {} needs a dimension", item.name,
               tern::name(item.tensor->dtype()));
    for (size_t d = 0; d < item.tensor->shape().size(); ++d) {
      bool last = d + 1 == item.tensor->shape().size();
      shape += fmt::format("{}{}", shape.empty() ? "" : ",", item.tensor->shape()[d] * (last ? packed : 1));
    }
    json += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        json.size() > 1 ? "," : "", quoted(item.name), kTypes[item.rank].first, shape,
                        position, end);
    position = end;
  }
  json += "}";
  json.append((8 - json.size() % 8) % 8, ' ');
  TERN_CHECK(json.size() <= kMaxHeader, ValueError,
             "save_safetensors: the header has {} bytes; at most {} are allowed", json.size(), kMaxHeader);
  std::string length;
  append_le<uint64_t>(length, json.size());
  sink.write(std::string_view(length));
  sink.write(std::string_view(json));
  for (const Item& item : items)
    visit_elements(*item.tensor, [&](std::span<const std::byte> bytes) { sink.write(bytes); });
}

void check_no_safetensors_name(const std::filesystem::path& path) {
  TERN_CHECK(lower_extension(path) != ".safetensors", ValueError,
             "saving '{}': a file of this name must be safetensors, which save_safetensors() writes",
             path.string());
}

}  // namespace tern::io

namespace tern {

void save_safetensors(const StateDict& tensors, const std::filesystem::path& path,
                      const std::map<std::string, std::string>& metadata, const SaveOptions& options) {
  io::write_atomically(path, options.sync,
                       [&](io::ByteSink& sink) { io::write_safetensors(tensors, metadata, sink); });
}

std::vector<std::byte> save_safetensors_to_buffer(const StateDict& tensors,
                                                  const std::map<std::string, std::string>& metadata) {
  io::MemorySink sink;
  io::write_safetensors(tensors, metadata, sink);
  return std::move(sink.bytes());
}

namespace {

SafetensorsFile read_known_safetensors(const io::ByteSource& source, const LoadOptions& options) {
  const io::FileFormat format = io::sniff_format(source);
  const bool possible = format == io::FileFormat::Safetensors || format == io::FileFormat::Unknown ||
                        format == io::FileFormat::Empty;
  TERN_CHECK(possible, CheckpointError, "this is no safetensors file: it is {} (load() tells formats apart)",
             io::describe(format));
  return io::read_safetensors(source, options);
}

}  // namespace

SafetensorsFile load_safetensors(const std::filesystem::path& path, const LoadOptions& options) {
  auto source = io::open_file(path);
  return with_context(fmt::format("loading '{}'", path.string()),
                      [&] { return read_known_safetensors(*source, options); });
}

SafetensorsFile load_safetensors_from_buffer(std::span<const std::byte> bytes, const LoadOptions& options) {
  return with_context("loading from memory",
                      [&] { return read_known_safetensors(*io::view_memory(bytes), options); });
}

}  // namespace tern
