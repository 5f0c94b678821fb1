// The walk over strided operands, by item size alone.
#include "tern/backends/cpu/kernels/walk.h"

#include "tern/backends/cpu/kernels/bits.h"
#include "tern/backends/cpu/kernels/short_rows.h"
#include "tern/backends/cpu/kernels/transpose.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kTile = 512;         // elements of a strided row that are gathered at once
constexpr int64_t kLongRow = 4096;     // elements of a row that may be shared out among threads
constexpr int64_t kStreamTile = 4096;  // bytes computed before they go past the cache

template <class Body>
void with_item(size_t item, Body&& body) {
  if (!visit_item(item, body)) body.template operator()<Wide>();
}

/// A place for kTile elements of any size, and for more of the usual sizes.
struct Buffer {
  alignas(64) std::byte bytes[kTile * sizeof(Wide)];
};

const void* gathered(Buffer& buffer, const char* from, int64_t stride, int64_t n, size_t item) {
  if (stride == 1) return from;
  with_item(item, [&]<class T>() {
    auto* to = reinterpret_cast<T*>(buffer.bytes);
    auto* source = reinterpret_cast<const T*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = source[i * stride];
  });
  return buffer.bytes;
}

void scatter(char* to, const Buffer& buffer, int64_t stride, int64_t n, size_t item) {
  with_item(item, [&]<class T>() {
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

/// Blocks in which an operand that runs across the others is turned round.
constexpr int64_t kBlockRows = 32, kBlockColumns = 128;
struct Block {
  alignas(64) std::byte bytes[kBlockRows * kBlockColumns * 8];
};

/// True when the result is contiguous along the last dimension but one, not along the last.
template <int N>
bool result_runs_across(const Geometry<N>& g) {
  const int r = g.ndim - 2, c = g.ndim - 1;
  return r >= 0 && g.strides[0][c] != 1 && g.strides[0][r] == 1;
}

/// The same walk with the last two dimensions exchanged.
template <int N>
Geometry<N> exchanged(Geometry<N> g) {
  const int r = g.ndim - 2, c = g.ndim - 1;
  std::swap(g.sizes[r], g.sizes[c]);
  for (auto& strides : g.strides) std::swap(strides[r], strides[c]);
  return g;
}

/// True for an operand that is contiguous along the last dimension but one while the result is along the
/// last.
template <int N>
bool runs_across(const Geometry<N>& g, int operand, size_t item) {
  const int r = g.ndim - 2, c = g.ndim - 1;
  return r >= 0 && g.strides[0][c] == 1 && g.strides[operand][r] == 1 && g.strides[operand][c] > 1 &&
         g.sizes[r] >= 8 && g.sizes[c] >= 8 && item <= 8;
}

/// An operand with short rows, seen as dense pieces of as many rows as a Buffer holds. Null data stays null.
class ShortRows {
 public:
  template <int N>
  ShortRows(const Geometry<N>& g, int operand, size_t item, const void* data)
      : rows_(rows_of(g, operand, item)),
        data_(static_cast<const char*>(data)),
        dense_(rows_.dense()),
        repeated_(rows_.repeated()) {}

  bool is_gathered() const { return data_ && !dense_ && !repeated_; }
  /// What `at` expects of a new buffer, for up to `count` rows.
  void prepare(Buffer& buffer, int64_t count) const {
    if (data_ && repeated_) gather_rows(rows_, data_, 0, count, buffer.bytes);
  }
  const char* at(int64_t first, int64_t count, Buffer& buffer) const {
    if (!data_) return nullptr;
    if (dense_) return data_ + first * rows_.columns() * static_cast<int64_t>(rows_.item);
    if (!repeated_) gather_rows(rows_, data_, first, count, buffer.bytes);
    return reinterpret_cast<const char*>(buffer.bytes);
  }

 private:
  Rows rows_;
  const char* data_;
  bool dense_, repeated_;
};

/// Calls `body(void* to, int64_t first, int64_t rows, Buffers&)` for pieces of whole rows of the result, in
/// parallel.
template <int N, class Body>
void for_short_rows(const Geometry<N>& g, void* out, size_t out_item, size_t in_item,
                    const ShortRows (&operands)[N - 1], Body&& body) {
  const Rows result = rows_of(g, 0, out_item);
  const bool dense = result.dense();
  const int64_t columns = result.columns();
  const int64_t at_once = static_cast<int64_t>(sizeof(Buffer) / std::max(out_item, in_item)) / columns;
  parallel_for(g.numel / columns, kPointwiseGrain / columns, [&](int64_t begin, int64_t end) {
    Buffer buffers[N];
    for (int i = 1; i < N; ++i) operands[i - 1].prepare(buffers[i], std::min(at_once, end - begin));
    for (; begin < end; begin += at_once) {
      const int64_t rows = std::min(at_once, end - begin);
      void* to = buffers[0].bytes;
      if (dense) to = static_cast<char*>(out) + begin * columns * static_cast<int64_t>(out_item);
      body(to, begin, rows, buffers);
      if (!dense) scatter_rows(result, out, begin, rows, to);
    }
  });
}

/// Whether that is better than a call for each row.
template <int N>
bool has_short_rows(const Geometry<N>& g, const ShortRows (&operands)[N - 1], size_t item) {
  const int inner = g.ndim - 1;
  bool spaced = N == 3;  // loops of two operands take evenly spaced rows as they are
  for (const auto& strides : g.strides) spaced &= strides[inner] == 0 || strides[inner] == 1;
  const int64_t gathered = spaced ? kShortSpacedRow : kShortGatheredRow;
  int64_t limit = rows_of(g, 0, item).dense() ? kShortRow : gathered;
  for (int i = 1; i < N; ++i)
    if (operands[i - 1].is_gathered())
      limit = std::min(limit, runs_across(g, i, item) ? kShortRowAcross : gathered);
  return g.sizes[inner] < limit;
}

/// The rows as elements: the same walk without its last dimension.
template <int N>
Geometry<N> without_columns(Geometry<N> g) {
  g.numel /= g.sizes[--g.ndim];
  return g;
}

/// Calls `body(const int64_t (&offsets)[N], int64_t rows)` for up to kBlockRows whole rows at a time, in
/// parallel.
template <int N, class Body>
void walk_row_blocks(const Geometry<N>& g, Body&& body) {
  const int r = g.ndim - 2;
  const int64_t rows = g.sizes[r], columns = g.sizes[g.ndim - 1];
  Geometry<N> blocks = g;
  blocks.ndim = g.ndim - 1;
  blocks.sizes[r] = (rows + kBlockRows - 1) / kBlockRows;
  blocks.numel = g.numel / (rows * columns) * blocks.sizes[r];
  for (auto& strides : blocks.strides) strides[r] *= kBlockRows;
  const int64_t grain = std::max<int64_t>(1, kPointwiseGrain / (kBlockRows * columns));
  parallel_for(blocks.numel, grain, [&](int64_t begin, int64_t end) {
    walk_rows(blocks, begin, end, [&](const int64_t(&offset)[N], int64_t count) {
      int64_t at[N];
      std::copy_n(offset, N, at);
      for (int64_t k = 0; k < count; ++k, ++begin) {
        body(at, std::min(kBlockRows, rows - begin % blocks.sizes[r] * kBlockRows));
        for (int i = 0; i < N; ++i) at[i] += blocks.strides[i][r];
      }
    });
  });
}

}  // namespace

void walk1(const Geometry<2>& g, void* out, size_t out_item, const void* in, size_t in_item, Row1 row,
           const void* functor) {
  const char* source = static_cast<const char*>(in);
  const int64_t size = static_cast<int64_t>(in_item), out_size = static_cast<int64_t>(out_item);
  if (g.flat()) {
    flat_rows(out, out_item, g.numel,
              [&](char* to, int64_t first, int64_t n) { row(to, source + first * size, n, functor); });
    return;
  }
  if (result_runs_across(g)) return walk1(exchanged(g), out, out_item, in, in_item, row, functor);
  if (g.ndim > 1 && g.numel > 0) {
    const ShortRows operands[] = {{g, 1, in_item, in}};
    const int64_t columns = g.sizes[g.ndim - 1];
    if (has_short_rows(g, operands, in_item))
      return for_short_rows(g, out, out_item, in_item, operands,
                            [&](void* to, int64_t first, int64_t rows, Buffer(&buffers)[2]) {
                              row(to, operands[0].at(first, rows, buffers[1]), rows * columns, functor);
                            });
  }
  const int64_t so = g.strides[0][g.ndim - 1], si = g.strides[1][g.ndim - 1];
  if (runs_across(g, 1, in_item)) {
    const int64_t columns = g.sizes[g.ndim - 1], row_step = g.strides[0][g.ndim - 2];
    return walk_row_blocks(g, [&](const int64_t(&offset)[2], int64_t rows) {
      Block block;
      for (int64_t j = 0; j < columns; j += kBlockColumns) {
        const int64_t n = std::min(kBlockColumns, columns - j);
        transpose_elements(in_item, source + (offset[1] + j * si) * size, si, n, rows, block.bytes,
                           kBlockColumns);
        char* to = static_cast<char*>(out) + (offset[0] + j) * out_size;
        for (int64_t i = 0; i < rows; ++i)
          row(to + i * row_step * out_size, block.bytes + i * kBlockColumns * size, n, functor);
      }
    });
  }
  const int64_t limit = so == 1 && si == 1 ? g.numel : kTile;
  parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    Buffer in_buffer, out_buffer;
    walk_rows(g, begin, end, [&](const int64_t(&offset)[2], int64_t count) {
      for (int64_t i = 0; i < count; i += limit) {
        const int64_t n = std::min(limit, count - i);
        char* to = static_cast<char*>(out) + (offset[0] + i * so) * out_size;
        const void* x = gathered(in_buffer, source + (offset[1] + i * si) * size, si, n, in_item);
        row(so == 1 ? static_cast<void*>(to) : out_buffer.bytes, x, n, functor);
        if (so != 1) scatter(to, out_buffer, so, n, out_item);
      }
    });
  });
}

void walk2(const Geometry<3>& g, void* out, size_t out_item, const void* a, const void* b, size_t in_item,
           const void* scalar, const BinaryRows& rows, const void* functor) {
  if (result_runs_across(g)) return walk2(exchanged(g), out, out_item, a, b, in_item, scalar, rows, functor);
  if (g.ndim > 1 && g.numel > 0) {
    const ShortRows operands[] = {{g, 1, in_item, a}, {g, 2, in_item, b}};
    const int64_t columns = g.sizes[g.ndim - 1];
    if (has_short_rows(g, operands, in_item))
      return for_short_rows(g, out, out_item, in_item, operands,
                            [&](void* to, int64_t first, int64_t count, Buffer(&buffers)[3]) {
                              const char* xp = operands[0].at(first, count, buffers[1]);
                              const char* yp = operands[1].at(first, count, buffers[2]);
                              const int64_t n = count * columns;
                              if (!xp)
                                rows.a_fixed(to, scalar, yp, n, {}, functor);
                              else if (!yp)
                                rows.b_fixed(to, xp, scalar, n, {}, functor);
                              else
                                rows.dense(to, xp, yp, n, {}, functor);
                            });
  }
  const char* x = static_cast<const char*>(a);
  const char* y = static_cast<const char*>(b);
  const int inner = g.ndim - 1;
  const int64_t size = static_cast<int64_t>(in_item), out_size = static_cast<int64_t>(out_item);
  const int64_t so = g.strides[0][inner], sa = a ? g.strides[1][inner] : 0, sb = b ? g.strides[2][inner] : 0;
  // Rows of n elements that start at xp and yp (null: the scalar); at most one operand is fixed along a row.
  auto run = [&](void* to, const char* xp, int64_t step_a, const char* yp, int64_t step_b, int64_t n,
                 const RowSteps& by) {
    if (step_a == 1 && step_b == 1) return rows.dense(to, xp, yp, n, by, functor);
    const bool second = step_b == 0;
    if (!(second ? yp : xp)) {
      if (second) return rows.b_fixed(to, xp, scalar, n, {by.rows, by.out, by.a, 0}, functor);
      return rows.a_fixed(to, scalar, yp, n, {by.rows, by.out, 0, by.b}, functor);
    }
    alignas(64) std::byte numbers[kTile * kLargestNumber];
    for (int64_t k = 0; k < by.rows; k += kTile) {
      const int64_t count = std::min(kTile, by.rows - k);
      void* target = static_cast<char*>(to) + k * by.out * out_size;
      const char *p = xp + k * by.a * size, *q = yp + k * by.b * size;
      if (second) {
        rows.widen(q, by.b, count, numbers);
        rows.b_fixed(target, p, numbers, n, {count, by.out, by.a, 1}, functor);
      } else {
        rows.widen(p, by.a, count, numbers);
        rows.a_fixed(target, numbers, q, n, {count, by.out, 1, by.b}, functor);
      }
    }
  };
  const bool plain_steps = (sa == 1 || sa == 0) && (sb == 1 || sb == 0) && (sa == 1 || sb == 1);
  if (g.ndim == 1 && (g.numel == 1 || (so == 1 && plain_steps))) {
    const int64_t step_a = g.numel == 1 ? (a ? 1 : 0) : sa, step_b = g.numel == 1 ? (b ? 1 : 0) : sb;
    flat_rows(out, out_item, g.numel, [&](char* to, int64_t first, int64_t n) {
      run(to, x ? x + first * step_a * size : x, step_a, y ? y + first * step_b * size : y, step_b, n, {});
    });
    return;
  }
  const int64_t columns = g.sizes[inner];
  if (g.ndim > 1 && so == 1 && plain_steps && columns <= kLongRow && columns > 0) {
    const Geometry<3> by_row = without_columns(g);
    const int row = inner - 1;
    const int64_t row_a = a ? g.strides[1][row] : 0, row_b = b ? g.strides[2][row] : 0;
    return parallel_for(
        by_row.numel, std::max<int64_t>(1, kPointwiseGrain / columns), [&](int64_t begin, int64_t end) {
          walk_rows(by_row, begin, end, [&](const int64_t(&offset)[3], int64_t count) {
            run(static_cast<char*>(out) + offset[0] * out_size, x ? x + offset[1] * size : x, sa,
                y ? y + offset[2] * size : y, sb, columns, {count, g.strides[0][row], row_a, row_b});
          });
        });
  }
  struct Buffers {
    Buffer a, b;
  };
  // The same for operands with any steps. At most one may stay fixed; any other that is not contiguous is
  // gathered.
  auto run_strided = [&](void* to, const char* xp, int64_t step_a, const char* yp, int64_t step_b, int64_t n,
                         Buffers& buffers) {
    if (xp && step_a != 1 && !(step_a == 0 && step_b != 0))
      xp = static_cast<const char*>(gathered(buffers.a, xp, step_a, n, in_item)), step_a = 1;
    if (yp && step_b != 1 && !(step_b == 0 && step_a == 1))
      yp = static_cast<const char*>(gathered(buffers.b, yp, step_b, n, in_item)), step_b = 1;
    run(to, xp, step_a, yp, step_b, n, {});
  };
  const bool a_across = a && runs_across(g, 1, in_item), b_across = b && runs_across(g, 2, in_item);
  if (a_across || b_across) {
    return walk_row_blocks(g, [&](const int64_t(&offset)[3], int64_t count) {
      Buffers buffers;
      Block a_block, b_block;
      // Steps along a row and to the next one.
      const int64_t a_steps[2] = {a_across ? 1 : sa, a_across ? kBlockColumns
                                                     : a      ? g.strides[1][inner - 1]
                                                              : 0};
      const int64_t b_steps[2] = {b_across ? 1 : sb, b_across ? kBlockColumns
                                                     : b      ? g.strides[2][inner - 1]
                                                              : 0};
      for (int64_t j = 0; j < columns; j += kBlockColumns) {
        const int64_t n = std::min(kBlockColumns, columns - j);
        auto turned = [&](const char* from, int64_t stride, Block& block) {
          transpose_elements(in_item, from, stride, n, count, block.bytes, kBlockColumns);
          return reinterpret_cast<const char*>(block.bytes);
        };
        const char* xp = x ? x + (offset[1] + j * sa) * size : nullptr;
        const char* yp = y ? y + (offset[2] + j * sb) * size : nullptr;
        if (a_across) xp = turned(xp, sa, a_block);
        if (b_across) yp = turned(yp, sb, b_block);
        char* to = static_cast<char*>(out) + (offset[0] + j) * out_size;
        for (int64_t i = 0; i < count; ++i) {
          run_strided(to, xp, a_steps[0], yp, b_steps[0], n, buffers);
          to += g.strides[0][inner - 1] * out_size;
          if (xp) xp += a_steps[1] * size;
          if (yp) yp += b_steps[1] * size;
        }
      }
    });
  }
  const int64_t limit = so == 1 && plain_steps ? g.numel : kTile;
  parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    Buffers buffers;
    Buffer out_buffer;
    walk_rows(g, begin, end, [&](const int64_t(&offset)[3], int64_t count) {
      for (int64_t i = 0; i < count; i += limit) {
        const int64_t n = std::min(limit, count - i);
        char* to = static_cast<char*>(out) + (offset[0] + i * so) * out_size;
        const char* xp = x ? x + (offset[1] + i * sa) * size : nullptr;
        const char* yp = y ? y + (offset[2] + i * sb) * size : nullptr;
        run_strided(so == 1 ? static_cast<void*>(to) : out_buffer.bytes, xp, sa, yp, sb, n, buffers);
        if (so != 1) scatter(to, out_buffer, so, n, out_item);
      }
    });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
