// Sorting. Elements become unsigned keys of the same order; a key and its position make an entry, entries are
// distinct, so that any sort of them is stable. Long rows are sorted by digits (least significant first),
// parts by selection.
#include <algorithm>
#include <bit>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/device/backend.h"
#include "tern/kernels/sort.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Rows from this size on are sorted by digits.
constexpr int64_t kRadixSize = 512;
constexpr int64_t kSortGrain = 4096;

/// Orders like the elements: NaN highest, both zeros equal.
template <class T>
auto key_of(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<uint32_t>(x);
  } else if constexpr (std::is_integral_v<T>) {
    using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    constexpr Key kSign = std::is_signed_v<T> ? Key(1) << (8 * sizeof(Key) - 1) : 0;
    return static_cast<Key>(static_cast<Key>(x) ^ kSign);
  } else {
    using C = Compute<T>;
    using Key = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;
    const C value = static_cast<C>(x);
    if (value != value) return static_cast<Key>(~Key(0));
    const Key bits = std::bit_cast<Key>(value + C(0));  // -0 + 0 is 0
    constexpr Key kSign = Key(1) << (8 * sizeof(Key) - 1);
    return static_cast<Key>(bits & kSign ? ~bits : bits | kSign);
  }
}

/// Up to so many elements of a row are kept in a heap instead of sorting or selecting.
constexpr int64_t kHeapSize = 64;

/// Key and position in one number where they fit.
struct Narrow {
  using Key = uint32_t;
  uint64_t both;
  Narrow() = default;
  Narrow(Key key, int64_t position)
      : both(static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(position)) {}
  Key key() const { return static_cast<Key>(both >> 32); }
  int64_t position() const { return static_cast<int64_t>(both & 0xffffffffu); }
  bool operator<(const Narrow& other) const { return both < other.both; }
};

/// The longest rows whose positions fit it.
constexpr int64_t kMostNarrow = 0xffffffff;

template <class K>
struct Wide {
  using Key = K;
  Key key_;
  int64_t position_;
  Wide() = default;
  Wide(Key key, int64_t position) : key_(key), position_(position) {}
  Key key() const { return key_; }
  int64_t position() const { return position_; }
  bool operator<(const Wide& other) const {
    return key_ != other.key_ ? key_ < other.key_ : position_ < other.position_;
  }
};

/// Sorts entries, given in the order of their positions, by key; digits that all keys share are skipped.
/// Returns the one of the two buffers that holds the result.
template <class Entry>
Entry* sort_by_digits(Entry* entries, Entry* spare, int64_t n) {
  using Key = typename Entry::Key;
  constexpr int kDigits = sizeof(Key);
  Scratch<int64_t> counts(kDigits * 256);
  std::fill_n(counts.get(), kDigits * 256, 0);
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d)
      ++counts.get()[d * 256 + static_cast<int>(entries[i].key() >> (8 * d) & 0xff)];
  for (int d = 0; d < kDigits; ++d) {
    int64_t* starts = counts.get() + d * 256;
    if (starts[entries[0].key() >> (8 * d) & 0xff] == n) continue;
    int64_t start = 0;
    for (int b = 0; b < 256; ++b) start += std::exchange(starts[b], start);
    for (int64_t i = 0; i < n; ++i) spare[starts[entries[i].key() >> (8 * d) & 0xff]++] = entries[i];
    std::swap(entries, spare);
  }
  return entries;
}

template <class T, class Entry>
class Sorter {
 public:
  using Key = typename Entry::Key;

  explicit Sorter(const SortArgs& args)
      : args_(args),
        in_(static_cast<const T*>(args.in)),
        values_(static_cast<T*>(args.values)),
        whole_(!args.only_last && args.count == args.size && args.size >= kRadixSize),
        heap_(!args.only_last && args.count <= kHeapSize && args.count * 8 <= args.size),
        flip_(args.descending ? static_cast<Key>(~Key(0)) : Key(0)),
        entries_(heap_ ? args.count : args.size),
        spare_(whole_ ? args.size : 0) {}

  void row(int64_t o, int64_t k) {
    const int64_t n = args_.size, count = args_.count, inner = args_.inner;
    const T* x = in_ + o * n * inner + k;
    if constexpr (!std::is_same_v<Entry, Narrow> && std::is_integral_v<T>) {
      if (whole_ && n <= kMostNarrow && sort_narrow(o, k, x)) return;
    }
    if (heap_) {
      select(x);
      put(o, k, x, entries_.get());
      return;
    }
    const int64_t nan = fill(x);
    if (args_.only_last) {
      int64_t position = nan;
      if (nan < 0 || !args_.nan_wins) {
        std::nth_element(entries_.get(), entries_.get() + count - 1, entries_.get() + n);
        position = entries_.get()[count - 1].position();
      }
      const int64_t at = o * inner + k;
      values_[at] = x[position * inner];
      args_.indices[at] = position;
      return;
    }
    Entry* sorted = entries_.get();
    if (whole_) {
      sorted = sort_by_digits(sorted, spare_.get(), n);
    } else {
      if (count < n) std::nth_element(sorted, sorted + count, sorted + n);
      std::sort(sorted, sorted + count);
    }
    put(o, k, x, sorted);
  }

 private:
  template <class E>
  void put(int64_t o, int64_t k, const T* x, const E* sorted) const {
    const int64_t start = o * args_.count * args_.inner + k;
    for (int64_t i = 0; i < args_.count; ++i) {
      const int64_t position = sorted[i].position();
      values_[start + i * args_.inner] = x[position * args_.inner];
      args_.indices[start + i * args_.inner] = position;
    }
  }

  /// Sorts a row of integers whose span fits half a key; else returns false.
  bool sort_narrow(int64_t o, int64_t k, const T* x) {
    const int64_t n = args_.size, inner = args_.inner;
    Key least = ~Key(0), most = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Key key = key_of(x[i * inner]) ^ flip_;
      least = std::min(least, key);
      most = std::max(most, key);
    }
    if (most - least > ~Narrow::Key(0)) return false;
    Scratch<Narrow> entries(n), spare(n);
    for (int64_t i = 0; i < n; ++i)
      entries.get()[i] = Narrow(static_cast<Narrow::Key>((key_of(x[i * inner]) ^ flip_) - least), i);
    put(o, k, x, sort_by_digits(entries.get(), spare.get(), n));
    return true;
  }

  /// The first elements of the order, sorted: a heap with the last of them on top takes each better one in.
  void select(const T* x) {
    constexpr int64_t kBlock = 64;
    Entry* heap = entries_.get();
    const int64_t count = args_.count, inner = args_.inner;
    for (int64_t i = 0; i < count; ++i) heap[i] = Entry(key_of(x[i * inner]) ^ flip_, i);
    std::make_heap(heap, heap + count);
    Key worst = heap[0].key(), keys[kBlock];
    for (int64_t first = count; first < args_.size; first += kBlock) {
      const int64_t n = std::min(kBlock, args_.size - first);
      Key best = ~Key(0);
      for (int64_t i = 0; i < n; ++i) {
        keys[i] = key_of(x[(first + i) * inner]) ^ flip_;
        best = std::min(best, keys[i]);
      }
      if (best >= worst) continue;  // an equal one comes after those before it
      for (int64_t i = 0; i < n; ++i) {
        if (keys[i] >= worst) continue;
        std::pop_heap(heap, heap + count);
        heap[count - 1] = Entry(keys[i], first + i);
        std::push_heap(heap, heap + count);
        worst = heap[0].key();
      }
    }
    std::sort_heap(heap, heap + count);
  }

  /// Makes the entries of a row; returns the position of its first NaN or -1.
  int64_t fill(const T* x) {
    int64_t nan = -1;
    for (int64_t i = 0; i < args_.size; ++i) {
      const T value = x[i * args_.inner];
      entries_.get()[i] = Entry(key_of(value) ^ flip_, i);
      if constexpr (!std::is_integral_v<T>) {
        const Compute<T> c = static_cast<Compute<T>>(value);
        if (c != c && nan < 0) nan = i;
      }
    }
    return nan;
  }

  const SortArgs& args_;
  const T* in_;
  T* values_;
  bool whole_;
  bool heap_;
  Key flip_;
  Scratch<Entry> entries_;
  Scratch<Entry> spare_;
};

template <class T, class Entry>
void run(const SortArgs& args) {
  const int64_t grain = std::max<int64_t>(1, kSortGrain / args.size);
  parallel_for(args.outer * args.inner, grain, [&](int64_t begin, int64_t end) {
    Sorter<T, Entry> sorter(args);
    for (int64_t r = begin; r < end; ++r) sorter.row(r / args.inner, r % args.inner);
  });
}

}  // namespace

void sort(const LaunchContext&, const SortArgs& args) {
  if (args.size == 0 || args.count == 0) return;
  visit_dtype(args.dtype, [&]<class T>() {
    using Key = decltype(key_of(T{}));
    if constexpr (sizeof(Key) == 4) {
      if (args.size <= kMostNarrow) return run<T, Narrow>(args);
    }
    run<T, Wide<Key>>(args);
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
