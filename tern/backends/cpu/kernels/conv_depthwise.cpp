// Convolution of groups that have one input channel: registers hold neighbouring pixels of a phase, and each
// tap reads them at its own distance (conv_phases.h).
#include <map>
#include <utility>
#include <vector>

#include "tern/backends/cpu/kernels/conv_phases.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/base/parallel.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t L = kLanes<float>;
/// Taps of a column whose weights are in registers at once, and taps whose sums are.
constexpr int kColumn = 5, kTaps = 9;
/// Elements behind a plane that may be read.
constexpr int64_t kSlack = L;
/// Outputs of a group beyond which a matrix product has enough to do.
constexpr int64_t kMaxOutputs = 4;

/// Taps by columns: those of one read a plane at the same place of successive rows, so that a register of
/// pixels serves as many rows of outputs.
struct TapColumns {
  struct Column {
    int64_t first;  ///< from an output's place to what its first tap reads
    int64_t count;
  };
  int64_t pitch;
  std::vector<Column> columns;
  std::vector<int64_t> order;  ///< the taps of the first column, of the second one, ...

  /// Of the taps at these distances from an output's place.
  TapColumns(std::map<int64_t, int64_t> tap_at, int64_t row_pitch) : pitch(row_pitch) {
    while (!tap_at.empty()) {
      int64_t at = tap_at.begin()->first;
      columns.push_back({at, 0});
      for (auto tap = tap_at.begin(); tap != tap_at.end() && columns.back().count < kColumn;
           tap = tap_at.find(at += pitch)) {
        order.push_back(tap->second);
        tap_at.erase(tap);
        ++columns.back().count;
      }
    }
  }
};

/// What sum_rows writes: max(0, ...) with `relu`.
struct Plane {
  float* to;
  int64_t h, w, pitch;
  float start;
  bool relu;
};

/// sum[r] += sum over k < taps of weight[k] * from[(r + k) * pitch].
template <int rows, int taps>
[[gnu::always_inline]] inline void add_column(Vec<float> (&sum)[rows], const float* weight, const float* from,
                                              int64_t pitch) {
  Vec<float> w[taps];
  TERN_UNROLL for (int k = 0; k < taps; ++k) w[k] = splat(weight[k]);
  TERN_UNROLL for (int r = 0; r < rows + taps - 1; ++r) {
    const Vec<float> v = load(from + r * pitch);
    TERN_UNROLL for (int k = 0; k < taps; ++k) {
      if (r >= k && r - k < rows) sum[r - k] += w[k] * v;
    }
  }
}

/// Outputs [y, y + rows) of the plane; weights in the order of the taps.
template <int rows>
void sum_rows(const TapColumns& taps, const float* weights, const float* from, int64_t y,
              const Plane& plane) {
  for (int64_t x = 0; x < plane.w; x += L) {
    Vec<float> sum[rows];
    TERN_UNROLL for (int r = 0; r < rows; ++r) sum[r] = splat(plane.start);
    const float* weight = weights;
    for (const TapColumns::Column& column : taps.columns) {
      const float* p = from + y * taps.pitch + x + column.first;
      switch (column.count) {
        case 1:
          add_column<rows, 1>(sum, weight, p, taps.pitch);
          break;
        case 2:
          add_column<rows, 2>(sum, weight, p, taps.pitch);
          break;
        case 3:
          add_column<rows, 3>(sum, weight, p, taps.pitch);
          break;
        case 4:
          add_column<rows, 4>(sum, weight, p, taps.pitch);
          break;
        default:
          add_column<rows, kColumn>(sum, weight, p, taps.pitch);
      }
      weight += column.count;
    }
    if (plane.relu) {
      TERN_UNROLL for (int r = 0; r < rows; ++r) sum[r] = relu<float>(sum[r]);
    }
    float* to = plane.to + y * plane.pitch + x;
    if (plane.w - x >= L) {
      TERN_UNROLL for (int r = 0; r < rows; ++r) store(to + r * plane.pitch, sum[r]);
    } else {
      const Tail<float> tail(plane.w - x);
      TERN_UNROLL for (int r = 0; r < rows; ++r) tail.store(to + r * plane.pitch, sum[r]);
    }
  }
}

/// Blocks of rows, the last one of which may overlap the one before.
template <int rows>
void sum_blocks(const TapColumns& taps, const float* weights, const float* from, const Plane& plane) {
  for (int64_t y = 0; y < plane.h; y += rows)
    sum_rows<rows>(taps, weights, from, std::min(y, plane.h - rows), plane);
}

/// to[y, x] = start + sum over the taps of weight * from[y * pitch + x + distance].
void sum_taps(const TapColumns& taps, const float* weights, const float* from, const Plane& plane) {
  const auto rows_computed = [&](int64_t at_once) { return (plane.h + at_once - 1) / at_once * at_once; };
  if (plane.h >= 7 && rows_computed(7) < rows_computed(8))
    sum_blocks<7>(taps, weights, from, plane);
  else if (plane.h >= 8)
    sum_blocks<8>(taps, weights, from, plane);
  else if (plane.h >= 4)
    sum_blocks<4>(taps, weights, from, plane);
  else
    sum_blocks<1>(taps, weights, from, plane);
}

/// sums[t] += sum over m < n of x[m] * from[m + offset[t]]; x is 0 from n up to whole registers.
template <int taps>
void dot_taps(const int64_t* offset, const float* x, const float* from, int64_t n, double* sums) {
  Vec<float> sum[taps] = {};
  for (int64_t m = 0; m < n; m += L) {
    const Vec<float> v = load(x + m);
    TERN_UNROLL for (int t = 0; t < taps; ++t) sum[t] += v * load(from + m + offset[t]);
  }
  for (int t = 0; t < taps; ++t)
    for (int64_t i = 0; i < L; ++i) sums[t] += static_cast<double>(sum[t][i]);
}

/// The same for a number of taps up to kTaps.
template <int taps = kTaps>
void dot_some_taps(int64_t count, const int64_t* offset, const float* x, const float* from, int64_t n,
                   double* sums) {
  if (count == taps)
    dot_taps<taps>(offset, x, from, n, sums);
  else if constexpr (taps > 1)
    dot_some_taps<taps - 1>(count, offset, x, from, n, sums);
}

class Depthwise {
 public:
  explicit Depthwise(const Correlation& c) : c_(c), phases_(c) {
    for (int64_t ky = 0; ky < c.kernel_h; ++ky)
      for (int64_t kx = 0; kx < c.kernel_w; ++kx) offsets_.push_back(phases_.offset(ky, kx));
  }

  void forward(const ForwardOperands<float>& x) const {
    std::map<int64_t, int64_t> tap_at;
    for (int64_t t = 0; t < c_.taps(); ++t) tap_at[offsets_[static_cast<size_t>(t)]] = t;
    const TapColumns taps(std::move(tap_at), phases_.w);
    for_planes([&](int64_t begin, int64_t end) {
      const Scratch<float> image(phases_.channel_size() + kSlack);
      std::fill_n(image.get() + phases_.channel_size(), kSlack, 0.0f);
      std::vector<float> weights;
      for (int64_t item = begin; item < end; ++item) {
        phases_.copy_channel(x.input + item * c_.in_size(), image.get());
        for (int64_t o = 0; o < c_.out_c; ++o) {
          const int64_t channel = item % c_.groups * c_.out_c + o;
          sum_taps(taps, in_order(taps, x.weight + channel * c_.taps(), weights), image.get(),
                   {.to = x.output + (item * c_.out_c + o) * c_.out_size(),
                    .h = c_.out_h,
                    .w = c_.out_w,
                    .pitch = c_.out_w,
                    .start = x.bias ? x.bias[channel] : 0.0f,
                    .relu = x.relu});
        }
      }
    });
  }

  void backward_weight(const float* input, const float* grad_output, float* grad_weight) const {
    parallel_for(c_.groups, grain(c_.batch), [&](int64_t begin, int64_t end) {
      const Scratch<float> image(phases_.channel_size() + kSlack), gradient(phases_.columns() + kSlack);
      std::fill_n(image.get() + phases_.channel_size(), kSlack, 0.0f);
      std::vector<double> weights(static_cast<size_t>(c_.out_c * c_.taps()));
      for (int64_t group = begin; group < end; ++group) {
        std::fill(weights.begin(), weights.end(), 0.0);
        for (int64_t n = 0; n < c_.batch; ++n) {
          const int64_t item = n * c_.groups + group;
          phases_.copy_channel(input + item * c_.in_size(), image.get());
          for (int64_t o = 0; o < c_.out_c; ++o) {
            const float* grad = grad_output + (item * c_.out_c + o) * c_.out_size();
            spread(grad, gradient.get(), phases_.columns() + kSlack);
            dot_all(gradient.get(), image.get(), weights.data() + o * c_.taps());
          }
        }
        for (int64_t i = 0; i < c_.out_c * c_.taps(); ++i)
          grad_weight[group * c_.out_c * c_.taps() + i] = static_cast<float>(weights[static_cast<size_t>(i)]);
      }
    });
  }

  void backward_input(const float* grad_output, const float* weight, float* grad_input) const {
    const int64_t front = phases_.distance(c_.kernel_h - 1, c_.kernel_w - 1);
    const int64_t plane = front + phases_.size() + kSlack;
    std::vector<TapColumns> taps;
    for (int64_t phase = 0; phase < phases_.count(); ++phase) taps.push_back(taps_into(phase, plane));
    for_planes([&](int64_t begin, int64_t end) {
      const Scratch<float> gradients(c_.out_c * plane), image(phases_.channel_size());
      std::fill_n(gradients.get(), c_.out_c * plane, 0.0f);
      std::vector<float> weights;
      for (int64_t item = begin; item < end; ++item) {
        for (int64_t o = 0; o < c_.out_c; ++o)
          spread(grad_output + (item * c_.out_c + o) * c_.out_size(), gradients.get() + o * plane + front,
                 phases_.size() + kSlack);
        for (int64_t phase = 0; phase < phases_.count(); ++phase) {
          const TapColumns& to_phase = taps[static_cast<size_t>(phase)];
          const float* w = weight + item % c_.groups * c_.out_c * c_.taps();
          sum_taps(to_phase, in_order(to_phase, w, weights), gradients.get() + front,
                   {.to = image.get() + phase * phases_.size(),
                    .h = phases_.h,
                    .w = phases_.w,
                    .pitch = phases_.w,
                    .start = 0.0f,
                    .relu = false});
        }
        collect(image.get(), grad_input + item * c_.in_size());
      }
    });
  }

 private:
  int64_t grain(int64_t planes) const {
    return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, planes * phases_.columns() * c_.taps()));
  }
  template <class Body>
  void for_planes(Body&& body) const {
    parallel_for(c_.batch * c_.groups, grain(c_.out_c), body);
  }

  /// The gradient of a plane in rows of a phase, zero between and behind them, `n` elements.
  void spread(const float* grad, float* to, int64_t n) const {
    for (int64_t y = 0; y < c_.out_h; ++y, grad += c_.out_w) {
      std::copy_n(grad, c_.out_w, to + y * phases_.w);
      const int64_t end = y + 1 < c_.out_h ? (y + 1) * phases_.w : n;
      std::fill(to + y * phases_.w + c_.out_w, to + end, 0.0f);
    }
  }

  void dot_all(const float* gradient, const float* image, double* sums) const {
    for (int64_t t = 0; t < c_.taps(); t += kTaps)
      dot_some_taps(std::min<int64_t>(kTaps, c_.taps() - t), offsets_.data() + t, gradient, image,
                    phases_.columns(), sums + t);
  }

  /// The taps of all outputs of a group that read a phase, from its pixels to the gradients, which lie
  /// `plane` apart.
  TapColumns taps_into(int64_t phase, int64_t plane) const {
    std::map<int64_t, int64_t> tap_at;
    for (int64_t o = 0; o < c_.out_c; ++o)
      for (int64_t ky = 0; ky < c_.kernel_h; ++ky)
        for (int64_t kx = 0; kx < c_.kernel_w; ++kx)
          if (phases_.phase_of(ky, kx) == phase)
            tap_at[o * plane - phases_.distance(ky, kx)] = (o * c_.kernel_h + ky) * c_.kernel_w + kx;
    return TapColumns(std::move(tap_at), phases_.w);
  }

  static const float* in_order(const TapColumns& taps, const float* weight, std::vector<float>& to) {
    to.clear();
    for (const int64_t tap : taps.order) to.push_back(weight[tap]);
    return to.data();
  }

  /// The phases of a plane back to its rows; pixels that no tap reads become 0.
  void collect(const float* image, float* plane) const {
    for (int64_t in_y = 0; in_y < c_.in_h; ++in_y, plane += c_.in_w) {
      const int64_t y = in_y + c_.pad_h;
      if (y < 0 || y / c_.stride_h >= phases_.h) {
        std::fill_n(plane, c_.in_w, 0.0f);
        continue;
      }
      const float* rows =
          image + y % c_.stride_h * c_.stride_w * phases_.size() + y / c_.stride_h * phases_.w;
      std::fill_n(plane, c_.in_w, 0.0f);
      for (int64_t j = 0; j < c_.stride_w; ++j, rows += phases_.size()) {
        // Element x of the phase is pixel x * stride_w + first.
        const auto [x0, x1, first] = phases_.inside(j);
        if (c_.stride_w == 1)
          std::copy(rows + x0, rows + x1, plane + x0 + first);
        else
          for (int64_t x = x0; x < x1; ++x) plane[x * c_.stride_w + first] = rows[x];
      }
    }
  }

  const Correlation& c_;
  Phases phases_;
  std::vector<int64_t> offsets_;
};

}  // namespace

bool conv_suits_depthwise(const Correlation& c) {
  return c.in_c == 1 && c.groups > 1 && c.out_c <= kMaxOutputs && c.taps() > 0;
}

void conv_depthwise(const Correlation& c, const ForwardOperands<float>& x) { Depthwise(c).forward(x); }
void conv_depthwise_backward_weight(const Correlation& c, const float* input, const float* grad_output,
                                    float* grad_weight) {
  Depthwise(c).backward_weight(input, grad_output, grad_weight);
}
void conv_depthwise_backward_input(const Correlation& c, const float* grad_output, const float* weight,
                                   float* grad_input) {
  Depthwise(c).backward_input(grad_output, weight, grad_input);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
