// Elements of one tensor or another, chosen by a condition. Bits are moved by the size of an element, and
// both operands are read before one is taken: nothing branches on the condition.
#include "tern/backends/cpu/kernels/bits.h"
#include "tern/backends/cpu/kernels/loops.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// A contiguous row of each operand, or one element for all of them.
template <class T, bool a_is_row, bool b_is_row>
[[gnu::noinline]] void select_row(T* out, const uint8_t* condition, const T* a, const T* b, int64_t n) {
  const T first_a = *a, first_b = *b;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T x = a_is_row ? a[i] : first_a, y = b_is_row ? b[i] : first_b;
    out[i] = condition[i] != 0 ? x : y;
  }
}

template <class T>
void select(const WhereArgs& args) {
  const Geometry<4>& g = args.geometry;
  const T numbers[2] = {static_cast<T>(args.a ? 0 : bits_of(args.dtype, args.a_scalar)),
                        static_cast<T>(args.b ? 0 : bits_of(args.dtype, args.b_scalar))};
  T* out = static_cast<T*>(args.out);
  const uint8_t* condition = static_cast<const uint8_t*>(args.condition);
  const T* a = args.a ? static_cast<const T*>(args.a) : &numbers[0];
  const T* b = args.b ? static_cast<const T*>(args.b) : &numbers[1];
  const int inner = g.ndim - 1;
  const int64_t so = g.strides[0][inner], sc = g.strides[1][inner];
  const int64_t sa = g.strides[2][inner], sb = g.strides[3][inner];
  auto row = [&](T* o, const uint8_t* c, const T* x, const T* y, int64_t n) {
    if (so == 1 && sc == 1 && (sa | sb | 1) == 1) {
      if (sa == 1) return (sb == 1 ? select_row<T, true, true> : select_row<T, true, false>)(o, c, x, y, n);
      return (sb == 1 ? select_row<T, false, true> : select_row<T, false, false>)(o, c, x, y, n);
    }
    for (int64_t i = 0; i < n; ++i) {
      const T chosen = x[i * sa], other = y[i * sb];
      o[i * so] = c[i * sc] != 0 ? chosen : other;
    }
  };
  if (g.ndim == 1 && so == 1)
    return for_each_block(out, g.numel, [&](T* to, int64_t first, int64_t n) {
      row(to, condition + first * sc, a + first * sa, b + first * sb, n);
    });
  parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    walk_rows(g, begin, end, [&](const int64_t(&offset)[4], int64_t n) {
      row(out + offset[0], condition + offset[1], a + offset[2], b + offset[3], n);
    });
  });
}

}  // namespace

void where(const LaunchContext&, const WhereArgs& args) {
  visit_bits(args.dtype, [&]<class T>() { select<T>(args); });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
