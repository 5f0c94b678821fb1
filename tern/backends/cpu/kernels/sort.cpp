// Sorting. Elements become unsigned keys of the same order; a key and its position make an entry, entries are
// distinct, so that any sort of them is stable. Long rows are sorted by digits (least significant first), the
// longest in pieces that all threads share, parts by selection.
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

/// Sorts entries, given in the order of their positions, by the last bytes of key - least, `digits` of them;
/// those that all share are skipped. Returns the one of the two buffers that holds the result.
template <class Entry>
Entry* sort_by_digits(Entry* entries, Entry* spare, int64_t n, typename Entry::Key least, int digits) {
  using Key = typename Entry::Key;
  const auto digit = [least](const Entry& e, int d) {
    return static_cast<int>(static_cast<Key>(e.key() - least) >> (8 * d) & 0xff);
  };
  int64_t counts[sizeof(Key) * 256];
  std::fill_n(counts, digits * 256, 0);
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < digits; ++d) ++counts[d * 256 + digit(entries[i], d)];
  for (int d = 0; d < digits; ++d) {
    int64_t* starts = counts + d * 256;
    if (starts[digit(entries[0], d)] == n) continue;
    int64_t start = 0;
    for (int b = 0; b < 256; ++b) start += std::exchange(starts[b], start);
    for (int64_t i = 0; i < n; ++i) spare[starts[digit(entries[i], d)]++] = entries[i];
    std::swap(entries, spare);
  }
  return entries;
}

constexpr int kBucketBits = 11;
constexpr int64_t kBuckets = int64_t{1} << kBucketBits;

/// Cuts keys from `least` to `most` into at most kBuckets parts, in their order.
template <class Key>
struct Bucketing {
  Key least = ~Key(0), most = 0;
  int shift = 0;  ///< that many bits a bucket does not tell

  void take(Key key) {
    least = std::min(least, key);
    most = std::max(most, key);
  }
  void finish() {
    shift = std::max(0, static_cast<int>(std::bit_width(static_cast<Key>(most - least))) - kBucketBits);
  }
  int64_t operator()(Key key) const { return static_cast<int64_t>(static_cast<Key>(key - least) >> shift); }
};

/// Rows from this size on are sorted in buckets.
constexpr int64_t kBucketsSize = 1 << 16;
/// Entries of such a row that are worth a thread, and of a bucket that are sorted by comparing.
constexpr int64_t kBucketGrain = 1 << 15, kFewEntries = 64;

/// As sort_by_digits, by all threads. Buckets are sorted while a cache holds them.
template <class Entry>
Entry* sort_by_buckets(Entry* entries, Entry* spare, int64_t n) {
  using Key = typename Entry::Key;
  const int64_t pieces = std::clamp<int64_t>(n / kBucketGrain, 1, num_threads());
  const auto for_pieces = [&](const auto& body) {
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) body(t, n * t / pieces, n * (t + 1) / pieces);
    });
  };

  const Scratch<Bucketing<Key>> spans(pieces);
  for_pieces([&](int64_t t, int64_t begin, int64_t end) {
    Bucketing<Key> span;
    for (int64_t i = begin; i < end; ++i) span.take(entries[i].key());
    spans.get()[t] = span;
  });
  Bucketing<Key> bucket_of;
  for (int64_t t = 0; t < pieces; ++t) {
    bucket_of.take(spans.get()[t].least);
    bucket_of.take(spans.get()[t].most);
  }
  bucket_of.finish();
  const int digits = (bucket_of.shift + 7) / 8;

  // Where the entries of each piece go: those of a bucket one piece after the other.
  const Scratch<int64_t> places(pieces * kBuckets), ends(kBuckets);
  for_pieces([&](int64_t t, int64_t begin, int64_t end) {
    int64_t* counts = places.get() + t * kBuckets;
    std::fill_n(counts, kBuckets, int64_t{0});
    for (int64_t i = begin; i < end; ++i) ++counts[bucket_of(entries[i].key())];
  });
  int64_t start = 0;
  for (int64_t b = 0; b < kBuckets; ++b) {
    for (int64_t t = 0; t < pieces; ++t) start += std::exchange(places.get()[t * kBuckets + b], start);
    ends.get()[b] = start;
  }
  for_pieces([&](int64_t t, int64_t begin, int64_t end) {
    int64_t* to = places.get() + t * kBuckets;
    for (int64_t i = begin; i < end; ++i) spare[to[bucket_of(entries[i].key())]++] = entries[i];
  });

  if (digits == 0) return spare;
  for_pieces([&](int64_t, int64_t begin, int64_t end) {
    const auto first_of = [&](int64_t b) { return b == 0 ? 0 : ends.get()[b - 1]; };
    int64_t b = std::upper_bound(ends.get(), ends.get() + kBuckets, begin) - ends.get();
    if (first_of(b) < begin) ++b;  // which another piece sorts
    for (; b < kBuckets && first_of(b) < end; ++b) {
      const int64_t first = first_of(b), count = ends.get()[b] - first;
      Entry *bucket = spare + first, *sorted = bucket;
      if (count <= kFewEntries)
        std::sort(bucket, bucket + count);
      else
        sorted = sort_by_digits(bucket, entries + first, count, bucket_of.least, digits);
      if (sorted != bucket) std::copy_n(sorted, count, bucket);
    }
  });
  return spare;
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
    if (args_.only_last) {
      int64_t position = args_.nan_wins ? first_nan(x) : -1;
      if (position < 0) position = position_of_last(x);
      const int64_t at = o * inner + k;
      values_[at] = x[position * inner];
      args_.indices[at] = position;
      return;
    }
    fill(x);
    Entry* sorted = entries_.get();
    if (whole_) {
      sorted = sort_whole(sorted, spare_.get(), n);
    } else {
      if (count < n) std::nth_element(sorted, sorted + count, sorted + n);
      std::sort(sorted, sorted + count);
    }
    put(o, k, x, sorted);
  }

 private:
  template <class E>
  static E* sort_whole(E* entries, E* spare, int64_t n) {
    return n < kBucketsSize ? sort_by_digits(entries, spare, n, 0, sizeof(typename E::Key))
                            : sort_by_buckets(entries, spare, n);
  }

  template <class E>
  void put(int64_t o, int64_t k, const T* x, const E* sorted) const {
    const int64_t start = o * args_.count * args_.inner + k;
    parallel_for(args_.count, kBucketGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t position = sorted[i].position();
        values_[start + i * args_.inner] = x[position * args_.inner];
        args_.indices[start + i * args_.inner] = position;
      }
    });
  }

  /// Sorts a row of integers whose span fits half a key; else returns false.
  bool sort_narrow(int64_t o, int64_t k, const T* x) {
    const int64_t n = args_.size, inner = args_.inner;
    Bucketing<Key> span;
    for (int64_t i = 0; i < n; ++i) span.take(key_of(x[i * inner]) ^ flip_);
    if (span.most - span.least > ~Narrow::Key(0)) return false;
    Scratch<Narrow> entries(n), spare(n);
    parallel_for(n, kBucketGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        entries.get()[i] = Narrow(static_cast<Narrow::Key>((key_of(x[i * inner]) ^ flip_) - span.least), i);
    });
    put(o, k, x, sort_whole(entries.get(), spare.get(), n));
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

  /// The position of number count - 1 of the order.
  int64_t position_of_last(const T* x) {
    int64_t last = args_.count - 1, n = args_.size;
    Entry* entries = entries_.get();
    if (n < kRadixSize) {
      fill(x);
    } else {  // of long rows, those alone that share its bucket
      const auto key_at = [&](int64_t i) { return static_cast<Key>(key_of(x[i * args_.inner]) ^ flip_); };
      Bucketing<Key> bucket_of;
      for (int64_t i = 0; i < args_.size; ++i) bucket_of.take(key_at(i));
      bucket_of.finish();
      int64_t counts[kBuckets] = {}, bucket = 0;
      for (int64_t i = 0; i < args_.size; ++i) ++counts[bucket_of(key_at(i))];
      while (last >= counts[bucket]) last -= counts[bucket++];
      n = 0;
      for (int64_t i = 0; i < args_.size; ++i)
        if (const Key key = key_at(i); bucket_of(key) == bucket) entries[n++] = Entry(key, i);
    }
    std::nth_element(entries, entries + last, entries + n);
    return entries[last].position();
  }

  int64_t first_nan(const T* x) const {
    if constexpr (!std::is_integral_v<T>) {
      for (int64_t i = 0; i < args_.size; ++i) {
        const auto c = static_cast<Compute<T>>(x[i * args_.inner]);
        if (c != c) return i;
      }
    }
    return -1;
  }

  /// Makes the entries of a row.
  void fill(const T* x) {
    parallel_for(args_.size, kBucketGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) entries_.get()[i] = Entry(key_of(x[i * args_.inner]) ^ flip_, i);
    });
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
  const int64_t rows = args.outer * args.inner, grain = std::max<int64_t>(1, kSortGrain / args.size);
  const auto sort_rows = [&](int64_t begin, int64_t end) {
    Sorter<T, Entry> sorter(args);
    for (int64_t r = begin; r < end; ++r) sorter.row(r / args.inner, r % args.inner);
  };
  if (rows < num_threads() && args.count == args.size && args.size >= kBucketsSize)  // all share each of them
    sort_rows(0, rows);
  else
    parallel_for(rows, grain, sort_rows);
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
