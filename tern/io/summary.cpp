// Gathering what is known of a checkpoint file.
#include "tern/io/summary.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "tern/base/check.h"
#include "tern/io/file.h"
#include "tern/io/format.h"
#include "tern/io/npy.h"
#include "tern/io/safetensors.h"
#include "tern/io/serialize.h"
#include "tern/io/shard_index.h"
#include "tern/io/torch_file.h"
#include "tern/io/zip_reader.h"

namespace tern::io {

namespace {

/// Files up to this size are read in full, so that what is broken in them is found.
constexpr uint64_t kReadWhole = uint64_t{1} << 20;

/// Of zip archives: NumPy's have arrays and nothing else, TorchScript's a program.
std::string zip_format(const std::shared_ptr<const ByteSource>& source, const Checkpoint& checkpoint) {
  if (checkpoint.root.is_dict() && !checkpoint.version.empty()) return "zip";
  const ZipReader zip(source);
  if (is_npz(zip)) return "npz";
  for (const ZipEntry& entry : zip.entries()) {
    const size_t slash = entry.name.find('/');
    const std::string_view inside =
        std::string_view(entry.name).substr(slash == std::string::npos ? 0 : slash + 1);
    if (inside == "constants.pkl" || inside == "model.json" || inside.starts_with("code/"))
      return "torchscript";
  }
  return "zip";
}

std::string format_of(const std::shared_ptr<const ByteSource>& source, const Checkpoint& checkpoint) {
  switch (sniff_format(*source)) {
    case FileFormat::Zip:
      return zip_format(source, checkpoint);
    case FileFormat::Legacy:
      return "legacy";
    case FileFormat::Tar:
      return "tar";
    case FileFormat::Safetensors:
      return "safetensors";
    case FileFormat::Npy:
      return "npy";
    case FileFormat::Json:
      return "sharded";
    default:
      return "pickle";
  }
}

/// The files that hold the tensors: the file itself, the shards of an index, all files of a folder. What is
/// wrong with an index is found by reading it.
std::vector<std::filesystem::path> files_of(std::filesystem::path path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    std::vector<std::filesystem::path> indexes;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
      if (entry.path().filename().string().ends_with(".index.json")) indexes.push_back(entry.path());
    }
    if (std::filesystem::exists(path / ".metadata") || indexes.size() != 1) return files;
    path = indexes[0];
    files.clear();
  }
  files.push_back(path);
  if (sniff_format(*open_file(path)) != FileFormat::Json) return files;
  try {
    std::set<std::string> shards;
    for (const auto& [name, shard] : read_shard_index(*open_file(path), LoadLimits{})) shards.insert(shard);
    std::error_code ignored;
    for (const std::string& shard : shards)
      if (std::filesystem::is_regular_file(path.parent_path() / shard, ignored))
        files.push_back(path.parent_path() / shard);
  } catch (const CheckpointError&) {
  }
  return files;
}

uint64_t bytes_of(const std::vector<std::filesystem::path>& files) {
  uint64_t sum = 0;
  for (const auto& file : files) sum += std::filesystem::file_size(file);
  return sum;
}

/// Whether tensors can be parts of a mapping of such a file. An index has none.
bool is_mappable(const ByteSource& source) {
  const FileFormat format = sniff_format(source);
  return format == FileFormat::Zip || format == FileFormat::Safetensors || format == FileFormat::Json;
}

void add_places(Summary& summary, const std::vector<StoredStorage>& stored) {
  std::unordered_map<const StorageImpl*, const StoredStorage*> places;
  for (const StoredStorage& each : stored) places.emplace(each.storage.get(), &each);
  std::unordered_map<const StorageImpl*, std::string> first;
  auto see = [&](const Tensor& tensor, TensorEntry* entry) {
    const StorageImpl* storage = tensor.storage().get();
    auto [known, added] = first.try_emplace(storage, entry ? entry->path : std::string());
    if (added) {
      ++summary.storages;
      summary.storage_bytes += storage->nbytes();
    } else if (entry) {
      entry->shared_with = known->second;
    }
    auto place = places.find(storage);
    if (!entry || place == places.end()) return;
    entry->device = place->second->location;
    entry->storage = place->second->key;
  };
  for (TensorEntry& entry : summary.tensors) {
    if (entry.tensor.defined()) see(entry.tensor, &entry);
    for (const Tensor& part : entry.parts) {
      see(part, nullptr);
      // The values come last: where they are, the tensor is.
      if (auto place = places.find(part.storage().get()); place != places.end())
        entry.device = place->second->location;
    }
    if (entry.kind == TensorKind::Meta) entry.device = "meta";
    uint64_t elements = 1;
    for (int64_t size : entry.shape)
      if (__builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements)) elements = UINT64_MAX;
    summary.elements += std::min(elements, UINT64_MAX - summary.elements);
    summary.tensor_bytes += std::min(entry.nbytes, UINT64_MAX - summary.tensor_bytes);
  }
}

std::string wrapper_of(const Value& root) {
  const std::optional<FoundStateDict> found = find_state_dict(root);
  if (!found) return "";
  std::vector<std::string> names;
  for (const auto& [key, value] : found->dict.as_dict())
    if (key.is_str() && stands_for_tensor(value)) names.push_back(key.as_str());
  const std::string prefix = wrapper_prefix(names);
  std::string wrapper;
  for (const std::string& key : found->keys) wrapper += (wrapper.empty() ? "" : ".") + key;
  return wrapper.empty() || prefix.empty() ? wrapper + prefix : wrapper + "." + prefix;
}

/// How files of so many bytes are read; `mappable` is asked only where it matters.
template <class Mappable>
LoadOptions load_options(const SummaryOptions& options, uint64_t bytes, const Mappable& mappable) {
  const bool values = options.values || bytes <= kReadWhole;
  const bool mmap = options.mmap && values && bytes > kReadWhole && mappable();
  return {.map_location = "cpu",
          .mmap = mmap,
          .verify_mapped = mmap && options.verify,
          .weights_only = false,
          .verify = options.verify,
          .skip_data = !values};
}

/// What a checkpoint says, beside its format.
void take(Summary& summary, Checkpoint&& checkpoint) {
  summary.root = std::move(checkpoint.root);
  summary.version = std::move(checkpoint.version);
  summary.pickle_protocol = checkpoint.pickle_protocol;
  for (size_t i = 0; i < checkpoint.globals.size(); ++i)
    summary.globals.push_back({checkpoint.globals[i], checkpoint.global_bytes[i],
                               judge_global(checkpoint.globals[i], checkpoint.calls_results)});
  for (FoundTensor& found : find_tensors(summary.root)) {
    TensorEntry& entry = summary.tensors.emplace_back();
    static_cast<FoundTensor&>(entry) = std::move(found);
  }
  add_places(summary, checkpoint.storages);
  summary.wrapper = wrapper_of(summary.root);
}

void take_format(Summary& summary, const std::shared_ptr<const ByteSource>& source,
                 const Checkpoint& checkpoint) {
  summary.format = format_of(source, checkpoint);
  if (summary.format == "safetensors") summary.metadata = read_safetensors_header(*source).metadata;
}

void read_file(const std::filesystem::path& path, const SummaryOptions& options, Summary& summary) {
  const std::vector<std::filesystem::path> files = files_of(path);
  summary.file_bytes = bytes_of(files);
  const auto mappable = [&files] {
    return std::ranges::all_of(files, [](const auto& file) { return is_mappable(*open_file(file)); });
  };
  Checkpoint checkpoint = read_checkpoint(path, load_options(options, summary.file_bytes, mappable));
  if (std::filesystem::is_directory(path))
    summary.format = std::filesystem::exists(path / ".metadata") ? "distributed" : "sharded";
  else
    take_format(summary, open_file(path), checkpoint);
  take(summary, std::move(checkpoint));
}

}  // namespace

Verdict Summary::verdict() const noexcept {
  Verdict worst = Verdict::PlainData;
  for (const JudgedGlobal& global : globals) worst = std::max(worst, global.verdict);
  return worst;
}

Summary summarize_file(const std::filesystem::path& path, const SummaryOptions& options) {
  Summary summary;
  with_path("", path, [&] {
    try {
      read_file(path, options, summary);
    } catch (const std::filesystem::filesystem_error& error) {
      TERN_THROW(IoError, "{}", error.code().message());
    }
  });
  return summary;
}

Summary summarize_source(const std::shared_ptr<const ByteSource>& source, const SummaryOptions& options) {
  return with_context(source->name(), [&] {
    Summary summary;
    summary.file_bytes = source->size();
    Checkpoint checkpoint = read_checkpoint(
        source, load_options(options, summary.file_bytes, [&] { return is_mappable(*source); }));
    take_format(summary, source, checkpoint);
    take(summary, std::move(checkpoint));
    return summary;
  });
}

}  // namespace tern::io
