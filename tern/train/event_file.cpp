// Framing and the few protobuf fields that these events need.
#include "tern/train/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <functional>
#include <iterator>
#include <limits>

#include "tern/base/check.h"

namespace tern::train {
namespace detail {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0u);
    table[i] = crc;
  }
  return table;
}

template <class T>
void put_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> 8 * i & 0xFF));
}

// Protobuf's wire format: a field's number and type, then its value.
enum class Wire : uint32_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
void put_key(std::string& out, uint32_t field, Wire wire) {
  put_varint(out, field << 3 | static_cast<uint32_t>(wire));
}
void put_int(std::string& out, uint32_t field, int64_t value) {
  put_key(out, field, Wire::Varint);
  put_varint(out, static_cast<uint64_t>(value));
}
void put_double(std::string& out, uint32_t field, double value) {
  put_key(out, field, Wire::Fixed64);
  put_little_endian(out, std::bit_cast<uint64_t>(value));
}
void put_float(std::string& out, uint32_t field, float value) {
  put_key(out, field, Wire::Fixed32);
  put_little_endian(out, std::bit_cast<uint32_t>(value));
}
void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_key(out, field, Wire::Bytes);
  put_varint(out, bytes.size());
  out.append(bytes);
}

std::string event_head(double wall_time, int64_t step) {
  std::string event;
  put_double(event, /*wall_time*/ 1, wall_time);
  put_int(event, /*step*/ 2, step);
  return event;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = ~0u;
  for (char byte : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

std::string tf_record(std::string_view bytes) {
  std::string record;
  record.reserve(bytes.size() + 16);
  put_little_endian(record, uint64_t{bytes.size()});
  put_little_endian(record, masked_crc32c(record));
  record.append(bytes);
  put_little_endian(record, masked_crc32c(bytes));
  return record;
}

}  // namespace detail

namespace {

using detail::put_bytes;
using detail::put_double;
using detail::put_float;
using detail::put_int;

/// Summary.Value: a tag, and what `put` writes besides; as the only one or one of several of a Summary.
template <class Put>
void put_value(std::string& summary, const std::string& tag, const Put& put) {
  std::string value;
  put_bytes(value, /*tag*/ 1, tag);
  put(value);
  put_bytes(summary, /*value*/ 1, value);
}

/// 0, then 1e-12 and so on up to 1e20, and the negative ones before them.
std::vector<double> bucket_limits() {
  std::vector<double> limits;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) limits.push_back(limit);
  std::vector<double> all;
  std::transform(limits.rbegin(), limits.rend(), std::back_inserter(all), std::negate<>());
  all.push_back(0);
  all.insert(all.end(), limits.begin(), limits.end());
  return all;
}

/// HistogramProto. As PyTorch's make_histogram, it begins with an empty bucket, for the lowest limit.
std::string histogram_of(std::span<const double> values) {
  static const std::vector<double> limits = bucket_limits();
  std::vector<double> counts(limits.size() - 1);
  double min = std::numeric_limits<double>::infinity(), max = -min, sum = 0, squares = 0, number = 0;
  for (const double value : values) {
    if (!(value >= limits.front() && value <= limits.back())) continue;
    const auto above = std::upper_bound(limits.begin(), limits.end() - 1, value) - limits.begin();
    ++counts[static_cast<size_t>(above) - 1];
    min = std::min(min, value);
    max = std::max(max, value);
    sum += value;
    squares += value * value;
    ++number;
  }
  TERN_CHECK(number > 0, ValueError, "add_histogram: none of the {} values is finite", values.size());
  const auto full = [](double count) { return count > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), full) - counts.begin();
  const auto last = counts.size() -
                    static_cast<size_t>(std::find_if(counts.rbegin(), counts.rend(), full) - counts.rbegin());
  std::string ends, heights, histogram;
  detail::put_little_endian(heights, std::bit_cast<uint64_t>(0.0));
  for (auto i = static_cast<size_t>(first); i <= last; ++i) {
    detail::put_little_endian(ends, std::bit_cast<uint64_t>(limits[i]));
    if (i < last) detail::put_little_endian(heights, std::bit_cast<uint64_t>(counts[i]));
  }
  put_double(histogram, /*min*/ 1, min);
  put_double(histogram, /*max*/ 2, max);
  put_double(histogram, /*num*/ 3, number);
  put_double(histogram, /*sum*/ 4, sum);
  put_double(histogram, /*sum_squares*/ 5, squares);
  put_bytes(histogram, /*bucket_limit*/ 6, ends);
  put_bytes(histogram, /*bucket*/ 7, heights);
  return histogram;
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::filesystem::path new_event_path(const std::filesystem::path& folder) {
  static std::atomic<int> number{0};
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  return folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<int64_t>(wall_time()), host,
                              ::getpid(), number++);
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder, int64_t resume_step)
    : file_(new_event_path(folder)) {
  std::string version = detail::event_head(wall_time(), 0);
  put_bytes(version, /*file_version*/ 3, "brain.Event:2");
  file_.write(detail::tf_record(version));
  if (resume_step < 0) return;
  std::string session;
  put_int(session, /*status*/ 1, /*START*/ 1);
  std::string restart = detail::event_head(wall_time(), resume_step);
  put_bytes(restart, /*session_log*/ 7, session);
  file_.write(detail::tf_record(restart));
}

void EventFile::add_summary(const std::string& summary, int64_t step, std::optional<double> time) {
  std::string event = detail::event_head(time ? *time : wall_time(), step);
  put_bytes(event, /*summary*/ 5, summary);
  file_.write(detail::tf_record(event));
}

void EventFile::add_scalars(const std::vector<std::pair<std::string, double>>& scalars, int64_t step,
                            std::optional<double> time) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    put_value(summary, tag, [number = static_cast<float>(number)](std::string& value) {
      put_float(value, /*simple_value*/ 2, number);
    });
  }
  add_summary(summary, step, time);
}

void EventFile::add_histogram(const std::string& tag, std::span<const double> values, int64_t step,
                              std::optional<double> time) {
  std::string summary;
  put_value(summary, tag, [&](std::string& value) { put_bytes(value, /*histo*/ 5, histogram_of(values)); });
  add_summary(summary, step, time);
}

void EventFile::add_image(const std::string& tag, const data::Image& image, int64_t step,
                          std::optional<double> time) {
  const data::Bytes png = data::encode_png(image);
  std::string picture, summary;
  put_int(picture, /*height*/ 1, image.height);
  put_int(picture, /*width*/ 2, image.width);
  put_int(picture, /*colorspace*/ 3, image.channels);
  put_bytes(picture, /*encoded_image_string*/ 4, {reinterpret_cast<const char*>(png.data()), png.size()});
  put_value(summary, tag, [&](std::string& value) { put_bytes(value, /*image*/ 4, picture); });
  add_summary(summary, step, time);
}

void EventFile::add_text(const std::string& tag, const std::string& text, int64_t step,
                         std::optional<double> time) {
  std::string plugin, metadata, side, shape, tensor, summary;
  put_bytes(plugin, /*plugin_name*/ 1, "text");
  put_bytes(metadata, /*plugin_data*/ 1, plugin);
  put_int(side, /*size*/ 1, 1);
  put_bytes(shape, /*dim*/ 2, side);
  put_int(tensor, /*dtype*/ 1, /*DT_STRING*/ 7);
  put_bytes(tensor, /*tensor_shape*/ 2, shape);
  put_bytes(tensor, /*string_val*/ 8, text);
  put_value(summary, tag, [&](std::string& value) {
    put_bytes(value, /*tensor*/ 8, tensor);
    put_bytes(value, /*metadata*/ 9, metadata);
  });
  add_summary(summary, step, time);
}

}  // namespace tern::train
