// Blocks of 64 bytes on every instruction set, made of as many registers as it takes, so that a reduction
// adds in the same order, and gives the same result, on all of them. The loops over them are in reduce_rows.h
// and reduce_loops.h.
//
// An operation `Op` has
//   using Acc;                              what is accumulated
//   Acc identity() const;
//   void map(V& v, int64_t number) const;   an element, converted to Acc, becomes a term
//   void combine(V& a, const V& b) const;   a = a with b
// with V the scalar Acc or Register<Acc>; `number` counts the registers of a tile of columns, and is 0 along
// rows.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/vector_bytes.h"
#include "tern/core/dtype.h"

namespace tern::cpu::TERN_CPU_VARIANT::wide {

inline constexpr int kBlockBytes = 64;
inline constexpr int kParts = kBlockBytes / kVectorBytes;

template <class C, int bytes>
struct RegisterOf {
  typedef C type __attribute__((vector_size(bytes)));
};
template <class C>
using Register = typename RegisterOf<C, kVectorBytes>::type;

/// Elements of a block, and of one register.
template <class C>
inline constexpr int kLanes = kBlockBytes / static_cast<int>(sizeof(C));
template <class C>
inline constexpr int kRegisterLanes = kVectorBytes / static_cast<int>(sizeof(C));

template <class C>
struct Block {
  Register<C> part[kParts];
};

template <class C>
[[gnu::always_inline]] inline void splat(Block<C>& v, C x) {
  for (auto& part : v.part) part = Register<C>{} + x;
}

/// v = one register of elements from p, converted. Signed integers are sign-extended.
template <class C, class T>
[[gnu::always_inline]] inline void load_register(Register<C>& v, const T* p) {
  if constexpr (std::is_same_v<C, T>) {
    std::memcpy(&v, p, sizeof v);
  } else if constexpr (kWidened<T>) {
#if defined(__AVX2__)
    static_assert(kWideLanes == kRegisterLanes<C>);
    widen_lanes(reinterpret_cast<float*>(&v), p);
#else
    for (int i = 0; i < kRegisterLanes<C>; ++i) v[i] = static_cast<float>(p[i]);
#endif
  } else {
    typename RegisterOf<T, kRegisterLanes<C>* static_cast<int>(sizeof(T))>::type elements;
    std::memcpy(&elements, p, sizeof elements);
    v = __builtin_convertvector(elements, Register<C>);
  }
}

/// v = kLanes<C> elements from p, converted.
template <class C, class T>
[[gnu::always_inline]] inline void load(Block<C>& v, const T* p) {
  for (int i = 0; i < kParts; ++i) load_register<C>(v.part[i], p + i * kRegisterLanes<C>);
}

/// v = `count` < kLanes<C> elements from p, then `rest`.
template <class C, class T>
void load_some(Block<C>& v, const T* p, int64_t count, C rest) {
  alignas(kBlockBytes) C lanes[kLanes<C>];
  for (int i = 0; i < kLanes<C>; ++i)
    lanes[i] = i < count ? static_cast<C>(static_cast<Compute<T>>(p[i])) : rest;
  std::memcpy(&v, lanes, sizeof v);
}

/// The signed integer as wide as C.
template <class C>
using MaskOf = std::conditional_t<
    sizeof(C) == 1, int8_t,
    std::conditional_t<sizeof(C) == 2, int16_t, std::conditional_t<sizeof(C) == 4, int32_t, int64_t>>>;

/// The first `count` lanes of v become `rest`.
template <class C>
[[gnu::always_inline]] inline void drop_lanes(Block<C>& v, int64_t count, C rest) {
  using M = MaskOf<C>;
  static constexpr auto kNumbers = [] {
    struct {
      alignas(kBlockBytes) M lane[kLanes<M>];
    } numbers{};
    for (int i = 0; i < kLanes<M>; ++i) numbers.lane[i] = static_cast<M>(i);
    return numbers;
  }();
  for (int i = 0; i < kParts; ++i) {
    Register<M> lane;
    std::memcpy(&lane, kNumbers.lane + i * kRegisterLanes<M>, sizeof lane);
    v.part[i] = lane < static_cast<M>(count) ? Register<C>{} + rest : v.part[i];
  }
}

template <class Op>
[[gnu::always_inline]] inline void combine(const Op& op, Block<typename Op::Acc>& a,
                                           const Block<typename Op::Acc>& b) {
  for (int i = 0; i < kParts; ++i) op.combine(a.part[i], b.part[i]);
}

/// sum = sum with the terms of the elements in v; `number` is the block's in the tile.
template <class Op>
[[gnu::always_inline]] inline void accumulate(const Op& op, Block<typename Op::Acc>& sum,
                                              Block<typename Op::Acc>& v, int64_t number) {
  for (int i = 0; i < kParts; ++i) {
    op.map(v.part[i], number * kParts + i);
    op.combine(sum.part[i], v.part[i]);
  }
}

/// All lanes of v combined, in a tree.
template <class Op>
[[gnu::always_inline]] inline typename Op::Acc combine_lanes(const Op& op, const Block<typename Op::Acc>& v) {
  using A = typename Op::Acc;
  A lanes[kLanes<A>];
  std::memcpy(lanes, &v, sizeof v);
#pragma GCC unroll 1
  for (int width = kLanes<A> / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) op.combine(lanes[i], lanes[i + width]);
  return lanes[0];
}

/// values[j] = values[i * width + j] over i < count combined, pairwise, for j < width.
template <class V, class Combine>
void combine_tree(V* values, int64_t count, int64_t width, const Combine& combine_values) {
  for (int64_t step = 1; step < count; step *= 2)
    for (int64_t i = 0; i + step < count; i += 2 * step)
      for (int64_t j = 0; j < width; ++j)
        combine_values(values[i * width + j], values[(i + step) * width + j]);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT::wide
