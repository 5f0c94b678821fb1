// All tensors of an optimizer's list as one range of elements, split over the threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tern/base/parallel.h"
#include "tern/kernels/optim.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Elements below which a fused step is not worth a second thread.
inline constexpr int64_t kStepGrain = 16384;

/// Pieces of an entry start at multiples of this, so that an element is computed by the same (vector or
/// scalar) code whatever the number of threads: the compiler may fuse multiplications and additions
/// differently in the two.
inline constexpr int64_t kPieceAlign = 64;

/// Calls `body(entry, begin, end)` for pieces that cover all entries, in parallel.
template <class Body>
void for_each_piece(const OptimList& list, Body&& body) {
  parallel_for(list.numel, kStepGrain, [&](int64_t begin, int64_t end) {
    const OptimEntry* last = list.entries + list.count;
    const OptimEntry* entry =
        std::upper_bound(list.entries, last, begin,
                         [](int64_t position, const OptimEntry& e) { return position < e.first + e.numel; });
    auto round_up = [](int64_t n) { return (n + kPieceAlign - 1) / kPieceAlign * kPieceAlign; };
    for (; entry != last && entry->first < end; ++entry) {
      int64_t from = round_up(std::max<int64_t>(begin - entry->first, 0));
      int64_t to = std::min(round_up(end - entry->first), entry->numel);
      if (from < to) body(*entry, from, to);
    }
  });
}

/// Calls `f` with std::true_type or std::false_type.
template <class F>
decltype(auto) with_flag(bool flag, F&& f) {
  return flag ? f(std::true_type{}) : f(std::false_type{});
}

enum class Decay { None, Gradient, Parameter };

/// Calls `f` with the kind of weight decay as a constant.
template <class F>
void with_decay(double weight_decay, bool decoupled, F&& f) {
  if (weight_decay == 0)
    f(std::integral_constant<Decay, Decay::None>{});
  else if (decoupled)
    f(std::integral_constant<Decay, Decay::Parameter>{});
  else
    f(std::integral_constant<Decay, Decay::Gradient>{});
}

template <class T>
T* state_of(const OptimEntry& entry, int number, int64_t begin) {
  return entry.state[number] ? static_cast<T*>(entry.state[number]) + begin : nullptr;
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
