// Zip archives: what is written comes back, byte flips are noticed.
#include "tern/io/byte_order.h"
#include "tern/io/zip_reader.h"
#include "tern/io/zip_writer.h"

#include "io_testing.h"

namespace tern::io {
namespace {

using testing::HasSubstr;

std::vector<std::byte> sample() {
  MemorySink sink;
  ZipWriter zip(sink);
  zip.add("m/data.pkl", "first");
  zip.add("m/empty", "");
  zip.begin("m/data/0", 100000);
  std::string part(50000, 'a');
  zip.write(bytes_of(part));
  zip.write(bytes_of(part));
  zip.end();
  zip.finish();
  return std::move(sink.bytes());
}

std::string text(const std::vector<std::byte>& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

TEST(Zip, WrittenEntriesComeBackAligned) {
  std::vector<std::byte> bytes = sample();
  ZipReader zip(view_memory(bytes));
  ASSERT_EQ(zip.entries().size(), 3u);
  EXPECT_EQ(text(zip.read(*zip.find("m/data.pkl"), 100)), "first");
  EXPECT_EQ(text(zip.read(*zip.find("m/empty"), 100)), "");
  EXPECT_EQ(text(zip.read(*zip.find("m/data/0"), 1 << 20)), std::string(100000, 'a'));
  for (const ZipEntry& entry : zip.entries()) EXPECT_EQ(zip.data_offset(entry) % 64, 0u) << entry.name;
  EXPECT_EQ(zip.find("M/data.pkl"), nullptr);
  EXPECT_THAT(error_of<CheckpointError>([&] { zip.read(*zip.find("m/data/0"), 99999); }),
              HasSubstr("at most 99999"));
}

TEST(Zip, WriterRefusesWrongSizes) {
  MemorySink sink;
  ZipWriter zip(sink);
  zip.begin("a", 3);
  EXPECT_THROW(zip.write(bytes_of("abcd")), ValueError);
  zip.write(bytes_of("ab"));
  EXPECT_THROW(zip.end(), ValueError);
}

TEST(Zip, EveryCutIsAnError) {
  std::vector<std::byte> bytes = sample();
  for (size_t length = 0; length < bytes.size();
       length += length < 200 || length + 700 > bytes.size() ? 1 : 1009)
    EXPECT_THROW(ZipReader(view_memory({bytes.data(), length})), CheckpointError) << length;
}

TEST(Zip, DamageInDataIsNoticed) {
  std::vector<std::byte> bytes = sample();
  uint64_t at = 0;
  {
    ZipReader zip(view_memory(bytes));
    at = zip.data_offset(*zip.find("m/data/0"));
  }
  bytes[at + 77777] ^= std::byte{1};
  ZipReader zip(view_memory(bytes));
  EXPECT_THAT(error_of<CheckpointError>([&] { zip.read(*zip.find("m/data/0"), 1 << 20); }),
              HasSubstr("is damaged: its CRC"));
  std::vector<std::byte> out(100000);
  zip.read(*zip.find("m/data/0"), out, /*verify_crc=*/false);
}

TEST(Zip, NoByteFlipCrashes) {
  std::vector<std::byte> bytes = sample();
  size_t directory = bytes.size() - 400;
  for (size_t at = directory; at < bytes.size(); ++at)
    for (int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> changed = bytes;
      changed[at] = static_cast<std::byte>(value);
      try {
        ZipReader zip(view_memory(changed));
        for (const ZipEntry& entry : zip.entries()) zip.read(entry, 1 << 20);
      } catch (const CheckpointError&) {
      }
    }
}

TEST(Zip, JunkAfterTheEndIsTolerated) {
  std::vector<std::byte> bytes = sample();
  bytes.resize(bytes.size() + 100);
  EXPECT_EQ(ZipReader(view_memory(bytes)).entries().size(), 3u);
}

}  // namespace
}  // namespace tern::io
