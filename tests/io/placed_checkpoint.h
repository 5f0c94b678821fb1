// Checkpoints of one tensor of two floats, 1 and 2, that was on any device: written by hand, since the device
// need not be there.
#pragma once

#include <string>
#include <vector>

#include "tern/io/file.h"
#include "tern/io/zip_writer.h"

namespace tern {

/// The pickle of a tensor whose storage says it was at `location`.
inline std::string pickle_at(const std::string& location) {
  std::string pickle =
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\n((X\x07";
  pickle += std::string(3, '\0') +
            "storagectorch\nFloatStorage\nU\x01"
            "0U";
  pickle += static_cast<char>(location.size()) + location + "K\x02tQK" + std::string(1, '\0') +
            "K\x02\x85K\x01\x85\x89"
            "ccollections\nOrderedDict\n)RtR.";
  return pickle;
}

/// A whole file with this pickle.
inline std::vector<std::byte> checkpoint_of(const std::string& pickle) {
  io::MemorySink sink;
  io::ZipWriter zip(sink);
  zip.add("archive/data.pkl", pickle);
  zip.add("archive/data/0", std::string_view("\0\0\x80\x3f\0\0\0\x40", 8));
  zip.add("archive/version", "3\n");
  zip.finish();
  return std::move(sink.bytes());
}

inline std::vector<std::byte> checkpoint_at(const std::string& location) {
  return checkpoint_of(pickle_at(location));
}

}  // namespace tern
