// The binary forms of CIFAR-10 and CIFAR-100: records of one or two label bytes and 3072 bytes of picture.
// The data sets made of such files are in cifar10.h and cifar100.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/bytes.h"

namespace tern::data {

inline constexpr int64_t kCifarSide = 32;
inline constexpr int64_t kCifarImageBytes = 3 * kCifarSide * kCifarSide;

/// A label byte of each record.
struct CifarLabel {
  std::string name;  ///< for messages
  int64_t classes;
};

/// What the files of a set are.
struct CifarFormat {
  std::string set;                 ///< "CIFAR10"
  std::string folder;              ///< in which the set is published
  std::vector<CifarLabel> labels;  ///< the bytes at the start of each record
};

/// The records of files, one after the other.
struct CifarRecords {
  Bytes images;                              ///< 3x32x32 bytes each: the red plane, the green, the blue
  std::vector<std::vector<int64_t>> labels;  ///< a list for each label byte
};

/// Appends the records of a file. `name` is for messages. Throws DataError that names the byte: an empty
/// file, a length that is no multiple of the record's, a label outside its classes. Nothing is appended then.
void parse_cifar(ByteView bytes, const CifarFormat& format, const std::string& name, CifarRecords& records);

/// The records of all files, which are looked for in `root` and in the format's folder there, also gzipped
/// with
/// ".gz". Throws as parse_cifar() and read_file(), and DataError for a file that is not there.
CifarRecords read_cifar(const std::string& root, const CifarFormat& format,
                        const std::vector<std::string>& files);

/// uint8 [size, 3, 32, 32] of the records' pictures, which it takes over.
Tensor take_cifar_images(CifarRecords& records);

}  // namespace tern::data
