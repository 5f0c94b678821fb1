// PyTorch's distributed checkpoints, written by several processes at once: a folder with `.metadata` and a
// file of each process. Reading them is in distributed_reader.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tern/io/value.h"

namespace tern::io {

/// What a process has of a tensor: the elements from `start` on, in row-major order, as many as its own has.
struct DistributedPiece {
  Shape whole;  ///< the shape of all of it
  int64_t start = 0;
};

/// One tensor or other value of what is saved. All processes have the same list of them.
struct DistributedEntry {
  std::vector<Value> path;  ///< texts, and numbers in lists: ("model", "0.weight")
  Value value;
  std::optional<DistributedPiece> piece = std::nullopt;  ///< unset: all processes have the same value
  /// "model.0.weight"
  std::string name() const;
};

/// The tensors and other values in nested dicts, and in lists that have tensors or dicts in them. Keys of
/// dicts become texts. `pieces` are by the names of their entries.
std::vector<DistributedEntry> distributed_entries(const Value& tree,
                                                  const std::map<std::string, DistributedPiece>& pieces = {});

/// Gives each process the texts of all, in the order of ranks.
using ExchangeTexts = std::function<std::vector<std::string>(const std::string&)>;

/// Writes the pieces of this process, and of what all have its share, and waits for the others; then rank 0
/// writes what lies where. Until then a checkpoint that was there before stays readable; its files go after
/// that. Without `sync` files may not be on the disk yet. Throws IoError, ValueError for what can not be
/// written, CheckpointError when the pieces of a tensor do not make it up.
void write_distributed(const std::filesystem::path& folder, const std::vector<DistributedEntry>& entries,
                       int rank, int size, const ExchangeTexts& exchange, bool sync = true);

}  // namespace tern::io
