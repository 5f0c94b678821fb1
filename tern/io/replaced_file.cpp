// The page cache and the space of files that are about to be, or have been, replaced. Who replaces them is in
// file_write.cpp.
#include "tern/io/replaced_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

namespace tern::io {

namespace {

/// Space of smaller files is given back faster than a thread begins.
constexpr off_t kLargeBytes = off_t{16} << 20;
constexpr std::chrono::seconds kLongestWait{10};

std::atomic<int> releases{0};

bool has_known_habits([[maybe_unused]] int descriptor) noexcept {
#if defined(__linux__)
  constexpr decltype(statfs::f_type) kXfs = 0x58465342;
  struct statfs status {};
  if (::fstatfs(descriptor, &status) != 0) return false;
  return status.f_type == EXT4_SUPER_MAGIC || status.f_type == TMPFS_MAGIC ||
         status.f_type == BTRFS_SUPER_MAGIC || status.f_type == kXfs;
#else
  return false;
#endif
}

}  // namespace

ReplacedFile::ReplacedFile(const std::filesystem::path& path) noexcept {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0 || has_known_habits(descriptor_)) return;
  ::close(descriptor_);
  descriptor_ = -1;
}

ReplacedFile::~ReplacedFile() {
  if (descriptor_ < 0) return;
  struct stat status {};
  const bool last_use = ::fstat(descriptor_, &status) == 0 && status.st_nlink == 0;
  if (last_use && status.st_size >= kLargeBytes) {
    releases.fetch_add(1);
    try {
      std::thread([descriptor = descriptor_] {
        ::close(descriptor);
        releases.fetch_sub(1);
      }).detach();
      return;
    } catch (const std::system_error&) {  // no more threads
      releases.fetch_sub(1);
    }
  }
  ::close(descriptor_);
}

void ReplacedFile::forget(uint64_t begin, uint64_t end) const noexcept {
  if (descriptor_ >= 0)
    ::posix_fadvise(descriptor_, static_cast<off_t>(begin), static_cast<off_t>(end - begin),
                    POSIX_FADV_DONTNEED);
}

void wait_for_replaced_files() noexcept {
  // A limit, because a process that was forked meanwhile has the number, but not the thread.
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (releases.load() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace tern::io
