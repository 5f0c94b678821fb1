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
__device__ __forceinline__ Window windows_of(int64_t y, int64_t out, int64_t kernel, int64_t stride,
                                             int64_t padding, int64_t dilation) {
  const int64_t low = y + padding - dilation * (kernel - 1);
  return {low <= 0 ? 0 : up(low, stride), min((y + padding) / stride + 1, out)};
}

/// Where element i of [planes, h, w] is.
struct Place {
  int64_t plane, y, x;
  __device__ Place(int64_t i, int64_t h, int64_t w) : plane(i / (h * w)), y(i / w % h), x(i % w) {}
};

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
__global__ void max_windows(DType dtype, Pool2dShape s, const void* in, void* out, int64_t* indices) {
  using C = Compute<T>;
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= s.planes * s.out_h * s.out_w) return;
  const Place at(i, s.out_h, s.out_w);
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
__global__ void max_gradient(MaxPool2dBackwardArgs args, bool adaptive) {
  using C = Compute<T>;
  const Pool2dShape& s = args.shape;
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= s.planes * s.in_h * s.in_w) return;
  const Place at(i, s.in_h, s.in_w);
  Window h, w;
  if (adaptive) {
    h = adaptive_windows_of(at.y, s.out_h, s.in_h);
    w = adaptive_windows_of(at.x, s.out_w, s.in_w);
  } else {
    h = windows_of(at.y, s.out_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h);
    w = windows_of(at.x, s.out_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w);
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
      if (args.indices[o] == mine) sum += read<T>(args.dtype, args.grad_output, o);
    }
  write<T>(args.dtype, args.grad_input, i, sum);
}

/// The elements of a mean's window that lie inside the input, and what their sum is divided by.
struct MeanWindow {
  Window h, w;
  int64_t divisor;
};
struct Mean {
  Pool2dShape s;
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
    return windows_of(y, s.out_h, s.kernel_h, s.stride_h, s.padding_h, 1);
  }
  __device__ Window cols_of(int64_t x) const {
    return windows_of(x, s.out_w, s.kernel_w, s.stride_w, s.padding_w, 1);
  }
};
struct AdaptiveMean {
  Pool2dShape s;

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
  const Pool2dShape& s = pool.s;
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= s.planes * s.out_h * s.out_w) return;
  const Place at(i, s.out_h, s.out_w);
  const MeanWindow window = pool.window(at.y, at.x);
  const T* plane = in + at.plane * s.in_h * s.in_w;
  C sum = C(0);
  for (int64_t y = window.h.first; y < window.h.last; ++y)
    for (int64_t x = window.w.first; x < window.w.last; ++x) sum += widen(plane[y * s.in_w + x]);
  const bool empty = window.h.first >= window.h.last || window.w.first >= window.w.last;
  out[i] = narrow<T>(empty ? C(0) : sum / static_cast<C>(window.divisor));
}

template <class T, class Pool>
__global__ void mean_gradient(Pool pool, const T* grad, T* grad_in) {
  using C = Compute<T>;
  const Pool2dShape& s = pool.s;
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= s.planes * s.in_h * s.in_w) return;
  const Place at(i, s.in_h, s.in_w);
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

template <class Pool>
void run_mean(const LaunchContext& context, DType dtype, const Pool& pool, const void* in, void* out) {
  visit_mean(dtype, [&]<class T>() {
    start(context, grid_of_outputs(pool.s), kBlock, 0, mean_windows<T, Pool>, pool, static_cast<const T*>(in),
          static_cast<T*>(out));
  });
}
template <class Pool>
void run_mean_gradient(const LaunchContext& context, DType dtype, const Pool& pool, const void* grad,
                       void* grad_in) {
  visit_mean(dtype, [&]<class T>() {
    start(context, grid_of_inputs(pool.s), kBlock, 0, mean_gradient<T, Pool>, pool,
          static_cast<const T*>(grad), static_cast<T*>(grad_in));
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
  visit_ordered(args.dtype, [&]<class T>() {
    start(context, grid_of_outputs(args.shape), kBlock, 0, max_windows<T, false>, args.dtype, args.shape,
          args.input, args.output, args.indices);
  });
}

void adaptive_max_pool2d(const LaunchContext& context, const AdaptiveMaxPool2dArgs& args) {
  visit_ordered(args.dtype, [&]<class T>() {
    start(context, grid_of_outputs(args.shape), kBlock, 0, max_windows<T, true>, args.dtype, args.shape,
          args.input, args.output, args.indices);
  });
}

void max_pool2d_backward(const LaunchContext& context, const MaxPool2dBackwardArgs& args) {
  visit_ordered(args.dtype, [&]<class T>() {
    start(context, grid_of_inputs(args.shape), kBlock, 0, max_gradient<T>, args, !has_windows(args.shape));
  });
}

void avg_pool2d(const LaunchContext& context, const AvgPool2dArgs& args) {
  run_mean(context, args.dtype, Mean{args.shape, args.count_include_pad, args.divisor_override}, args.input,
           args.output);
}
void avg_pool2d_backward(const LaunchContext& context, const AvgPool2dBackwardArgs& args) {
  run_mean_gradient(context, args.dtype, Mean{args.shape, args.count_include_pad, args.divisor_override},
                    args.grad_output, args.grad_input);
}
void adaptive_avg_pool2d(const LaunchContext& context, const AdaptiveAvgPool2dArgs& args) {
  run_mean(context, args.dtype, AdaptiveMean{args.shape}, args.input, args.output);
}
void adaptive_avg_pool2d_backward(const LaunchContext& context, const AdaptiveAvgPool2dBackwardArgs& args) {
  run_mean_gradient(context, args.dtype, AdaptiveMean{args.shape}, args.grad_output, args.grad_input);
}

}  // namespace tern::cuda_backend
