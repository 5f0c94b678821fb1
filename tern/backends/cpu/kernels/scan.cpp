// Running sums and products, and the gradients of products. A task works on a strip of neighbouring columns,
// so that rows are read as they lie; single rows are walked by one thread.
#include <array>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/device/backend.h"
#include "tern/kernels/scan.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kStrip = 64;
constexpr int64_t kScanGrain = 16384;

/// Integers add and multiply modulo 2^64.
template <class T>
using ScanAcc = std::conditional_t<std::is_integral_v<Compute<T>>, uint64_t,
                                   std::conditional_t<std::is_same_v<T, float>, double, Compute<T>>>;

/// Calls `strip(start, width)` for strips of up to kStrip neighbouring columns of [outer, size, inner].
template <class Strip>
void for_each_strip(int64_t outer, int64_t size, int64_t inner, const Strip& strip) {
  const int64_t strips = (inner + kStrip - 1) / kStrip;
  const int64_t work = std::max<int64_t>(1, size * std::min(inner, kStrip));
  parallel_for(outer * strips, std::max<int64_t>(1, kScanGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % strips * kStrip;
      strip(task / strips * size * inner + first, std::min(kStrip, inner - first));
    }
  });
}

template <ScanOp op, class T>
void scan_typed(const ScanArgs& args) {
  using A = ScanAcc<T>;
  using Out = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  const int64_t size = args.size, inner = args.inner;
  const int64_t step = args.reverse ? -inner : inner;
  auto put = [](A a) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Out>(a);
    else
      return static_cast<Out>(static_cast<Compute<T>>(a));
  };
  auto take = [](A& a, T x) {
    if constexpr (op == ScanOp::Sum)
      a += static_cast<A>(static_cast<Compute<T>>(x));
    else
      a *= static_cast<A>(static_cast<Compute<T>>(x));
  };
  for_each_strip(args.outer, size, inner, [&](int64_t start, int64_t width) {
    if (args.reverse) start += (size - 1) * inner;
    const T* x = static_cast<const T*>(args.in) + start;
    Out* y = static_cast<Out*>(args.out) + start;
    if (width == 1) {
      A a = op == ScanOp::Sum ? A(0) : A(1);
      for (int64_t i = 0; i < size; ++i) {
        take(a, x[i * step]);
        y[i * step] = put(a);
      }
      return;
    }
    A a[kStrip];
    std::fill_n(a, kStrip, op == ScanOp::Sum ? A(0) : A(1));
    for (int64_t i = 0; i < size; ++i) {
      const T* from = x + i * step;
      Out* to = y + i * step;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) {
        take(a[j], from[j]);
        to[j] = put(a[j]);
      }
    }
  });
}

template <class T>
void prod_backward_typed(const ProdBackwardArgs& args) {
  using A = ScanAcc<T>;
  using C = Compute<T>;
  const int64_t size = args.size, inner = args.inner;
  const T* in = static_cast<const T*>(args.in);
  const T* grad_out = static_cast<const T*>(args.grad_out);
  T* grad_in = static_cast<T*>(args.grad_in);
  for_each_strip(args.outer, size, inner, [&](int64_t start, int64_t width) {
    // Down: what stands after k. Up: what stands before it.
    A after[kStrip];
    std::array<A, kStrip> before;
    before.fill(A(1));
    if (args.cumulative)
      std::fill_n(after, kStrip, A(0));
    else
      for (int64_t j = 0; j < width; ++j)
        after[j] =
            static_cast<A>(static_cast<C>(grad_out[start / (size * inner) * inner + start % inner + j]));
    for (int64_t i = size - 1; i >= 0; --i) {
      const int64_t row = start + i * inner;
      for (int64_t j = 0; j < width; ++j) {
        const A x = static_cast<A>(static_cast<C>(in[row + j]));
        if (args.cumulative) {
          const A sum = static_cast<A>(static_cast<C>(grad_out[row + j])) + after[j];
          grad_in[row + j] = static_cast<T>(static_cast<C>(sum));
          after[j] = sum * x;
        } else {
          grad_in[row + j] = static_cast<T>(static_cast<C>(after[j]));
          after[j] *= x;
        }
      }
    }
    for (int64_t i = 0; i < size; ++i) {
      const int64_t row = start + i * inner;
      for (int64_t j = 0; j < width; ++j) {
        const A sum = static_cast<A>(static_cast<C>(grad_in[row + j]));
        grad_in[row + j] = static_cast<T>(static_cast<C>(sum * before[static_cast<size_t>(j)]));
        before[static_cast<size_t>(j)] *= static_cast<A>(static_cast<C>(in[row + j]));
      }
    }
  });
}

}  // namespace

void scan(const LaunchContext&, const ScanArgs& args) {
  visit_dtype(args.dtype == DType::Bool ? DType::UInt8 : args.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      if (args.op == ScanOp::Sum)
        scan_typed<ScanOp::Sum, T>(args);
      else
        scan_typed<ScanOp::Prod, T>(args);
    }
  });
}

void prod_backward(const LaunchContext&, const ProdBackwardArgs& args) {
  if (args.outer * args.size * args.inner == 0) return;
  visit_floating(args.dtype, [&]<class T>() { prod_backward_typed<T>(args); });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
