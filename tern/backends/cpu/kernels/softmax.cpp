// Softmax, log_softmax, logsumexp. Rows that fit the cache are read from memory once; longer ones are cut in
// pieces, each with a maximum and a sum of its own. The gradients are in softmax_backward.cpp.
#include "tern/backends/cpu/kernels/softmax.h"

#include "tern/device/backend.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

using namespace softmax_detail;

/// The maximum of some elements, and the sum of exp(x - maximum) over them.
template <class C>
struct ExpSum {
  C max;
  C sum;

  C log() const { return std::isinf(max) ? max : max + math::log(sum); }
};

template <class T>
ExpSum<Compute<T>> exp_sum(const T* x, int64_t n) {
  using C = Compute<T>;
  Geometry<1> g;
  g.ndim = 1;
  g.numel = g.sizes[0] = n;
  g.strides[0][0] = 1;
  const C max = wide::reduce_row(wide::Max<T>{}, x, g, 0, n);
  if (max == -std::numeric_limits<C>::infinity()) return {max, C(0)};
  return {max, sum_blocks<T>(n, [&](C* block, int64_t first, int64_t count) {
            const C* values = to_compute(x + first, count, block);
            for (int64_t i = 0; i < count; ++i) block[i] = math::exp_nonpositive(values[i] - max);
          })};
}

template <class C>
ExpSum<C> merge(const ExpSum<C>* parts, int64_t count) {
  ExpSum<C> all = parts[0];
  for (int64_t i = 1; i < count; ++i) wide::take_extreme<true, C>(all.max, parts[i].max);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const C scale = parts[i].max == all.max ? C(1) : math::exp_nonpositive(parts[i].max - all.max);
    sum += static_cast<double>(parts[i].sum) * static_cast<double>(scale);
  }
  all.sum = static_cast<C>(sum);
  return all;
}

/// `width` <= kMaxTile neighbouring columns of `size` elements, each a row of `inner` apart.
template <class T>
class Columns {
 public:
  using C = Compute<T>;

  Columns(const T* x, int64_t size, int64_t inner, int64_t width)
      : x_(x), size_(size), inner_(inner), width_(width) {
    std::fill_n(max_, width, kLowest);
    std::fill_n(sum_, width, C(0));
    for (int64_t first = 0; first < size; first += kFlush) add_rows(first, std::min(size, first + kFlush));
  }

  void log_sum_exp(T* y) const {
    for (int64_t j = 0; j < width_; ++j) y[j] = static_cast<T>(ExpSum<C>{max_[j], sum_[j]}.log());
  }

  void softmax(T* y, bool stream) {
#pragma GCC ivdep
    for (int64_t j = 0; j < width_; ++j) sum_[j] = C(1) / sum_[j];
    write(y, stream, [](C value, C max, C scale) { return math::exp_nonpositive(value - max) * scale; });
  }

  void log_softmax(T* y, bool stream) {
#pragma GCC ivdep
    for (int64_t j = 0; j < width_; ++j) sum_[j] = math::log(sum_[j]);
    write(y, stream, [](C value, C max, C log_sum) { return value - max - log_sum; });
  }

  void run(SoftmaxOp op, T* y, bool stream) {
    if (op == SoftmaxOp::LogSumExp)
      log_sum_exp(y);
    else if (op == SoftmaxOp::LogSoftmax)
      log_softmax(y, stream);
    else
      softmax(y, stream);
  }

 private:
  static constexpr C kLowest = -std::numeric_limits<C>::infinity();

  /// Takes the rows [begin, end) into the maxima and the sums, which are brought to the new maxima.
  void add_rows(int64_t begin, int64_t end) {
    C buffer[kMaxTile], max[kMaxTile], part[kMaxTile];
    std::copy_n(max_, width_, max);
    for (int64_t i = begin; i < end; ++i) {
      const C* row = to_compute(x_ + i * inner_, width_, buffer);
#pragma GCC ivdep
      for (int64_t j = 0; j < width_; ++j) wide::take_extreme<true, C>(max[j], row[j]);
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < width_; ++j) {
      sum_[j] *= max_[j] == max[j] ? C(1) : math::exp_nonpositive(max_[j] - max[j]);
      max_[j] = max[j];
      max[j] = max[j] == kLowest ? C(0) : max[j];
      part[j] = C(0);
    }
    for (int64_t i = begin; i < end; ++i) {
      const C* row = to_compute(x_ + i * inner_, width_, buffer);
#pragma GCC ivdep
      for (int64_t j = 0; j < width_; ++j) part[j] += math::exp_nonpositive(row[j] - max[j]);
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < width_; ++j) sum_[j] += part[j];
  }

  template <class F>
  void write(T* y, bool stream, const F& f) const {
    for (int64_t i = 0; i < size_; ++i)
      write_blocks(y + i * inner_, width_, stream, [&](C* block, int64_t, int64_t) {
        const C* row = to_compute(x_ + i * inner_, width_, block);
#pragma GCC ivdep
        for (int64_t j = 0; j < width_; ++j) block[j] = f(row[j], max_[j], sum_[j]);
      });
  }

  const T* x_;
  int64_t size_, inner_, width_;
  C max_[kMaxTile], sum_[kMaxTile];
};

/// Rows that wide::reduce_rows takes, in pieces that stay in the first cache; each loop runs over a whole
/// piece.
template <class T>
void short_rows(const SoftmaxArgs& args) {
  using C = Compute<T>;
  const int64_t size = args.shape.size;
  const bool stream = args.op != SoftmaxOp::LogSumExp && streams<T>(args.shape);
  for_row_pieces(args.shape.outer, kTogether / size, grain(kTogether), [&](int64_t first, int64_t rows) {
    alignas(64) C values[kTogether], maxima[kTogether], exps[kTogether];
    C max[kTogether / kShortest], sum[kTogether / kShortest];
    const int64_t n = rows * size;
    const C* x = to_compute(static_cast<const T*>(args.in) + first * size, n, values);
    reduce_short_rows<wide::Max>(x, rows, size, max);
    spread_over_rows(max, rows, size, maxima);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) exps[i] = math::exp_nonpositive(x[i] - maxima[i]);
    reduce_short_rows<wide::Sum>(exps, rows, size, sum);
    T* out = static_cast<T*>(args.out) + first * (args.op == SoftmaxOp::LogSumExp ? 1 : size);
    if (args.op == SoftmaxOp::LogSumExp) {
      for (int64_t r = 0; r < rows; ++r) out[r] = static_cast<T>(ExpSum<C>{max[r], sum[r]}.log());
    } else if (args.op == SoftmaxOp::Softmax) {
#pragma GCC ivdep
      for (int64_t r = 0; r < rows; ++r) sum[r] = C(1) / sum[r];
      C* scales = maxima;
      spread_over_rows(sum, rows, size, scales);
      write_blocks(out, n, stream, [&](C* block, int64_t start, int64_t count) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) block[i] = exps[start + i] * scales[start + i];
      });
    } else {
#pragma GCC ivdep
      for (int64_t r = 0; r < rows; ++r) sum[r] = math::log(sum[r]);
      C* log_sums = exps;
      spread_over_rows(sum, rows, size, log_sums);
      write_blocks(out, n, stream, [&](C* block, int64_t start, int64_t count) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) block[i] = x[start + i] - maxima[start + i] - log_sums[start + i];
      });
    }
    end_stream(stream);
  });
}

/// Rows of so few elements that a loop over one is not worth it.
template <class T>
void rows_of_few(const SoftmaxArgs& args) {
  const int64_t size = args.shape.size;
  for_row_pieces(args.shape.outer, kTurnedRows, grain(kTurnedRows * size), [&](int64_t first, int64_t rows) {
    alignas(64) Compute<T> turned[kTurned], results[kTurned];
    turn_rows(static_cast<const T*>(args.in) + first * size, rows, size, turned);
    Columns<Compute<T>>(turned, size, kTurnedRows, rows).run(args.op, results, false);
    if (args.op == SoftmaxOp::LogSumExp)
      from_compute(static_cast<T*>(args.out) + first, results, rows);
    else
      turn_back(results, rows, size, static_cast<T*>(args.out) + first * size);
  });
}

template <class T>
class LongerRows {
 public:
  using C = Compute<T>;

  explicit LongerRows(const SoftmaxArgs& args)
      : op_(args.op),
        in_(static_cast<const T*>(args.in)),
        out_(static_cast<T*>(args.out)),
        rows_(args.shape.outer),
        size_(args.shape.size),
        stream_(args.op != SoftmaxOp::LogSumExp && streams<T>(args.shape)) {}

  void run() const {
    if (size_ >= kLongRow) return long_rows();
    parallel_for(rows_, grain(size_), [&](int64_t begin, int64_t end) {
      C few[kBlock];
      Scratch<C> many(op_ == SoftmaxOp::Softmax && size_ > kBlock ? size_ : 0);
      for (int64_t r = begin; r < end; ++r) {
        if (size_ <= kBlock || op_ == SoftmaxOp::Softmax)
          short_row(r, size_ > kBlock ? many.get() : few);
        else if (op_ == SoftmaxOp::LogSumExp)
          out_[r] = static_cast<T>(exp_sum(in_ + r * size_, size_).log());
        else
          log_softmax(r * size_, size_, exp_sum(in_ + r * size_, size_));
      }
      end_stream(stream_);
    });
  }

 private:
  /// A row whose exponentials are kept in `exps`.
  void short_row(int64_t r, C* exps) const {
    const int64_t start = r * size_;
    const C* values = to_compute(in_ + start, size_, exps);
    const C max = reduce_dense<C, wide::Max>(values, size_);
#pragma GCC ivdep
    for (int64_t i = 0; i < size_; ++i) exps[i] = math::exp_nonpositive(values[i] - max);
    const ExpSum<C> stat{max, reduce_dense<C, wide::Sum>(exps, size_)};
    if (op_ == SoftmaxOp::LogSumExp) {
      out_[r] = static_cast<T>(stat.log());
    } else if (op_ == SoftmaxOp::LogSoftmax) {
      log_softmax(start, size_, stat);
    } else {
      const C scale = C(1) / stat.sum;
      write_blocks(out_ + start, size_, stream_, [&](C* block, int64_t first, int64_t count) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) block[i] = exps[first + i] * scale;
      });
    }
  }

  void softmax(int64_t start, int64_t n, const ExpSum<C>& stat) const {
    const T* x = in_ + start;
    const C scale = C(1) / stat.sum;
    write_blocks(out_ + start, n, stream_, [&](C* block, int64_t first, int64_t count) {
      const C* values = to_compute(x + first, count, block);
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) block[i] = math::exp_nonpositive(values[i] - stat.max) * scale;
    });
  }

  void log_softmax(int64_t start, int64_t n, const ExpSum<C>& stat) const {
    const T* x = in_ + start;
    const C log_sum = math::log(stat.sum);
    write_blocks(out_ + start, n, stream_, [&](C* block, int64_t first, int64_t count) {
      const C* values = to_compute(x + first, count, block);
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) block[i] = values[i] - stat.max - log_sum;
    });
  }

  void long_rows() const {
    const int64_t pieces = (size_ + kPiece - 1) / kPiece;
    auto length = [&](int64_t piece) { return std::min(kPiece, size_ - piece * kPiece); };
    Scratch<ExpSum<C>> stats(rows_ * pieces);
    parallel_for(rows_ * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t r = task / pieces, piece = task % pieces;
        stats.get()[task] = exp_sum(in_ + r * size_ + piece * kPiece, length(piece));
      }
    });
    for (int64_t r = 0; r < rows_; ++r) {
      ExpSum<C>* row = stats.get() + r * pieces;
      row[0] = merge(row, pieces);
      if (op_ == SoftmaxOp::LogSumExp) out_[r] = static_cast<T>(row[0].log());
    }
    if (op_ == SoftmaxOp::LogSumExp) return;
    parallel_for(rows_ * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t r = task / pieces, piece = task % pieces;
        const ExpSum<C>& stat = stats.get()[r * pieces];
        if (op_ == SoftmaxOp::Softmax)
          softmax(r * size_ + piece * kPiece, length(piece), stat);
        else
          log_softmax(r * size_ + piece * kPiece, length(piece), stat);
      }
      end_stream(stream_);
    });
  }

  SoftmaxOp op_;
  const T* in_;
  T* out_;
  int64_t rows_, size_;
  bool stream_;
};

template <class T>
void columns(const SoftmaxArgs& args) {
  const SoftmaxShape& s = args.shape;
  const int64_t tile = tile_width<T>(s);
  const int64_t tiles = (s.inner + tile - 1) / tile;
  const int64_t out_step = args.op == SoftmaxOp::LogSumExp ? s.inner : s.size * s.inner;
  const bool stream = args.op != SoftmaxOp::LogSumExp && streams<T>(s);
  parallel_for(s.outer * tiles, grain(s.size * tile), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / tiles, first = task % tiles * tile;
      Columns<T> columns(static_cast<const T*>(args.in) + o * s.size * s.inner + first, s.size, s.inner,
                         std::min(tile, s.inner - first));
      columns.run(args.op, static_cast<T*>(args.out) + o * out_step + first, stream);
    }
    end_stream(stream);
  });
}

}  // namespace

void softmax(const LaunchContext&, const SoftmaxArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    if (args.shape.inner != 1) {
      columns<T>(args);
    } else if (args.shape.size == 0) {
      if (args.op == SoftmaxOp::LogSumExp)
        std::fill_n(static_cast<T*>(args.out), args.shape.outer,
                    static_cast<T>(-std::numeric_limits<Compute<T>>::infinity()));
    } else if (args.shape.size < kShortest) {
      rows_of_few<T>(args);
    } else if (args.shape.size <= kLongest) {
      short_rows<T>(args);
    } else {
      LongerRows<T>(args).run();
    }
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
