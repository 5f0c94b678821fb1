// TensorBoard's event files, byte by byte: checksums against published values, framing and messages by
// decoding them.
#include "tern/train/event_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

#include "tern/base/error.h"
#include "tests/train/train_testing.h"

namespace tern::train {
namespace {

uint64_t little_endian(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint64_t{static_cast<uint8_t>(bytes.at(at + i))} << 8 * i;
  return value;
}

/// The payloads of a file of records, each checked.
std::vector<std::string> read_records(const std::string& file) {
  std::vector<std::string> records;
  size_t at = 0;
  while (at < file.size()) {
    const auto length = static_cast<size_t>(little_endian(file, at, 8));
    EXPECT_EQ(little_endian(file, at + 8, 4), detail::masked_crc32c(std::string_view(file).substr(at, 8)));
    records.push_back(file.substr(at + 12, length));
    EXPECT_EQ(little_endian(file, at + 12 + length, 4), detail::masked_crc32c(records.back()));
    at += 16 + length;
  }
  EXPECT_EQ(at, file.size());
  return records;
}

/// Field number -> raw values, of one protobuf message.
struct Message {
  std::multimap<uint64_t, uint64_t> numbers;
  std::multimap<uint64_t, std::string> bytes;

  explicit Message(std::string_view text) {
    size_t at = 0;
    auto varint = [&] {
      uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<uint8_t>(text.at(at++));
        value |= uint64_t{byte & 0x7Fu} << shift;
        if (byte < 0x80) return value;
      }
    };
    while (at < text.size()) {
      const uint64_t key = varint(), field = key >> 3;
      if ((key & 7) == 0) {
        numbers.emplace(field, varint());
      } else if ((key & 7) == 1) {
        numbers.emplace(field, little_endian(text, at, 8));
        at += 8;
      } else if ((key & 7) == 5) {
        numbers.emplace(field, little_endian(text, at, 4));
        at += 4;
      } else {
        const auto length = static_cast<size_t>(varint());
        bytes.emplace(field, text.substr(at, length));
        at += length;
      }
    }
  }
  uint64_t number(uint64_t field) const { return numbers.find(field)->second; }
  const std::string& text(uint64_t field) const { return bytes.find(field)->second; }
};

TEST(EventFile, Crc32cOfPublishedVectors) {
  EXPECT_EQ(detail::crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(detail::crc32c(""), 0u);
  EXPECT_EQ(detail::crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4
  EXPECT_EQ(detail::crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
}

TEST(EventFile, RecordOfKnownBytes) {
  // The record that TensorFlow writes for the three bytes "foo" begins with its length and that length's
  // checksum.
  const std::string record = detail::tf_record("foo");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(little_endian(record, 0, 8), 3u);
  EXPECT_EQ(record.substr(12, 3), "foo");
  EXPECT_EQ(read_records(record), std::vector<std::string>{"foo"});
}

TEST(EventFile, ScalarsCanBeDecoded) {
  const TemporaryFolder folder;
  EventFile file(folder.path());
  EXPECT_TRUE(file.path().filename().string().starts_with("events.out.tfevents."));
  file.add_scalars({{"train/loss", 0.5}, {"train/accuracy", 0.75}}, 300);
  file.add_scalar("lr", 1e-3, 1'000'000'000'000);
  const auto records = read_records(read_text(file.path()));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(Message(records[0]).text(3), "brain.Event:2");
  EXPECT_GT(std::bit_cast<double>(Message(records[0]).number(1)), 1.6e9);

  const Message event(records[1]);
  EXPECT_EQ(event.number(2), 300u);
  const Message summary(event.text(5));
  ASSERT_EQ(summary.bytes.count(1), 2u);
  auto value = summary.bytes.begin();
  EXPECT_EQ(Message(value->second).text(1), "train/loss");
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(Message(value->second).number(2))), 0.5f);
  ++value;
  EXPECT_EQ(Message(value->second).text(1), "train/accuracy");
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(Message(value->second).number(2))), 0.75f);
  EXPECT_EQ(Message(records[2]).number(2), 1'000'000'000'000u);
}

/// The one value of the event in a record.
Message only_value(const std::string& record) { return Message(Message(Message(record).text(5)).text(1)); }

std::vector<double> doubles(const std::string& bytes) {
  std::vector<double> values;
  for (size_t at = 0; at < bytes.size(); at += 8)
    values.push_back(std::bit_cast<double>(little_endian(bytes, at, 8)));
  return values;
}

TEST(EventFile, HistogramsPicturesAndTexts) {
  const TemporaryFolder folder;
  EventFile file(folder.path());
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  file.add_histogram("weights", std::vector<double>{0, 2, kNan, -1, 2}, /*step=*/7, /*time=*/2.5);
  file.add_image("digit", {.height = 1, .width = 2, .channels = 1, .pixels = {5, 250}}, 8);
  file.add_text("note", "**bold**", 9);
  EXPECT_THROW(file.add_histogram("none", std::vector<double>{kNan}, 1), ValueError);
  EXPECT_THROW(file.add_image("none", {.height = 2, .width = 2, .channels = 1, .pixels = {1}}, 1),
               ValueError);
  const auto records = read_records(read_text(file.path()));
  ASSERT_EQ(records.size(), 4u);

  EXPECT_EQ(Message(records[1]).number(2), 7u);
  EXPECT_EQ(std::bit_cast<double>(Message(records[1]).number(1)), 2.5);
  EXPECT_EQ(only_value(records[1]).text(1), "weights");
  const Message histogram(only_value(records[1]).text(5));
  std::vector<double> of_values;
  for (uint64_t field = 1; field <= 5; ++field)
    of_values.push_back(std::bit_cast<double>(histogram.number(field)));
  EXPECT_EQ(of_values, (std::vector<double>{-1, 2, 4, 3, 9}));  // least, largest, number, sum, squares
  const std::vector<double> ends = doubles(histogram.text(6)), heights = doubles(histogram.text(7));
  ASSERT_EQ(ends.size(), heights.size());
  EXPECT_LE(ends[0], -1);
  EXPECT_GT(ends[1], -1);
  EXPECT_GT(ends.back(), 2);
  EXPECT_EQ((std::vector<double>{heights[0], heights[1], heights.back()}), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(std::accumulate(heights.begin(), heights.end(), 0.0), 4);

  const Message picture(only_value(records[2]).text(4));
  EXPECT_EQ(picture.number(1) * 100 + picture.number(2) * 10 + picture.number(3), 121u);
  const std::string& png = picture.text(4);
  EXPECT_EQ(data::decode_image({reinterpret_cast<const uint8_t*>(png.data()), png.size()}, "png").pixels,
            (data::Bytes{5, 250}));

  const Message text(only_value(records[3]));
  EXPECT_EQ(Message(text.text(8)).text(8), "**bold**");
  EXPECT_EQ(Message(Message(text.text(9)).text(1)).text(1), "text");
}

TEST(EventFile, ResumingSaysFromWhichStepOn) {
  const TemporaryFolder folder;
  EventFile first(folder.path());
  EventFile second(folder.path(), /*resume_step=*/17);
  EXPECT_NE(first.path(), second.path());
  const auto records = read_records(read_text(second.path()));
  ASSERT_EQ(records.size(), 2u);
  const Message event(records[1]);
  EXPECT_EQ(event.number(2), 17u);
  EXPECT_EQ(Message(event.text(7)).number(1), 1u);  // SessionLog.START
}

TEST(EventFile, MissingFolderIsAnError) { EXPECT_THROW(EventFile("/nonexistent/folder"), IoError); }

}  // namespace
}  // namespace tern::train
