// Maximum and minimum with their positions. The extreme of a row is found first, then the first place where
// it stands; columns, and short rows turned so that they are columns, are compared side by side.
#include "tern/backends/cpu/kernels/reduce_ops.h"
#include "tern/device/backend.h"
#include "tern/kernels/reduce.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

using wide::kReduceGrain;

template <class C>
[[gnu::always_inline]] inline bool is_nan(C x) {
  if constexpr (std::is_floating_point_v<C>)
    return x != x;
  else
    return false;
}

/// True when b takes a's place: it is more extreme, or the first NaN.
template <bool largest, class C>
[[gnu::always_inline]] inline bool displaces(C b, C a) {
  return (largest ? b > a : b < a) | (is_nan(b) & !is_nan(a));
}

/// The first i of [0, n) with p[i * step] equal to `value` (both NaN count as equal), or n.
template <class T>
int64_t find_first(const T* p, int64_t n, int64_t step, Compute<T> value) {
  using C = Compute<T>;
  const bool nan = is_nan(value);
  auto matches = [&](T x) {
    C c = static_cast<C>(x);
    return nan ? is_nan(c) : c == value;
  };
  constexpr int64_t kBlock = 64;
  int64_t i = 0;
  if (step == 1 && !nan)
    for (; i + kBlock <= n; i += kBlock) {
      int found = 0;
      for (int64_t j = 0; j < kBlock; ++j) found |= static_cast<C>(p[i + j]) == value;
      if (found) break;
    }
  for (; i < n; ++i)
    if (matches(p[i * step])) return i;
  return n;
}

/// The extremes of neighbouring columns and the rows in which they stand.
template <bool largest, class C, class I>
struct ColumnExtremes {
  static constexpr int64_t kColumns = 256;
  C value[kColumns];
  I row[kColumns];

  template <class T>
  [[gnu::always_inline]] void add(const T* p, I number, int64_t width) {
    if (number == 0) {
      for (int64_t j = 0; j < width; ++j) value[j] = static_cast<C>(p[j]), row[j] = 0;
      return;
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < width; ++j) {
      const C other = static_cast<C>(p[j]);
      const bool better = displaces<largest>(other, value[j]);
      value[j] = better ? other : value[j];
      row[j] = better ? number : row[j];
    }
  }
};

template <bool largest, class T>
class IndexReduction {
 public:
  using C = Compute<T>;

  explicit IndexReduction(const ReduceIndexArgs& args)
      : args_(args),
        in_(static_cast<const T*>(args.in)),
        values_(static_cast<T*>(args.values)),
        plan_(wide::make_plan<C>(args.kept, args.reduced)) {}

  void run() const {
    if (plan_.columns)
      columns();
    else if (plan_.chunks == 1)
      rows();
    else
      long_rows();
  }

 private:
  /// Rows up to this length are turned, in pieces of so many elements.
  static constexpr int64_t kTurnedRow = 64, kTurned = 2048;

  void put(int64_t k, C value, int64_t index) const {
    if (values_) values_[k] = static_cast<T>(value);
    args_.indices[k] = index;
  }

  /// The position of the first element of [begin, end) of the walk that is `value`.
  int64_t position(const T* x, int64_t begin, int64_t end, C value) const {
    const int64_t step = args_.reduced.strides[0][args_.reduced.ndim - 1];
    int64_t walked = begin;
    int64_t found = -1;
    walk_rows(args_.reduced, begin, end, [&](const int64_t(&offset)[1], int64_t n) {
      if (found >= 0) return;
      const int64_t i = find_first(x + offset[0], n, step, value);
      if (i < n) found = walked + i;
      walked += n;
    });
    return found;
  }

  C extreme(const T* x, int64_t begin, int64_t end) const {
    return wide::reduce_row(wide::Extreme<largest, T>{}, x, args_.reduced, begin, end);
  }

  void rows() const {
    const Geometry<1>& kept = args_.kept;
    const int64_t n = args_.reduced.numel;
    const int64_t step = kept.strides[0][kept.ndim - 1];
    parallel_for(kept.numel, plan_.grain(), [&](int64_t begin, int64_t end) {
      int64_t k = begin;
      walk_rows(kept, begin, end, [&](const int64_t(&offset)[1], int64_t count) {
        if (args_.reduced.ndim == 1 && args_.reduced.strides[0][0] == 1 && n <= kTurnedRow) {
          turned_rows(in_ + offset[0], step, count, k);
          k += count;
          return;
        }
        for (int64_t i = 0; i < count; ++i, ++k) {
          const T* x = in_ + offset[0] + i * step;
          const C value = extreme(x, 0, n);
          put(k, value, position(x, 0, n, value));
        }
      });
    });
  }

  /// `count` rows of neighbouring elements, kTurnedRow at most.
  void turned_rows(const T* x, int64_t row_step, int64_t count, int64_t k) const {
    using I = wide::MaskOf<C>;
    using Extremes = ColumnExtremes<largest, C, I>;
    const int64_t n = args_.reduced.numel, width = std::min(Extremes::kColumns, kTurned / n);
    alignas(64) T turned[kTurned];
    Extremes extremes;
    for (int64_t first = 0; first < count; first += width, x += width * row_step) {
      const int64_t some = std::min(width, count - first);
      transpose_elements(sizeof(T), x, row_step, some, n, turned, width);
      for (int64_t i = 0; i < n; ++i) extremes.add(turned + i * width, static_cast<I>(i), some);
      for (int64_t j = 0; j < some; ++j) put(k + first + j, extremes.value[j], extremes.row[j]);
    }
  }

  void long_rows() const {
    const int64_t n = args_.reduced.numel;
    Scratch<C> partial(plan_.tasks());
    parallel_for(plan_.tasks(), plan_.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task % plan_.chunks * plan_.chunk;
        partial.get()[task] = extreme(in_ + wide::offset_of(args_.kept, task / plan_.chunks), first,
                                      std::min(n, first + plan_.chunk));
      }
    });
    for (int64_t k = 0; k < plan_.outer; ++k) {
      const C* values = partial.get() + k * plan_.chunks;
      int64_t chunk = 0;
      for (int64_t c = 1; c < plan_.chunks; ++c)
        if (displaces<largest>(values[c], values[chunk])) chunk = c;
      const int64_t first = chunk * plan_.chunk;
      put(k, values[chunk],
          position(in_ + wide::offset_of(args_.kept, k), first, std::min(n, first + plan_.chunk),
                   values[chunk]));
    }
  }

  void columns() const {
    using Extremes = ColumnExtremes<largest, C, int64_t>;
    constexpr int64_t kTile = Extremes::kColumns;
    const int64_t tiles = (plan_.width + kTile - 1) / kTile;
    const int64_t n = args_.reduced.numel;
    const int64_t stride = args_.reduced.strides[0][args_.reduced.ndim - 1];
    const int64_t work = n * std::min(plan_.width, kTile);
    parallel_for(plan_.outer * tiles, std::max<int64_t>(1, kReduceGrain / work),
                 [&](int64_t begin, int64_t end) {
                   Extremes extremes;
                   for (int64_t task = begin; task < end; ++task) {
                     const int64_t first = task % tiles * kTile;
                     const int64_t width = std::min(kTile, plan_.width - first);
                     const T* x = in_ + wide::offset_of(plan_.kept, task / tiles) + first;
                     int64_t row = 0;
                     walk_rows(args_.reduced, 0, n, [&](const int64_t(&offset)[1], int64_t count) {
                       for (int64_t i = 0; i < count; ++i)
                         extremes.add(x + offset[0] + i * stride, row++, width);
                     });
                     for (int64_t j = 0; j < width; ++j)
                       put(task / tiles * plan_.width + first + j, extremes.value[j], extremes.row[j]);
                   }
                 });
  }

  const ReduceIndexArgs& args_;
  const T* in_;
  T* values_;
  wide::Plan plan_;
};

}  // namespace

void reduce_index(const LaunchContext&, const ReduceIndexArgs& args) {
  if (args.kept.numel == 0) return;
  visit_dtype(args.dtype == DType::Bool ? DType::UInt8 : args.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      if (args.largest)
        IndexReduction<true, T>(args).run();
      else
        IndexReduction<false, T>(args).run();
    }
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
