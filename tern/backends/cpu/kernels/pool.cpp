// 2-D pooling: maximum with indices, mean, and their adaptive forms, each with its gradient. Argument structs
// and rules are in tern/kernels/pool.h.
#include "tern/kernels/pool.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "tern/backends/cpu/kernels/gemm_vec.h"
#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/pool_rows.h"
#include "tern/base/parallel.h"
#include "tern/device/launch.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Calls body(begin, end) for pieces of the planes, in parallel; `work` is the number of elements visited for
/// one plane.
template <class Body>
void for_planes(int64_t planes, int64_t work, const Body& body) {
  parallel_for(planes, std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1)), body);
}
/// Calls body(plane) for every plane.
template <class Body>
void for_each_plane(int64_t planes, int64_t work, const Body& body) {
  for_planes(planes, work, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) body(plane);
  });
}

Window adaptive_window(int64_t out, int64_t out_size, int64_t in_size) {
  return {out * in_size / out_size, ((out + 1) * in_size + out_size - 1) / out_size};
}

/// Whether the loops for halving take it, whose indices are of 32 bits.
bool is_halving(const Pool2dShape& s) {
  return s.is_halving() && s.in_h * s.in_w <= std::numeric_limits<int32_t>::max();
}

// ---- halving of float planes in registers
// ------------------------------------------------------------------------

constexpr int L = kLanes<float>;
using Floats = Vec<float>;
typedef int32_t Ints __attribute__((vector_size(kVectorBytes)));
typedef int64_t Longs __attribute__((vector_size(2 * kVectorBytes)));
typedef int64_t HalfLongs __attribute__((vector_size(kVectorBytes)));

#if defined(__AVX512F__)
constexpr Ints kLaneNumbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#define TERN_EVEN(a, b) \
  __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define TERN_ODD(a, b) \
  __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define TERN_ZIP_LOW(a, b) \
  __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define TERN_ZIP_HIGH(a, b) \
  __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif defined(__AVX2__)
constexpr Ints kLaneNumbers = {0, 1, 2, 3, 4, 5, 6, 7};
#define TERN_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define TERN_ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define TERN_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define TERN_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
constexpr Ints kLaneNumbers = {0, 1, 2, 3};
#define TERN_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define TERN_ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define TERN_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define TERN_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/// The first `count` of L indices, count <= L.
[[gnu::always_inline]] inline void store_indices(int64_t* to, Ints indices, int64_t count) {
  const Longs wide = __builtin_convertvector(indices, Longs);
  [[maybe_unused]] constexpr int64_t H = L / 2;
#if defined(__AVX512F__)
  const HalfLongs low = __builtin_shufflevector(wide, wide, 0, 1, 2, 3, 4, 5, 6, 7);
  const HalfLongs high = __builtin_shufflevector(wide, wide, 8, 9, 10, 11, 12, 13, 14, 15);
#elif defined(__AVX2__)
  const HalfLongs low = __builtin_shufflevector(wide, wide, 0, 1, 2, 3),
                  high = __builtin_shufflevector(wide, wide, 4, 5, 6, 7);
#endif
#if defined(__AVX2__)
  double* lanes = reinterpret_cast<double*>(to);  // 64 bits are 64 bits to the stores of a register
  Tail<double>(std::min(count, H)).store(lanes, (Vec<double>)low);
  Tail<double>(std::max<int64_t>(count - H, 0)).store(lanes + H, (Vec<double>)high);
#else
  for (int64_t i = 0; i < count; ++i) to[i] = wide[i];
#endif
}

/// The first `count` of L indices; 0 for the others.
[[gnu::always_inline]] inline Ints load_indices(const int64_t* from, int64_t count) {
  [[maybe_unused]] constexpr int64_t H = L / 2;
#if defined(__AVX2__)
  const double* lanes = reinterpret_cast<const double*>(from);
  const HalfLongs low = (HalfLongs)Tail<double>(std::min(count, H)).load(lanes);
  const HalfLongs high = (HalfLongs)Tail<double>(std::max<int64_t>(count - H, 0)).load(lanes + H);
#if defined(__AVX512F__)
  const Longs wide = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  const Longs wide = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
#else
  Longs wide{};
  for (int64_t i = 0; i < count; ++i) wide[i] = from[i];
#endif
  return __builtin_convertvector(wide, Ints);
}

/// The four corners of up to L neighbouring windows.
struct Corners {
  Floats at[4];  // upper left, upper right, lower left, lower right
};

[[gnu::always_inline]] inline Corners load_corners(const float* upper, const float* lower, int64_t windows) {
  Floats v[4];
  if (windows == L) {
    v[0] = load(upper), v[1] = load(upper + L), v[2] = load(lower), v[3] = load(lower + L);
  } else {
    const Tail<float> left(std::min<int64_t>(2 * windows, L)), right(std::max<int64_t>(2 * windows - L, 0));
    v[0] = left.load(upper), v[1] = right.load(upper + L), v[2] = left.load(lower),
    v[3] = right.load(lower + L);
  }
  return {{TERN_EVEN(v[0], v[1]), TERN_ODD(v[0], v[1]), TERN_EVEN(v[2], v[3]), TERN_ODD(v[2], v[3])}};
}

void max_halving_plane(const Pool2dShape& s, const float* in, float* out, int64_t* indices) {
  const int32_t width = static_cast<int32_t>(s.in_w);
  const int32_t corner[4] = {0, 1, width, width + 1};
  for (int64_t h = 0; h < s.out_h; ++h) {
    const float* upper = in + 2 * h * s.in_w;
    for (int64_t w = 0; w < s.out_w; w += L) {
      const int64_t windows = std::min<int64_t>(L, s.out_w - w);
      const Corners c = load_corners(upper + 2 * w, upper + s.in_w + 2 * w, windows);
      Floats best = c.at[0];
      Ints where = Ints{};
      TERN_UNROLL for (int i = 1; i < 4; ++i) {
        const Ints wins = (c.at[i] > best) | (c.at[i] != c.at[i]);  // the last NaN wins, as in PyTorch
        best = wins ? c.at[i] : best;
        where = wins ? Ints{} + corner[i] : where;
      }
      where += 2 * kLaneNumbers + static_cast<int32_t>(2 * h * s.in_w + 2 * w);
      const int64_t to = h * s.out_w + w;
      if (windows == L)
        store(out + to, best);
      else
        Tail<float>(windows).store(out + to, best);
      if (indices != nullptr) store_indices(indices + to, where, windows);
    }
  }
}

/// Every element of grad_input is written once: the gradient where the window's maximum was, else zero.
void max_halving_backward_plane(const Pool2dShape& s, const float* grad, const int64_t* indices,
                                float* grad_in) {
  const int32_t width = static_cast<int32_t>(s.in_w);
  for (int64_t h = 0; h < s.out_h; ++h) {
    float* upper = grad_in + 2 * h * s.in_w;
    float* lower = upper + s.in_w;
    for (int64_t w = 0; w < s.out_w; w += L) {
      const int64_t windows = std::min<int64_t>(L, s.out_w - w), from = h * s.out_w + w;
      const Floats g = windows == L ? load(grad + from) : Tail<float>(windows).load(grad + from);
      Ints where = load_indices(indices + from, windows);
      where -= 2 * kLaneNumbers + static_cast<int32_t>(2 * h * s.in_w + 2 * w);
      const Floats zero{};
      const Floats a = where == 0 ? g : zero, b = where == 1 ? g : zero;
      const Floats c = where == width ? g : zero, d = where == width + 1 ? g : zero;
      if (windows == L) {
        store(upper + 2 * w, TERN_ZIP_LOW(a, b));
        store(upper + 2 * w + L, TERN_ZIP_HIGH(a, b));
        store(lower + 2 * w, TERN_ZIP_LOW(c, d));
        store(lower + 2 * w + L, TERN_ZIP_HIGH(c, d));
      } else {
        const Tail<float> left(std::min<int64_t>(2 * windows, L)),
            right(std::max<int64_t>(2 * windows - L, 0));
        left.store(upper + 2 * w, TERN_ZIP_LOW(a, b));
        right.store(upper + 2 * w + L, TERN_ZIP_HIGH(a, b));
        left.store(lower + 2 * w, TERN_ZIP_LOW(c, d));
        right.store(lower + 2 * w + L, TERN_ZIP_HIGH(c, d));
      }
    }
    if (s.in_w % 2 != 0) upper[s.in_w - 1] = lower[s.in_w - 1] = 0.0f;
  }
  if (s.in_h % 2 != 0) std::fill_n(grad_in + (s.in_h - 1) * s.in_w, s.in_w, 0.0f);
}

void mean_halving_plane(const Pool2dShape& s, float scale, const float* in, float* out) {
  for (int64_t h = 0; h < s.out_h; ++h) {
    const float* upper = in + 2 * h * s.in_w;
    for (int64_t w = 0; w < s.out_w; w += L) {
      const int64_t windows = std::min<int64_t>(L, s.out_w - w);
      const Corners c = load_corners(upper + 2 * w, upper + s.in_w + 2 * w, windows);
      const Floats mean = (((c.at[0] + c.at[1]) + c.at[2]) + c.at[3]) * scale;
      if (windows == L)
        store(out + h * s.out_w + w, mean);
      else
        Tail<float>(windows).store(out + h * s.out_w + w, mean);
    }
  }
}

#undef TERN_EVEN
#undef TERN_ODD
#undef TERN_ZIP_LOW
#undef TERN_ZIP_HIGH

// ---- maximum
// ---------------------------------------------------------------------------------------------------------

template <class T>
bool is_nan([[maybe_unused]] T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}

/// The maximum of a window; `step_h` and `step_w` are dilations. A dilated window may miss the input
/// altogether: its maximum is -inf and its index that of the first element, so that every index is valid.
template <class T>
void max_of_window(const T* in, int64_t in_w, Window h, Window w, int64_t step_h, int64_t step_w, T* out,
                   int64_t* index) {
  using C = Compute<T>;
  int64_t where = h.first < h.last && w.first < w.last ? h.first * in_w + w.first : 0;
  C best = std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                : std::numeric_limits<C>::lowest();
  for (int64_t y = h.first; y < h.last; y += step_h) {
    for (int64_t x = w.first; x < w.last; x += step_w) {
      const C value = static_cast<C>(in[y * in_w + x]);
      if (value > best || is_nan(value)) {
        best = value;
        where = y * in_w + x;
      }
    }
  }
  *out = static_cast<T>(best);
  if (index != nullptr) *index = where;
}

template <class T>
void max_pool(const MaxPool2dArgs& args) {
  const Pool2dShape& s = args.shape;
  const int64_t in_size = s.in_h * s.in_w, out_size = s.out_h * s.out_w;
  const bool halving = std::is_same_v<T, float> && is_halving(s);
  const int64_t work = out_size * s.kernel_h * s.kernel_w;
  const auto indices_of = [&](int64_t plane) {
    return args.indices != nullptr ? args.indices + plane * out_size : nullptr;
  };
  if (!halving && s.out_w >= kLeastWindows && in_size <= std::numeric_limits<int32_t>::max() / 2)
    return for_planes(s.planes, work, [&](int64_t begin, int64_t end) {
      MaxRows<T> rows(s, args.indices != nullptr);
      for (int64_t plane = begin; plane < end; ++plane)
        rows.run(static_cast<const T*>(args.input) + plane * in_size,
                 static_cast<T*>(args.output) + plane * out_size, indices_of(plane));
    });
  for_each_plane(s.planes, work, [&](int64_t plane) {
    const T* in = static_cast<const T*>(args.input) + plane * in_size;
    T* out = static_cast<T*>(args.output) + plane * out_size;
    int64_t* indices = indices_of(plane);
    if constexpr (std::is_same_v<T, float>) {
      if (halving) return max_halving_plane(s, in, out, indices);
    }
    for (int64_t i = 0; i < s.out_h; ++i) {
      const Window h = clipped_window(i, s.stride_h, s.padding_h, s.dilation_h, s.kernel_h, s.in_h);
      for (int64_t j = 0; j < s.out_w; ++j) {
        const Window w = clipped_window(j, s.stride_w, s.padding_w, s.dilation_w, s.kernel_w, s.in_w);
        const int64_t to = i * s.out_w + j;
        max_of_window(in, s.in_w, h, w, s.dilation_h, s.dilation_w, out + to,
                      indices != nullptr ? indices + to : nullptr);
      }
    }
  });
}

template <class T>
void adaptive_max_pool(const AdaptiveMaxPool2dArgs& args) {
  const Pool2dShape& s = args.shape;
  const int64_t in_size = s.in_h * s.in_w, out_size = s.out_h * s.out_w;
  for_each_plane(s.planes, in_size, [&](int64_t plane) {
    const T* in = static_cast<const T*>(args.input) + plane * in_size;
    for (int64_t i = 0; i < s.out_h; ++i) {
      const Window h = adaptive_window(i, s.out_h, s.in_h);
      for (int64_t j = 0; j < s.out_w; ++j) {
        const Window w = adaptive_window(j, s.out_w, s.in_w);
        const int64_t to = plane * out_size + i * s.out_w + j;
        max_of_window(in, s.in_w, h, w, 1, 1, static_cast<T*>(args.output) + to,
                      args.indices != nullptr ? args.indices + to : nullptr);
      }
    }
  });
}

template <class T>
void max_pool_backward(const MaxPool2dBackwardArgs& args) {
  using C = Compute<T>;
  const Pool2dShape& s = args.shape;
  const int64_t in_size = s.in_h * s.in_w, out_size = s.out_h * s.out_w;
  const bool halving = std::is_same_v<T, float> && is_halving(s);
  for_each_plane(s.planes, in_size + out_size, [&](int64_t plane) {
    const T* grad = static_cast<const T*>(args.grad_output) + plane * out_size;
    const int64_t* indices = args.indices + plane * out_size;
    T* grad_in = static_cast<T*>(args.grad_input) + plane * in_size;
    if constexpr (std::is_same_v<T, float>) {
      if (halving) return max_halving_backward_plane(s, grad, indices, grad_in);
    }
    std::fill_n(grad_in, in_size, static_cast<T>(C(0)));
    for (int64_t i = 0; i < out_size; ++i) {
      T& to = grad_in[indices[i]];
      to = static_cast<T>(static_cast<C>(to) + static_cast<C>(grad[i]));
    }
  });
}

// ---- mean
// ------------------------------------------------------------------------------------------------------------

/// Sum of `count` neighbours; several partial sums, so that it neither waits nor loses much precision.
template <class T>
Compute<T> sum_run(const T* p, int64_t count) {
  using C = Compute<T>;
  C sum = 0;
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    constexpr int lanes = kLanes<T>;
    if (count >= lanes) {
      Vec<T> partial = load(p);
      for (i = lanes; i + lanes <= count; i += lanes) partial += load(p + i);
      for (int lane = 0; lane < lanes; ++lane) sum += partial[lane];
    }
  }
  for (; i < count; ++i) sum += static_cast<C>(p[i]);
  return sum;
}

template <class T>
Compute<T> sum_of_window(const T* in, int64_t in_w, Window h, Window w) {
  if (w.first == 0 && w.last == in_w) return sum_run(in + h.first * in_w, (h.last - h.first) * in_w);
  Compute<T> sum = 0;
  for (int64_t y = h.first; y < h.last; ++y) sum += sum_run(in + y * in_w + w.first, w.last - w.first);
  return sum;
}

/// A window of mean pooling: the part inside the input, and what its sum is divided by.
struct MeanWindow {
  Window h, w;
  int64_t divisor;
  bool empty() const { return h.first >= h.last || w.first >= w.last; }
};

template <class Args>
MeanWindow mean_window(const Args& args, int64_t i, int64_t j) {
  const Pool2dShape& s = args.shape;
  Window h{i * s.stride_h - s.padding_h, 0}, w{j * s.stride_w - s.padding_w, 0};
  h.last = std::min(h.first + s.kernel_h, s.in_h + s.padding_h);
  w.last = std::min(w.first + s.kernel_w, s.in_w + s.padding_w);
  const int64_t padded = (h.last - h.first) * (w.last - w.first);
  h = {std::max<int64_t>(h.first, 0), std::min(h.last, s.in_h)};
  w = {std::max<int64_t>(w.first, 0), std::min(w.last, s.in_w)};
  const int64_t inside = (h.last - h.first) * (w.last - w.first);
  return {h, w,
          args.divisor_override != 0 ? args.divisor_override
          : args.count_include_pad   ? padded
                                     : inside};
}

/// The means of the planes [begin, end), a row of results at a time.
template <class T>
void mean_rows(const AvgPool2dArgs& args, int64_t begin, int64_t end) {
  using C = Compute<T>;
  const Pool2dShape& s = args.shape;
  const T* in = static_cast<const T*>(args.input) + begin * s.in_h * s.in_w;
  T* out = static_cast<T*>(args.output) + begin * s.out_h * s.out_w;
  WindowRow<T> row(s, C(0));
  Scratch<C> values(s.out_w);
  C* sums = values.get();
  for (int64_t plane = begin; plane < end; ++plane, in += s.in_h * s.in_w) {
    for (int64_t i = 0; i < s.out_h; ++i, out += s.out_w) {
      std::fill_n(sums, s.out_w, C(0));
      const Window h = mean_window(args, i, 0).h;
      for (int64_t y = h.first; y < h.last; ++y) {
        row.load(in + y * s.in_w);
        for (int64_t x = 0; x < s.kernel_w; ++x) add_to(sums, row.at(x), s.out_w);
      }
      for (int64_t j = 0; j < s.out_w; ++j) {
        const MeanWindow window = mean_window(args, i, j);
        out[j] = static_cast<T>(window.empty() ? C(0) : sums[j] / static_cast<C>(window.divisor));
      }
    }
  }
}

template <class T>
void avg_pool(const AvgPool2dArgs& args) {
  using C = Compute<T>;
  const Pool2dShape& s = args.shape;
  const int64_t in_size = s.in_h * s.in_w, out_size = s.out_h * s.out_w;
  const bool halving = std::is_same_v<T, float> && is_halving(s);
  const int64_t work = out_size * s.kernel_h * s.kernel_w;
  if (!halving && s.out_w >= kLeastWindows && s.kernel_w <= s.out_w)
    return for_planes(s.planes, work, [&](int64_t begin, int64_t end) { mean_rows<T>(args, begin, end); });
  for_each_plane(s.planes, work, [&](int64_t plane) {
    const T* in = static_cast<const T*>(args.input) + plane * in_size;
    T* out = static_cast<T*>(args.output) + plane * out_size;
    if constexpr (std::is_same_v<T, float>) {
      if (halving) {
        const float divisor = args.divisor_override != 0 ? static_cast<float>(args.divisor_override) : 4.0f;
        return mean_halving_plane(s, 1.0f / divisor, in, out);
      }
    }
    for (int64_t i = 0; i < s.out_h; ++i) {
      for (int64_t j = 0; j < s.out_w; ++j) {
        const MeanWindow window = mean_window(args, i, j);
        C mean = 0;
        if (!window.empty())
          mean = sum_of_window(in, s.in_w, window.h, window.w) / static_cast<C>(window.divisor);
        out[i * s.out_w + j] = static_cast<T>(mean);
      }
    }
  });
}

/// Adds to every element of a window. Sums of 16-bit types are kept in float until the plane is done.
template <class C>
void add_to_window(C* grad_in, int64_t in_w, Window h, Window w, C value) {
  for (int64_t y = h.first; y < h.last; ++y)
    for (int64_t x = w.first; x < w.last; ++x) grad_in[y * in_w + x] += value;
}

/// Calls add(plane's sums, plane) with zeroed sums and stores what it leaves there.
template <class T, class Add>
void accumulate_plane(T* grad_in, int64_t in_size, const Add& add) {
  using C = Compute<T>;
  if constexpr (std::is_same_v<T, C>) {
    std::fill_n(grad_in, in_size, T(0));
    add(grad_in);
  } else {
    std::vector<C> sums(static_cast<size_t>(in_size));
    add(sums.data());
    for (int64_t i = 0; i < in_size; ++i) grad_in[i] = static_cast<T>(sums[static_cast<size_t>(i)]);
  }
}

template <class T>
void avg_pool_backward(const AvgPool2dBackwardArgs& args) {
  using C = Compute<T>;
  const Pool2dShape& s = args.shape;
  const int64_t in_size = s.in_h * s.in_w, out_size = s.out_h * s.out_w;
  for_each_plane(s.planes, in_size + out_size * s.kernel_h * s.kernel_w, [&](int64_t plane) {
    const T* grad = static_cast<const T*>(args.grad_output) + plane * out_size;
    accumulate_plane(static_cast<T*>(args.grad_input) + plane * in_size, in_size, [&](C* sums) {
      for (int64_t i = 0; i < s.out_h; ++i) {
        for (int64_t j = 0; j < s.out_w; ++j) {
          const MeanWindow window = mean_window(args, i, j);
          if (window.empty()) continue;
          const C share = static_cast<C>(grad[i * s.out_w + j]) / static_cast<C>(window.divisor);
          add_to_window(sums, s.in_w, window.h, window.w, share);
        }
      }
    });
  });
}

template <class T>
void adaptive_avg_pool(const AdaptiveAvgPool2dArgs& args) {
  using C = Compute<T>;
  const Pool2dShape& s = args.shape;
  const int64_t in_size = s.in_h * s.in_w, out_size = s.out_h * s.out_w;
  for_each_plane(s.planes, in_size, [&](int64_t plane) {
    const T* in = static_cast<const T*>(args.input) + plane * in_size;
    T* out = static_cast<T*>(args.output) + plane * out_size;
    for (int64_t i = 0; i < s.out_h; ++i) {
      const Window h = adaptive_window(i, s.out_h, s.in_h);
      for (int64_t j = 0; j < s.out_w; ++j) {
        const Window w = adaptive_window(j, s.out_w, s.in_w);
        const C count = static_cast<C>((h.last - h.first) * (w.last - w.first));
        out[i * s.out_w + j] = static_cast<T>(sum_of_window(in, s.in_w, h, w) / count);
      }
    }
  });
}

template <class T>
void adaptive_avg_pool_backward(const AdaptiveAvgPool2dBackwardArgs& args) {
  using C = Compute<T>;
  const Pool2dShape& s = args.shape;
  const int64_t in_size = s.in_h * s.in_w, out_size = s.out_h * s.out_w;
  for_each_plane(s.planes, in_size + out_size, [&](int64_t plane) {
    const T* grad = static_cast<const T*>(args.grad_output) + plane * out_size;
    accumulate_plane(static_cast<T*>(args.grad_input) + plane * in_size, in_size, [&](C* sums) {
      for (int64_t i = 0; i < s.out_h; ++i) {
        const Window h = adaptive_window(i, s.out_h, s.in_h);
        for (int64_t j = 0; j < s.out_w; ++j) {
          const Window w = adaptive_window(j, s.out_w, s.in_w);
          const C count = static_cast<C>((h.last - h.first) * (w.last - w.first));
          add_to_window(sums, s.in_w, h, w, static_cast<C>(grad[i * s.out_w + j]) / count);
        }
      }
    });
  });
}

/// Calls f for the dtypes that have a maximum: all but bool.
template <class F>
void visit_ordered(DType dtype, const F& f) {
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, bool>)
      throw_not_computable(dtype);
    else
      f.template operator()<T>();
  });
}

/// Calls f for the dtypes that have a mean here: the floating-point ones and int64.
template <class F>
void visit_mean(DType dtype, const F& f) {
  if (dtype == DType::Int64) return f.template operator()<int64_t>();
  visit_floating(dtype, f);
}

}  // namespace

void max_pool2d(const LaunchContext&, const MaxPool2dArgs& args) {
  visit_ordered(args.dtype, [&]<class T>() { max_pool<T>(args); });
}
void max_pool2d_backward(const LaunchContext&, const MaxPool2dBackwardArgs& args) {
  visit_ordered(args.dtype, [&]<class T>() { max_pool_backward<T>(args); });
}
void adaptive_max_pool2d(const LaunchContext&, const AdaptiveMaxPool2dArgs& args) {
  visit_ordered(args.dtype, [&]<class T>() { adaptive_max_pool<T>(args); });
}
void avg_pool2d(const LaunchContext&, const AvgPool2dArgs& args) {
  visit_mean(args.dtype, [&]<class T>() { avg_pool<T>(args); });
}
void avg_pool2d_backward(const LaunchContext&, const AvgPool2dBackwardArgs& args) {
  visit_mean(args.dtype, [&]<class T>() { avg_pool_backward<T>(args); });
}
void adaptive_avg_pool2d(const LaunchContext&, const AdaptiveAvgPool2dArgs& args) {
  visit_mean(args.dtype, [&]<class T>() { adaptive_avg_pool<T>(args); });
}
void adaptive_avg_pool2d_backward(const LaunchContext&, const AdaptiveAvgPool2dBackwardArgs& args) {
  visit_mean(args.dtype, [&]<class T>() { adaptive_avg_pool_backward<T>(args); });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
