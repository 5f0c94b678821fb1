// Sources: files read with pread, memory, parts. Writing is in file_write.cpp.
#include "tern/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include "tern/base/check.h"
#include "tern/io/mapped_file.h"
#include "tern/io/tensor_bytes.h"

namespace tern::io {

namespace {

class FileSource final : public ByteSource {
 public:
  FileSource(int descriptor, uint64_t size, std::string name)
      : descriptor_(descriptor), size_(size), name_(std::move(name)) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { ::close(descriptor_); }

  uint64_t size() const noexcept override { return size_; }
  std::string name() const override { return name_; }

  void read_at(uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size());
    size_t done = 0;
    while (done < out.size()) {
      ssize_t got =
          ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      TERN_CHECK(got >= 0, IoError, "reading failed at byte {}: {}", offset + done,
                 std::generic_category().message(errno));
      TERN_CHECK(got > 0, CheckpointError, "the file became shorter while it was read");
      done += static_cast<size_t>(got);
    }
  }

  std::shared_ptr<MappedFile> map() const override {
    struct stat status {};
    TERN_CHECK(::fstat(descriptor_, &status) == 0 && static_cast<uint64_t>(status.st_size) >= size_,
               CheckpointError, "the file became shorter while it was read");
    return std::make_shared<MappedFile>(descriptor_, size_, name_);
  }

  /// Bytes in the page cache are read at once; of others the whole range is asked for, since the system's own
  /// read-ahead is too short for a disk that serves several requests at a time.
  void will_read(uint64_t offset, uint64_t count) const noexcept override {
#ifdef RWF_NOWAIT
    std::byte probe;
    iovec place{&probe, 1};
    if (count > 0 && ::preadv2(descriptor_, &place, 1, static_cast<off_t>(offset), RWF_NOWAIT) > 0) return;
#endif
    ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(count), POSIX_FADV_WILLNEED);
  }

 private:
  int descriptor_;
  uint64_t size_;
  std::string name_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t size() const noexcept override { return bytes_.size(); }
  std::string name() const override { return "the given memory"; }
  std::span<const std::byte> in_memory() const noexcept override { return bytes_; }
  void read_at(uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size());
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::span<const std::byte> bytes_;
};

class PartSource final : public ByteSource {
 public:
  PartSource(std::shared_ptr<const ByteSource> whole, uint64_t offset, uint64_t size)
      : whole_(std::move(whole)), offset_(offset), size_(size) {}
  uint64_t size() const noexcept override { return size_; }
  std::string name() const override {
    return fmt::format("bytes {} to {} of {}", offset_, offset_ + size_, whole_->name());
  }
  std::span<const std::byte> in_memory() const noexcept override {
    auto whole = whole_->in_memory();
    return whole.empty() ? whole : whole.subspan(offset_, size_);
  }
  void read_at(uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size());
    whole_->read_at(offset_ + offset, out);
  }
  void will_read(uint64_t offset, uint64_t count) const noexcept override {
    whole_->will_read(offset_ + offset, count);
  }

 private:
  std::shared_ptr<const ByteSource> whole_;
  uint64_t offset_;
  uint64_t size_;
};

}  // namespace

std::shared_ptr<MappedFile> ByteSource::map() const { return nullptr; }

void ByteSource::check_range(uint64_t offset, uint64_t count) const {
  TERN_CHECK(offset <= size() && count <= size() - offset, CheckpointError,
             "{}: {} bytes are expected at byte {}, but it has only {} bytes (incomplete file?)", name(),
             count, offset, size());
}

std::vector<std::byte> ByteSource::read(uint64_t offset, uint64_t count) const {
  check_range(offset, count);
  std::vector<std::byte> bytes = host_bytes(count);
  read_at(offset, bytes);
  return bytes;
}

void check_path(const std::filesystem::path& path) {
  TERN_CHECK(path.native().find('\0') == std::string::npos, IoError, "the path '{}...' has a NUL byte",
             path.c_str());
}

std::string lower_extension(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

std::shared_ptr<const ByteSource> open_file(const std::filesystem::path& path) {
  std::string name = fmt::format("'{}'", path.string());
  check_path(path);
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  TERN_CHECK(descriptor >= 0, IoError, "cannot open {}: {}", name, std::generic_category().message(errno));
  struct stat status {};
  int failed = ::fstat(descriptor, &status);
  if (failed != 0 || !S_ISREG(status.st_mode)) {
    int cause = errno;
    ::close(descriptor);
    TERN_CHECK(failed == 0, IoError, "cannot inspect {}: {}", name, std::generic_category().message(cause));
    TERN_THROW(IoError, "cannot open {}: it is {}, not a regular file", name,
               S_ISDIR(status.st_mode) ? "a folder" : "a device or pipe");
  }
  return std::make_shared<FileSource>(descriptor, static_cast<uint64_t>(status.st_size), std::move(name));
}

std::shared_ptr<const ByteSource> open_descriptor(int descriptor, std::string name) {
  const auto fail = [&name](const char* what) {
    TERN_THROW(IoError, "{} {} failed: {}", what, name, std::generic_category().message(errno));
  };
  const auto source_of = [&](int file, uint64_t size) {
    const int own = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (own < 0) fail("opening");
    return std::make_shared<FileSource>(own, size, name);
  };
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail("inspecting");
  if (S_ISREG(status.st_mode) && ::lseek(descriptor, 0, SEEK_CUR) == 0)
    return source_of(descriptor, static_cast<uint64_t>(status.st_size));

  constexpr const char* kKeeping = "a temporary file for";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> kept(std::tmpfile(), &std::fclose);
  if (!kept) fail(kKeeping);
  std::vector<std::byte> piece(size_t{1} << 20);
  uint64_t size = 0;
  while (true) {
    const ssize_t got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("reading");
    if (got == 0) break;
    if (std::fwrite(piece.data(), 1, static_cast<size_t>(got), kept.get()) != static_cast<size_t>(got))
      fail(kKeeping);
    size += static_cast<uint64_t>(got);
  }
  if (std::fflush(kept.get()) != 0) fail(kKeeping);
  return source_of(::fileno(kept.get()), size);
}

std::shared_ptr<const ByteSource> view_memory(std::span<const std::byte> bytes) {
  return std::make_shared<MemorySource>(bytes);
}

std::shared_ptr<const ByteSource> part_of(std::shared_ptr<const ByteSource> source, uint64_t offset,
                                          uint64_t size) {
  TERN_CHECK(offset <= source->size() && size <= source->size() - offset, CheckpointError,
             "the part from byte {} of {} bytes is not inside the {} bytes of {}", offset, size,
             source->size(), source->name());
  return std::make_shared<PartSource>(std::move(source), offset, size);
}

}  // namespace tern::io
