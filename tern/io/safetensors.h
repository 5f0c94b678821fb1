// The safetensors format: a JSON header, then the tensors' bytes without gaps.
#pragma once

#include "tern/io/file.h"
#include "tern/io/serialize.h"

namespace tern::io {

/// Throws CheckpointError by the rules of the reference implementation, and for duplicate names.
SafetensorsFile read_safetensors(const ByteSource& source, Device device);

/// Throws DTypeError for a dtype that the format lacks, ValueError for an undefined tensor or a reserved
/// name.
void write_safetensors(const StateDict& tensors, const std::map<std::string, std::string>& metadata,
                       ByteSink& sink);

}  // namespace tern::io
