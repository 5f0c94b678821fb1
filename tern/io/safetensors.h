// The safetensors format: a JSON header, then the tensors' bytes without gaps.
#pragma once

#include "tern/io/file.h"
#include "tern/io/serialize.h"

namespace tern::io {

/// A tensor as the header describes it: its bytes are [begin, end) of the data.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::Float32;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  ///< in the order of their data
  std::map<std::string, std::string> metadata;
  uint64_t data_begin = 0;  ///< where in the file the data begins
};

/// The header alone. Throws CheckpointError by the rules of the reference implementation, and for duplicate
/// names.
SafetensorsHeader read_safetensors_header(const ByteSource& source);

/// The tensors; the device is what `map_location` gives for "cpu", since the format says nothing of places.
/// With `mmap`, tensors on the CPU are parts of the file where they are aligned; `report` counts those that
/// are not. Throws CheckpointError as read_safetensors_header does, and for what is beyond the limits.
SafetensorsFile read_safetensors(const ByteSource& source, const LoadOptions& options);

/// Throws DTypeError for a dtype that the format lacks, ValueError for an undefined tensor or a reserved
/// name.
void write_safetensors(const StateDict& tensors, const std::map<std::string, std::string>& metadata,
                       ByteSink& sink);

/// For writers of other formats: throws ValueError for a name that ends in .safetensors (or .SAFETENSORS),
/// which readers take for nothing else.
void check_no_safetensors_name(const std::filesystem::path& path);

}  // namespace tern::io
