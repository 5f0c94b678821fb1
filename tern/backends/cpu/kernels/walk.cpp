// The walk over strided operands, by item size alone.
#include "tern/backends/cpu/kernels/walk.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kTile = 512;         // elements of a strided row that are gathered at once
constexpr int64_t kStreamTile = 4096;  // bytes computed before they go past the cache

struct Wide {
  uint64_t low, high;
};

template <class Body>
void with_item(size_t item, Body&& body) {
  switch (item) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    case 8:
      return body(uint64_t{});
    default:
      return body(Wide{});
  }
}

/// A place for kTile elements of any size.
struct Buffer {
  alignas(64) std::byte bytes[kTile * sizeof(Wide)];
};

const void* gathered(Buffer& buffer, const char* from, int64_t stride, int64_t n, size_t item) {
  if (stride == 1) return from;
  with_item(item, [&]<class T>(T) {
    auto* to = reinterpret_cast<T*>(buffer.bytes);
    auto* source = reinterpret_cast<const T*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = source[i * stride];
  });
  return buffer.bytes;
}

void scatter(char* to, const Buffer& buffer, int64_t stride, int64_t n, size_t item) {
  with_item(item, [&]<class T>(T) {
    auto* target = reinterpret_cast<T*>(to);
    auto* source = reinterpret_cast<const T*>(buffer.bytes);
    for (int64_t i = 0; i < n; ++i) target[i * stride] = source[i];
  });
}

/// Calls `row(char* out, int64_t first, int64_t n)` for pieces of a contiguous result, in parallel; large
/// results go past the cache by way of a small buffer.
template <class Row>
void flat_rows(void* out, size_t item, int64_t numel, Row&& row) {
  char* base = static_cast<char*>(out);
  const int64_t size = static_cast<int64_t>(item);
  if (numel <= kPointwiseGrain) return row(base, int64_t{0}, numel);
  const bool past_cache =
      numel * size >= kStreamBytes && 64 % size == 0 && reinterpret_cast<uintptr_t>(base) % item == 0;
  parallel_for(numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    if (past_cache) {
      alignas(64) char tile[kStreamTile];
      const int64_t step = kStreamTile / size;
      const int64_t misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(base + begin * size) % 64);
      if (misaligned != 0) {
        int64_t head = std::min(end - begin, (64 - misaligned) / size);
        row(base + begin * size, begin, head);
        begin += head;
      }
      for (; begin + step <= end; begin += step) {
        row(tile, begin, step);
        stream_store(base + begin * size, tile, kStreamTile);
      }
#if defined(__AVX__)
      _mm_sfence();
#endif
    }
    if (begin < end) row(base + begin * size, begin, end - begin);
  });
}

}  // namespace

void walk1(const Geometry<2>& g, void* out, size_t out_item, const void* in, size_t in_item, Row1 row,
           const void* functor) {
  const char* source = static_cast<const char*>(in);
  if (g.flat()) {
    const int64_t size = static_cast<int64_t>(in_item);
    flat_rows(out, out_item, g.numel,
              [&](char* to, int64_t first, int64_t n) { row(to, source + first * size, n, functor); });
    return;
  }
  const int64_t so = g.strides[0][g.ndim - 1], si = g.strides[1][g.ndim - 1];
  const int64_t limit = so == 1 && si == 1 ? g.numel : kTile;
  parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    Buffer in_buffer, out_buffer;
    walk_rows(g, begin, end, [&](const int64_t(&offset)[2], int64_t count) {
      for (int64_t i = 0; i < count; i += limit) {
        const int64_t n = std::min(limit, count - i);
        char* to = static_cast<char*>(out) + (offset[0] + i * so) * static_cast<int64_t>(out_item);
        const void* x = gathered(in_buffer, source + (offset[1] + i * si) * static_cast<int64_t>(in_item), si,
                                 n, in_item);
        row(so == 1 ? static_cast<void*>(to) : out_buffer.bytes, x, n, functor);
        if (so != 1) scatter(to, out_buffer, so, n, out_item);
      }
    });
  });
}

void walk2(const Geometry<3>& g, void* out, size_t out_item, const void* a, const void* b, size_t in_item,
           const void* scalar, const BinaryRows& rows, const void* functor) {
  const char* x = static_cast<const char*>(a);
  const char* y = static_cast<const char*>(b);
  const int inner = g.ndim - 1;
  const int64_t size = static_cast<int64_t>(in_item);
  const int64_t so = g.strides[0][inner], sa = a ? g.strides[1][inner] : 0, sb = b ? g.strides[2][inner] : 0;
  alignas(16) std::byte fixed[16];
  // One row of n elements whose operands start at xp and yp (null: the scalar).
  auto run = [&](void* to, const char* xp, int64_t step_a, const char* yp, int64_t step_b, int64_t n,
                 std::byte* number) {
    if (step_a == 1 && step_b == 1) {
      rows.dense(to, xp, yp, n, functor);
    } else if (step_b == 0) {
      if (yp) rows.widen(yp, number);
      rows.b_fixed(to, xp, yp ? number : scalar, n, functor);
    } else {
      if (xp) rows.widen(xp, number);
      rows.a_fixed(to, xp ? number : scalar, yp, n, functor);
    }
  };
  const bool plain_steps = (sa == 1 || sa == 0) && (sb == 1 || sb == 0) && (sa == 1 || sb == 1);
  if (g.ndim == 1 && (g.numel == 1 || (so == 1 && plain_steps))) {
    const int64_t step_a = g.numel == 1 ? (a ? 1 : 0) : sa, step_b = g.numel == 1 ? (b ? 1 : 0) : sb;
    if (g.numel <= kPointwiseGrain) return run(out, x, step_a, y, step_b, g.numel, fixed);
    flat_rows(out, out_item, g.numel, [&](char* to, int64_t first, int64_t n) {
      alignas(16) std::byte number[16];
      run(to, x ? x + first * step_a * size : x, step_a, y ? y + first * step_b * size : y, step_b, n,
          number);
    });
    return;
  }
  const int64_t limit = so == 1 && plain_steps ? g.numel : kTile;
  parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    Buffer a_buffer, b_buffer, out_buffer;
    alignas(16) std::byte number[16];
    walk_rows(g, begin, end, [&](const int64_t(&offset)[3], int64_t count) {
      for (int64_t i = 0; i < count; i += limit) {
        const int64_t n = std::min(limit, count - i);
        char* to = static_cast<char*>(out) + (offset[0] + i * so) * static_cast<int64_t>(out_item);
        const char* xp = x ? x + (offset[1] + i * sa) * size : nullptr;
        const char* yp = y ? y + (offset[2] + i * sb) * size : nullptr;
        int64_t step_a = sa, step_b = sb;
        // At most one operand may stay fixed; any other that is not contiguous is gathered.
        if (xp && sa != 1 && !(sa == 0 && sb != 0))
          xp = static_cast<const char*>(gathered(a_buffer, xp, sa, n, in_item)), step_a = 1;
        if (yp && sb != 1 && !(sb == 0 && step_a == 1))
          yp = static_cast<const char*>(gathered(b_buffer, yp, sb, n, in_item)), step_b = 1;
        run(so == 1 ? static_cast<void*>(to) : out_buffer.bytes, xp, step_a, yp, step_b, n, number);
        if (so != 1) scatter(to, out_buffer, so, n, out_item);
      }
    });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
