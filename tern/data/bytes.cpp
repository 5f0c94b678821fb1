// Reading of files and gzip streams into memory; what the bytes mean is decided elsewhere.
#include "tern/data/bytes.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "tern/base/check.h"

namespace tern::data {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

Bytes read_file(const std::string& path, uint64_t max_bytes) {
  File file(std::fopen(path.c_str(), "rb"));
  TERN_CHECK(file, IoError, "cannot open '{}': {}", path, std::strerror(errno));
  Bytes bytes;
  size_t used = 0;
  // A length that the system reports may be wrong (pipes, growing files): read until the end instead.
  for (size_t room = size_t{1} << 16;; room = bytes.size()) {
    bytes.resize(used + room);
    const size_t got = std::fread(bytes.data() + used, 1, room, file.get());
    used += got;
    TERN_CHECK(!std::ferror(file.get()), IoError, "cannot read '{}' at byte {}: {}", path, used,
               std::strerror(errno));
    TERN_CHECK(used <= max_bytes, DataError, "'{}' is larger than the limit of {} bytes", path, max_bytes);
    if (got < room) break;
  }
  bytes.resize(used);
  return bytes;
}

void write_file(const std::string& path, ByteView bytes) {
  File file(std::fopen(path.c_str(), "wb"));
  TERN_CHECK(file, IoError, "cannot create '{}': {}", path, std::strerror(errno));
  const size_t written = bytes.empty() ? 0 : std::fwrite(bytes.data(), 1, bytes.size(), file.get());
  const bool flushed = std::fflush(file.get()) == 0;
  TERN_CHECK(written == bytes.size() && flushed, IoError, "cannot write '{}' at byte {}: {}", path, written,
             std::strerror(errno));
}

bool is_gzip(ByteView bytes) { return bytes.size() >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B; }

Bytes gunzip(ByteView bytes, const std::string& name, uint64_t max_bytes) {
  TERN_CHECK(is_gzip(bytes), DataError, "'{}': byte 0: not a gzip stream (it must begin with 1f 8b)", name);
  z_stream stream{};
  TERN_CHECK(inflateInit2(&stream, /*windowBits=*/16 + MAX_WBITS) == Z_OK, OutOfMemoryError,
             "'{}': no memory to decompress it", name);
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> guard(&stream, &inflateEnd);

  Bytes out;
  size_t in_used = 0, out_used = 0;
  bool member_done = false;
  // zlib counts in unsigned int, so both sides are fed in pieces.
  constexpr size_t kPiece = size_t{1} << 30;
  while (true) {
    if (member_done) {
      if (in_used == bytes.size()) break;
      TERN_CHECK(is_gzip(bytes.subspan(in_used)), DataError,
                 "'{}': byte {}: {} bytes after the end of the gzip stream", name, in_used,
                 bytes.size() - in_used);
      inflateReset(&stream);
      member_done = false;
    }
    if (out_used == out.size()) {
      const size_t room = std::max<size_t>({out.size(), 4 * bytes.size(), size_t{1} << 14});
      out.resize(out.size() + room);
    }
    const size_t in_piece = std::min(bytes.size() - in_used, kPiece);
    const size_t out_piece = std::min(out.size() - out_used, kPiece);
    stream.next_in = const_cast<Bytef*>(bytes.data() + in_used);
    stream.avail_in = static_cast<uInt>(in_piece);
    stream.next_out = out.data() + out_used;
    stream.avail_out = static_cast<uInt>(out_piece);
    const int status = inflate(&stream, Z_NO_FLUSH);
    in_used += in_piece - stream.avail_in;
    out_used += out_piece - stream.avail_out;
    TERN_CHECK(out_used <= max_bytes, DataError,
               "'{}': byte {}: the decompressed data exceed the limit of {} bytes", name, in_used, max_bytes);
    if (status == Z_STREAM_END) {
      member_done = true;
    } else if (status == Z_BUF_ERROR || (status == Z_OK && in_used == bytes.size() && stream.avail_out > 0)) {
      TERN_THROW(DataError,
                 "'{}': byte {}: the gzip stream ends early (after {} decompressed bytes); the file was cut",
                 name, in_used, out_used);
    } else {
      TERN_CHECK(status == Z_OK, DataError, "'{}': byte {}: broken gzip stream: {}", name, in_used,
                 stream.msg != nullptr ? stream.msg : "it needs a preset dictionary");
    }
  }
  out.resize(out_used);
  return out;
}

Bytes read_file_or_gzip(const std::string& path, uint64_t max_bytes) {
  Bytes bytes = read_file(path, max_bytes);
  return is_gzip(bytes) ? gunzip(bytes, path, max_bytes) : bytes;
}

}  // namespace tern::data
