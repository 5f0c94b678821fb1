// What is in a checkpoint file: format, tensors with their places, classes that its pickle names. Found
// without reading the numbers unless asked, so that a file of any size is looked at in milliseconds.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tern/io/file.h"
#include "tern/io/find_tensors.h"
#include "tern/io/pickle_verdict.h"

namespace tern::io {

/// A class or function that a pickle names.
struct JudgedGlobal {
  GlobalName name;
  size_t byte = 0;  ///< where in the pickle it is first named
  Verdict verdict = Verdict::PlainData;
};

/// A tensor with what the file says about its storage.
struct TensorEntry : FoundTensor {
  std::string device = "cpu";  ///< as the file says
  std::string storage;         ///< the storage's name in the file; empty where it has none
  std::string shared_with;     ///< path of the first tensor of the same storage; empty for that one itself
};

struct Summary {
  /// "zip", "legacy", "tar", "safetensors", "npy", "npz", "torchscript", "pickle", "sharded", "distributed".
  std::string format;
  std::string version;  ///< the container's; empty where it has none
  int pickle_protocol = 0;
  uint64_t file_bytes = 0;
  Value root;
  std::vector<TensorEntry> tensors;
  std::string wrapper;  ///< "module.", "state_dict", "state_dict.model."; empty when there is none
  std::vector<JudgedGlobal> globals;
  std::map<std::string, std::string> metadata;  ///< of safetensors

  // Totals.
  uint64_t elements = 0;
  uint64_t tensor_bytes = 0;
  uint64_t storages = 0;       ///< distinct
  uint64_t storage_bytes = 0;  ///< of them

  /// The worst of all names.
  Verdict verdict() const noexcept;
};

struct SummaryOptions {
  bool values = false;  ///< read the numbers too; else tensors of files over 1 MiB have no memory
  bool verify = true;   ///< check the CRC of what is read
  /// Leave the numbers of files over 1 MiB where they are (LoadOptions::mmap) if the format allows it.
  bool mmap = false;
};

/// Of whatever load() reads. Throws IoError when the file cannot be read, CheckpointError when it is broken
/// or no checkpoint.
Summary summarize_file(const std::filesystem::path& path, const SummaryOptions& options = {});
/// The same for a single file that is open already.
Summary summarize_source(const std::shared_ptr<const ByteSource>& source, const SummaryOptions& options = {});

}  // namespace tern::io
