// The kernel of Fourier transforms: as many transforms at once as a register has lanes are gathered,
// transformed and spread again. Two real sequences are the parts of one complex one. Long sequences, of which
// there are few, are transformed as the columns and then the rows of a matrix (Bailey, "FFTs in External or
// Hierarchical Memory", 1990).
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tern/backends/cpu/kernels/fft_plan.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/transpose.h"
#include "tern/base/parallel.h"
#include "tern/kernels/list.h"
#include "tern/kernels/real_types.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kGrain = 32768;  ///< numbers that are worth a thread

/// re and im of neighbouring complex numbers, and back.
template <class T, int... lane>
[[gnu::always_inline]] inline void split_parts(Vec<T>& a, Vec<T>& b, std::integer_sequence<int, lane...>) {
  const Vec<T> re = __builtin_shufflevector(a, b, (2 * lane)...);
  b = __builtin_shufflevector(a, b, (2 * lane + 1)...);
  a = re;
}
template <class T, int... lane>
[[gnu::always_inline]] inline void join_parts(Vec<T>& a, Vec<T>& b, std::integer_sequence<int, lane...>) {
  constexpr int n = sizeof...(lane);
  const Vec<T> low = __builtin_shufflevector(a, b, (lane / 2 + (lane % 2) * n)...);
  b = __builtin_shufflevector(a, b, (n / 2 + lane / 2 + (lane % 2) * n)...);
  a = low;
}

template <class T>
using Lane = std::make_integer_sequence<int, kLanes<T>>;

/// Where sequences lie: element j of sequence t, in numbers of the kind (complex or real).
struct Layout {
  int64_t length;        ///< of a sequence
  int64_t inner;         ///< sequences beside each other
  int64_t step = inner;  ///< from an element to the next
  int64_t beside = 1;    ///< from a sequence to the one beside it
  int64_t of(int64_t t) const { return t / inner * length * inner + t % inner * beside; }
  /// Whether sequences t to t + count - 1 are neighbours at every element.
  bool adjacent(int64_t t, int64_t count) const {
    return beside == 1 && t % inner + count <= inner && step != 1;
  }
};

/// `count` sequences from the t-th on: what is in their elements [0, length) to z, or from there.
template <class T>
struct Sequences {
  Layout layout;
  T* data;

  static constexpr int kN = kLanes<T>;
  typedef T Unaligned __attribute__((vector_size(sizeof(Vec<T>)), aligned(alignof(T)), may_alias));

  /// Rows one behind the other, whose elements are neighbours.
  bool rows() const { return layout.step == 1; }
  int64_t row_step() const { return layout.inner == 1 ? layout.length : layout.beside; }

  void load_complex(int64_t t, int64_t count, ComplexLanes<T>* z) const {
    const int64_t n = layout.length;
    if (count < kN) std::fill_n(z, n, ComplexLanes<T>{});
    if (count <= 0) return;
    const T* const from = data + 2 * layout.of(t);
    if (rows()) {
      transpose_elements(sizeof(T), from, 2 * row_step(), count, 2 * n, z, kN);
    } else if (count == kN && layout.adjacent(t, count)) {
      for (int64_t j = 0; j < n; ++j) {
        const T* const at = from + 2 * j * layout.step;
        Vec<T> a = *reinterpret_cast<const Unaligned*>(at), b = *reinterpret_cast<const Unaligned*>(at + kN);
        split_parts<T>(a, b, Lane<T>());
        z[j] = {a, b};
      }
    } else {
      for (int64_t l = 0; l < count; ++l) {
        const T* const lane = data + 2 * layout.of(t + l);
        for (int64_t j = 0; j < n; ++j) {
          z[j].re[l] = lane[2 * j * layout.step];
          z[j].im[l] = lane[2 * j * layout.step + 1];
        }
      }
    }
  }

  void store_complex(int64_t t, int64_t count, const ComplexLanes<T>* z) const {
    const int64_t n = layout.length;
    if (count <= 0) return;
    T* const to = data + 2 * layout.of(t);
    if (rows()) {
      transpose_elements(sizeof(T), z, kN, 2 * n, count, to, 2 * row_step());
    } else if (count == kN && layout.adjacent(t, count)) {
      for (int64_t j = 0; j < n; ++j) {
        T* const at = to + 2 * j * layout.step;
        Vec<T> a = z[j].re, b = z[j].im;
        join_parts<T>(a, b, Lane<T>());
        *reinterpret_cast<Unaligned*>(at) = a;
        *reinterpret_cast<Unaligned*>(at + kN) = b;
      }
    } else {
      for (int64_t l = 0; l < count; ++l) {
        T* const lane = data + 2 * layout.of(t + l);
        for (int64_t j = 0; j < n; ++j) {
          lane[2 * j * layout.step] = z[j].re[l];
          lane[2 * j * layout.step + 1] = z[j].im[l];
        }
      }
    }
  }

  /// Real sequences are the real or the imaginary parts of z.
  void load_real(int64_t t, int64_t count, ComplexLanes<T>* z, bool imaginary) const {
    const int64_t n = layout.length;
    T* const to = reinterpret_cast<T*>(z) + (imaginary ? kN : 0);
    if (count < kN)
      for (int64_t j = 0; j < n; ++j) (imaginary ? z[j].im : z[j].re) = Vec<T>{};
    if (count <= 0) return;
    const T* const from = data + layout.of(t);
    if (rows()) {
      transpose_elements(sizeof(T), from, row_step(), count, n, to, 2 * kN);
    } else if (count == kN && layout.adjacent(t, count)) {
      for (int64_t j = 0; j < n; ++j)
        *reinterpret_cast<Unaligned*>(to + 2 * kN * j) =
            *reinterpret_cast<const Unaligned*>(from + j * layout.step);
    } else {
      for (int64_t l = 0; l < count; ++l)
        for (int64_t j = 0; j < n; ++j) to[2 * kN * j + l] = data[layout.of(t + l) + j * layout.step];
    }
  }
  void store_real(int64_t t, int64_t count, const ComplexLanes<T>* z, bool imaginary) const {
    const int64_t n = layout.length;
    if (count <= 0) return;
    const T* const from = reinterpret_cast<const T*>(z) + (imaginary ? kN : 0);
    if (rows()) {
      transpose_elements(sizeof(T), from, 2 * kN, n, count, data + layout.of(t), row_step());
    } else if (count == kN && layout.adjacent(t, count)) {
      for (int64_t j = 0; j < n; ++j)
        *reinterpret_cast<Unaligned*>(data + layout.of(t) + j * layout.step) =
            *reinterpret_cast<const Unaligned*>(from + 2 * kN * j);
    } else {
      for (int64_t l = 0; l < count; ++l)
        for (int64_t j = 0; j < n; ++j) data[layout.of(t + l) + j * layout.step] = from[2 * kN * j + l];
    }
  }
};

template <class T>
void scale(ComplexLanes<T>* z, int64_t n, T by) {
  if (by == T(1)) return;
  for (int64_t j = 0; j < n; ++j) z[j] = {z[j].re * by, z[j].im * by};
}

/// The halves of the spectra a and b of the real and the imaginary parts, whose spectrum is z.
template <class T>
void separate(const ComplexLanes<T>* z, int64_t n, T by, ComplexLanes<T>* a, ComplexLanes<T>* b) {
  const T half = by / 2;
  for (int64_t k = 0; k <= n / 2; ++k) {
    const ComplexLanes<T> x = z[k], y = z[k == 0 ? 0 : n - k];
    a[k] = {(x.re + y.re) * half, (x.im - y.im) * half};
    b[k] = {(x.im + y.im) * half, (y.re - x.re) * half};
  }
}

/// The spectrum z of a sequence whose real and imaginary parts have the halves a and b.
template <class T>
void unite(const ComplexLanes<T>* a, const ComplexLanes<T>* b, int64_t n, T by, ComplexLanes<T>* z) {
  for (int64_t k = 0; k <= n / 2; ++k) {
    const bool is_end = k == 0 || 2 * k == n;  // of real sequences these are real
    const Vec<T> a_im = is_end ? Vec<T>{} : a[k].im, b_im = is_end ? Vec<T>{} : b[k].im;
    z[k] = {(a[k].re - b_im) * by, (a_im + b[k].re) * by};
    if (!is_end) z[n - k] = {(a[k].re + b_im) * by, (b[k].re - a_im) * by};
  }
}

template <class T>
void transform_tiles(const FftArgs& args) {
  constexpr int64_t kN = kLanes<T>;
  const int64_t n = args.size, half = args.half(), transforms = args.outer * args.inner;
  const bool to_half = args.kind == FftKind::ToHalf, to_real = args.kind == FftKind::ToReal;
  const auto plan = FftPlan<T>::of(n);
  const Sequences<T> in{{to_real ? half : n, args.inner}, static_cast<T*>(const_cast<void*>(args.in))};
  const Sequences<T> out{{to_half ? half : n, args.inner}, static_cast<T*>(args.out)};
  const int64_t of_tile = args.kind == FftKind::Complex ? kN : 2 * kN;
  // Where many sequences lie beside each other no tile goes beyond their end: what is one piece is read as
  // one.
  const int64_t together = args.inner >= kN ? args.inner : transforms;
  const int64_t tiles_together = (together + of_tile - 1) / of_tile;
  const int64_t tiles = transforms / together * tiles_together;
  const T by = static_cast<T>(args.scale);
  parallel_for(tiles, std::max<int64_t>(1, kGrain / (n * of_tile)), [&](int64_t begin, int64_t end) {
    const int64_t room = std::max(plan->room(), half);
    const Scratch<ComplexLanes<T>> buffers((2 + (to_real || to_half ? 1 : 0)) * room);
    ComplexLanes<T>*const x = buffers.get(), *const y = x + room, *const more = y + room;
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t within = tile % tiles_together * of_tile, left = together - within;
      const int64_t t = tile / tiles_together * together + within;
      const int64_t first = std::min(left, kN), second = std::clamp<int64_t>(left - kN, 0, kN);
      if (args.kind == FftKind::Complex) {
        in.load_complex(t, first, x);
        ComplexLanes<T>* const z = plan->run(x, y, args.forward);
        scale(z, n, by);
        out.store_complex(t, first, z);
      } else if (to_half) {
        in.load_real(t, first, x, false);
        in.load_real(t + kN, second, x, true);
        ComplexLanes<T>* const z = plan->run(x, y, args.forward);
        ComplexLanes<T>* const a = z == x ? y : x;
        separate(z, n, by, a, more);
        out.store_complex(t, first, a);
        out.store_complex(t + kN, second, more);
      } else {
        in.load_complex(t, first, y);
        in.load_complex(t + kN, second, more);
        unite(y, more, n, by, x);
        const ComplexLanes<T>* const z = plan->run(x, y, args.forward);
        out.store_real(t, first, z, false);
        out.store_real(t + kN, second, z, true);
      }
    }
  });
}

/// A long length as rows * columns of a matrix.
struct Split {
  int64_t rows, columns;
};

/// The split that is nearest to a square; rows is 1 where n is a prime.
Split split_of(int64_t n) {
  auto rows = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % rows != 0) --rows;
  return {rows, n / rows};
}

/// exp(-2 pi i r c / n) by rows.
template <class T>
std::vector<T> turns_of(const Split& split) {
  const int64_t n = split.rows * split.columns;
  std::vector<T> turns(static_cast<size_t>(2 * n));
  parallel_for(split.rows, std::max<int64_t>(1, kGrain / split.columns), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t c = 0; c < split.columns; ++c) {
        const UnitRoot root = unit_root(r * c % n, n);
        turns[static_cast<size_t>(2 * (r * split.columns + c))] = static_cast<T>(root.re);
        turns[static_cast<size_t>(2 * (r * split.columns + c) + 1)] = static_cast<T>(root.im);
      }
  });
  return turns;
}

/// One transform of a long complex sequence, whose elements are `step` apart in `in` and `out`; `between` has
/// room for it.
template <class T>
void transform_matrix(const Split& split, const T* turns, bool forward, T by, const T* in, T* out,
                      int64_t step, T* between) {
  constexpr int64_t kN = kLanes<T>;
  const auto columns_plan = FftPlan<T>::of(split.rows), rows_plan = FftPlan<T>::of(split.columns);
  // Columns: element r of column c is in[(r * columns + c) * step].
  const Sequences<T> from{{split.rows, split.columns, split.columns * step, step}, const_cast<T*>(in)};
  const Sequences<T> to{{split.rows, split.columns, split.columns, 1}, between};
  parallel_for((split.columns + kN - 1) / kN, std::max<int64_t>(1, kGrain / (kN * split.rows)),
               [&](int64_t begin, int64_t end) {
                 const Scratch<ComplexLanes<T>> buffers(2 * columns_plan->room());
                 for (int64_t tile = begin; tile < end; ++tile) {
                   const int64_t c = tile * kN, count = std::min(kN, split.columns - c);
                   from.load_complex(c, count, buffers.get());
                   ComplexLanes<T>* const z =
                       columns_plan->run(buffers.get(), buffers.get() + columns_plan->room(), forward);
                   for (int64_t r = 1; r < split.rows; ++r) {
                     const T* const w = turns + 2 * (r * split.columns + c);
                     Vec<T> re{}, im{};
                     for (int64_t l = 0; l < count; ++l) {
                       re[l] = w[2 * l];
                       im[l] = forward ? w[2 * l + 1] : -w[2 * l + 1];
                     }
                     z[r] = {z[r].re * re - z[r].im * im, z[r].re * im + z[r].im * re};
                   }
                   to.store_complex(c, count, z);
                 }
               });
  // Rows: element k of what row r gives is out[(k * rows + r) * step].
  const Sequences<T> rows{{split.columns, split.rows, 1, split.columns}, between};
  const Sequences<T> result{{split.columns, split.rows, split.rows * step, step}, out};
  parallel_for((split.rows + kN - 1) / kN, std::max<int64_t>(1, kGrain / (kN * split.columns)),
               [&](int64_t begin, int64_t end) {
                 const Scratch<ComplexLanes<T>> buffers(2 * rows_plan->room());
                 for (int64_t tile = begin; tile < end; ++tile) {
                   const int64_t r = tile * kN, count = std::min(kN, split.rows - r);
                   rows.load_complex(r, count, buffers.get());
                   ComplexLanes<T>* const z =
                       rows_plan->run(buffers.get(), buffers.get() + rows_plan->room(), forward);
                   scale(z, split.columns, by);
                   result.store_complex(r, count, z);
                 }
               });
}

/// The transform of a long complex sequence, or of several one after the other: as a matrix, or where the
/// length has no such factors as a convolution by one that has (fft_plan.h).
template <class T>
class LongTransform {
 public:
  /// Kept until another length is asked for.
  static std::shared_ptr<const LongTransform> of(int64_t n) {
    static std::mutex mutex;
    static std::shared_ptr<const LongTransform> last;
    const std::scoped_lock lock(mutex);
    if (last == nullptr || last->n_ != n) last = std::make_shared<const LongTransform>(n);
    return last;
  }

  explicit LongTransform(int64_t n) : n_(n), split_(split_of(n)) {
    const bool convolves = split_.rows < kLanes<T>;
    if (convolves) split_ = split_of(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1))));
    turns_ = turns_of<T>(split_);
    if (convolves) prepare_convolution();
  }

  /// Numbers of working memory.
  int64_t room() const { return 2 * length() * (chirp_.empty() ? 1 : 2); }

  /// Elements are `step` apart; `in` and `out` may be the same.
  void run(bool forward, T by, const T* in, T* out, int64_t step, T* working) const {
    if (chirp_.empty()) return transform_matrix(split_, turns_.data(), forward, by, in, out, step, working);
    T *const z = working, *const between = working + 2 * length();
    std::fill(z + 2 * n_, z + 2 * length(), T(0));
    for (int64_t j = 0; j < n_; ++j) turn(forward, in + 2 * j * step, chirp_.data() + 2 * j, z + 2 * j);
    transform_matrix(split_, turns_.data(), /*forward=*/true, T(1), z, z, 1, between);
    for (int64_t k = 0; k < length(); ++k) turn(forward, z + 2 * k, spectrum_.data() + 2 * k, z + 2 * k);
    transform_matrix(split_, turns_.data(), /*forward=*/false, by, z, z, 1, between);
    for (int64_t k = 0; k < n_; ++k) turn(forward, z + 2 * k, chirp_.data() + 2 * k, out + 2 * k * step);
  }

 private:
  int64_t length() const { return split_.rows * split_.columns; }

  /// to = x * w, w conjugated on the way back.
  static void turn(bool forward, const T* x, const T* w, T* to) {
    const T im = forward ? w[1] : -w[1], re = x[0] * w[0] - x[1] * im;
    to[1] = x[0] * im + x[1] * w[0];
    to[0] = re;
  }

  void prepare_convolution() {
    chirp_ = chirp_of<T>(n_);
    spectrum_.resize(static_cast<size_t>(2 * length()));
    for (int64_t j = 0; j < n_; ++j)
      for (const int64_t at : {j, (length() - j) % length()}) {
        spectrum_[static_cast<size_t>(2 * at)] = chirp_[static_cast<size_t>(2 * j)];
        spectrum_[static_cast<size_t>(2 * at + 1)] = -chirp_[static_cast<size_t>(2 * j + 1)];
      }
    const Scratch<T> between(2 * length());
    transform_matrix(split_, turns_.data(), /*forward=*/true, T(1) / static_cast<T>(length()),
                     spectrum_.data(), spectrum_.data(), 1, between.get());
  }

  int64_t n_;
  Split split_;  ///< of n, or of the length of the convolution
  std::vector<T> turns_, chirp_, spectrum_;
};

template <class T>
void transform_long(const FftArgs& args) {
  const int64_t n = args.size, half = args.half(), inner = args.inner;
  const auto transform = LongTransform<T>::of(n);
  const bool to_half = args.kind == FftKind::ToHalf, to_real = args.kind == FftKind::ToReal;
  const bool is_real = to_half || to_real;
  const Scratch<T> working(transform->room()), whole(is_real ? 2 * n : 0);
  const T by = static_cast<T>(args.scale);
  const auto* in = static_cast<const T*>(args.in);
  auto* out = static_cast<T*>(args.out);
  for (int64_t t = 0; t < args.outer * inner; ++t) {
    const int64_t o = t / inner, i = t % inner;
    if (!is_real) {
      const int64_t at = 2 * (o * n * inner + i);
      transform->run(args.forward, by, in + at, out + at, inner, working.get());
      continue;
    }
    T* const z = whole.get();
    if (to_half) {
      const T* const from = in + o * n * inner + i;
      for (int64_t j = 0; j < n; ++j) {
        z[2 * j] = from[j * inner];
        z[2 * j + 1] = 0;
      }
    } else {
      const T* const from = in + 2 * (o * half * inner + i);
      for (int64_t k = 0; k < half; ++k) {
        const bool is_end = k == 0 || 2 * k == n;
        const T re = from[2 * k * inner], im = is_end ? T(0) : from[2 * k * inner + 1];
        z[2 * k] = re;
        z[2 * k + 1] = im;
        if (is_end) continue;
        z[2 * (n - k)] = re;
        z[2 * (n - k) + 1] = -im;
      }
    }
    transform->run(args.forward, by, z, z, 1, working.get());
    if (to_half) {
      T* const to = out + 2 * (o * half * inner + i);
      for (int64_t k = 0; k < half; ++k) {
        to[2 * k * inner] = z[2 * k];
        to[2 * k * inner + 1] = z[2 * k + 1];
      }
    } else {
      T* const to = out + o * n * inner + i;
      for (int64_t j = 0; j < n; ++j) to[j * inner] = z[2 * j];
    }
  }
}

template <class T>
void transform(const FftArgs& args) {
  // Buffers of longer sequences leave the cache; of a few shorter ones most lanes would be empty.
  constexpr int64_t kLong = int64_t{1} << 20, kFew = 512;
  // A convolution of so many elements in each lane leaves it too.
  constexpr int64_t kLongConvolution = 4096;
  const bool is_long = args.size * static_cast<int64_t>(sizeof(ComplexLanes<T>)) > kLong;
  const bool are_few = args.size >= kFew && 2 * args.outer * args.inner <= kLanes<T>;
  const bool splits = split_of(args.size).rows >= kLanes<T>;
  if ((is_long || are_few) && (splits || args.size >= kLongConvolution)) return transform_long<T>(args);
  transform_tiles<T>(args);
}

}  // namespace

void fft(const LaunchContext&, const FftArgs& args) {
  visit_real(args.dtype, [&]<class T>() { transform<T>(args); });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
