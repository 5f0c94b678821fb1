// Writing files: the operating system's side, and files that appear whole or not at all. Reading is in
// file.cpp.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "tern/base/check.h"
#include "tern/io/file.h"
#include "tern/io/replaced_file.h"

namespace tern::io {

namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
/// The kernel is told to begin writing after this many bytes, so that the disk works while later bytes are
/// prepared.
constexpr size_t kWriteBehindBytes = size_t{4} << 20;
/// So many bytes take 1 ms of a processor's time, and 10 ms where the host of a virtual machine must provide
/// the memory first.
constexpr double kDearSeconds = 0.005;
/// After two such writes in a row no more than this much of the new file stays in the page cache.
constexpr uint64_t kKeptBytes = uint64_t{64} << 20;

constexpr std::string_view kTemporaryBegin = ".tern-", kTemporaryEnd = ".tmp";

std::string temporary_name() {
  static thread_local std::random_device device;
  return fmt::format("{}{:08x}{:08x}{}", kTemporaryBegin, device(), device(), kTemporaryEnd);
}

/// Whether temporary_name() gave this name: others' files that look similar are not Tern's to remove.
bool is_temporary_name(std::string_view name) {
  if (name.size() != kTemporaryBegin.size() + 16 + kTemporaryEnd.size()) return false;
  const std::string_view digits = name.substr(kTemporaryBegin.size(), 16);
  return name.starts_with(kTemporaryBegin) && name.ends_with(kTemporaryEnd) &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

[[noreturn]] void throw_system(const char* operation, int cause) {
  TERN_THROW(IoError, "{} failed: {}", operation, std::generic_category().message(cause));
}

/// The file behind symbolic links, which need not exist.
std::filesystem::path followed(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(std::filesystem::symlink_status(path, error)); ++links) {
    TERN_CHECK(links < 40, IoError, "there are too many symbolic links");
    std::filesystem::path next = std::filesystem::read_symlink(path, error);
    if (error) throw_system("following the symbolic link", error.value());
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.parent_path().empty() ? "." : file.parent_path();
}

double thread_seconds() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

class NativeFile final : public OutputFile {
 public:
  explicit NativeFile(int descriptor) : descriptor_(descriptor) {}
  NativeFile(const NativeFile&) = delete;
  NativeFile& operator=(const NativeFile&) = delete;
  ~NativeFile() override { ::close(descriptor_); }

  void write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      auto piece = bytes.first(std::min(bytes.size(), kWriteBehindBytes));
      const double start = thread_seconds();
      ssize_t done = ::write(descriptor_, piece.data(), piece.size());
      const int cause = errno;
      const bool dear = thread_seconds() - start > kDearSeconds;
      memory_is_dear_ |= dear && last_was_dear_;
      last_was_dear_ = dear;
      if (done < 0 && cause == EINTR) continue;
      if (done < 0) {
        const bool full = cause == ENOSPC || cause == EDQUOT;
        if (!full || std::exchange(waited_, true)) throw_system("writing", cause);
        wait_for_replaced_files();  // and once more in any case: one may have gone since the write
        continue;
      }
      waited_ = false;
      bytes = bytes.subspan(static_cast<size_t>(done));
      position_ += static_cast<uint64_t>(done);
      begin_writing();
    }
  }
  void sync() override {
    if (::fsync(descriptor_) != 0) throw_system("syncing to disk", errno);
  }
  int descriptor() const noexcept { return descriptor_; }
  void replaces(const std::filesystem::path& path) { replaced_.emplace(path); }

 private:
  void begin_writing() noexcept {
    if (position_ - begun_ < kWriteBehindBytes) return;
#if defined(__linux__)
    ::sync_file_range(descriptor_, static_cast<off_t>(begun_), static_cast<off_t>(position_ - begun_),
                      SYNC_FILE_RANGE_WRITE);
#endif
    if (replaced_) replaced_->forget(begun_, position_);
    if (memory_is_dear_ && position_ > kKeptBytes)
      ::posix_fadvise(descriptor_, 0, static_cast<off_t>(position_ - kKeptBytes), POSIX_FADV_DONTNEED);
    begun_ = position_;
  }

  int descriptor_;
  std::optional<ReplacedFile> replaced_;
  uint64_t position_ = 0;
  uint64_t begun_ = 0;
  bool last_was_dear_ = false;
  bool memory_is_dear_ = false;
  bool waited_ = false;
};

class NativeFileSystem final : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create_unnamed([[maybe_unused]] const std::filesystem::path& folder) override {
#if defined(O_TMPFILE)
    int descriptor = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      auto file = std::make_unique<NativeFile>(descriptor);
      // Without /proc (a bare chroot) it could never get a name.
      if (::access(own_name(*file).c_str(), F_OK) != 0) return nullptr;
      mark_alive(descriptor);
      return file;
    }
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
      throw_system("creating a temporary file", errno);
#endif
    return nullptr;
  }

  void name_file(OutputFile& file, const std::filesystem::path& path) override {
    const std::string own = own_name(static_cast<NativeFile&>(file));
    if (::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0)
      throw_system("naming the temporary file", errno);
  }

  std::unique_ptr<OutputFile> create(const std::filesystem::path& path) override {
    int descriptor = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor < 0) throw_system("creating a temporary file", errno);
    auto file = std::make_unique<NativeFile>(descriptor);
    mark_alive(descriptor);
    struct stat status {};
    // Between the two calls another process may have taken it for abandoned.
    TERN_CHECK(::fstat(descriptor, &status) != 0 || status.st_nlink > 0, IoError,
               "creating a temporary file failed: another process removed it; save again");
    return file;
  }

  void prepare_to_replace(OutputFile& file, const std::filesystem::path& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return;
    auto& native = static_cast<NativeFile&>(file);
    // Only root may give a file away, others to groups of their own: where it is not possible the saver owns
    // the file. The bits setuid and setgid are for the old content only.
    [[maybe_unused]] const bool kept =
        ::fchown(native.descriptor(), status.st_uid, status.st_gid) == 0 ||
        ::fchown(native.descriptor(), static_cast<uid_t>(-1), status.st_gid) == 0;
    if (::fchmod(native.descriptor(), status.st_mode & 0777) != 0)
      throw_system("setting the file's permissions", errno);
    native.replaces(path);
  }

  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) throw_system("renaming the temporary file", errno);
  }

  void remove(const std::filesystem::path& path) override {
    if (::unlink(path.c_str()) != 0) throw_system("removing the temporary file", errno);
  }

  /// A temporary file that nobody has locked is abandoned: locks end with the process.
  void remove_abandoned(const std::filesystem::path& folder) noexcept override {
    DIR* entries = ::opendir(folder.c_str());
    if (!entries) return;
    while (const dirent* entry = ::readdir(entries)) {
      if (!is_temporary_name(entry->d_name)) continue;
      int descriptor =
          ::openat(::dirfd(entries), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
      if (descriptor < 0) continue;
      struct stat status {};
      if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
          ::flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        ::unlinkat(::dirfd(entries), entry->d_name, 0);
      ::close(descriptor);
    }
    ::closedir(entries);
  }

  void sync_folder(const std::filesystem::path& folder) override {
    int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // Who may not read a folder may still write into it; its names reach the disk with the system's next
    // sync.
    if (descriptor < 0 && errno == EACCES) return;
    if (descriptor < 0) throw_system("syncing the folder", errno);
    int failed = ::fsync(descriptor);
    int cause = errno;
    ::close(descriptor);
    // Some network file systems cannot sync a folder, and say so with EINVAL.
    if (failed != 0 && cause != EINVAL) throw_system("syncing the folder", cause);
  }

 private:
  static std::string own_name(const NativeFile& file) {
    return fmt::format("/proc/self/fd/{}", file.descriptor());
  }
  /// Where files cannot be locked they are never taken for abandoned either.
  static void mark_alive(int descriptor) noexcept { ::flock(descriptor, LOCK_EX | LOCK_NB); }
};

}  // namespace

FileSystem& FileSystem::native() {
  static NativeFileSystem system;
  return system;
}

/// Runs one step; a failure discards the temporary file, and its message gets the path.
template <class Body>
void AtomicFile::guarded(Body&& body) {
  try {
    body();
  } catch (IoError& error) {
    discard();
    throw IoError(fmt::format("saving '{}': {} (what was there before is unchanged)", shown_path_.string(),
                              error.message()));
  } catch (...) {
    discard();
    throw;
  }
}

AtomicFile::AtomicFile(const std::filesystem::path& path, FileSystem& system)
    : shown_path_(path), target_(path), system_(system) {
  check_path(path);
  guarded([&] {
    TERN_CHECK(path.has_filename(), IoError, "the path names no file");
    target_ = followed(path);
    std::error_code error;
    // Of `path`: /dev/stdout leads to "pipe:[123]", which is nothing by that name.
    auto status = std::filesystem::status(path, error);
    if (!std::filesystem::status_known(status)) throw_system("inspecting the file", error.value());
    if (std::filesystem::exists(status)) {
      TERN_CHECK(!std::filesystem::is_directory(status), IoError, "it is a folder");
      TERN_CHECK(std::filesystem::is_regular_file(status), IoError, "it is not a regular file");
      if (::access(target_.c_str(), W_OK) != 0) throw_system("opening for writing", errno);
    }
    const std::filesystem::path folder = folder_of(target_);
    status = std::filesystem::status(folder, error);
    TERN_CHECK(std::filesystem::exists(status), IoError, "the folder '{}' does not exist", folder.string());
    TERN_CHECK(std::filesystem::is_directory(status), IoError, "'{}' is not a folder", folder.string());
    if (::access(folder.c_str(), W_OK | X_OK) != 0) throw_system("creating a file in the folder", errno);
    system_.remove_abandoned(folder);
    temporary_ = folder / temporary_name();
    file_ = system_.create_unnamed(folder);
    if (!file_) {
      file_ = system_.create(temporary_);
      named_ = true;
    }
    system_.prepare_to_replace(*file_, target_);
  });
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  TERN_CHECK(file_, IoError, "saving '{}': the file is no longer open", shown_path_.string());
  complete_ = false;
  if (buffer_.size() + bytes.size() <= kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return;
  }
  flush();
  if (bytes.size() < kBufferBytes / 2) {
    buffer_.assign(bytes.begin(), bytes.end());
  } else {
    guarded([&] { file_->write(bytes); });
  }
}

void AtomicFile::flush() {
  guarded([&] {
    if (!buffer_.empty()) file_->write(buffer_);
  });
  buffer_.clear();
}

void AtomicFile::complete(bool sync) {
  TERN_CHECK(file_, IoError, "saving '{}': the file is no longer open", shown_path_.string());
  if (std::exchange(complete_, true)) return;
  flush();
  guarded([&] {
    if (sync) file_->sync();
  });
}

void AtomicFile::fill(bool sync, const std::function<void(ByteSink& sink)>& write) {
  try {
    write(*this);
  } catch (const IoError&) {
    throw;  // of the file, which has given its path
  } catch (Error& error) {
    error.add_context(fmt::format("saving '{}'", shown_path_.string()));
    throw;
  }
  complete(sync);
  buffer_ = {};
}

void AtomicFile::commit(bool sync) {
  complete(sync);
  std::filesystem::path folder = temporary_.parent_path();
  guarded([&] {
    if (!named_) {
      system_.name_file(*file_, temporary_);
      named_ = true;
    }
    system_.rename(temporary_, target_);
    committed_ = true;
  });
  const std::unique_ptr<OutputFile> file = std::move(file_);  // closed when the folder has been synced
  if (!sync) return;
  with_context(fmt::format("saving '{}': the new file is in place, but may not survive a power cut",
                           shown_path_.string()),
               [&] { system_.sync_folder(folder); });
}

void AtomicFile::discard() noexcept {
  bool remove = file_ && named_ && !committed_;
  file_.reset();
  if (!remove) return;
  try {
    system_.remove(temporary_);
  } catch (const Error&) {
    // The first failure is the one worth reporting.
  }
}

void write_atomically(const std::filesystem::path& path, bool sync,
                      const std::function<void(ByteSink& sink)>& write) {
  AtomicFile file(path);
  file.fill(sync, write);
  file.commit(sync);
}

void link_atomically(const std::filesystem::path& from, const std::filesystem::path& to, bool sync) {
  check_path(from);
  check_path(to);
  const std::filesystem::path target =
      with_context(fmt::format("naming '{}'", to.string()), [&] { return followed(to); });
  const std::filesystem::path folder = folder_of(target);
  const std::filesystem::path temporary = folder / temporary_name();
  // A link to the symbolic link `from` would be another name of whatever that is pointed at next.
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    const int failed = ::rename(temporary.c_str(), target.c_str());
    const int cause = errno;
    ::unlink(temporary.c_str());  // still there also when both were names of one file already
    if (failed == 0) {
      if (sync)
        with_context(fmt::format("naming '{}'", to.string()),
                     [&] { FileSystem::native().sync_folder(folder); });
      return;
    }
    TERN_CHECK(cause == ENOENT, IoError, "naming '{}' failed: {} (what was there before is unchanged)",
               to.string(), std::generic_category().message(cause));
    // A process that cleans up took it for abandoned.
  }
  constexpr uint64_t kPiece = uint64_t{4} << 20;
  const auto source = open_file(from);
  write_atomically(to, sync, [&](ByteSink& sink) {
    for (uint64_t at = 0; at < source->size(); at += kPiece)
      sink.write(source->read(at, std::min(kPiece, source->size() - at)));
  });
}

}  // namespace tern::io
