// Framing and the few protobuf fields that scalars need.
#include "tern/train/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>

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

std::string scalar_event(double wall_time, int64_t step,
                         const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, /*tag*/ 1, tag);
    put_float(value, /*simple_value*/ 2, static_cast<float>(number));
    put_bytes(summary, /*value*/ 1, value);
  }
  std::string event = event_head(wall_time, step);
  put_bytes(event, /*summary*/ 5, summary);
  return event;
}

}  // namespace detail

namespace {

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
  detail::put_bytes(version, /*file_version*/ 3, "brain.Event:2");
  file_.write(detail::tf_record(version));
  if (resume_step < 0) return;
  std::string session;
  detail::put_int(session, /*status*/ 1, /*START*/ 1);
  std::string restart = detail::event_head(wall_time(), resume_step);
  detail::put_bytes(restart, /*session_log*/ 7, session);
  file_.write(detail::tf_record(restart));
}

void EventFile::add_scalars(const std::vector<std::pair<std::string, double>>& scalars, int64_t step) {
  file_.write(detail::tf_record(detail::scalar_event(wall_time(), step, scalars)));
}

}  // namespace tern::train
