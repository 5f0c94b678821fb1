// Files and gzip streams as bytes in memory, for the readers of data sets and pictures.
// What the bytes mean is in idx.h, cifar_binary.h and image.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tern::data {

using Bytes = std::vector<uint8_t>;
using ByteView = std::span<const uint8_t>;

/// The most bytes that a file or a decompressed stream may have here: 4 GiB.
inline constexpr uint64_t kMaxFileBytes = uint64_t{4} << 30;

/// The whole file. Throws IoError with the path and the system's reason; DataError above `max_bytes`.
Bytes read_file(const std::string& path, uint64_t max_bytes = kMaxFileBytes);

/// Writes the file, replacing what was there. Throws IoError with the path and the system's reason.
void write_file(const std::string& path, ByteView bytes);

/// True if the bytes begin like a gzip stream.
bool is_gzip(ByteView bytes);

/// The content of a gzip stream of one or more members. `name` is for messages. Throws DataError that names
/// the byte at which the stream is broken, cut short or followed by something else, or that the content is
/// larger than `max_bytes`.
Bytes gunzip(ByteView bytes, const std::string& name, uint64_t max_bytes = kMaxFileBytes);

/// The file's bytes, decompressed if they are a gzip stream (told by content, not by name).
Bytes read_file_or_gzip(const std::string& path, uint64_t max_bytes = kMaxFileBytes);

}  // namespace tern::data
