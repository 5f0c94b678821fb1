// Reading and writing of bytes: sources with random access, sinks, and files that appear whole or not at all.
// Nothing here knows a checkpoint format. What the operating system does goes through FileSystem, so that
// tests inject faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/base/error.h"

namespace tern::io {

class MappedFile;

/// Bytes that can be read at any place: a file, a piece of memory, a part of another source. Reading is
/// thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Number of bytes when the source was opened.
  virtual uint64_t size() const noexcept = 0;
  /// What messages call it: "'model.pt'" or "the given memory".
  virtual std::string name() const = 0;
  /// Fills `out` from `offset` on. Throws IoError when the system fails, CheckpointError when the source ends
  /// before.
  virtual void read_at(uint64_t offset, std::span<std::byte> out) const = 0;
  /// Tells the system that these bytes are wanted soon, where they are not in memory yet.
  virtual void will_read(uint64_t /*offset*/, uint64_t /*count*/) const noexcept {}
  /// The whole file as memory (mapped_file.h); null for what is no file. Throws IoError.
  virtual std::shared_ptr<MappedFile> map() const;
  /// The whole content where it already lies in memory, else an empty span.
  virtual std::span<const std::byte> in_memory() const noexcept { return {}; }

  /// The bytes [offset, offset + count) as a new vector; nothing is allocated unless the source holds them.
  std::vector<std::byte> read(uint64_t offset, uint64_t count) const;

 protected:
  /// Throws CheckpointError unless [offset, offset + count) lies inside.
  void check_range(uint64_t offset, uint64_t count) const;
};

/// Throws IoError for a path with a NUL byte: the system would take it for the name before that.
void check_path(const std::filesystem::path& path);

/// with_context("loading 'm.pt'", ...) for the path m.pt; an Error that names the path already, such as that
/// of a file which cannot be opened, stays as it is. `doing` ends in a blank, or is empty.
template <class Body>
decltype(auto) with_path(std::string_view doing, const std::filesystem::path& path, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (Error& error) {
    const std::string name = "'" + path.string() + "'";
    if (error.message().find(name) == std::string::npos) error.add_context(std::string(doing) + name);
    throw;
  }
}

/// The end of a file's name in lower case: ".safetensors" of "NET.SAFETENSORS".
std::string lower_extension(const std::filesystem::path& path);

/// Opens a regular file for reading. Throws IoError naming the path and the cause.
std::shared_ptr<const ByteSource> open_file(const std::filesystem::path& path);

/// All that `descriptor` gives from where it stands to its end: of a regular file that stands at its
/// beginning in place, else kept in a temporary file without a name. `name` is what messages call it. Throws
/// IoError.
std::shared_ptr<const ByteSource> open_descriptor(int descriptor, std::string name);

/// Shows memory of the caller, which must outlive the source.
std::shared_ptr<const ByteSource> view_memory(std::span<const std::byte> bytes);

/// The part [offset, offset + size) of another source. Throws CheckpointError when it is not inside.
std::shared_ptr<const ByteSource> part_of(std::shared_ptr<const ByteSource> source, uint64_t offset,
                                          uint64_t size);

/// Where bytes are written, one after the other.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
};

/// Collects bytes in memory.
class MemorySink final : public ByteSink {
 public:
  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte>& bytes() noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// A file being written. Every function throws IoError naming the operation and the system's cause;
/// destroying it closes it.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
  /// Returns when the content is on the disk.
  virtual void sync() = 0;
};

/// The few operations of the operating system that saving needs. All throw IoError.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// A new file in `folder` that has no name yet, and vanishes when closed without one; null where this is
  /// not possible.
  virtual std::unique_ptr<OutputFile> create_unnamed(const std::filesystem::path& folder) = 0;
  /// Gives a file from create_unnamed a name that does not exist yet.
  virtual void name_file(OutputFile& file, const std::filesystem::path& path) = 0;
  /// A new file; it is an error when the name exists.
  virtual std::unique_ptr<OutputFile> create(const std::filesystem::path& path) = 0;
  /// Tells that `file` shall take the place of `path`. If that exists, `file` gets its permissions,
  /// and its owner where this is allowed.
  virtual void prepare_to_replace(OutputFile& file, const std::filesystem::path& path) = 0;
  /// Replaces `to` in one step.
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual void remove(const std::filesystem::path& path) = 0;
  /// Removes temporary files of AtomicFile in `folder` whose process is gone. Does nothing where that cannot
  /// be known, and reports no errors.
  virtual void remove_abandoned(const std::filesystem::path& folder) noexcept = 0;
  /// Returns when the names in `folder` are on the disk.
  virtual void sync_folder(const std::filesystem::path& folder) = 0;

  static FileSystem& native();
};

/// A file that replaces `path` in one step when `commit` is called, after its content has reached the disk.
/// When it is destroyed without a commit, or anything fails, the old file is as it was and nothing is left
/// behind; what a killed process left is removed by the next AtomicFile in the folder. Symbolic links are
/// followed. Of several that write one path, in one or more processes, the last to commit wins whole.
class AtomicFile final : public ByteSink {
 public:
  /// Throws IoError when the folder is missing, `path` is not a regular file, or writing there is not
  /// allowed.
  explicit AtomicFile(const std::filesystem::path& path, FileSystem& system = FileSystem::native());
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() override;

  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override;
  /// Writes the whole content by `write`, with `sync` to the disk: only the name is left to commit. Errors
  /// get the path, whoever throws them.
  void fill(bool sync, const std::function<void(ByteSink& sink)>& write);
  /// Blocks until file and folder are on the disk; with `sync` false only until the system has the bytes.
  void commit(bool sync = true);

 private:
  void flush();
  void complete(bool sync);
  void discard() noexcept;
  template <class Body>
  void guarded(Body&& body);

  std::filesystem::path shown_path_;
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  FileSystem& system_;
  std::unique_ptr<OutputFile> file_;
  bool named_ = false;
  bool committed_ = false;
  bool complete_ = false;
  std::vector<std::byte> buffer_;
};

/// Writes a file in one step by way of an AtomicFile. Errors get the path, whoever throws them.
void write_atomically(const std::filesystem::path& path, bool sync,
                      const std::function<void(ByteSink& sink)>& write);

/// Makes `to` another name of the file `from` in one step, replacing what had that name; a copy where the
/// file system has no hard links. Symbolic links of both are followed. Throws IoError.
void link_atomically(const std::filesystem::path& from, const std::filesystem::path& to, bool sync = true);

}  // namespace tern::io
