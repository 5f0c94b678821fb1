// Vector clocks of lanes (C. Fidge, 1988).
#include "tern/kernels/launch_order.h"

#include <algorithm>

namespace tern {

size_t LaunchOrder::choose_lane(const Times& needed) {
  size_t best = lanes_.size();
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    const auto last = static_cast<uint32_t>(lanes_[lane].size());
    if (needed[lane] != last) continue;
    if (best == lanes_.size() || launch(lane, last).depth > launches_[lanes_[best].back()].depth) best = lane;
  }
  if (best != lanes_.size()) return best;
  if (lanes_.size() < kLanes) {
    lanes_.emplace_back();
    return lanes_.size() - 1;
  }
  return static_cast<size_t>(
      std::min_element(lanes_.begin(), lanes_.end(),
                       [](const auto& a, const auto& b) { return a.back() < b.back(); }) -
      lanes_.begin());
}

std::vector<uint32_t> LaunchOrder::add(const SmallVector<Operand, 8>& operands) {
  static const SmallVector<Operand, 8> everything{{nullptr, SIZE_MAX, /*written=*/true, /*read=*/true}};
  const auto& touched = operands.empty() ? everything : operands;
  Times needed{};
  for (const Operand& operand : touched)
    history_.visit_earlier(operand, [&](const MemoryAccess& access, bool) {
      needed[access.lane] = std::max(needed[access.lane], static_cast<uint32_t>(access.time));
    });
  const size_t own = choose_lane(needed);
  needed[own] = static_cast<uint32_t>(lanes_[own].size());

  Launch made{{}, 1};
  std::vector<uint32_t> after;
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (needed[lane] == 0) continue;
    const Launch& before = launch(lane, needed[lane]);
    for (size_t i = 0; i < kLanes; ++i) made.done[i] = std::max(made.done[i], before.done[i]);
    made.depth = std::max(made.depth, before.depth + 1);
    bool known = false;  // from another that this one comes after
    for (size_t other = 0; other < lanes_.size(); ++other)
      known |= other != lane && needed[other] != 0 && launch(other, needed[other]).done[lane] >= needed[lane];
    if (!known) after.push_back(lanes_[lane][needed[lane] - 1]);
  }
  std::sort(after.begin(), after.end());

  lanes_[own].push_back(static_cast<uint32_t>(launches_.size()));
  made.done[own] = static_cast<uint32_t>(lanes_[own].size());
  for (const Operand& operand : touched) history_.note({own, made.done[own]}, operand);
  depth_ = std::max(depth_, made.depth);
  launches_.push_back(made);
  return after;
}

}  // namespace tern
