// EventFile: scalars, histograms, pictures and texts in TensorBoard's event files. Formats:
// tensorflow/core/lib/io/record_writer (framing, masked CRC-32C), tensorflow/core/util/event.proto and
// framework/summary.proto (messages, written by hand).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/data/image.h"
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
  // What is added reaches the file at once. `time` is in seconds since 1970, by default now.

  /// Several scalars of one step.
  void add_scalars(const std::vector<std::pair<std::string, double>>& scalars, int64_t step,
                   std::optional<double> time = {});
  void add_scalar(const std::string& tag, double value, int64_t step, std::optional<double> time = {}) {
    add_scalars({{tag, value}}, step, time);
  }
  /// How many of the values lie where, in the ranges that TensorFlow and PyTorch use: each reaches 10%
  /// further than the one before. What is not finite, or above 1e20, is in none of them. Throws ValueError if
  /// that is all.
  void add_histogram(const std::string& tag, std::span<const double> values, int64_t step,
                     std::optional<double> time = {});
  /// Throws ValueError if the picture's sizes and pixels disagree.
  void add_image(const std::string& tag, const data::Image& image, int64_t step,
                 std::optional<double> time = {});
  /// TensorBoard shows Markdown.
  void add_text(const std::string& tag, const std::string& text, int64_t step,
                std::optional<double> time = {});
  /// Returns when the content is on the disk.
  void sync() { file_.sync(); }

 private:
  void add_summary(const std::string& summary, int64_t step, std::optional<double> time);

  AppendFile file_;
};

namespace detail {
/// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t crc32c(std::string_view bytes);
/// The rotated and offset checksum that stands in the records.
uint32_t masked_crc32c(std::string_view bytes);
/// Length, checksum, bytes, checksum.
std::string tf_record(std::string_view bytes);
}  // namespace detail

}  // namespace tern::train
