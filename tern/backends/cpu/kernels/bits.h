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

/// memcpy without the string instructions that glibc takes for more than 2 KiB: some processors are ten times
/// slower with them where the target is not aligned.
inline void copy_bytes(void* to, const void* from, int64_t nbytes) {
  typedef uint8_t Line __attribute__((vector_size(64), aligned(1), may_alias));
  auto* t = static_cast<char*>(to);
  auto* f = static_cast<const char*>(from);
  for (; nbytes >= 64; nbytes -= 64, t += 64, f += 64)
    *reinterpret_cast<Line*>(t) = *reinterpret_cast<const Line*>(f);
  std::memcpy(t, f, static_cast<size_t>(nbytes));
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
