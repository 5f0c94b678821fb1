// What PyTorch's containers share when their pickles are read: persistent ids of storages, places, nested
// checkpoints.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "tern/io/hash_index.h"
#include "tern/io/pickle_reader.h"
#include "tern/io/serialize.h"
#include "tern/io/torch_file.h"

namespace tern::io {

/// ('storage', class, key, location, numel[, view]), checked.
struct StorageId {
  const GlobalRow* type;
  std::string key;
  std::string location;
  int64_t numel;
  size_t nbytes;
};

class TorchHost : public PickleHost {
 public:
  /// `depth` counts checkpoints inside checkpoints.
  TorchHost(const LoadOptions& options, int depth) : options_(options), depth_(depth) {}

  void check_later(std::function<void()> check) override { checks_.push_back(std::move(check)); }
  Device device_for(const std::string& location) override { return options_.map_location(location); }
  Value load_nested(const std::string& bytes) override;

 protected:
  PickleOptions pickle_options() const;
  /// Throws CheckpointError unless `items` begins as a storage's id does and the size fits 64 bits.
  StorageId storage_id(const std::vector<Value>& items) const;
  /// The storage of an id: the one that was made for its key, or what `make` gives. A key that comes with
  /// another class or a larger size is a CheckpointError.
  Value storage_for(const StorageId& id, const std::function<Storage()>& make);
  /// The elements [first, first + count) of a storage, as one that is part of it. Throws CheckpointError.
  static Value storage_part(const Value& root, const Value& first, const Value& count);
  /// Makes room for so many storages.
  void expect_storages(size_t count) {
    storages_.reserve(count);
    storage_index_.reserve(count);
  }
  /// Memory for a storage on the device that the options choose; with skip_data none.
  Storage make_storage(const StorageId& id);
  /// What was read, with the storages and names of checkpoints inside it.
  Checkpoint finish(PickleResult&& result, std::string version);
  /// For a second attempt at the same pickle.
  void forget_storages() {
    storages_.clear();
    storage_index_.clear();
    checks_.clear();
    nested_ = {};
  }
  /// To be called when all storages have their bytes.
  void run_checks();

  const LoadOptions& options_;

 private:
  struct Known {
    std::string key;
    const GlobalRow* type;
    const std::string* location;  ///< one of locations_
    Storage storage;
    int64_t numel;
  };
  int depth_;
  std::vector<Known> storages_;
  HashIndex storage_index_;  ///< by key
  std::unordered_set<std::string> locations_;
  Checkpoint nested_;  ///< names and storages of checkpoints inside this one
  std::vector<std::function<void()>> checks_;
};

}  // namespace tern::io
