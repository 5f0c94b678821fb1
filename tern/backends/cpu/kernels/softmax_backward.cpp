// The gradients of softmax and log_softmax.
#include "tern/backends/cpu/kernels/softmax.h"
#include "tern/device/backend.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

using namespace softmax_detail;

template <class T>
struct Piece {
  using C = Compute<T>;
  const T* grad;
  const T* out;
  T* result;

  /// What the gradient needs the sum of: grad * out, or grad.
  C sum(SoftmaxOp op, int64_t n) const {
    return sum_blocks<T>(n, [&](C* block, int64_t first, int64_t count) {
      C other[kBlock];
      const C* g = to_compute(grad + first, count, block);
      if (op == SoftmaxOp::LogSoftmax) {
        if (g != block) std::copy_n(g, count, block);
        return;
      }
      const C* y = to_compute(out + first, count, other);
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) block[i] = g[i] * y[i];
    });
  }

  void write(SoftmaxOp op, int64_t n, C sum, bool stream) const {
    write_blocks(result, n, stream, [&](C* block, int64_t first, int64_t count) {
      C one[kBlock], two[kBlock];
      const C* g = to_compute(grad + first, count, one);
      const C* y = to_compute(out + first, count, two);
      if (op == SoftmaxOp::LogSoftmax) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) block[i] = g[i] - math::exp_nonpositive(y[i]) * sum;
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) block[i] = (g[i] - sum) * y[i];
      }
    });
  }
};

template <class T>
Piece<T> piece_at(const SoftmaxBackwardArgs& args, int64_t start) {
  return {static_cast<const T*>(args.grad_out) + start, static_cast<const T*>(args.out) + start,
          static_cast<T*>(args.grad_in) + start};
}

/// `width` <= kMaxTile neighbouring columns of `size` elements, each a row of `inner` apart.
template <class T>
void one_tile(SoftmaxOp op, const Piece<T>& p, int64_t size, int64_t inner, int64_t width, bool stream) {
  using C = Compute<T>;
  const bool log = op == SoftmaxOp::LogSoftmax;
  C one[kMaxTile], two[kMaxTile], sum[kMaxTile], part[kMaxTile];
  std::fill_n(sum, width, C(0));
  for (int64_t first = 0; first < size; first += kFlush) {
    std::fill_n(part, width, C(0));
    for (int64_t i = first; i < std::min(size, first + kFlush); ++i) {
      const C* g = to_compute(p.grad + i * inner, width, one);
      if (log) {
#pragma GCC ivdep
        for (int64_t j = 0; j < width; ++j) part[j] += g[j];
      } else {
        const C* y = to_compute(p.out + i * inner, width, two);
#pragma GCC ivdep
        for (int64_t j = 0; j < width; ++j) part[j] += g[j] * y[j];
      }
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < width; ++j) sum[j] += part[j];
  }
  for (int64_t i = 0; i < size; ++i)
    write_blocks(p.result + i * inner, width, stream, [&](C* block, int64_t, int64_t) {
      const C* g = to_compute(p.grad + i * inner, width, one);
      const C* y = to_compute(p.out + i * inner, width, two);
      if (log) {
#pragma GCC ivdep
        for (int64_t j = 0; j < width; ++j) block[j] = g[j] - math::exp_nonpositive(y[j]) * sum[j];
      } else {
#pragma GCC ivdep
        for (int64_t j = 0; j < width; ++j) block[j] = (g[j] - sum[j]) * y[j];
      }
    });
}

/// What the gradient needs the sum of. Not inlined: GCC takes the result for uninitialized.
template <class C>
[[gnu::noinline]] void sum_terms(C* terms, bool log, const C* g, const C* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) terms[i] = log ? g[i] : g[i] * y[i];
}

/// Rows that wide::reduce_rows takes, as in softmax.cpp.
template <class T>
void short_row_gradients(const SoftmaxBackwardArgs& args) {
  using C = Compute<T>;
  const int64_t size = args.shape.size;
  const bool log = args.op == SoftmaxOp::LogSoftmax, stream = streams<T>(args.shape);
  for_row_pieces(args.shape.outer, kTogether / size, grain(kTogether), [&](int64_t first, int64_t rows) {
    const Piece<T> piece = piece_at<T>(args, first * size);
    alignas(64) C one[kTogether], two[kTogether], sums[kTogether];
    C sum[kTogether / kShortest];
    const int64_t n = rows * size;
    const C* g = to_compute(piece.grad, n, one);
    const C* y = to_compute(piece.out, n, two);
    sum_terms(sums, log, g, y, n);
    reduce_short_rows<wide::Sum>(sums, rows, size, sum);
    spread_over_rows(sum, rows, size, sums);
    write_blocks(piece.result, n, stream, [&](C* block, int64_t start, int64_t count) {
      if (log) {
#pragma GCC ivdep
        for (int64_t i = start; i < start + count; ++i)
          block[i - start] = g[i] - math::exp_nonpositive(y[i]) * sums[i];
      } else {
#pragma GCC ivdep
        for (int64_t i = start; i < start + count; ++i) block[i - start] = (g[i] - sums[i]) * y[i];
      }
    });
    end_stream(stream);
  });
}

/// Rows that are turned, as in softmax.cpp.
template <class T>
void few_gradients(const SoftmaxBackwardArgs& args) {
  using C = Compute<T>;
  const int64_t size = args.shape.size;
  for_row_pieces(args.shape.outer, kTurnedRows, grain(kTurnedRows * size), [&](int64_t first, int64_t rows) {
    const Piece<T> piece = piece_at<T>(args, first * size);
    alignas(64) C grad[kTurned], out[kTurned], results[kTurned];
    turn_rows(piece.grad, rows, size, grad);
    turn_rows(piece.out, rows, size, out);
    one_tile(args.op, Piece<C>{grad, out, results}, size, kTurnedRows, rows, false);
    turn_back(results, rows, size, piece.result);
  });
}

template <class T>
void rows(const SoftmaxBackwardArgs& args) {
  using C = Compute<T>;
  const int64_t size = args.shape.size, outer = args.shape.outer;
  const bool stream = streams<T>(args.shape);
  if (size < kLongRow) {
    parallel_for(outer, grain(size), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const Piece<T> piece = piece_at<T>(args, r * size);
        piece.write(args.op, size, piece.sum(args.op, size), stream);
      }
      end_stream(stream);
    });
    return;
  }
  const int64_t pieces = (size + kPiece - 1) / kPiece;
  Scratch<C> sums(outer * pieces);
  auto for_each_piece = [&](const auto& body) {
    parallel_for(outer * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task % pieces * kPiece;
        body(task, piece_at<T>(args, task / pieces * size + first), std::min(kPiece, size - first));
      }
      end_stream(stream);
    });
  };
  for_each_piece(
      [&](int64_t task, const Piece<T>& piece, int64_t n) { sums.get()[task] = piece.sum(args.op, n); });
  for (int64_t r = 0; r < outer; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < pieces; ++i) sum += static_cast<double>(sums.get()[r * pieces + i]);
    sums.get()[r * pieces] = static_cast<C>(sum);
  }
  for_each_piece([&](int64_t task, const Piece<T>& piece, int64_t n) {
    piece.write(args.op, n, sums.get()[task / pieces * pieces], stream);
  });
}

template <class T>
void columns(const SoftmaxBackwardArgs& args) {
  const SoftmaxShape& s = args.shape;
  const int64_t tile = tile_width<T>(s);
  const int64_t tiles = (s.inner + tile - 1) / tile;
  const bool stream = streams<T>(s);
  parallel_for(s.outer * tiles, grain(s.size * tile), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % tiles * tile;
      one_tile(args.op, piece_at<T>(args, task / tiles * s.size * s.inner + first), s.size, s.inner,
               std::min(tile, s.inner - first), stream);
    }
    end_stream(stream);
  });
}

}  // namespace

void softmax_backward(const LaunchContext&, const SoftmaxBackwardArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    if (args.shape.inner != 1)
      columns<T>(args);
    else if (args.shape.size < kShortest)
      few_gradients<T>(args);
    else if (args.shape.size <= kLongest)
      short_row_gradients<T>(args);
    else
      rows<T>(args);
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
