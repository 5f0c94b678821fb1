// Reading and writing elements named by index tensors, searching sorted rows. The order in which writes meet
// is explained at IndexPutArgs (kernels/index.h); non-zero elements are in nonzero.cpp.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tern/backends/cpu/kernels/bits.h"
#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/kernels/functors.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kIndexGrain = kPointwiseGrain / 4;

[[gnu::always_inline]] inline int64_t checked(const IndexedDims& dims, int which, int64_t index) {
  const int64_t size = dims.size[which];
  const int64_t wrapped = dims.wrap && index < 0 ? index + size : index;
  if (static_cast<uint64_t>(wrapped) >= static_cast<uint64_t>(size)) [[unlikely]]
    throw_index_out_of_bounds(dims, which, index);
  return wrapped;
}

template <int N>
int count_of(const IndexedDims& dims) {
  return N == 1 ? 1 : dims.count;
}

/// Where the index tensors point when read at `offsets`, in elements of the addressed tensor.
template <int N>
[[gnu::always_inline]] inline int64_t address(const IndexedDims& dims, const int64_t* offsets) {
  int64_t at = 0;
  for (int j = 0; j < count_of<N>(dims); ++j)
    at += checked(dims, j, dims.index[j][offsets[j]]) * dims.stride[j];
  return at;
}

/// True when one address serves a whole row of the geometry.
template <int N>
bool fixed_address(const IndexedDims& dims, const Geometry<2 + N>& g) {
  for (int j = 0; j < count_of<N>(dims); ++j)
    if (g.strides[2 + j][g.ndim - 1] != 0) return false;
  return true;
}

/// One index tensor, whose indices are checked row by row before any of them is used: the loops that then use
/// them do nothing else.
class Checker {
 public:
  explicit Checker(const IndexedDims& dims)
      : dims_(dims), size_(dims.size[0]), stride_(dims.stride[0]), wrap_(dims.wrap ? size_ : 0) {}

  /// Throws IndexError unless all are in range.
  void check(const int64_t* index, int64_t step, int64_t n) {
    if (index == checked_ && n == count_) return;
    checked_ = index;
    count_ = n;
    uint64_t outside = 0;
    if (step == 1)
      for (int64_t i = 0; i < n; ++i) outside |= is_outside(index[i]);
    else
      for (int64_t i = 0; i < n; ++i) outside |= is_outside(index[i * step]);
    if (outside == 0) [[likely]]
      return;
    while (!is_outside(*index)) index += step;
    throw_index_out_of_bounds(dims_, 0, *index);
  }
  /// Of a checked index.
  [[gnu::always_inline]] int64_t operator()(int64_t index) const { return wrapped(index) * stride_; }
  bool plain() const { return stride_ == 1 && wrap_ == 0; }
  [[gnu::always_inline]] int64_t wrapped(int64_t index) const { return index + (index >> 63 & wrap_); }

 private:
  [[gnu::always_inline]] bool is_outside(int64_t index) const {
    return static_cast<uint64_t>(wrapped(index)) >= static_cast<uint64_t>(size_);
  }

  const IndexedDims& dims_;
  const int64_t size_, stride_, wrap_;
  const int64_t* checked_ = nullptr;  // rows often share their indices
  int64_t count_ = 0;
};

constexpr int64_t kCheckedTile = 16384;  // indices that stay in the cache between check and use

/// out[i] = x[index[i]]. Asks for the indices that are checked next.
template <class T>
void get_plain(T* out, const T* x, const int64_t* index, int64_t n) {
  constexpr int64_t kLine = 8;
  int64_t i = 0;
  for (; i + kLine <= n; i += kLine) {
    __builtin_prefetch(index + i + n);
#pragma GCC unroll 8
    for (int64_t j = i; j < i + kLine; ++j) out[j] = x[index[j]];
  }
  for (; i < n; ++i) out[i] = x[index[i]];
}

/// out[i] = x[i + index[i] * stride], each with its own step.
template <class T>
void get_row(Checker& at, T* out, int64_t out_step, const T* x, int64_t x_step, const int64_t* index,
             int64_t index_step, int64_t n) {
  for (; n > 0; n -= kCheckedTile) {
    const int64_t count = std::min(n, kCheckedTile);
    at.check(index, index_step, count);
    if (at.plain() && out_step == 1 && x_step == 0 && index_step == 1)
      get_plain(out, x, index, count);
    else
      for (int64_t i = 0; i < count; ++i) out[i * out_step] = x[i * x_step + at(index[i * index_step])];
    out += count * out_step;
    x += count * x_step;
    index += count * index_step;
  }
}

/// One index for each row of a dense result, as in index_select along the first dimension and in embeddings.
template <class T>
bool get_by_row(const IndexGetArgs& args, const Geometry<3>& g) {
  const int64_t n = g.sizes[1], rows = g.sizes[0];
  if (g.ndim != 2 || g.strides[2][1] != 0 || g.strides[0][1] != 1 || g.strides[0][0] != n ||
      g.strides[1][1] != 1 || g.strides[1][0] != 0)
    return false;
  const int64_t* index = args.dims.index[0];
  const int64_t step = g.strides[2][0], nbytes = n * static_cast<int64_t>(sizeof(T));
  parallel_for(rows, std::max<int64_t>(1, kIndexGrain / n), [&](int64_t begin, int64_t end) {
    Checker checker(args.dims);
    for (; begin < end; begin += kCheckedTile) {
      const int64_t count = std::min(end - begin, kCheckedTile);
      checker.check(index + begin * step, step, count);
      T* out = static_cast<T*>(args.out) + begin * n;
      visit_ends(nbytes, [&]<int ends>() {
        for (int64_t i = 0; i < count; ++i, out += n)
          copy_row_bytes<ends>(out, static_cast<const T*>(args.in) + checker(index[(begin + i) * step]),
                               nbytes);
      });
    }
  });
  return true;
}

template <class T, int N>
void get(const IndexGetArgs& args) {
  const Geometry<2 + N> g = operands<N>(args.geometry);
  const IndexedDims& dims = args.dims;
  const int inner = g.ndim - 1;
  const int64_t so = g.strides[0][inner], si = g.strides[1][inner];
  if constexpr (N == 1) {
    if (get_by_row<T>(args, g)) return;
  }
  const bool fixed = fixed_address<N>(dims, g);
  T* out = static_cast<T*>(args.out);
  const T* in = static_cast<const T*>(args.in);
  parallel_for(g.numel, kIndexGrain, [&](int64_t begin, int64_t end) {
    Checker checker(dims);
    walk_rows(g, begin, end, [&](const int64_t(&offsets)[2 + N], int64_t n) {
      T* o = out + offsets[0];
      const T* x = in + offsets[1];
      if (fixed) {
        x += address<N>(dims, offsets + 2);
        if (so == 1 && si == 1)
          copy_bytes(o, x, n * static_cast<int64_t>(sizeof(T)));
        else
          for (int64_t i = 0; i < n; ++i) o[i * so] = x[i * si];
      } else if constexpr (N == 1) {
        get_row(checker, o, so, x, si, dims.index[0] + offsets[2], g.strides[2][inner], n);
      } else {
        int64_t at[N];
        std::copy_n(offsets + 2, N, at);
        for (int64_t i = 0; i < n; ++i) {
          o[i * so] = x[i * si + address<N>(dims, at)];
          for (int j = 0; j < dims.count; ++j) at[j] += g.strides[2 + j][inner];
        }
      }
    });
  });
}

struct SetElement {
  template <class T>
  [[gnu::always_inline]] static T apply(T, T value) {
    return value;
  }
};
/// Out: T, or what sums of T are taken in.
struct AddElement {
  template <class Out, class T>
  [[gnu::always_inline]] static Out apply(Out old, T value) {
    using C = Compute<T>;
    return static_cast<Out>(functors::wrap_add(static_cast<C>(old), static_cast<C>(value)));
  }
};
template <template <class> class Functor>
struct JoinElement {
  template <class Out, class T>
  [[gnu::always_inline]] static Out apply(Out old, T value) {
    using C = Compute<T>;
    return static_cast<Out>(Functor<C>(nullptr)(static_cast<C>(old), static_cast<C>(value)));
  }
};

/// out[i] = source[i], or +=.
template <class Mode, class Out, class T>
void put_row(Out* out, int64_t out_step, const T* source, int64_t source_step, int64_t n) {
  if (out_step == 1 && source_step == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = Mode::apply(out[i], source[i]);
  } else {
    for (int64_t i = 0; i < n; ++i)
      out[i * out_step] = Mode::apply(out[i * out_step], source[i * source_step]);
  }
}

/// The same with an address for each element.
template <class Mode, int N, class Out, class T>
void put_points(const IndexedDims& dims, Out* out, int64_t out_step, const T* source, int64_t source_step,
                const int64_t* start, const int64_t* steps, int64_t n) {
  if constexpr (N == 1) {
    Checker at(dims);
    const int64_t* index = dims.index[0] + start[0];
    const int64_t index_step = steps[0];
    for (; n > 0; n -= kCheckedTile) {
      const int64_t count = std::min(n, kCheckedTile);
      at.check(index, index_step, count);
      if (at.plain() && out_step == 0 && source_step == 1 && index_step == 1)
        for (int64_t i = 0; i < count; ++i) out[index[i]] = Mode::apply(out[index[i]], source[i]);
      else if (at.plain() && out_step == 0 && source_step == 0 && index_step == 1)
        for (int64_t i = 0; i < count; ++i) out[index[i]] = Mode::apply(out[index[i]], *source);
      else
        for (int64_t i = 0; i < count; ++i) {
          Out& o = out[i * out_step + at(index[i * index_step])];
          o = Mode::apply(o, source[i * source_step]);
        }
      out += count * out_step;
      source += count * source_step;
      index += count * index_step;
    }
  } else {
    int64_t at[N];
    std::copy_n(start, N, at);
    for (int64_t i = 0; i < n; ++i) {
      Out& o = out[i * out_step + address<N>(dims, at)];
      o = Mode::apply(o, source[i * source_step]);
      for (int j = 0; j < dims.count; ++j) at[j] += steps[j];
    }
  }
}

/// Rows of fewer bytes are not cut among threads: their ends, and what another thread has just filled, would
/// go from core to core.
constexpr int64_t kNarrowRow = 16384;

/// Whole rows of n elements, one index each.
template <class T>
struct NarrowRows {
  const IndexedDims& dims;
  const T* source;
  int64_t source_row, source_step, index_step, rows, n;

  /// Calls `f(begin, end)` for parts of the rows of `out`. Every thread walks all indices in order, for the
  /// rows that are its own.
  template <class F>
  void for_parts(const F& f) const {
    const int64_t size = dims.size[0], all = size * std::max<int64_t>(1, kIndexGrain / n);
    parallel_for(size, std::max<int64_t>(1, all / rows), f);
  }
  /// Calls `f(row, from)` for the rows of `out` in [begin, end) and what they get, in order.
  template <class F>
  void walk(int64_t begin, int64_t end, const F& f) const {
    Checker at(dims);
    const T* from = source;
    for (int64_t first = 0; first < rows; first += kCheckedTile) {
      const int64_t count = std::min(rows - first, kCheckedTile);
      const int64_t* index = dims.index[0] + first * index_step;
      at.check(index, index_step, count);
      for (int64_t i = 0; i < count; ++i, from += source_row) {
        const int64_t row = at.wrapped(index[i * index_step]);
        if (row >= begin && row < end) f(row, from);
      }
    }
  }

  template <class Mode, class Out>
  void put(Out* out) const {
    for_parts([&](int64_t begin, int64_t end) {
      walk(begin, end, [&](int64_t row, const T* from) {
        put_row<Mode>(out + row * dims.stride[0], 1, from, source_step, n);
      });
    });
  }
  /// Joins 16-bit floats: rows that are met more than once are joined in float and rounded once.
  template <class Mode>
  void join(T* out) const {
    for_parts([&](int64_t begin, int64_t end) {
      constexpr int32_t kOnce = -1;
      std::vector<int32_t> sum_of(static_cast<size_t>(end - begin), 0);  // first how often, then which sum
      walk(begin, end, [&](int64_t row, const T*) { ++sum_of[static_cast<size_t>(row - begin)]; });
      int32_t count = 0;
      for (int32_t& each : sum_of) each = each > 1 ? count++ : kOnce;
      const Scratch<float> sums(count * n);
      const auto for_sums = [&](const auto& f) {
        for (int64_t row = begin; row < end; ++row)
          if (const int32_t which = sum_of[static_cast<size_t>(row - begin)]; which != kOnce)
            f(sums.get() + which * n, out + row * dims.stride[0]);
      };
      for_sums([&](float* sum, const T* row) { widen_row(sum, row, n); });
      walk(begin, end, [&](int64_t row, const T* from) {
        const int32_t which = sum_of[static_cast<size_t>(row - begin)];
        if (which == kOnce)
          put_row<Mode>(out + row * dims.stride[0], 1, from, source_step, n);
        else
          put_row<Mode>(sums.get() + which * n, 1, from, source_step, n);
      });
      for_sums([&](const float* sum, T* row) { narrow_row(row, sum, n); });
    });
  }
};

template <class Mode, class T, int N, class Out>
void put(const IndexPutArgs& args, Out* out) {
  const IndexedDims& dims = args.dims;
  Geometry<2 + N> free = operands<N>(args.free), addressed = operands<N>(args.addressed);
  const uint64_t bits = args.source ? 0 : bits_of(args.dtype, args.value);
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  const T* source = static_cast<const T*>(args.source);
  if (!source) {
    source = &value;
    std::fill_n(free.strides[1], kMaxDims, 0);
    std::fill_n(addressed.strides[1], kMaxDims, 0);
  }
  const int fi = free.ndim - 1, ai = addressed.ndim - 1;
  const int64_t so = free.strides[0][fi], ss = free.strides[1][fi], step = addressed.strides[1][ai];
  const bool fixed = fixed_address<N>(dims, free);
  if constexpr (N == 1) {
    const int64_t n = free.numel;
    if (fixed && free.ndim == 1 && addressed.ndim == 1 && so == 1 && n > 1 && dims.size[0] > 0 &&
        addressed.numel > 0 && n * static_cast<int64_t>(sizeof(T)) < kNarrowRow) {
      const NarrowRows<T> rows{dims, source, step, ss, addressed.strides[2][ai], addressed.numel, n};
      if constexpr (kWidened<T> && std::is_same_v<Out, T> && !std::is_same_v<Mode, SetElement>)
        return rows.template join<Mode>(out);
      else
        return rows.template put<Mode>(out);
    }
  }
  // One address for a row of elements, or one element for a row of addresses: whichever walks memory in
  // order.
  const bool by_row = fixed || free.strides[2][fi] <= addressed.strides[2][ai];
  int64_t free_steps[N], addressed_steps[N];
  for (int j = 0; j < N; ++j) {
    free_steps[j] = free.strides[2 + j][fi];
    addressed_steps[j] = addressed.strides[2 + j][ai];
  }

  // All addressed elements for a row of n free ones that start at `base`.
  auto piece = [&](const int64_t* base, int64_t n) {
    walk_rows(addressed, 0, addressed.numel, [&](const int64_t(&offsets)[2 + N], int64_t count) {
      int64_t at[N];
      for (int j = 0; j < N; ++j) at[j] = base[2 + j] + offsets[2 + j];
      const T* s = source + base[1] + offsets[1];
      if (n == 1) return put_points<Mode, N>(dims, out + base[0], 0, s, step, at, addressed_steps, count);
      for (int64_t k = 0; k < count; ++k, s += step) {
        if (fixed)
          put_row<Mode>(out + base[0] + address<N>(dims, at), so, s, ss, n);
        else
          put_points<Mode, N>(dims, out + base[0], so, s, ss, at, free_steps, n);
        for (int j = 0; j < N; ++j) at[j] += addressed_steps[j];
      }
    });
  };

  const int64_t grain = std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(1, addressed.numel));
  parallel_for(free.numel, grain, [&](int64_t begin, int64_t end) {
    walk_rows(free, begin, end, [&](const int64_t(&offsets)[2 + N], int64_t n) {
      if (by_row) return piece(offsets, n);
      int64_t base[2 + N];
      std::copy_n(offsets, 2 + N, base);
      for (int64_t i = 0; i < n; ++i) {
        piece(base, 1);
        for (int j = 0; j < 2 + N; ++j) base[j] += free.strides[j][fi];
      }
    });
  });
}

/// The elements of the target where they lie without gaps, more than one source may meet each, and there is
/// a source for eight of them at least; else 0.
int64_t few_elements(const IndexPutArgs& args) {
  constexpr int64_t kElementsOfASource = 8;
  int64_t last = 0, addresses = 1;
  for (int j = 0; j < args.dims.count; ++j) {
    last += (args.dims.size[j] - 1) * args.dims.stride[j];
    addresses *= args.dims.size[j];
  }
  for (int d = 0; d < args.free.ndim; ++d) last += (args.free.sizes[d] - 1) * args.free.strides[0][d];
  const int64_t count = args.free.numel * addresses, sources = args.addressed.numel;
  const bool few = sources > 1 && addresses / kElementsOfASource <= sources;
  return few && last + 1 == count ? count : 0;
}

/// 16-bit floats are joined in float and rounded once, but where there are many elements for each source and
/// they are no rows.
template <class Mode, class T, int N>
void join(const IndexPutArgs& args) {
  T* out = static_cast<T*>(args.out);
  if constexpr (kWidened<T>) {
    if (const int64_t count = few_elements(args); count > 0) {
      const Scratch<float> sums(count);
      parallel_for(count, kPointwiseGrain, [&](int64_t begin, int64_t end) {
        widen_row(sums.get() + begin, out + begin, end - begin);
      });
      put<Mode, T, N>(args, sums.get());
      parallel_for(count, kPointwiseGrain, [&](int64_t begin, int64_t end) {
        narrow_row(out + begin, sums.get() + begin, end - begin);
      });
      return;
    }
  }
  put<Mode, T, N>(args, out);
}

/// Calls `f` with, as its template argument, what joins two elements.
template <class F>
void visit_join(IndexPutMode mode, const F& f) {
  if (mode == IndexPutMode::Add)
    f.template operator()<AddElement>();
  else if (mode == IndexPutMode::Prod)
    f.template operator()<JoinElement<functors::Mul>>();
  else if (mode == IndexPutMode::Max)
    f.template operator()<JoinElement<functors::Maximum>>();
  else
    f.template operator()<JoinElement<functors::Minimum>>();
}

constexpr int kSearchLanes = 8;

/// The places of values in a sorted row. Searches go side by side and without branches, since each waits for
/// memory and none can be predicted.
template <int Lanes, bool Right, class T>
void search_row(const T* sorted, int64_t length, const T* values, int64_t* places) {
  using C = Compute<T>;
  int64_t first[Lanes] = {}, left[Lanes];
  C value[Lanes];
  for (int j = 0; j < Lanes; ++j) left[j] = length, value[j] = static_cast<C>(values[j]);
  for (int64_t longest = length; longest > 0; longest >>= 1)
    for (int j = 0; j < Lanes; ++j) {
      const int64_t half = left[j] >> 1;
      const C x = static_cast<C>(sorted[std::min(first[j] + half, length - 1)]);
      // Comparisons with NaN are false, which makes it the largest in both places, as in PyTorch.
      const bool below = (left[j] > 0) & (Right ? !(x > value[j]) : !(x >= value[j]));
      const int64_t mask = -static_cast<int64_t>(below);
      first[j] += (half + 1) & mask;
      left[j] = half + ((left[j] - 2 * half - 1) & mask);
    }
  std::copy_n(first, Lanes, places);
}

}  // namespace

void index_get(const LaunchContext&, const IndexGetArgs& args) {
  visit_count(args.dims, [&]<int N>() { visit_bits(args.dtype, [&]<class T>() { get<T, N>(args); }); });
}

void index_put(const LaunchContext&, const IndexPutArgs& args) {
  visit_count(args.dims, [&]<int N>() {
    if (args.mode == IndexPutMode::Set)
      return visit_bits(args.dtype,
                        [&]<class T>() { put<SetElement, T, N>(args, static_cast<T*>(args.out)); });
    const auto join_all = [&]<class Mode>() {
      visit_dtype(args.dtype, [&]<class T>() { join<Mode, T, N>(args); });
    };
    if constexpr (N == 1)
      visit_join(args.mode, join_all);
    else
      join_all.template operator()<AddElement>();
  });
}

void searchsorted(const LaunchContext&, const SearchSortedArgs& args) {
  visit_dtype(args.dtype, [&]<class T>() {
    parallel_for(args.rows * args.row_values, 2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const int64_t row = i / args.row_values, left = std::min(end, (row + 1) * args.row_values) - i;
        const T* sorted = static_cast<const T*>(args.sorted) + row * args.sorted_row_stride;
        const T* values = static_cast<const T*>(args.values) + i;
        const auto search = [&]<int Lanes>() {
          if (args.right)
            search_row<Lanes, true>(sorted, args.length, values, args.out + i);
          else
            search_row<Lanes, false>(sorted, args.length, values, args.out + i);
          i += Lanes;
        };
        if (left >= kSearchLanes)
          search.template operator()<kSearchLanes>();
        else
          search.template operator()<1>();
      }
    });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
