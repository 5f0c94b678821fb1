// Elements as bits of their size: what only moves elements is compiled once for each size, not for each
// dtype.
#pragma once

#include <cstdint>
#include <cstring>

#include "tern/backends/cpu/kernels/vector_bytes.h"
#include "tern/core/dtype.h"
#include "tern/kernels/pointwise.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// The elements of 16 bytes: they are copied and gathered, never computed with.
struct Wide {
  uint64_t low, high;
};

/// Calls f with the unsigned type of 1, 2, 4 or 8 bytes; false, without a call, for other sizes.
template <class F>
bool visit_item(size_t item, F&& f) {
  switch (item) {
    case 1:
      f.template operator()<uint8_t>();
      return true;
    case 2:
      f.template operator()<uint16_t>();
      return true;
    case 4:
      f.template operator()<uint32_t>();
      return true;
    case 8:
      f.template operator()<uint64_t>();
      return true;
    default:
      return false;
  }
}

/// The same for the size of a dtype that kernels compute with; throws DTypeError for others.
template <class F>
void visit_bits(DType dtype, F&& f) {
  if (!visit_item(itemsize(dtype), f)) throw_not_computable(dtype);
}

/// The bits of a number of some dtype, in the lowest bytes.
uint64_t bits_of(DType dtype, const Param& number);

/// `n` to 2 * n bytes, by moves that may meet.
template <int n>
[[gnu::always_inline]] inline void copy_ends(char* to, const char* from, int64_t nbytes) {
  constexpr int kLine = n < kVectorBytes ? n : kVectorBytes, kLines = n / kLine;
  typedef uint8_t Line __attribute__((vector_size(kLine), aligned(1), may_alias));
  Line first[kLines], last[kLines];
#pragma GCC unroll 4
  for (int i = 0; i < kLines; ++i) {
    first[i] = *reinterpret_cast<const Line*>(from + i * kLine);
    last[i] = *reinterpret_cast<const Line*>(from + nbytes - n + i * kLine);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kLines; ++i) {
    *reinterpret_cast<Line*>(to + i * kLine) = first[i];
    *reinterpret_cast<Line*>(to + nbytes - n + i * kLine) = last[i];
  }
}

/// Calls `body` with the n for which copy_ends<n> copies `nbytes`; with 0 when that are fewer than 4 or more
/// than 128.
template <class Body>
inline void visit_ends(int64_t nbytes, Body&& body) {
  if (nbytes > 128)
    body.template operator()<0>();
  else if (nbytes >= 64)
    body.template operator()<64>();
  else if (nbytes >= 32)
    body.template operator()<32>();
  else if (nbytes >= 16)
    body.template operator()<16>();
  else if (nbytes >= 8)
    body.template operator()<8>();
  else if (nbytes >= 4)
    body.template operator()<4>();
  else
    body.template operator()<0>();
}

/// memcpy without a call, and without the string instructions that glibc takes for more than 2 KiB: some
/// processors are ten times slower with them where the target is not aligned.
inline void copy_bytes(void* to, const void* from, int64_t nbytes) {
  auto* t = static_cast<char*>(to);
  auto* f = static_cast<const char*>(from);
  for (; nbytes > 128; nbytes -= 64, t += 64, f += 64) copy_ends<64>(t, f, 64);
  visit_ends(nbytes, [&]<int n>() {
    if constexpr (n > 0)
      copy_ends<n>(t, f, nbytes);
    else
      for (int64_t i = 0; i < nbytes; ++i) t[i] = f[i];
  });
}

/// The same for a number of bytes that is the same in a loop: visit_ends has told n.
template <int n>
[[gnu::always_inline]] inline void copy_row_bytes(void* to, const void* from, int64_t nbytes) {
  if constexpr (n > 0)
    copy_ends<n>(static_cast<char*>(to), static_cast<const char*>(from), nbytes);
  else
    copy_bytes(to, from, nbytes);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
