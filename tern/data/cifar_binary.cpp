// Records of the CIFAR-10 binary files.
#include "tern/data/cifar_binary.h"

#include "tern/base/check.h"

namespace tern::data {

void parse_cifar10(ByteView bytes, const std::string& name, Bytes& images, std::vector<int64_t>& labels) {
  constexpr size_t kImage = static_cast<size_t>(kCifarImageBytes);
  constexpr size_t kRecord = kImage + 1;
  const size_t count = bytes.size() / kRecord;
  TERN_CHECK(!bytes.empty(), DataError,
             "'{}': byte 0: the file is empty; CIFAR-10 records have {} bytes each", name, kRecord);
  TERN_CHECK(bytes.size() % kRecord == 0, DataError,
             "'{}': byte {}: the file ends inside a record: it has {} bytes, which is no multiple of {}",
             name, count * kRecord, bytes.size(), kRecord);
  for (size_t i = 0; i < count; ++i) {
    TERN_CHECK(bytes[i * kRecord] < 10, DataError,
               "'{}': byte {}: label {} of record {} is out of range 0 to 9", name, i * kRecord,
               bytes[i * kRecord], i);
  }
  images.reserve(images.size() + count * kImage);
  labels.reserve(labels.size() + count);
  for (size_t i = 0; i < count; ++i) {
    const ByteView record = bytes.subspan(i * kRecord, kRecord);
    labels.push_back(record[0]);
    images.insert(images.end(), record.begin() + 1, record.end());
  }
}

}  // namespace tern::data
