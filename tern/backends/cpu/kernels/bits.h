// Elements as bits of their size: what only moves elements is compiled once for each size, not for each
// dtype.
#pragma once

#include <cstdint>
#include <cstring>

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

/// `n` to 2 * n bytes, by two moves that may meet.
template <int n>
inline void copy_ends(char* to, const char* from, int64_t nbytes) {
  typedef uint8_t Line __attribute__((vector_size(n), aligned(1), may_alias));
  const Line first = *reinterpret_cast<const Line*>(from),
             last = *reinterpret_cast<const Line*>(from + nbytes - n);
  *reinterpret_cast<Line*>(to) = first;
  *reinterpret_cast<Line*>(to + nbytes - n) = last;
}

/// memcpy without a call, and without the string instructions that glibc takes for more than 2 KiB: some
/// processors are ten times slower with them where the target is not aligned.
inline void copy_bytes(void* to, const void* from, int64_t nbytes) {
  auto* t = static_cast<char*>(to);
  auto* f = static_cast<const char*>(from);
  for (; nbytes > 128; nbytes -= 64, t += 64, f += 64) copy_ends<64>(t, f, 64);
  if (nbytes >= 64) return copy_ends<64>(t, f, nbytes);
  if (nbytes >= 32) return copy_ends<32>(t, f, nbytes);
  if (nbytes >= 16) return copy_ends<16>(t, f, nbytes);
  if (nbytes >= 8) return copy_ends<8>(t, f, nbytes);
  if (nbytes >= 4) return copy_ends<4>(t, f, nbytes);
  for (int64_t i = 0; i < nbytes; ++i) t[i] = f[i];
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
