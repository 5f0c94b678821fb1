// The choice of the reader: a file by its first bytes, an index of shards, a folder.
#include <algorithm>
#include <system_error>

#include "tern/base/check.h"
#include "tern/io/distributed_reader.h"
#include "tern/io/file.h"
#include "tern/io/format.h"
#include "tern/io/mapped_file.h"
#include "tern/io/npy.h"
#include "tern/io/pickle_reader.h"
#include "tern/io/safetensors.h"
#include "tern/io/shard_index.h"
#include "tern/io/torch_file.h"

namespace tern::io {

namespace {

constexpr std::string_view kIndexSuffix = ".index.json";

/// What the name says about a file whose bytes say nothing.
std::string hint_from_name(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  if (name.find(".data-0") != std::string::npos)
    return " (by its name the data of a TensorFlow checkpoint, which is not read)";
  return "";
}

Value safetensors_root(const ByteSource& source, const LoadOptions& options) {
  Value dict = Value::dict();
  for (const auto& [name, tensor] : read_safetensors(source, options).tensors)
    dict.as_dict().set(name, tensor);
  return dict;
}

/// What a file's numbers break is the file: their errors become CheckpointErrors, those of the system stay.
template <class Body>
auto guarded(Body&& body) {
  try {
    return body();
  } catch (const PickleCutShort& error) {
    throw CheckpointError(error.message());  // its own type is a matter of the readers
  } catch (const CheckpointError&) {
    throw;
  } catch (const Error& error) {
    if (is_of_machine(error)) throw;
    throw CheckpointError(error.message());
  }
}

/// The one file in `folder` that a folder stands for.
std::filesystem::path index_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename().string().ends_with(kIndexSuffix)) found.push_back(entry->path());
  TERN_CHECK(!error, IoError, "cannot read the folder '{}': {}", folder.string(), error.message());
  std::sort(found.begin(), found.end());
  TERN_CHECK(!found.empty(), CheckpointError,
             "the folder has neither an index of shards (*{}) nor the .metadata of a distributed checkpoint: "
             "give the file in it",
             kIndexSuffix);
  TERN_CHECK(found.size() == 1, CheckpointError,
             "the folder has several indexes ('{}' and '{}'): give one of them", found[0].filename().string(),
             found[1].filename().string());
  return found[0];
}

}  // namespace

void Checkpoint::absorb(Checkpoint&& part) {
  auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  if (version.empty()) version = std::move(part.version);
  pickle_protocol = std::max(pickle_protocol, part.pickle_protocol);
  append(globals, part.globals);
  append(global_bytes, part.global_bytes);
  append(storages, part.storages);
  calls_results = calls_results || part.calls_results;
}

Checkpoint read_torch_file(std::shared_ptr<const ByteSource> source, const LoadOptions& options, int depth) {
  FileFormat format = sniff_format(*source);
  switch (format) {
    case FileFormat::Zip:
      return read_torch_zip(std::move(source), options, depth);
    case FileFormat::Legacy:
      return read_torch_stream(*source, options, depth);
    case FileFormat::Tar:
      return read_torch_tar(std::move(source), options, depth);
    case FileFormat::Pickle:
      return read_plain_pickle(*source, options, depth);
    default:
      TERN_THROW(CheckpointError, "this is no checkpoint that can be read: the file is {}", describe(format));
  }
}

Checkpoint read_checkpoint(std::shared_ptr<const ByteSource> source, const LoadOptions& options,
                           bool must_be_safetensors) {
  FileFormat format = sniff_format(*source);
  TERN_CHECK(!must_be_safetensors || format == FileFormat::Safetensors, CheckpointError,
             "the file is named .safetensors, but is {}", describe(format));
  if (options.mmap) {
    map_for_tensors(*source);
    TERN_CHECK(
        format != FileFormat::Npy, CheckpointError,
        "mmap is for PyTorch's zip format and safetensors, and the file is {}: load it without mmap, or "
        "save() it as one of them",
        describe(format));
    if (format != FileFormat::Safetensors && format != FileFormat::Zip) fail_not_mappable();
  }
  return guarded([&] {
    Checkpoint checkpoint;
    switch (format) {
      case FileFormat::Safetensors:
        checkpoint.root = safetensors_root(*source, options);
        return checkpoint;
      case FileFormat::Npy:
        checkpoint.root = read_npy_value(*source, options);
        return checkpoint;
      default:
        return read_torch_file(std::move(source), options);
    }
  });
}

Checkpoint read_checkpoint_file(const std::filesystem::path& path, const LoadOptions& options) {
  auto source = open_file(path);
  try {
    // Who names a file so relies on its being data only.
    return read_checkpoint(source, options, lower_extension(path) == ".safetensors");
  } catch (const CheckpointError& error) {
    std::string hint = sniff_format(*source) == FileFormat::Unknown ? hint_from_name(path) : "";
    if (hint.empty()) throw;
    throw CheckpointError(error.message() + hint);
  }
}

Checkpoint read_checkpoint(const std::filesystem::path& path, const LoadOptions& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    if (std::filesystem::exists(path / ".metadata", ignored))
      return guarded([&] { return read_distributed(path, options); });
    return read_shards(index_in(path), options);
  }
  if (sniff_format(*open_file(path)) == FileFormat::Json) return read_shards(path, options);
  return read_checkpoint_file(path, options);
}

}  // namespace tern::io
