// PyTorch's distributed checkpoints: a folder with `.metadata` and files that hold pieces of tensors.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/io/torch_file.h"

namespace tern::io {

/// The whole of a folder that torch.distributed.checkpoint wrote: every tensor put together from its pieces,
/// in nested dicts as they were saved. Throws CheckpointError, also when pieces are missing or overlap.
Checkpoint read_distributed(const std::filesystem::path& folder, const LoadOptions& options);

/// What is wanted of such a folder.
struct DistributedRequest {
  std::string name;  ///< "model.layers.0.weight"
  /// Of a tensor: so many elements from `start` on, in row-major order, as a tensor of one dimension; without
  /// a length all of it, as it is.
  int64_t start = 0;
  std::optional<int64_t> length = std::nullopt;
  std::optional<Shape> shape = std::nullopt;  ///< which the whole tensor must have
  bool all_of_others = false;                 ///< of a tensor of another shape take all instead
};

/// Such a folder, of which parts are read. Its functions throw CheckpointError for what is broken or not
/// there.
class DistributedFolder {
 public:
  explicit DistributedFolder(std::filesystem::path folder, const LoadOptions& options = {});
  ~DistributedFolder();
  DistributedFolder(const DistributedFolder&) = delete;
  DistributedFolder& operator=(const DistributedFolder&) = delete;

  /// The names that are there, in the order of the file, with their paths.
  std::vector<std::pair<std::string, std::vector<Value>>> names();
  /// Those values in their order, on the CPU; pieces of tensors that nobody wants are not read.
  std::vector<Value> parts(const std::vector<DistributedRequest>& requests);
  /// What is at a path and below it, put together as it was saved; None where there is nothing.
  Value below(const std::vector<Value>& path);

 private:
  std::filesystem::path folder_;
  std::unique_ptr<class FolderReader> reader_;
};

}  // namespace tern::io
