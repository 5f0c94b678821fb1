// 2-D pooling, a thread for each element of the result. Gradients are gathered: every element of the input's
// gradient looks at the windows that may have it, so that nothing is added by several threads at once.
#include "tern/kernels/pool.h"

#include <limits>

#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"

namespace tern::cuda_backend {
namespace {

struct Window {
  int64_t first, last;
};

__device__ __forceinline__ int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Of an adaptive pooling.
__device__ __forceinline__ Window adaptive_window(int64_t i, int64_t out, int64_t in) {
  return {i * in / out, up((i + 1) * in, out)};
}
/// The outputs whose adaptive windows have input y.
__device__ __forceinline__ Window adaptive_windows_of(int64_t y, int64_t out, int64_t in) {
  return {y * out / in, min(up((y + 1) * out, in), out)};
}
/// The outputs whose windows may have input y.
__device__ __forceinline__ Window windows_of(int64_t y, int64_t out, int64_t kernel, const Divider& stride,
                                             int64_t padding, int64_t dilation) {
  const int64_t low = y + padding - dilation * (kernel - 1);
  return {low <= 0 ? 0 : stride.divide(static_cast<uint32_t>(low) + stride.divisor - 1),
          min(int64_t{stride.divide(static_cast<uint32_t>(y + padding))} + 1, out)};
}

struct Place {
  int64_t plane, y, x;
};
/// A shape whose planes have less than 2^31 elements together, and the divisions that its elements need.
struct Planes : Pool2dShape {
  Divider out_plane, out_row, in_plane, in_row, step_h, step_w;

  explicit Planes(const Pool2dShape& s)
      : Pool2dShape(s),
        out_plane(some(s.out_h * s.out_w)),
        out_row(some(s.out_w)),
        in_plane(some(s.in_h * s.in_w)),
        in_row(some(s.in_w)),
        step_h(s.stride_h),
        step_w(s.stride_w) {}
  static int64_t some(int64_t size) { return std::max<int64_t>(size, 1); }
  static __device__ __forceinline__ Place place(uint32_t i, const Divider& plane, const Divider& row) {
    const uint32_t p = plane.divide(i), rest = i - p * plane.divisor, y = row.divide(rest);
    return {p, y, rest - y * row.divisor};
  }
  __device__ __forceinline__ Place out_place(int64_t i) const {
    return place(static_cast<uint32_t>(i), out_plane, out_row);
  }
  __device__ __forceinline__ Place in_place(int64_t i) const {
    return place(static_cast<uint32_t>(i), in_plane, in_row);
  }
};

/// Calls `f(planes, first_plane)` for pieces of a shape.
template <class F>
void for_pieces_of(const Pool2dShape& shape, const F& f) {
  const int64_t plane = std::max<int64_t>({shape.out_h * shape.out_w, shape.in_h * shape.in_w, 1});
  if (plane > kMostElements - 1 || std::max(shape.stride_h, shape.stride_w) > kMostElements / 2)
    throw_not_on_gpus("pooling of planes of 2^31 elements");
  const int64_t at_once = kMostElements / plane;
  for (int64_t first = 0; first < shape.planes; first += at_once) {
    Pool2dShape piece = shape;
    piece.planes = std::min(at_once, shape.planes - first);
    f(Planes(piece), first);
  }
}

/// T: a float type, or int64 for integers, whose dtype is then known at run time.
template <class T>
__device__ __forceinline__ Compute<T> read(DType dtype, const void* in, int64_t i) {
  if constexpr (std::is_same_v<T, int64_t>)
    return load<int64_t>(dtype, in, i);
  else
    return widen(static_cast<const T*>(in)[i]);
}
template <class T>
__device__ __forceinline__ void write(DType dtype, void* out, int64_t i, Compute<T> x) {
  if constexpr (std::is_same_v<T, int64_t>)
    store<int64_t>(dtype, out, i, x);
  else
    static_cast<T*>(out)[i] = narrow<T>(x);
}

template <class T, bool adaptive>
__global__ void max_windows(DType dtype, Planes s, const void* in, void* out, int64_t* indices) {
  using C = Compute<T>;
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= s.planes * s.out_h * s.out_w) return;
  const Place at = s.out_place(i);
  Window h, w;
  int64_t step_h = 1, step_w = 1;
  if constexpr (adaptive) {
    h = adaptive_window(at.y, s.out_h, s.in_h);
    w = adaptive_window(at.x, s.out_w, s.in_w);
  } else {
    step_h = s.dilation_h;
    step_w = s.dilation_w;
    h = {at.y * s.stride_h - s.padding_h, 0};
    w = {at.x * s.stride_w - s.padding_w, 0};
    h.last = min(h.first + (s.kernel_h - 1) * step_h + 1, s.in_h);
    w.last = min(w.first + (s.kernel_w - 1) * step_w + 1, s.in_w);
    if (h.first < 0) h.first += up(-h.first, step_h) * step_h;
    if (w.first < 0) w.first += up(-w.first, step_w) * step_w;
  }
  // A dilated window may miss the input altogether: its maximum is -inf, its index that of the first element.
  int64_t where = h.first < h.last && w.first < w.last ? h.first * s.in_w + w.first : 0;
  C best;
  if constexpr (std::numeric_limits<C>::has_infinity)
    best = -std::numeric_limits<C>::infinity();
  else
    best = std::numeric_limits<C>::lowest();
  const int64_t start = at.plane * s.in_h * s.in_w;
  for (int64_t y = h.first; y < h.last; y += step_h)
    for (int64_t x = w.first; x < w.last; x += step_w) {
      const C value = read<T>(dtype, in, start + y * s.in_w + x);
      if (value > best || value != value) {
        best = value;
        where = y * s.in_w + x;
      }
    }
  write<T>(dtype, out, i, best);
  if (indices) indices[i] = where;
}

template <class T>
__global__ void max_gradient(DType dtype, Planes s, bool adaptive, const void* grad, const int64_t* indices,
                             void* grad_in) {
  using C = Compute<T>;
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= s.planes * s.in_h * s.in_w) return;
  const Place at = s.in_place(i);
  Window h, w;
  if (adaptive) {
    h = adaptive_windows_of(at.y, s.out_h, s.in_h);
    w = adaptive_windows_of(at.x, s.out_w, s.in_w);
  } else {
    h = windows_of(at.y, s.out_h, s.kernel_h, s.step_h, s.padding_h, s.dilation_h);
    w = windows_of(at.x, s.out_w, s.kernel_w, s.step_w, s.padding_w, s.dilation_w);
    // Windows that miss the input point to its first element.
    if ((s.dilation_h > 1 || s.dilation_w > 1) && at.y == 0 && at.x == 0) {
      h = {0, s.out_h};
      w = {0, s.out_w};
    }
  }
  const int64_t mine = at.y * s.in_w + at.x, start = at.plane * s.out_h * s.out_w;
  C sum = C(0);
  for (int64_t oy = h.first; oy < h.last; ++oy)
    for (int64_t ox = w.first; ox < w.last; ++ox) {
      const int64_t o = start + oy * s.out_w + ox;
      if (indices[o] == mine) sum += read<T>(dtype, grad, o);
    }
  write<T>(dtype, grad_in, i, sum);
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

  __device__ MeanWindow window(int64_t i, int64_t j) const {
    Window h{i * s.stride_h - s.padding_h, 0}, w{j * s.stride_w - s.padding_w, 0};
    h.last = min(h.first + s.kernel_h, s.in_h + s.padding_h);
    w.last = min(w.first + s.kernel_w, s.in_w + s.padding_w);
    const int64_t padded = (h.last - h.first) * (w.last - w.first);
    h = {max(h.first, int64_t{0}), min(h.last, s.in_h)};
    w = {max(w.first, int64_t{0}), min(w.last, s.in_w)};
    const int64_t inside = (h.last - h.first) * (w.last - w.first);
    return {h, w, divisor_override != 0 ? divisor_override : count_include_pad ? padded : inside};
  }
  __device__ Window rows_of(int64_t y) const {
    return windows_of(y, s.out_h, s.kernel_h, s.step_h, s.padding_h, 1);
  }
  __device__ Window cols_of(int64_t x) const {
    return windows_of(x, s.out_w, s.kernel_w, s.step_w, s.padding_w, 1);
  }
};
struct AdaptiveMean {
  Planes s;

  __device__ MeanWindow window(int64_t i, int64_t j) const {
    const Window h = adaptive_window(i, s.out_h, s.in_h), w = adaptive_window(j, s.out_w, s.in_w);
    return {h, w, (h.last - h.first) * (w.last - w.first)};
  }
  __device__ Window rows_of(int64_t y) const { return adaptive_windows_of(y, s.out_h, s.in_h); }
  __device__ Window cols_of(int64_t x) const { return adaptive_windows_of(x, s.out_w, s.in_w); }
};

template <class T, class Pool>
__global__ void mean_windows(Pool pool, const T* in, T* out) {
  using C = Compute<T>;
  const Planes& s = pool.s;
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= s.planes * s.out_h * s.out_w) return;
  const Place at = s.out_place(i);
  const MeanWindow window = pool.window(at.y, at.x);
  const T* plane = in + at.plane * s.in_h * s.in_w;
  C sum = C(0);
  for (int64_t y = window.h.first; y < window.h.last; ++y) {
    C row = C(0);
    for (int64_t x = window.w.first; x < window.w.last; ++x) row += widen(plane[y * s.in_w + x]);
    sum += row;
  }
  const bool empty = window.h.first >= window.h.last || window.w.first >= window.w.last;
  out[i] = narrow<T>(empty ? C(0) : sum / static_cast<C>(window.divisor));
}

template <class T, class Pool>
__global__ void mean_gradient(Pool pool, const T* grad, T* grad_in) {
  using C = Compute<T>;
  const Planes& s = pool.s;
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= s.planes * s.in_h * s.in_w) return;
  const Place at = s.in_place(i);
  const Window h = pool.rows_of(at.y), w = pool.cols_of(at.x);
  C sum = C(0);
  for (int64_t oy = h.first; oy < h.last; ++oy)
    for (int64_t ox = w.first; ox < w.last; ++ox) {
      const MeanWindow window = pool.window(oy, ox);
      if (at.y < window.h.first || at.y >= window.h.last || at.x < window.w.first || at.x >= window.w.last)
        continue;
      sum += widen(grad[(at.plane * s.out_h + oy) * s.out_w + ox]) / static_cast<C>(window.divisor);
    }
  grad_in[i] = narrow<T>(sum);
}

unsigned grid_of_outputs(const Pool2dShape& s) {
  return blocks(ceil_div(s.planes * s.out_h * s.out_w, kBlock));
}
unsigned grid_of_inputs(const Pool2dShape& s) { return blocks(ceil_div(s.planes * s.in_h * s.in_w, kBlock)); }

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

/// From the input to the output, or with gradients the other way.
template <bool backward, class MakePool>
void run_mean(const LaunchContext& context, DType dtype, const Pool2dShape& shape, const void* from, void* to,
              const MakePool& make) {
  visit_mean(dtype, [&]<class T>() {
    for_pieces_of(shape, [&](const Planes& s, int64_t first) {
      using Pool = decltype(make(s));
      const int64_t inputs = first * s.in_h * s.in_w, outputs = first * s.out_h * s.out_w;
      start(context, backward ? grid_of_inputs(s) : grid_of_outputs(s), kBlock, 0,
            backward ? mean_gradient<T, Pool> : mean_windows<T, Pool>, make(s),
            static_cast<const T*>(from) + (backward ? outputs : inputs),
            static_cast<T*>(to) + (backward ? inputs : outputs));
    });
  });
}

template <bool adaptive>
void run_max(const LaunchContext& context, DType dtype, const Pool2dShape& shape, const void* in, void* out,
             int64_t* indices) {
  visit_ordered(dtype, [&]<class T>() {
    for_pieces_of(shape, [&](const Planes& s, int64_t first) {
      const int64_t outputs = first * s.out_h * s.out_w;
      start(context, grid_of_outputs(s), kBlock, 0, max_windows<T, adaptive>, dtype, s,
            moved(in, first * s.in_h * s.in_w, dtype), moved(out, outputs, dtype), moved(indices, outputs));
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
  visit_ordered(args.dtype, [&]<class T>() {
    for_pieces_of(args.shape, [&](const Planes& s, int64_t first) {
      const int64_t outputs = first * s.out_h * s.out_w;
      start(context, grid_of_inputs(s), kBlock, 0, max_gradient<T>, args.dtype, s, !has_windows(s),
            moved(args.grad_output, outputs, args.dtype), args.indices + outputs,
            moved(args.grad_input, first * s.in_h * s.in_w, args.dtype));
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
