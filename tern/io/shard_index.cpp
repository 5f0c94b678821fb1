// HuggingFace's index of shards: {"metadata": {...}, "weight_map": {"name":
// "model-00001-of-00002.safetensors"}}.
#include "tern/io/shard_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "tern/base/check.h"
#include "tern/io/file.h"
#include "tern/io/utf8.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

namespace {

/// Takes the JSON event by event: only weight_map is looked at.
class IndexReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<std::pair<std::string, std::string>> map;
  std::string error;
  bool has_map = false;

  bool start_object(size_t) override { return open(); }
  bool end_object() override {
    in_map_ = in_map_ && depth_ != 2;
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 0) return fail("it is a list, not an object");
    return open();
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(std::string& text) override {
    if (depth_ == 1) {
      waits_for_map_ = text == "weight_map";
      if (waits_for_map_ && std::exchange(has_map, true)) return fail("weight_map is there twice");
    } else if (in_map_) {
      if (!names_.insert(text).second)
        return fail(fmt::format("tensor '{}' is there twice", text.substr(0, 100)));
      name_ = std::move(text);
    }
    return true;
  }
  bool string(std::string& text) override {
    if (!in_map_) return other();
    map.emplace_back(std::move(name_), std::move(text));
    return true;
  }
  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(int64_t) override { return other(); }
  bool number_unsigned(uint64_t) override { return other(); }
  bool number_float(double, const std::string&) override { return other(); }
  bool binary(nlohmann::json::binary_t&) override { return other(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    return fail(fmt::format("byte {} is not JSON", position));
  }

 private:
  static constexpr size_t kMaxDepth = 64;

  bool fail(std::string message) {
    if (error.empty()) error = std::move(message);
    return false;
  }
  bool open() {
    if (in_map_) return fail(fmt::format("the file of tensor '{}' is no text", name_.substr(0, 100)));
    if (++depth_ > kMaxDepth) return fail("it is nested too deep");
    in_map_ = depth_ == 2 && std::exchange(waits_for_map_, false);
    return true;
  }
  bool other() {
    if (in_map_) return fail(fmt::format("the file of tensor '{}' is no text", name_.substr(0, 100)));
    if (std::exchange(waits_for_map_, false)) return fail("weight_map is no object");
    return true;
  }

  size_t depth_ = 0;
  bool waits_for_map_ = false;
  bool in_map_ = false;
  std::string name_;
  std::unordered_set<std::string> names_;
};

}  // namespace

void check_plain_file_name(std::string_view name) {
  bool plain = !name.empty() && name.size() <= 255 && name != "." && name != ".." && is_utf8(name) &&
               name.find_first_of(std::string_view("/\\:\0", 4)) == std::string_view::npos;
  std::string shown(name.substr(0, 100));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<uint8_t>(c) < ' '; }, '?');
  TERN_CHECK(plain, CheckpointError,
             "'{}' is no file name: parts of a checkpoint lie in its own folder, and nothing is fetched",
             shown);
}

std::vector<std::pair<std::string, std::string>> read_shard_index(const ByteSource& source,
                                                                  const LoadLimits& limits) {
  TERN_CHECK(source.size() <= limits.pickle_bytes, CheckpointError,
             "the index has {} bytes; at most {} are accepted (limits.pickle_bytes)", source.size(),
             limits.pickle_bytes);
  std::vector<std::byte> bytes = source.read(0, source.size());
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  TERN_CHECK(is_utf8(text), CheckpointError, "the index is not UTF-8");
  IndexReader reader;
  bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  TERN_CHECK(parsed, CheckpointError, "the index of shards is wrong: {}", reader.error);
  TERN_CHECK(reader.has_map, CheckpointError,
             "this is JSON text, but no index of shards: it has no weight_map (a configuration file?)");
  for (const auto& [name, file] : reader.map)
    with_context(fmt::format("tensor '{}'", name.substr(0, 100)),
                 [&, &shard = file] { check_plain_file_name(shard); });
  return std::move(reader.map);
}

Checkpoint read_shards(const std::filesystem::path& index, const LoadOptions& options) {
  auto map = read_shard_index(*open_file(index), options.limits);
  std::unordered_map<std::string_view, std::string_view> shard_of;
  std::vector<std::string_view> shards;
  std::unordered_set<std::string_view> known;
  for (const auto& [name, file] : map) {
    shard_of.emplace(name, file);
    if (known.insert(file).second) shards.push_back(file);
  }
  TERN_CHECK(shards.size() <= options.limits.entries, CheckpointError,
             "the index names {} shards; at most {} are accepted (limits.entries)", shards.size(),
             options.limits.entries);

  Checkpoint whole;
  std::unordered_map<std::string, Value> found;
  std::vector<std::string> unlisted;
  LoadOptions rest = options;
  for (std::string_view shard : shards) {
    std::filesystem::path path = index.parent_path() / shard;
    std::error_code ignored;
    TERN_CHECK(std::filesystem::is_regular_file(path, ignored), CheckpointError,
               "the index names the shard '{}', which is not there ({} shards in all)", shard, shards.size());
    with_context(fmt::format("shard '{}'", shard), [&] {
      Checkpoint part = read_checkpoint_file(path, rest);
      TERN_CHECK(part.root.is_dict(), CheckpointError, "it holds {}, not a dict of tensors",
                 detail::describe(part.root));
      for (const auto& [key, value] : part.root.as_dict()) {
        TERN_CHECK(key.is_str(), CheckpointError, "it has the key {}, not a name", key.str(100));
        const std::string& name = key.as_str();
        auto listed = shard_of.find(name);
        TERN_CHECK(listed == shard_of.end() || listed->second == shard, CheckpointError,
                   "it has tensor '{}', which the index says is in '{}'", name.substr(0, 100),
                   listed->second);
        TERN_CHECK(found.emplace(name, value).second, CheckpointError, "tensor '{}' is in another shard too",
                   name.substr(0, 100));
        if (listed == shard_of.end()) unlisted.push_back(name);
        if (value.is_tensor()) {
          uint64_t nbytes = std::min<uint64_t>(value.as_tensor().nbytes(), rest.limits.tensor_bytes);
          if (rest.limits.tensor_bytes != UINT64_MAX) rest.limits.tensor_bytes -= nbytes;
        }
      }
      for (const auto& [name, file] : map)
        TERN_CHECK(file != shard || found.contains(name), CheckpointError,
                   "it has no tensor '{}', which the index says is in it", name.substr(0, 100));
      whole.absorb(std::move(part));
    });
  }
  whole.root = Value::dict();
  for (const auto& [name, file] : map) whole.root.as_dict().set(name, found.at(name));
  for (const std::string& name : unlisted) whole.root.as_dict().set(name, found.at(name));
  return whole;
}

}  // namespace tern::io
