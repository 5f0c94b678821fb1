// Records of the binary files of CIFAR-10 and CIFAR-100.
#include "tern/data/cifar_binary.h"

#include <filesystem>
#include <utility>

#include "tern/base/check.h"
#include "tern/data/rows.h"

namespace tern::data {
namespace {

std::string find_cifar_file(const std::string& root, const CifarFormat& format, const std::string& file) {
  namespace fs = std::filesystem;
  for (const std::string& folder : {std::string(), format.folder}) {
    for (const char* suffix : {"", ".gz"}) {
      const fs::path path = fs::path(root) / folder / (file + suffix);
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return path.string();
    }
  }
  TERN_THROW(DataError, "{}: no file '{}' or '{}.gz' in '{}', nor in its folder {}/", format.set, file, file,
             root, format.folder);
}

}  // namespace

void parse_cifar(ByteView bytes, const CifarFormat& format, const std::string& name, CifarRecords& records) {
  constexpr size_t kImage = static_cast<size_t>(kCifarImageBytes);
  const size_t labels = format.labels.size(), record = kImage + labels, count = bytes.size() / record;
  TERN_CHECK(!bytes.empty(), DataError, "'{}': byte 0: the file is empty; {} records have {} bytes each",
             name, format.set, record);
  TERN_CHECK(bytes.size() % record == 0, DataError,
             "'{}': byte {}: the file ends inside a record: it has {} bytes, which is no multiple of {}",
             name, count * record, bytes.size(), record);
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < labels; ++k) {
      const size_t at = i * record + k;
      TERN_CHECK(bytes[at] < format.labels[k].classes, DataError,
                 "'{}': byte {}: {} {} of record {} is out of range 0 to {}", name, at, format.labels[k].name,
                 bytes[at], i, format.labels[k].classes - 1);
    }
  }
  records.images.reserve(records.images.size() + count * kImage);
  records.labels.resize(labels);
  for (size_t i = 0; i < count; ++i) {
    const ByteView of = bytes.subspan(i * record, record);
    for (size_t k = 0; k < labels; ++k) records.labels[k].push_back(of[k]);
    records.images.insert(records.images.end(), of.begin() + static_cast<std::ptrdiff_t>(labels), of.end());
  }
}

CifarRecords read_cifar(const std::string& root, const CifarFormat& format,
                        const std::vector<std::string>& files) {
  CifarRecords records;
  for (const std::string& file : files) {
    const std::string path = find_cifar_file(root, format, file);
    parse_cifar(read_file_or_gzip(path), format, path, records);
  }
  return records;
}

Tensor take_cifar_images(CifarRecords& records) {
  const int64_t count = std::ssize(records.images) / kCifarImageBytes;
  return detail::tensor_from_bytes(std::move(records.images), {count, 3, kCifarSide, kCifarSide});
}

}  // namespace tern::data
