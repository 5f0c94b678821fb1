// Running sums and products, and the gradients of products. A task works on a strip of neighbouring columns,
// so that rows are read as they lie. Rows whose elements are neighbours are turned in pieces, so that they
// are columns; few rows are walked one by one.
#include <array>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/transpose.h"
#include "tern/device/backend.h"
#include "tern/kernels/scan.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kStrip = 64;
constexpr int64_t kScanGrain = 16384;
/// Rows that are turned together, and the elements of a piece of them.
constexpr int64_t kLeastTurned = 16, kMostTurned = 256;
constexpr int64_t kTurnedElements = 2048;

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
class Scan {
 public:
  explicit Scan(const ScanArgs& args)
      : args_(args), in_(static_cast<const T*>(args.in)), out_(static_cast<Out*>(args.out)) {}

  void run() const {
    if (args_.inner == 1 && args_.outer >= kLeastTurned && args_.size > 1) return turned_rows();
    const int64_t size = args_.size, inner = args_.inner, step = args_.reverse ? -inner : inner;
    for_each_strip(args_.outer, size, inner, [&](int64_t start, int64_t width) {
      if (args_.reverse) start += (size - 1) * inner;
      if (width == 1) return row(in_ + start, out_ + start, step);
      A sums[kStrip];
      std::fill_n(sums, kStrip, kIdentity);
      columns(in_ + start, out_ + start, step, size, width, sums);
    });
  }

 private:
  using A = ScanAcc<T>;
  using Out = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  static constexpr A kIdentity = op == ScanOp::Sum ? A(0) : A(1);

  [[gnu::always_inline]] static Out put(A a) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Out>(a);
    else
      return static_cast<Out>(static_cast<Compute<T>>(a));
  }
  [[gnu::always_inline]] static void take(A& a, T x) {
    if constexpr (op == ScanOp::Sum)
      a += static_cast<A>(static_cast<Compute<T>>(x));
    else
      a *= static_cast<A>(static_cast<Compute<T>>(x));
  }

  void row(const T* x, Out* y, int64_t step) const {
    A a = kIdentity;
    for (int64_t i = 0; i < args_.size; ++i) {
      take(a, x[i * step]);
      y[i * step] = put(a);
    }
  }

  /// `size` rows of `width` columns that go on from `sums`.
  static void columns(const T* x, Out* y, int64_t step, int64_t size, int64_t width, A* sums) {
    for (int64_t i = 0; i < size; ++i, x += step, y += step)
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) {
        take(sums[j], x[j]);
        y[j] = put(sums[j]);
      }
  }

  void turned_rows() const {
    const int64_t size = args_.size, rows = args_.outer;
    const int64_t width = std::clamp(kTurnedElements / size, kLeastTurned, kMostTurned);
    const int64_t piece = std::min(size, kTurnedElements / width), tiles = (rows + width - 1) / width;
    parallel_for(tiles, std::max<int64_t>(1, kScanGrain / (size * width)), [&](int64_t begin, int64_t end) {
      alignas(64) T x[kTurnedElements];
      alignas(64) Out y[kTurnedElements];
      for (int64_t first = begin * width; first < std::min(rows, end * width); first += width) {
        const int64_t count = std::min(width, rows - first);
        A sums[kMostTurned];
        std::fill_n(sums, width, kIdentity);
        for (int64_t done = 0; done < size; done += piece) {
          const int64_t n = std::min(piece, size - done);
          const int64_t at = first * size + (args_.reverse ? size - done - n : done);
          const int64_t start = args_.reverse ? (n - 1) * width : 0;
          transpose_elements(sizeof(T), in_ + at, size, count, n, x, width);
          columns(x + start, y + start, args_.reverse ? -width : width, n, count, sums);
          transpose_elements(sizeof(Out), y, width, n, count, out_ + at, size);
        }
      }
    });
  }

  const ScanArgs& args_;
  const T* in_;
  Out* out_;
};

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
        Scan<ScanOp::Sum, T>(args).run();
      else
        Scan<ScanOp::Prod, T>(args).run();
    }
  });
}

void prod_backward(const LaunchContext&, const ProdBackwardArgs& args) {
  if (args.outer * args.size * args.inner == 0) return;
  visit_floating(args.dtype, [&]<class T>() { prod_backward_typed<T>(args); });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
