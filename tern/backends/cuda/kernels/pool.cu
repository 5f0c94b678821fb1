// 2-D pooling, a thread for each element of the result. Gradients are gathered: every element of the input's
// gradient looks at the windows that may have it, so that nothing is added by several threads at once. Maxima
// of windows of 2 by 2 side by side, those of most networks, have kernels of their own.
#include "tern/kernels/pool.h"

#include <limits>

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"

namespace tern::cuda_backend {
namespace {

struct Window {
  int first, last;
};

/// Rows or columns of images, and of a pooling's windows in them; numbers have 31 bits.
struct Side {
  int in, out;
  int reach;  ///< from a window's first element to its last
  int padding;
  Divider stride, dilation, by_in, by_out;
  bool narrow;  ///< whether products of `in` and `out` have 31 bits

  Side(int64_t in_, int64_t out_, int64_t kernel, int64_t stride_, int64_t padding_, int64_t dilation_)
      : in(static_cast<int>(in_)),
        out(static_cast<int>(out_)),
        reach(static_cast<int>(dilation_ * (kernel - 1))),
        padding(static_cast<int>(padding_)),
        stride(stride_),
        dilation(dilation_),
        by_in(std::max<int64_t>(in_, 1)),
        by_out(std::max<int64_t>(out_, 1)),
        narrow(in_ * out_ + in_ + out_ <= kMostElements) {}

  __device__ __forceinline__ int begin(int i) const { return i * static_cast<int>(stride.divisor) - padding; }
  /// Window i inside the input, of elements at multiples of the dilation.
  __device__ __forceinline__ Window window(int i) const {
    const int at = begin(i), step = dilation.divisor;
    return {at < 0 ? at + static_cast<int>(dilation.divide(step - 1 - at)) * step : at,
            min(at + reach + 1, in)};
  }
  /// The outputs whose windows may have input y.
  __device__ __forceinline__ Window windows_of(int y) const {
    const int low = y + padding - reach;
    return {low <= 0 ? 0 : static_cast<int>(stride.divide(low + stride.divisor - 1)),
            min(static_cast<int>(stride.divide(y + padding)) + 1, out)};
  }

  __device__ __forceinline__ int quotient(int64_t n, const Divider& by) const {
    return narrow ? by.divide(static_cast<uint32_t>(n)) : static_cast<int>(n / by.divisor);
  }
  /// Window i of an adaptive pooling.
  __device__ __forceinline__ Window adaptive_window(int i) const {
    return {quotient(int64_t{i} * in, by_out), quotient(int64_t{i + 1} * in + out - 1, by_out)};
  }
  /// The outputs whose adaptive windows have input y.
  __device__ __forceinline__ Window adaptive_windows_of(int y) const {
    return {quotient(int64_t{y} * out, by_in), min(quotient(int64_t{y + 1} * out + in - 1, by_in), out)};
  }
};

struct Place {
  uint32_t plane;
  int y, x;
};
/// A shape whose planes have less than 2^31 elements together.
struct Planes {
  Side h, w;
  uint32_t inputs, outputs;
  Divider in_plane, out_plane;

  explicit Planes(const Pool2dShape& s)
      : h(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h),
        w(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w),
        inputs(static_cast<uint32_t>(s.planes * s.in_h * s.in_w)),
        outputs(static_cast<uint32_t>(s.planes * s.out_h * s.out_w)),
        in_plane(std::max<int64_t>(s.in_h * s.in_w, 1)),
        out_plane(std::max<int64_t>(s.out_h * s.out_w, 1)) {}

  static __device__ __forceinline__ Place place(uint32_t i, const Divider& plane, const Divider& row) {
    const uint32_t p = plane.divide(i), rest = i - p * plane.divisor, y = row.divide(rest);
    return {p, static_cast<int>(y), static_cast<int>(rest - y * row.divisor)};
  }
  __device__ __forceinline__ Place out_place(uint32_t i) const { return place(i, out_plane, w.by_out); }
  __device__ __forceinline__ Place in_place(uint32_t i) const { return place(i, in_plane, w.by_in); }
};

/// Calls `f(planes, input, output)` for pieces of a shape, which begin with these elements.
template <class F>
void for_pieces_of(const Pool2dShape& s, const F& f) {
  const int64_t in_plane = s.in_h * s.in_w, out_plane = s.out_h * s.out_w;
  const int64_t plane = std::max<int64_t>({in_plane, out_plane, 1});
  const auto most = [](int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
    return in + padding + dilation * (kernel + 2) + stride;  // three steps of a window are taken at once
  };
  if (plane > kMostElements - 1 ||
      most(s.in_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h) > kMostElements ||
      most(s.in_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w) > kMostElements)
    throw_not_on_gpus("pooling of planes or windows of 2^31 elements");
  const int64_t at_once = kMostElements / plane;
  for (int64_t first = 0; first < s.planes; first += at_once) {
    Pool2dShape piece = s;
    piece.planes = std::min(at_once, s.planes - first);
    f(Planes(piece), first * in_plane, first * out_plane);
  }
}

/// T: a float type, or int64 for integers, whose dtype is then known at run time.
template <class T>
inline constexpr bool kIsFloat = !std::is_same_v<T, int64_t>;
template <class T>
__device__ __forceinline__ Compute<T> read(DType dtype, const void* in, int64_t i) {
  if constexpr (!kIsFloat<T>)
    return load<int64_t>(dtype, in, i);
  else
    return widen(static_cast<const T*>(in)[i]);
}
template <class T>
__device__ __forceinline__ void write(DType dtype, void* out, int64_t i, Compute<T> x) {
  if constexpr (!kIsFloat<T>)
    store<int64_t>(dtype, out, i, x);
  else
    static_cast<T*>(out)[i] = narrow<T>(x);
}

/// Elements of a window that are read at once: integers, whose loads choose among many types, one by one.
template <class T>
inline constexpr int kAhead = kIsFloat<T> ? 3 : 1;

/// The largest of what was taken, and where it is: of equal ones the first; NaN wins.
template <class C>
struct Largest {
  C value;
  uint32_t where;

  __device__ __forceinline__ void take(C x, uint32_t place) {
    if (x > value || x != x) {
      value = x;
      where = place;
    }
  }
};

template <class T, bool adaptive>
__global__ void max_windows(DType dtype, Planes s, const void* in, void* out, int64_t* indices) {
  using C = Compute<T>;
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= s.outputs) return;
  const Place at = s.out_place(i);
  const Window h = adaptive ? s.h.adaptive_window(at.y) : s.h.window(at.y);
  const Window w = adaptive ? s.w.adaptive_window(at.x) : s.w.window(at.x);
  const uint32_t step_h = adaptive ? 1 : s.h.dilation.divisor, step_w = adaptive ? 1 : s.w.dilation.divisor;
  const uint32_t start = at.plane * s.in_plane.divisor;
  // A dilated window may miss the input altogether: its maximum is -inf, its index that of the first element.
  using Limits = std::numeric_limits<C>;
  Largest<C> best{Limits::has_infinity ? -Limits::infinity() : Limits::lowest(), start};
  if (h.first < h.last && w.first < w.last) best.where += h.first * s.w.in + w.first;
  for (int y = h.first; y < h.last; y += step_h) {
    const uint32_t row = start + y * s.w.in;
    read_ahead<kAhead<T>>(
        row + w.first, row + w.last, step_w, [&](uint32_t k) { return read<T>(dtype, in, k); },
        [&](uint32_t k, C value) { best.take(value, k); });
  }
  write<T>(dtype, out, i, best.value);
  if (indices) indices[i] = best.where - start;
}

template <class T>
__global__ void max_gradient(DType dtype, Planes s, bool adaptive, const void* grad, const int64_t* indices,
                             void* grad_in) {
  using C = Compute<T>;
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= s.inputs) return;
  const Place at = s.in_place(i);
  Window h, w;
  if (adaptive) {
    h = s.h.adaptive_windows_of(at.y);
    w = s.w.adaptive_windows_of(at.x);
  } else {
    h = s.h.windows_of(at.y);
    w = s.w.windows_of(at.x);
    // Windows that miss the input point to its first element.
    if ((s.h.dilation.divisor > 1 || s.w.dilation.divisor > 1) && at.y == 0 && at.x == 0) {
      h = {0, s.h.out};
      w = {0, s.w.out};
    }
  }
  struct Maximum {
    int where;
    C value;
  };
  const int mine = at.y * s.w.in + at.x;
  C sum = C(0);
  for (int oy = h.first; oy < h.last; ++oy) {
    const uint32_t row = at.plane * s.out_plane.divisor + oy * s.w.out;
    read_ahead<2>(
        w.first, w.last, 1,
        [&](int ox) {
          return Maximum{static_cast<int>(indices[row + ox]), read<T>(dtype, grad, row + ox)};
        },
        [&](int, const Maximum& found) {
          if (found.where == mine) sum += found.value;
        });
  }
  write<T>(dtype, grad_in, i, sum);
}

/// Windows of 2 by 2 side by side, a thread for each; `packed`: pairs lie at multiples of their size.
template <class T>
__global__ void max_halving(Planes s, bool packed, const T* in, T* out, int64_t* indices) {
  using C = Compute<T>;
  using Pair = Pack<T, 2>;
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= s.outputs) return;
  const Place at = s.out_place(i);
  const uint32_t width = s.w.in, first = 2 * (at.y * width + at.x);
  const T* window = in + (at.plane * s.in_plane.divisor + first);
  const T* below = window + width;
  Pair upper, lower;
  if (packed) {
    upper = *reinterpret_cast<const Pair*>(window);
    lower = *reinterpret_cast<const Pair*>(below);
  } else {
    upper = {window[0], window[1]};
    lower = {below[0], below[1]};
  }
  Largest<C> best{widen(upper.at[0]), first};
  best.take(widen(upper.at[1]), first + 1);
  best.take(widen(lower.at[0]), first + width);
  best.take(widen(lower.at[1]), first + width + 1);
  out[i] = narrow<T>(best.value);
  if (indices) indices[i] = best.where;
}

/// A thread for each square of 2 by 2 inputs. No window has those of an odd last row or column, which lie
/// half outside.
template <class T>
__global__ void max_halving_gradient(Planes s, uint32_t squares, Divider plane, Divider row, bool packed,
                                     const T* grad, const int64_t* indices, T* grad_in) {
  using C = Compute<T>;
  using Pair = Pack<T, 2>;
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= squares) return;
  const Place at = Planes::place(i, plane, row);
  const T zero = narrow<T>(C(0));
  T value = zero;
  uint32_t where = 0;
  if (at.y < s.h.out && at.x < s.w.out) {
    const uint32_t o = at.plane * s.out_plane.divisor + at.y * s.w.out + at.x;
    where = static_cast<uint32_t>(indices[o]);
    value = narrow<T>(C(0) + widen(grad[o]));  // -0 becomes 0, as in a sum
  }
  const uint32_t width = s.w.in, first = 2 * (at.y * width + at.x);
  T* square = grad_in + (at.plane * s.in_plane.divisor + first);
  const auto write_pair = [&](T* to, uint32_t k) {
    const Pair pair{where == k ? value : zero, where == k + 1 ? value : zero};
    if (packed) {
      *reinterpret_cast<Pair*>(to) = pair;
    } else {
      to[0] = pair.at[0];
      if (2 * at.x + 1 < s.w.in) to[1] = pair.at[1];
    }
  };
  write_pair(square, first);
  if (2 * at.y + 1 < s.h.in) write_pair(square + width, first + width);
}

/// The elements of a mean's window that lie inside the input, and what their sum is divided by.
struct MeanWindow {
  Window h, w;
  int64_t divisor;
};
struct Mean {
  Planes s;
  bool count_include_pad;
  int64_t divisor_override;

  static __device__ __forceinline__ int64_t area(const Window& h, const Window& w) {
    return int64_t{h.last - h.first} * (w.last - w.first);
  }
  __device__ MeanWindow window(int i, int j) const {
    const int y = s.h.begin(i), x = s.w.begin(j);
    const Window h{y, min(y + s.h.reach + 1, s.h.in + s.h.padding)};
    const Window w{x, min(x + s.w.reach + 1, s.w.in + s.w.padding)};
    const Window rows{max(h.first, 0), min(h.last, s.h.in)}, cols{max(w.first, 0), min(w.last, s.w.in)};
    return {rows, cols,
            divisor_override != 0 ? divisor_override
            : count_include_pad   ? area(h, w)
                                  : area(rows, cols)};
  }
  __device__ Window rows_of(int y) const { return s.h.windows_of(y); }
  __device__ Window cols_of(int x) const { return s.w.windows_of(x); }
};
struct AdaptiveMean {
  Planes s;

  __device__ MeanWindow window(int i, int j) const {
    const Window h = s.h.adaptive_window(i), w = s.w.adaptive_window(j);
    return {h, w, Mean::area(h, w)};
  }
  __device__ Window rows_of(int y) const { return s.h.adaptive_windows_of(y); }
  __device__ Window cols_of(int x) const { return s.w.adaptive_windows_of(x); }
};

template <class T, class Pool>
__global__ void mean_windows(Pool pool, const T* in, T* out) {
  using C = Compute<T>;
  const Planes& s = pool.s;
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= s.outputs) return;
  const Place at = s.out_place(i);
  const MeanWindow window = pool.window(at.y, at.x);
  const T* plane = in + at.plane * s.in_plane.divisor;
  C sum = C(0);
  for (int y = window.h.first; y < window.h.last; ++y) {
    C row = C(0);
    for (int x = window.w.first; x < window.w.last; ++x) row += widen(plane[y * s.w.in + x]);
    sum += row;
  }
  const bool empty = window.h.first >= window.h.last || window.w.first >= window.w.last;
  out[i] = narrow<T>(empty ? C(0) : sum / static_cast<C>(window.divisor));
}

template <class T, class Pool>
__global__ void mean_gradient(Pool pool, const T* grad, T* grad_in) {
  using C = Compute<T>;
  const Planes& s = pool.s;
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= s.inputs) return;
  const Place at = s.in_place(i);
  const Window h = pool.rows_of(at.y), w = pool.cols_of(at.x);
  C sum = C(0);
  for (int oy = h.first; oy < h.last; ++oy)
    for (int ox = w.first; ox < w.last; ++ox) {
      const MeanWindow window = pool.window(oy, ox);
      if (at.y < window.h.first || at.y >= window.h.last || at.x < window.w.first || at.x >= window.w.last)
        continue;
      sum += widen(grad[at.plane * s.out_plane.divisor + oy * s.w.out + ox]) / static_cast<C>(window.divisor);
    }
  grad_in[i] = narrow<T>(sum);
}

unsigned grid_of(uint32_t threads) { return blocks(ceil_div(threads, kBlock)); }

/// The dtypes that have a maximum: all but bool.
template <class F>
void visit_ordered(DType dtype, F&& f) {
  if (is_floating_point(dtype)) return visit_floating(dtype, f);
  if (!is_integral(dtype)) throw_not_computable(dtype);
  f.template operator()<int64_t>();
}
/// The dtypes that have a mean here: floats and int64.
template <class F>
void visit_mean(DType dtype, F&& f) {
  if (dtype == DType::Int64) return f.template operator()<int64_t>();
  visit_floating(dtype, f);
}

/// Whether the elements of rows can be loaded and stored in pairs.
template <class T>
bool is_packed(const Planes& s, const T* inputs) {
  return s.w.in % 2 == 0 && is_aligned(inputs, sizeof(Pack<T, 2>));
}

/// From the input to the output, or with gradients the other way.
template <bool backward, class MakePool>
void run_mean(const LaunchContext& context, DType dtype, const Pool2dShape& shape, const void* from, void* to,
              const MakePool& make) {
  visit_mean(dtype, [&]<class T>() {
    for_pieces_of(shape, [&](const Planes& s, int64_t input, int64_t output) {
      using Pool = decltype(make(s));
      start(context, grid_of(backward ? s.inputs : s.outputs), kBlock, 0,
            backward ? mean_gradient<T, Pool> : mean_windows<T, Pool>, make(s),
            static_cast<const T*>(from) + (backward ? output : input),
            static_cast<T*>(to) + (backward ? input : output));
    });
  });
}

template <bool adaptive>
void run_max(const LaunchContext& context, DType dtype, const Pool2dShape& shape, const void* in, void* out,
             int64_t* indices) {
  visit_ordered(dtype, [&]<class T>() {
    for_pieces_of(shape, [&](const Planes& s, int64_t input, int64_t output) {
      if constexpr (!adaptive && kIsFloat<T>)
        if (shape.is_halving()) {
          const T* from = static_cast<const T*>(in) + input;
          return start(context, grid_of(s.outputs), kBlock, 0, max_halving<T>, s, is_packed(s, from), from,
                       static_cast<T*>(out) + output, moved(indices, output));
        }
      start(context, grid_of(s.outputs), kBlock, 0, max_windows<T, adaptive>, dtype, s,
            moved(in, input, dtype), moved(out, output, dtype), moved(indices, output));
    });
  });
}

/// Whether the sizes of the result are those of windows of this kernel; an adaptive pooling leaves the kernel
/// alone.
bool has_windows(const Pool2dShape& s) {
  const auto fits = [](int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
                       int64_t dilation) {
    return out == Pool2dShape::output_size(in, kernel, stride, padding, dilation, /*ceil_mode=*/false) ||
           out == Pool2dShape::output_size(in, kernel, stride, padding, dilation, /*ceil_mode=*/true);
  };
  return fits(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h) &&
         fits(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w);
}

}  // namespace

void max_pool2d(const LaunchContext& context, const MaxPool2dArgs& args) {
  run_max<false>(context, args.dtype, args.shape, args.input, args.output, args.indices);
}

void adaptive_max_pool2d(const LaunchContext& context, const AdaptiveMaxPool2dArgs& args) {
  run_max<true>(context, args.dtype, args.shape, args.input, args.output, args.indices);
}

void max_pool2d_backward(const LaunchContext& context, const MaxPool2dBackwardArgs& args) {
  const Pool2dShape& shape = args.shape;
  visit_ordered(args.dtype, [&]<class T>() {
    for_pieces_of(shape, [&](const Planes& s, int64_t input, int64_t output) {
      if constexpr (kIsFloat<T>)
        if (shape.is_halving()) {
          const int64_t row = ceil_div(shape.in_w, 2), plane = ceil_div(shape.in_h, 2) * row;
          const auto squares = static_cast<uint32_t>(s.inputs / s.in_plane.divisor * plane);
          T* to = static_cast<T*>(args.grad_input) + input;
          return start(context, grid_of(squares), kBlock, 0, max_halving_gradient<T>, s, squares,
                       Divider(plane), Divider(row), is_packed(s, to),
                       static_cast<const T*>(args.grad_output) + output, args.indices + output, to);
        }
      start(context, grid_of(s.inputs), kBlock, 0, max_gradient<T>, args.dtype, s, !has_windows(shape),
            moved(args.grad_output, output, args.dtype), args.indices + output,
            moved(args.grad_input, input, args.dtype));
    });
  });
}

void avg_pool2d(const LaunchContext& context, const AvgPool2dArgs& args) {
  run_mean<false>(context, args.dtype, args.shape, args.input, args.output, [&](const Planes& s) {
    return Mean{s, args.count_include_pad, args.divisor_override};
  });
}
void avg_pool2d_backward(const LaunchContext& context, const AvgPool2dBackwardArgs& args) {
  run_mean<true>(context, args.dtype, args.shape, args.grad_output, args.grad_input, [&](const Planes& s) {
    return Mean{s, args.count_include_pad, args.divisor_override};
  });
}
void adaptive_avg_pool2d(const LaunchContext& context, const AdaptiveAvgPool2dArgs& args) {
  run_mean<false>(context, args.dtype, args.shape, args.input, args.output,
                  [](const Planes& s) { return AdaptiveMean{s}; });
}
void adaptive_avg_pool2d_backward(const LaunchContext& context, const AdaptiveAvgPool2dBackwardArgs& args) {
  run_mean<true>(context, args.dtype, args.shape, args.grad_output, args.grad_input,
                 [](const Planes& s) { return AdaptiveMean{s}; });
}

}  // namespace tern::cuda_backend
