// Convolution of groups that have one input channel: registers hold neighbouring pixels of a phase, and each
// tap reads them at its own distance (conv_phases.h).
#include <vector>

#include "tern/backends/cpu/kernels/conv_phases.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/base/parallel.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t L = kLanes<float>;
/// Registers of pixels that one weight is multiplied with, and taps whose sums are kept in registers.
constexpr int kPixels = 4, kTaps = 9;
/// Elements behind a plane that may be read.
constexpr int64_t kSlack = kPixels * L;
/// Outputs of a group beyond which a matrix product has enough to do.
constexpr int64_t kMaxOutputs = 4;

/// to[m] = (add ? to[m] : start) + sum over t of weight[t] * from[m + offset[t]] for m < n, rounded up to
/// registers.
void sum_taps(const std::vector<int64_t>& offset, const float* weight, const float* from, float start,
              bool add, int64_t n, float* to) {
  for (int64_t m = 0; m < n; m += kPixels * L) {
    Vec<float> sum[kPixels];
    TERN_UNROLL for (int i = 0; i < kPixels; ++i) sum[i] = add ? load(to + m + i * L) : splat(start);
    for (size_t t = 0; t < offset.size(); ++t) {
      const Vec<float> w = splat(weight[t]);
      const float* p = from + m + offset[t];
      TERN_UNROLL for (int i = 0; i < kPixels; ++i) sum[i] += w * load(p + i * L);
    }
    TERN_UNROLL for (int i = 0; i < kPixels; ++i) store(to + m + i * L, sum[i]);
  }
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
    for_planes([&](int64_t begin, int64_t end) {
      const Scratch<float> image(phases_.channel_size() + kSlack), sums(phases_.columns() + kSlack);
      std::fill_n(image.get() + phases_.channel_size(), kSlack, 0.0f);
      for (int64_t item = begin; item < end; ++item) {
        phases_.copy_channel(x.input + item * c_.in_size(), image.get());
        for (int64_t o = 0; o < c_.out_c; ++o) {
          const int64_t channel = item % c_.groups * c_.out_c + o;
          sum_taps(offsets_, x.weight + channel * c_.taps(), image.get(), x.bias ? x.bias[channel] : 0.0f,
                   false, phases_.columns(), sums.get());
          float* out = x.output + (item * c_.out_c + o) * c_.out_size();
          for (int64_t y = 0; y < c_.out_h; ++y, out += c_.out_w) {
            const float* row = sums.get() + y * phases_.w;
            for (int64_t i = 0; i < c_.out_w; ++i) out[i] = x.relu && row[i] < 0.0f ? 0.0f : row[i];
          }
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
    for_planes([&](int64_t begin, int64_t end) {
      const Scratch<float> gradient(front + phases_.size() + kSlack), image(phases_.channel_size());
      std::fill_n(gradient.get(), front, 0.0f);
      std::vector<int64_t> distances;
      std::vector<float> weights;
      for (int64_t item = begin; item < end; ++item) {
        for (int64_t o = 0; o < c_.out_c; ++o) {
          spread(grad_output + (item * c_.out_c + o) * c_.out_size(), gradient.get() + front,
                 phases_.size() + kSlack);
          const float* w = weight + (item % c_.groups * c_.out_c + o) * c_.taps();
          for (int64_t phase = 0; phase < phases_.count(); ++phase) {
            taps_of(phase, w, distances, weights);
            sum_into(distances, weights, gradient.get() + front, o > 0, image.get() + phase * phases_.size());
          }
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

  void taps_of(int64_t phase, const float* weight, std::vector<int64_t>& distances,
               std::vector<float>& weights) const {
    distances.clear();
    weights.clear();
    for (int64_t ky = 0; ky < c_.kernel_h; ++ky)
      for (int64_t kx = 0; kx < c_.kernel_w; ++kx)
        if (phases_.phase_of(ky, kx) == phase) {
          distances.push_back(-phases_.distance(ky, kx));
          weights.push_back(weight[ky * c_.kernel_w + kx]);
        }
  }

  /// One phase of the image's gradient, without touching the one behind it.
  void sum_into(const std::vector<int64_t>& distances, const std::vector<float>& weights,
                const float* gradient, bool add, float* to) const {
    const int64_t whole = phases_.size() / kSlack * kSlack, rest = phases_.size() - whole;
    sum_taps(distances, weights.data(), gradient, 0.0f, add, whole, to);
    if (rest == 0) return;
    float last[kSlack] = {};
    std::copy_n(to + whole, add ? rest : 0, last);
    sum_taps(distances, weights.data(), gradient + whole, 0.0f, add, rest, last);
    std::copy_n(last, rest, to + whole);
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
