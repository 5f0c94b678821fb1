// What a file costs that is about to be replaced.
#pragma once

#include <cstdint>
#include <filesystem>

namespace tern::io {

/// A file whose place another one takes. While that is written, the pages of the old one leave the page cache
/// piece by piece, so that the new one finds memory that is there already: on a virtual machine fresh memory
/// takes several times as long. The old content stays on the disk. Destroyed after the replacement, it lets a
/// thread give the old content's space back. Nothing here fails: at worst the old file is treated as it would
/// be anyway.
class ReplacedFile {
 public:
  /// Does nothing when there is no such file, or when it lies on a file system whose habits are not known:
  /// a network file system may not replace a file in one step while somebody holds it.
  explicit ReplacedFile(const std::filesystem::path& path) noexcept;
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  ~ReplacedFile();

  /// The pages [begin, end) of the file leave the page cache, but for those that somebody has mapped.
  void forget(uint64_t begin, uint64_t end) const noexcept;

 private:
  int descriptor_ = -1;
};

/// Waits until the space of all replaced files of this process has been given back.
void wait_for_replaced_files() noexcept;

}  // namespace tern::io
