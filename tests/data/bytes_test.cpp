// Files, gzip, and the byte-level parsers of idx and CIFAR: values, and every way of being broken.
#include "tern/data/bytes.h"

#include <fmt/format.h>

#include <numeric>

#include "tern/data/cifar_binary.h"
#include "tern/data/idx.h"
#include "tests/data/data_testing.h"

namespace tern::data {
namespace {

using testing::expect_error;
using testing::gzip;
using testing::TempFolder;

Bytes some_bytes(size_t count) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 256);
  return bytes;
}

TEST(ReadFile, GivesWhatWasWritten) {
  TempFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{65537}, size_t{300000}}) {
    const Bytes bytes = some_bytes(size);
    EXPECT_EQ(read_file(folder.write("f", bytes)), bytes);
  }
}

TEST(ReadFile, Errors) {
  TempFolder folder;
  expect_error<IoError>([&] { read_file(folder.file("none")); }, {"cannot open", "none", "No such file"});
  expect_error<IoError>([&] { read_file(folder.path()); }, {"cannot read", "Is a directory"});
  expect_error<IoError>([&] { write_file(folder.file("a/b"), {}); }, {"cannot create", "a/b"});
  folder.write("big", some_bytes(100));
  expect_error<DataError>([&] { read_file(folder.file("big"), 99); }, {"big", "limit of 99 bytes"});
}

TEST(Gunzip, OneAndSeveralMembers) {
  const Bytes a = some_bytes(100000), b = some_bytes(10);
  Bytes both = gzip(a);
  EXPECT_EQ(gunzip(both, "f"), a);
  const Bytes second = gzip(b);
  both.insert(both.end(), second.begin(), second.end());
  Bytes expected = a;
  expected.insert(expected.end(), b.begin(), b.end());
  EXPECT_EQ(gunzip(both, "f"), expected);
  EXPECT_TRUE(gunzip(gzip({}), "f").empty());
}

TEST(Gunzip, EveryCutIsAnError) {
  const Bytes whole = gzip(some_bytes(300));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(gunzip(ByteView(whole).first(size), "f"), DataError) << size;
  }
}

TEST(Gunzip, ErrorsNameTheByte) {
  const Bytes plain = some_bytes(3000);
  Bytes bytes = gzip(plain);
  expect_error<DataError>([&] { gunzip(ByteView(bytes).first(200), "f.gz"); },
                          {"'f.gz': byte 200", "ends early", "the file was cut"});
  expect_error<DataError>([&] { gunzip(plain, "f.gz"); }, {"'f.gz': byte 0", "not a gzip stream"});
  expect_error<DataError>([&] { gunzip(bytes, "f.gz", 2999); }, {"'f.gz'", "limit of 2999"});
  Bytes checksum = bytes;
  checksum[checksum.size() - 6] ^= 1;
  expect_error<DataError>([&] { gunzip(checksum, "f.gz"); }, {"'f.gz': byte", "incorrect data check"});
  const size_t end = bytes.size();
  bytes.push_back(42);
  expect_error<DataError>([&] { gunzip(bytes, "f.gz"); },
                          {"byte " + std::to_string(end), "1 bytes after the end"});
}

TEST(Gunzip, FlippedBitsNeverCrash) {
  const Bytes plain = some_bytes(500);
  const Bytes whole = gzip(plain);
  for (size_t i = 0; i < whole.size() * 8; ++i) {
    Bytes broken = whole;
    broken[i / 8] ^= static_cast<uint8_t>(1u << i % 8);
    try {
      EXPECT_EQ(gunzip(broken, "f"), plain) << "a changed header field may pass, changed data may not";
    } catch (const DataError&) {
    }
  }
}

/// An idx file of unsigned bytes.
Bytes idx(std::vector<uint32_t> shape, size_t values) {
  Bytes bytes = {0, 0, 8, static_cast<uint8_t>(shape.size())};
  for (const uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(size >> shift));
  }
  const Bytes content = some_bytes(values);
  bytes.insert(bytes.end(), content.begin(), content.end());
  return bytes;
}

TEST(ParseIdx, Values) {
  const Bytes bytes = idx({2, 3, 4}, 24);
  const IdxView view = parse_idx(bytes, 3, "f");
  EXPECT_EQ(view.shape, (std::vector<int64_t>{2, 3, 4}));
  ASSERT_EQ(view.values.size(), 24u);
  EXPECT_EQ(view.values.data(), bytes.data() + 16);
  const Bytes empty = idx({0, 28, 28}, 0);
  EXPECT_EQ(parse_idx(empty, 3, "f").shape[0], 0);
}

TEST(ParseIdx, Errors) {
  struct Case {
    Bytes bytes;
    int64_t rank;
    std::vector<std::string> pieces;
  };
  Bytes big_endian_float = idx({2}, 2);
  big_endian_float[2] = 0x0D;
  const Case cases[] = {
      {{}, 3, {"'f': byte 0", "the file has 0 bytes"}},
      {{0, 0, 8}, 3, {"'f': byte 0", "the file has 3 bytes"}},
      {idx({2, 3}, 6), 3, {"'f': byte 0", "wrong magic 0x00000802", "expected 0x00000803"}},
      {big_endian_float,
       1,
       {"wrong magic 0x00000d01", "expected 0x00000801 (idx, unsigned bytes, 1 dimension)"}},
      {{0, 0, 8, 3, 0, 0, 0, 1}, 3, {"'f': byte 8", "inside its header of 16 bytes"}},
      {idx({2, 3, 4}, 23), 3, {"'f': byte 39", "promises 24 values, 23 bytes"}},
      {idx({2, 3, 4}, 25), 3, {"'f': byte 40", "1 bytes follow the 24 values"}},
      {idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, 4), 3, {"'f': byte 12", "more than 2^64"}},
      {idx({0xFFFFFFFF}, 4), 1, {"promises 4294967295 values, 4 bytes"}},
  };
  for (const Case& c : cases) {
    expect_error<DataError>([&] { parse_idx(c.bytes, c.rank, "f"); }, c.pieces);
  }
  EXPECT_THROW(parse_idx({}, 0, "f"), ValueError);
}

TEST(ParseCifar, ValuesAndErrors) {
  for (const bool fine : {false, true}) {
    const CifarFormat format = fine ? CifarFormat{"CIFAR100", "", {{"coarse label", 20}, {"fine label", 100}}}
                                    : CifarFormat{"CIFAR10", "", {{"label", 10}}};
    const size_t labels = format.labels.size(), record = 3072 + labels;
    Bytes bytes(2 * record);
    bytes[labels - 1] = 9;
    bytes[labels] = 10;
    bytes[record] = 4;
    bytes[2 * record - 1] = 77;
    CifarRecords records;
    parse_cifar(bytes, format, "f", records);
    EXPECT_EQ(records.labels, (fine ? std::vector<std::vector<int64_t>>{{0, 4}, {9, 0}}
                                    : std::vector<std::vector<int64_t>>{{9, 4}}));
    ASSERT_EQ(records.images.size(), 2u * 3072);
    EXPECT_EQ(records.images.front(), 10);
    EXPECT_EQ(records.images.back(), 77);

    const auto parse = [&](const Bytes& b) { parse_cifar(b, format, "f", records); };
    expect_error<DataError>([&] { parse({}); }, {"'f': byte 0", "empty; " + format.set});
    expect_error<DataError>([&] { parse(Bytes(5000)); }, {fmt::format("'f': byte {}", record), "5000 bytes",
                                                          fmt::format("no multiple of {}", record)});
    bytes[record + labels - 1] = 100;
    expect_error<DataError>(
        [&] { parse(bytes); },
        {fmt::format("'f': byte {}", record + labels - 1),
         fine ? "fine label 100 of record 1" : "label 100 of record 1", fine ? "0 to 99" : "0 to 9"});
    EXPECT_EQ(records.labels[0].size(), 2u) << "a broken file appends nothing";
  }
}

}  // namespace
}  // namespace tern::data
