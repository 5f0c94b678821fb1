// Appending through the operating system's calls, so that a full disk is an error and not a lost line.
#include "tern/train/append_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tern/base/check.h"

namespace tern::train {

AppendFile::AppendFile(const std::filesystem::path& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("open");
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

void AppendFile::fail(const char* operation) const {
  TERN_THROW(IoError, "{} '{}': {}", operation, path_.string(), std::strerror(errno));
}

bool AppendFile::try_lock() {
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  if (errno == ENOLCK || errno == ENOTSUP) return true;  // a file system without locks
  fail("lock");
}

uint64_t AppendFile::size() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) fail("stat");
  return static_cast<uint64_t>(status.st_size);
}

void AppendFile::write(std::string_view bytes) {
  const uint64_t before = size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      const int cause = errno;
      // Half a line would make what follows it unreadable. When even this fails, the write's error is the one
      // to tell.
      [[maybe_unused]] const int cut = ::ftruncate(fd_, static_cast<off_t>(before));
      errno = cause;
      fail("write");
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void AppendFile::truncate(uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) fail("truncate");
}

void AppendFile::sync() {
  if (::fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS) fail("sync");
}

}  // namespace tern::train
