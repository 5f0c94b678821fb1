// Finding the members of tar archives from untrusted sources. Nothing is unpacked to the disk.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tern/io/file.h"

namespace tern::io {

struct TarMember {
  std::string name;
  uint64_t offset = 0;  ///< of the data in the archive
  uint64_t size = 0;
};

/// The regular members in file order; folders are left out. Reads the old, ustar, GNU and pax forms. Throws
/// CheckpointError when the archive is broken or cut short, has links or devices, a name twice, more than
/// `max_members` members, or a pax header that gives a member another size or name.
std::vector<TarMember> read_tar_members(const ByteSource& source, uint64_t max_members);

}  // namespace tern::io
