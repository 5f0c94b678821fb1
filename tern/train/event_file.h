// EventFile: scalars in TensorBoard's event files. Formats: tensorflow/core/lib/io/record_writer (framing,
// masked CRC-32C), tensorflow/core/util/event.proto and framework/summary.proto (messages, written by hand).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/train/append_file.h"

namespace tern::train {

/// A new events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER in a folder, which `tensorboard --logdir`
/// shows. Functions throw IoError.
class EventFile {
 public:
  EventFile() = default;
  /// With `resume_step` >= 0, TensorBoard forgets what earlier files of the folder have from that step on.
  explicit EventFile(const std::filesystem::path& folder, int64_t resume_step = -1);

  bool is_open() const noexcept { return file_.is_open(); }
  const std::filesystem::path& path() const noexcept { return file_.path(); }
  /// Several scalars of one step. The value reaches the file at once.
  void add_scalars(const std::vector<std::pair<std::string, double>>& scalars, int64_t step);
  void add_scalar(const std::string& tag, double value, int64_t step) { add_scalars({{tag, value}}, step); }
  /// Returns when the content is on the disk.
  void sync() { file_.sync(); }

 private:
  AppendFile file_;
};

namespace detail {
/// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t crc32c(std::string_view bytes);
/// The rotated and offset checksum that stands in the records.
uint32_t masked_crc32c(std::string_view bytes);
/// Length, checksum, bytes, checksum.
std::string tf_record(std::string_view bytes);
/// The message Event with a Summary of simple values.
std::string scalar_event(double wall_time, int64_t step,
                         const std::vector<std::pair<std::string, double>>& scalars);
}  // namespace detail

}  // namespace tern::train
