// The binary form of CIFAR-10: records of one label byte and 3072 bytes of picture.
// The data set made of such files is in cifar10.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/data/bytes.h"

namespace tern::data {

inline constexpr int64_t kCifarSide = 32;
inline constexpr int64_t kCifarImageBytes = 3 * kCifarSide * kCifarSide;

/// Appends the records of a file to `images` (3x32x32 bytes each: the red plane, the green, the blue) and
/// `labels`. `name` is for messages. Throws DataError that names the byte: an empty file, a length that is no
/// multiple of 3073, a label above 9. Nothing is appended then.
void parse_cifar10(ByteView bytes, const std::string& name, Bytes& images, std::vector<int64_t>& labels);

}  // namespace tern::data
