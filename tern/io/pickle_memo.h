// The memo of the pickle machine, and which of its places a pickle reads.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tern/io/value.h"

namespace tern::io {

/// The places of the memo that a pickle reads, found by going over its opcodes once. Writers put nearly
/// everything there and read little of it; what is never read need not be kept. Where a pickle numbers places
/// in both ways (PUT and MEMOIZE), or shares values without the memo (DUP), all count as read.
class MemoReads {
 public:
  explicit MemoReads(std::string_view pickle);
  bool contains(uint64_t index) const {
    if (all_) return true;
    return index < dense_.size() ? bool(dense_[index]) : !sparse_.empty() && sparse_.count(index) != 0;
  }

 private:
  void add(uint64_t index);

  bool all_ = false;
  size_t limit_;  ///< places below it lie in the vector
  std::vector<bool> dense_;
  std::unordered_set<uint64_t> sparse_;
};

/// Values by arbitrary 32-bit numbers. Numbers that count up lie in a vector, others in a map, so that a lone
/// large one costs little.
class PickleMemo {
 public:
  /// The same without keeping the value, where nothing reads the place.
  void skip() { ++size_; }
  void put(uint32_t index, const Value& value) {
    if (index >= dense_.size() && index <= 2 * size_ + 16) dense_.resize(size_t{index} + 1);
    if (index < dense_.size()) {
      size_ += dense_[index].set ? 0 : 1;
      dense_[index] = Slot{value, true};
    } else {
      size_ += sparse_.insert_or_assign(index, value).second ? 1 : 0;
    }
  }
  const Value* get(uint32_t index) const {
    if (index < dense_.size() && dense_[index].set) return &dense_[index].value;
    auto found = sparse_.find(index);
    return found == sparse_.end() ? nullptr : &found->second;
  }
  /// MEMOIZE's number: how many places are taken.
  uint32_t next() const { return static_cast<uint32_t>(size_); }

 private:
  struct Slot {
    Value value;
    bool set = false;
  };
  std::vector<Slot> dense_;
  std::unordered_map<uint32_t, Value> sparse_;
  size_t size_ = 0;
};

}  // namespace tern::io
