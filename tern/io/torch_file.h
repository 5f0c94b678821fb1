// PyTorch's zip format: data.pkl with the tree, data/<key> with the bytes of each storage.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tern/io/file.h"
#include "tern/io/serialize.h"
#include "tern/io/value.h"

namespace tern::io {

/// A checkpoint with what its container says about itself.
struct Checkpoint {
  Value root;
  std::string version;  ///< the archive's version record
  int pickle_protocol = 0;
  std::vector<GlobalName> globals;  ///< the classes and functions it names
};

/// Reads a zip checkpoint. Throws CheckpointError, IoError, DeviceError.
Checkpoint read_torch_zip(std::shared_ptr<const ByteSource> source, const LoadOptions& options);

/// Writes one. `archive_name` is the folder inside the archive.
void write_torch_zip(const Value& value, ByteSink& sink, std::string_view archive_name);

/// The name that torch.save gives to the folder for a file of this path.
std::string archive_name_for(const std::filesystem::path& path);

}  // namespace tern::io
