// LaunchOrder: which launches of a stream need which before them, told by the memory that they touch. What
// does not need each other may run side by side: CUDA's graphs of recorded steps are made so.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tern/kernels/access_history.h"

namespace tern {

/// Deals launches out to at most kLanes lanes, each of which runs its own in order.
class LaunchOrder {
 public:
  static constexpr size_t kLanes = 16;

  /// The next launch, with all that it touches; one that names no memory counts as touching all. Returns the
  /// numbers (from 0, ascending) of the launches that it comes after: those that it needs, but for what
  /// these come after themselves, and where every lane is taken, the last one of its own.
  std::vector<uint32_t> add(const SmallVector<Operand, 8>& operands);

  size_t size() const noexcept { return launches_.size(); }
  /// Launches in the longest chain.
  uint32_t depth() const noexcept { return depth_; }

 private:
  using Times = std::array<uint32_t, kLanes>;  ///< of each lane, how many of its launches; 0: none
  struct Launch {
    Times done;  ///< when this one is
    uint32_t depth;
  };

  const Launch& launch(size_t lane, uint32_t time) const { return launches_[lanes_[lane][time - 1]]; }
  size_t choose_lane(const Times& needed);

  AccessHistory history_;
  std::vector<std::vector<uint32_t>> lanes_;  ///< the numbers of their launches
  std::vector<Launch> launches_;
  uint32_t depth_ = 0;
};

}  // namespace tern
