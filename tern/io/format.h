// What kind of file something is, decided by its first bytes, never by its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tern/io/file.h"

namespace tern::io {

enum class FileFormat : uint8_t {
  Zip,
  Legacy,
  Tar,
  Safetensors,
  Npy,
  Pickle,
  // What users give by mistake.
  Preview,
  GitLfsPointer,
  Html,
  Hdf5,
  Gguf,
  Gzip,
  Bzip2,
  Xz,
  Zstd,
  Rar,
  SevenZip,
  LuaTorch,
  Onnx,
  SavedModel,
  TensorFlowGraph,
  TensorFlowCheckpoint,
  TensorFlowLite,
  Json,
  Text,
  Empty,
  Unknown,
};

FileFormat sniff_format(const ByteSource& source);

/// "a Git LFS pointer instead of the file itself: run `git lfs pull`".
std::string_view describe(FileFormat format) noexcept;

}  // namespace tern::io
