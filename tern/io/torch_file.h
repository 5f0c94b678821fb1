// PyTorch's own formats. The zip format of 1.6 and later: data.pkl with the tree, data/<key> with the bytes
// of each storage. The stream format before it: five pickles, then the storages. The tar format of 0.1. Plain
// pickles: each storage is a stream file of its own inside.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tern/io/file.h"
#include "tern/io/serialize.h"
#include "tern/io/value.h"

namespace tern::io {

/// What a file says about a storage in it.
struct StoredStorage {
  Storage storage;
  std::string key;        ///< its name in the file
  std::string_view type;  ///< its class: "FloatStorage"
  std::string location;   ///< where it was: "cuda:1"
};

/// A checkpoint with what its container says about itself.
struct Checkpoint {
  Value root;
  std::string version;  ///< the container's version
  int pickle_protocol = 0;
  std::vector<GlobalName> globals;      ///< the classes and functions it names
  std::vector<size_t> global_bytes;     ///< where in the pickle each of them is first named
  bool calls_results = false;           ///< what a call gave, or a method of a class, is called
  std::vector<StoredStorage> storages;  ///< in order of first use

  /// Adds what another checkpoint says about itself, without its root.
  void absorb(Checkpoint&& part);
};

// Each of these throws CheckpointError, IoError or DeviceError. `depth` counts checkpoints inside
// checkpoints.
Checkpoint read_torch_zip(std::shared_ptr<const ByteSource> source, const LoadOptions& options,
                          int depth = 0);
Checkpoint read_torch_tar(std::shared_ptr<const ByteSource> source, const LoadOptions& options,
                          int depth = 0);
Checkpoint read_torch_stream(const ByteSource& source, const LoadOptions& options, int depth = 0);
Checkpoint read_plain_pickle(const ByteSource& source, const LoadOptions& options, int depth = 0);

/// One of PyTorch's formats, by the first bytes.
Checkpoint read_torch_file(std::shared_ptr<const ByteSource> source, const LoadOptions& options,
                           int depth = 0);

/// Whatever load() reads: a file of any format, an index of shards, a folder with an index or with a
/// distributed checkpoint. The root of safetensors and .npz is a dict, that of .npy a tensor, or an
/// object for text and dates.
Checkpoint read_checkpoint(const std::filesystem::path& path, const LoadOptions& options);
/// The same for a single file.
Checkpoint read_checkpoint_file(const std::filesystem::path& path, const LoadOptions& options);
Checkpoint read_checkpoint(std::shared_ptr<const ByteSource> source, const LoadOptions& options,
                           bool must_be_safetensors = false);

/// Throws CheckpointError unless `name` is a file name without a folder: what indexes of several files must
/// have.
void check_plain_file_name(std::string_view name);

}  // namespace tern::io
