// AppendFile: a file that grows at its end and reports every failed write; for logs. Files that are replaced
// as a whole are io's AtomicFile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace tern::train {

/// A file open for appending. All functions throw IoError naming the path and the system's cause.
class AppendFile {
 public:
  AppendFile() = default;
  /// Opens the file, making it if it is not there.
  explicit AppendFile(const std::filesystem::path& path);
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  bool is_open() const noexcept { return fd_ >= 0; }
  const std::filesystem::path& path() const noexcept { return path_; }
  /// Keeps other processes that ask from the file for as long as it is open. False when one has it already.
  bool try_lock();
  /// In bytes.
  uint64_t size() const;
  /// Appends all of it, or, when that fails, nothing.
  void write(std::string_view bytes);
  /// Cuts the file to its first `size` bytes.
  void truncate(uint64_t size);
  /// Returns when the content is on the disk.
  void sync();

 private:
  [[noreturn]] void fail(const char* operation) const;

  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace tern::train
