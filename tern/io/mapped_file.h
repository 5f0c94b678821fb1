// Files as memory: tensors whose numbers stay in the file until they are looked at (LoadOptions::mmap).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tern/core/dtype.h"
#include "tern/core/storage.h"
#include "tern/io/file.h"

namespace tern::io {

/// A private mapping of a whole file: pages are read when they are first touched, and what is written to them
/// stays in this process. The file must keep its length while the mapping lives. If it is cut short, the
/// system ends the process at the first access (SIGBUS); which file it was is then printed to stderr, unless
/// the program has a handler for that signal of its own.
class MappedFile {
 public:
  /// `name` is what messages call it. Throws IoError.
  MappedFile(int descriptor, uint64_t size, std::string name);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<std::byte> bytes() const noexcept { return bytes_; }
  /// Lets the pages that lie wholly in [begin, begin + nbytes) leave memory if these bytes are of a mapping;
  /// else does nothing. They are read from the file again when they are touched: changes to them are lost.
  static void drop_pages(const std::byte* begin, size_t nbytes) noexcept;

 private:
  struct Record;
  static Record& take_record();

  std::span<std::byte> bytes_;
  Record* record_ = nullptr;
};

/// The mapping of a source for tensors. Throws TypeError, in PyTorch's words, for what is not a file.
std::shared_ptr<MappedFile> map_for_tensors(const ByteSource& source);

/// Throws CheckpointError, in PyTorch's words: the file is of a format whose tensors cannot be mapped.
[[noreturn]] void fail_not_mappable();

/// The bytes [offset, offset + nbytes) of a mapping as a storage that keeps it alive; null where they are not
/// aligned for numbers of `dtype` or to `alignment`, and for bools, whose bytes in a file may be other than 0
/// and 1.
Storage mapped_storage(const std::shared_ptr<MappedFile>& file, uint64_t offset, size_t nbytes, DType dtype,
                       size_t alignment = 1);

}  // namespace tern::io
