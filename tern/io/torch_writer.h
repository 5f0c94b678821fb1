// What the writers of PyTorch's formats share: which storages a tree of values needs, and under which keys.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tern/io/file.h"
#include "tern/io/pickle_writer.h"
#include "tern/io/value.h"

namespace tern::io {

struct TorchWriteOptions {
  bool compact = false;  ///< see SaveOptions
  /// Where storages are said to be that are copies of others; those that are not named are where they are.
  const std::unordered_map<const StorageImpl*, std::string>* locations = nullptr;
};

/// A storage, or a part of it, that is written as one.
struct WrittenStorage {
  Storage storage;
  DType dtype;
  size_t begin = 0;  ///< in bytes
  size_t nbytes = 0;
};

/// A tree as a pickle, with the storages that it refers to; the key of each is its position.
struct TorchTree {
  std::string pickle;
  std::vector<WrittenStorage> storages;
};

/// With `stream`, ids have the sixth item of the stream format. Throws ValueError as write_pickle does, and
/// for storages that are seen as two types.
TorchTree make_torch_tree(const Value& value, const TorchWriteOptions& options, bool stream = false);

/// Writes the zip format. `archive_name` is the folder inside the archive.
void write_torch_zip(const Value& value, ByteSink& sink, std::string_view archive_name,
                     const TorchWriteOptions& options = {});

/// Writes the stream format.
void write_torch_stream(const Value& value, ByteSink& sink, const TorchWriteOptions& options = {});

/// The name that torch.save gives to the folder for a file of this path.
std::string archive_name_for(const std::filesystem::path& path);

}  // namespace tern::io
