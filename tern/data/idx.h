// The idx format, in which MNIST and its relatives come: a big-endian header, then the values.
// The data sets made of such files are in mnist.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/data/bytes.h"

namespace tern::data {

/// An idx file of unsigned bytes: its sizes, and where its values lie in the bytes that were parsed.
struct IdxView {
  std::vector<int64_t> shape;
  ByteView values;
};

/// Reads the header of an idx file of unsigned bytes with `rank` dimensions (1 to 255) and finds its values.
/// `name` is for messages. Throws DataError that names the byte: wrong magic, header or values cut short,
/// bytes after the values. The format: http://yann.lecun.com/exdb/mnist (magic 00 00 08 rank, sizes as
/// 32-bit big-endian, values in row-major order).
IdxView parse_idx(ByteView bytes, int64_t rank, const std::string& name);

}  // namespace tern::data
