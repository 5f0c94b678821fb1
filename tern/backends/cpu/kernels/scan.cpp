// Running sums, products and extremes, and the gradients of products. A task works on a strip of neighbouring
// columns, so that rows are read as they lie. Rows whose elements are neighbours are turned in pieces, so
// that they are columns; few rows are walked one by one.
#include "tern/kernels/scan.h"

#include <limits>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/transpose.h"
#include "tern/device/backend.h"
#include "tern/kernels/scan_steps.h"

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

/// Rows of `size` neighbouring elements, of which `width` are turned together, `piece` elements of each at a
/// time.
struct TurnedPieces {
  int64_t size, width, piece;

  explicit TurnedPieces(int64_t size_)
      : size(size_),
        width(std::clamp(kTurnedElements / size, kLeastTurned, kMostTurned)),
        piece(std::min(size, kTurnedElements / width)) {}

  /// Calls `f(first, count)` for rows that are turned together.
  template <class F>
  void for_each(int64_t rows, const F& f) const {
    for_row_pieces(rows, width, kScanGrain / (size * width), f);
  }
};

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
  static constexpr A kIdentity = op == ScanOp::Sum    ? A(0)
                                 : op == ScanOp::Prod ? A(1)
                                                      : -std::numeric_limits<A>::infinity();

  [[gnu::always_inline]] static Out put(A a) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Out>(a);
    else
      return static_cast<Out>(static_cast<Compute<T>>(a));
  }
  [[gnu::always_inline]] static void take(A& a, T x) {
    if constexpr (op == ScanOp::Sum)
      a += static_cast<A>(static_cast<Compute<T>>(x));
    else if constexpr (op == ScanOp::LogSumExp)
      a = scan_steps::log_add<Compute<T>>(a, static_cast<A>(static_cast<Compute<T>>(x)));
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
    const int64_t size = args_.size;
    const TurnedPieces turned(size);
    turned.for_each(args_.outer, [&](int64_t first, int64_t count) {
      alignas(64) T x[kTurnedElements];
      alignas(64) Out y[kTurnedElements];
      A sums[kMostTurned];
      std::fill_n(sums, count, kIdentity);
      for (int64_t done = 0; done < size; done += turned.piece) {
        const int64_t n = std::min(turned.piece, size - done), width = turned.width;
        const int64_t at = first * size + (args_.reverse ? size - done - n : done);
        const int64_t start = args_.reverse ? (n - 1) * width : 0;
        transpose_elements(sizeof(T), in_ + at, size, count, n, x, width);
        columns(x + start, y + start, args_.reverse ? -width : width, n, count, sums);
        transpose_elements(sizeof(Out), y, width, n, count, out_ + at, size);
      }
    });
  }

  const ScanArgs& args_;
  const T* in_;
  Out* out_;
};

template <bool largest, class T>
class ScanExtreme {
 public:
  explicit ScanExtreme(const ScanExtremeArgs& args)
      : size_(args.size),
        inner_(args.inner),
        outer_(args.outer),
        in_(static_cast<const T*>(args.in)),
        values_(static_cast<T*>(args.values)),
        indices_(args.indices) {}

  void run() const {
    for_each_strip(outer_, size_, inner_, [&](int64_t start, int64_t width) {
      if (width == 1) return column(start);
      T best[kStrip];
      int64_t places[kStrip];
      std::copy_n(in_ + start, width, best);
      std::fill_n(places, width, 0);
      for (int64_t i = 0; i < size_; ++i, start += inner_)
#pragma GCC ivdep
        for (int64_t j = 0; j < width; ++j) {
          const T x = in_[start + j];
          const bool is_next = takes_over(x, best[j]);
          best[j] = is_next ? x : best[j];
          places[j] = is_next ? i : places[j];
          values_[start + j] = best[j];
          indices_[start + j] = places[j];
        }
    });
  }

 private:
  [[gnu::always_inline]] static bool takes_over(T x, T best) {
    return scan_steps::takes_over(static_cast<Compute<T>>(x), static_cast<Compute<T>>(best), largest);
  }

  void column(int64_t at) const {
    T best = in_[at];
    int64_t place = 0;
    for (int64_t i = 0; i < size_; ++i, at += inner_) {
      const T x = in_[at];
      if (takes_over(x, best)) {
        best = x;
        place = i;
      }
      values_[at] = best;
      indices_[at] = place;
    }
  }

  const int64_t size_, inner_, outer_;
  const T* in_;
  T* values_;
  int64_t* indices_;
};

/// Elements of which few are on the stack.
template <class T>
class Elements {
 public:
  explicit Elements(int64_t count) : many_(count > kTurnedElements ? count : 0) {}
  T* get() { return many_.get() != nullptr ? many_.get() : few_; }

 private:
  alignas(64) T few_[kTurnedElements];
  Scratch<T> many_;
};

/// Down: what stands after an element, which is kept as wide as it is computed. Up: what stands before it.
template <class T>
class ProdBackward {
 public:
  explicit ProdBackward(const ProdBackwardArgs& args)
      : args_(args),
        in_(static_cast<const T*>(args.in)),
        grad_out_(static_cast<const T*>(args.grad_out)),
        grad_in_(static_cast<T*>(args.grad_in)) {}

  void run() const {
    const int64_t size = args_.size, inner = args_.inner;
    if (inner == 1 && args_.outer >= kLeastTurned && size > 1) return turned_rows();
    for_each_strip(args_.outer, size, inner, [&](int64_t start, int64_t width) {
      Elements<A> afters(size * width);
      A running[kStrip];
      begin_down(running, start / (size * inner) * inner + start % inner, width);
      const T* grad_out = args_.cumulative ? grad_out_ + start : nullptr;
      down(in_ + start, grad_out, inner, size, width, running, afters.get(), width);
      std::fill_n(running, width, A(1));
      up(in_ + start, grad_in_ + start, inner, size, width, running, afters.get(), width);
    });
  }

 private:
  using A = ScanAcc<T>;
  static A wide(T x) { return static_cast<A>(static_cast<Compute<T>>(x)); }
  static T narrow(A x) { return static_cast<T>(static_cast<Compute<T>>(x)); }

  /// What stands after the last element of `width` rows or columns, the first of which has number `first`.
  void begin_down(A* running, int64_t first, int64_t width) const {
    for (int64_t j = 0; j < width; ++j) running[j] = args_.cumulative ? A(0) : wide(grad_out_[first + j]);
  }

  /// `size` rows of `width` columns, `step` apart; those of `afters` are `after_step` apart.
  void down(const T* in, const T* grad_out, int64_t step, int64_t size, int64_t width, A* running, A* afters,
            int64_t after_step) const {
    for (int64_t i = size - 1; i >= 0; --i) {
      const T* x = in + i * step;
      A* after = afters + i * after_step;
      if (args_.cumulative) {
        const T* g = grad_out + i * step;
#pragma GCC ivdep
        for (int64_t j = 0; j < width; ++j) {
          after[j] = wide(g[j]) + running[j];
          running[j] = after[j] * wide(x[j]);
        }
      } else {
#pragma GCC ivdep
        for (int64_t j = 0; j < width; ++j) {
          after[j] = running[j];
          running[j] *= wide(x[j]);
        }
      }
    }
  }
  static void up(const T* in, T* grad_in, int64_t step, int64_t size, int64_t width, A* running,
                 const A* afters, int64_t after_step) {
    for (int64_t i = 0; i < size; ++i, in += step, grad_in += step, afters += after_step)
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) {
        grad_in[j] = narrow(afters[j] * running[j]);
        running[j] *= wide(in[j]);
      }
  }

  void turned_rows() const {
    const int64_t size = args_.size;
    const TurnedPieces turned(size);
    turned.for_each(args_.outer, [&](int64_t first, int64_t count) {
      alignas(64) T in[kTurnedElements], grad[kTurnedElements];
      Elements<A> afters(size * turned.width);
      A running[kMostTurned];
      const auto turn = [&](const T* from, int64_t done, int64_t n, T* to) {
        transpose_elements(sizeof(T), from + first * size + done, size, count, n, to, turned.width);
      };
      begin_down(running, first, count);
      const int64_t last = (size - 1) / turned.piece * turned.piece;
      for (int64_t done = last; done >= 0; done -= turned.piece) {
        const int64_t n = std::min(turned.piece, size - done);
        turn(in_, done, n, in);
        if (args_.cumulative) turn(grad_out_, done, n, grad);
        down(in, grad, turned.width, n, count, running, afters.get() + done * turned.width, turned.width);
      }
      std::fill_n(running, count, A(1));
      for (int64_t done = 0; done < size; done += turned.piece) {
        const int64_t n = std::min(turned.piece, size - done);
        if (done > 0) turn(in_, done, n, in);  // the first piece is still there
        up(in, grad, turned.width, n, count, running, afters.get() + done * turned.width, turned.width);
        transpose_elements(sizeof(T), grad, turned.width, n, count, grad_in_ + first * size + done, size);
      }
    });
  }

  const ProdBackwardArgs& args_;
  const T* in_;
  const T* grad_out_;
  T* grad_in_;
};

}  // namespace

void scan(const LaunchContext&, const ScanArgs& args) {
  if (args.op == ScanOp::LogSumExp)
    return visit_floating(args.dtype, [&]<class T>() { Scan<ScanOp::LogSumExp, T>(args).run(); });
  visit_dtype(args.dtype == DType::Bool ? DType::UInt8 : args.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      if (args.op == ScanOp::Sum)
        Scan<ScanOp::Sum, T>(args).run();
      else
        Scan<ScanOp::Prod, T>(args).run();
    }
  });
}

void scan_extreme(const LaunchContext&, const ScanExtremeArgs& args) {
  if (args.size == 0) return;
  visit_dtype(args.dtype == DType::Bool ? DType::UInt8 : args.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      if (args.largest)
        ScanExtreme<true, T>(args).run();
      else
        ScanExtreme<false, T>(args).run();
    }
  });
}

void prod_backward(const LaunchContext&, const ProdBackwardArgs& args) {
  if (args.outer * args.size * args.inner == 0) return;
  visit_floating(args.dtype, [&]<class T>() { ProdBackward<T>(args).run(); });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
