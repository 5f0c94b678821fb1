// Which inputs each output of a resized axis is made of, and their weights: the rows of a band matrix. The
// formulas are those of PyTorch (aten/src/ATen/native/UpSample.h), computed in C, so that both give the same
// elements where a coordinate falls on an edge.
#pragma once

#include <cstdint>

#include "tern/kernels/cubic.h"
#include "tern/kernels/resize.h"
#include "tern/kernels/target.h"

namespace tern {

struct ResizeWindow {
  std::int64_t first;
  std::int64_t count;
};

/// The rule of an axis, computed in C: double for float64, float for every other dtype. Windows are in order:
/// neither their first nor their last inputs ever go back from one output to the next.
template <class C>
class ResizeRule {
 public:
  explicit ResizeRule(const ResizeAxis& axis)
      : in_(axis.in), out_(axis.out), mode_(axis.mode), align_corners_(axis.align_corners) {
    if (align_corners_)
      step_ = out_ > 1 ? static_cast<C>(in_ - 1) / static_cast<C>(out_ - 1) : C(0);
    else
      step_ = axis.scale > 0 ? static_cast<C>(1 / axis.scale) : static_cast<C>(in_) / static_cast<C>(out_);
    nearest_step_ = axis.scale > 0 ? static_cast<float>(1 / axis.scale)
                                   : static_cast<float>(in_) / static_cast<float>(out_);
    keeps_ = in_ == out_ && (axis.scale == 0 || axis.scale == 1 ||
                             (mode_ != ResizeMode::NearestExact && mode_ != ResizeMode::Cubic));
    const C stretch = step_ >= C(1) ? step_ : C(1);
    support_ = (mode_ == ResizeMode::CubicAntialias ? C(2) : C(1)) * stretch;
    inverse_ = C(1) / stretch;
  }

  /// Whether every output is the input of its number. With equal sizes most modes do not look at a scale.
  TERN_FN bool keeps() const { return keeps_; }

  /// The most inputs that an output can have.
  TERN_FN int64_t most() const {
    int64_t most = 1;
    if (mode_ == ResizeMode::Linear) most = 2;
    if (mode_ == ResizeMode::Cubic) most = 4;
    if (mode_ == ResizeMode::Area) most = (in_ + out_ - 1) / out_ + 1;
    if (is_antialiased()) most = 2 * (whole(support_) + 1) + 1;
    return least(most, in_);
  }

  /// The window of output `o`, whose weights are written to `weights`.
  TERN_FN ResizeWindow window(int64_t o, C* weights) const {
    weights[0] = C(1);
    if (keeps_) return {o, 1};
    switch (mode_) {
      case ResizeMode::Nearest:
        if (out_ == 2 * in_) return {o / 2, 1};
        return {least(whole(nearest_step_ * static_cast<float>(o)), in_ - 1), 1};
      case ResizeMode::NearestExact:
        return {least(whole(static_cast<float>((static_cast<double>(o) + 0.5) * nearest_step_)), in_ - 1), 1};
      case ResizeMode::Linear:
        return linear(o, weights);
      case ResizeMode::Cubic:
        return cubic(o, weights);
      case ResizeMode::Area:
        return area(o, weights);
      default:
        return antialiased(o, weights);
    }
  }

 private:
  TERN_FN static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
  TERN_FN static int64_t largest(int64_t a, int64_t b) { return a > b ? a : b; }
  /// The largest whole number that is not above x.
  template <class F>
  TERN_FN static int64_t whole(F x) {
    const int64_t n = static_cast<int64_t>(x);
    return static_cast<F>(n) > x ? n - 1 : n;
  }
  TERN_FN bool is_antialiased() const {
    return mode_ == ResizeMode::LinearAntialias || mode_ == ResizeMode::CubicAntialias;
  }
  TERN_FN C source(int64_t o) const {
    return align_corners_ ? step_ * static_cast<C>(o) : step_ * (static_cast<C>(o) + C(0.5)) - C(0.5);
  }
  /// How far x is behind input `i`, from 0 to 1.
  TERN_FN static C behind(C x, int64_t i) {
    const C t = x - static_cast<C>(i);
    return t < C(0) ? C(0) : t > C(1) ? C(1) : t;
  }

  TERN_FN ResizeWindow linear(int64_t o, C* weights) const {
    C x = source(o);
    if (x < C(0)) x = C(0);
    const int64_t i = least(whole(x), in_ - 1);
    if (i == in_ - 1) return {i, 1};
    weights[1] = behind(x, i);
    weights[0] = C(1) - weights[1];
    return {i, 2};
  }

  /// Keys's kernel at distances up to 1 and from 1 to 2.

  TERN_FN ResizeWindow cubic(int64_t o, C* weights) const {
    const C x = source(o), a = C(-0.75);
    const int64_t i = least(whole(x), in_ - 1);
    const C t = behind(x, i);
    const C four[4] = {cubic::far_weight(t + C(1), a), cubic::near_weight(t, a),
                       cubic::near_weight(C(1) - t, a), cubic::far_weight(C(2) - t, a)};
    const int64_t first = largest(i - 1, 0), last = least(i + 2, in_ - 1);
    for (int64_t k = 0; k <= last - first; ++k) weights[k] = C(0);
    for (int k = 0; k < 4; ++k) weights[largest(least(i - 1 + k, last), first) - first] += four[k];
    return {first, last - first + 1};
  }

  TERN_FN ResizeWindow area(int64_t o, C* weights) const {
    const int64_t first = o * in_ / out_, count = ((o + 1) * in_ + out_ - 1) / out_ - first;
    for (int64_t k = 0; k < count; ++k) weights[k] = C(1) / static_cast<C>(count);
    return {first, count};
  }

  TERN_FN C filter(C x) const {
    if (x < C(0)) x = -x;
    if (mode_ == ResizeMode::LinearAntialias) return x < C(1) ? C(1) - x : C(0);
    const C a = C(-0.5);
    return x < C(1) ? cubic::near_weight(x, a) : x < C(2) ? cubic::far_weight(x, a) : C(0);
  }
  TERN_FN ResizeWindow antialiased(int64_t o, C* weights) const {
    const C centre = step_ * (static_cast<C>(o) + C(0.5));
    const int64_t first = least(largest(static_cast<int64_t>(centre - support_ + C(0.5)), 0), in_ - 1);
    const int64_t end = least(static_cast<int64_t>(centre + support_ + C(0.5)), in_);
    const int64_t count = largest(least(end - first, most()), 1);
    C sum = C(0);
    for (int64_t k = 0; k < count; ++k) {
      weights[k] = filter((static_cast<C>(k + first) - centre + C(0.5)) * inverse_);
      sum += weights[k];
    }
    for (int64_t k = 0; k < count && sum != C(0); ++k) weights[k] /= sum;
    return {first, count};
  }

  int64_t in_, out_;
  ResizeMode mode_;
  bool align_corners_, keeps_;
  float nearest_step_;   ///< the nearest modes choose in float for every dtype
  C step_;               ///< from one output to the next, in inputs
  C support_, inverse_;  ///< half the width of an antialiasing filter; 1 / how much it has grown
};

}  // namespace tern
