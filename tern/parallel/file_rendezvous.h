// How processes that see one file, on a shared file system for several machines, find the first of them: it
// writes there where it waits.
#pragma once

#include <filesystem>
#include <string>

#include "tern/parallel/socket.h"

namespace tern::dist {

/// What the file says. It replaces what an earlier run left, and goes when the processes have met, or have
/// not.
class Notice {
 public:
  /// `job` keeps away the processes of other files. Throws DistributedError where it cannot be written.
  Notice(std::filesystem::path path, uint16_t port, const std::string& job);
  ~Notice();
  Notice(const Notice&) = delete;
  Notice& operator=(const Notice&) = delete;

  /// A connection to whom the file names, and his `job`; waits for both. Throws DistributedError at the
  /// deadline.
  static Socket follow(const std::filesystem::path& path, Clock::time_point deadline, std::string& job);

 private:
  std::filesystem::path path_;
};

}  // namespace tern::dist
