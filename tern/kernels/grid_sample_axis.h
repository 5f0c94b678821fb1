// Which elements of an axis a coordinate of a grid stands for, and their weights. The formulas are those of
// PyTorch (aten/src/ATen/native/GridSampler.h and cpu/GridSamplerKernel.cpp), computed in C. Coordinates that
// are no numbers, or of no size, lead to no element outside.
#pragma once

#include <cmath>
#include <cstdint>

#include "tern/kernels/cubic.h"
#include "tern/kernels/grid_sample.h"
#include "tern/kernels/target.h"

namespace tern {

/// The elements for one coordinate.
template <class C, int kTaps>
struct GridTaps {
  std::int32_t place[kTaps];  ///< -1: outside, where 0 stands
  C weight[kTaps];
  C slope[kTaps];  ///< of the weight, along the coordinate
};

/// The rule of an axis, computed in C: double for float64, float for every other dtype.
template <class C>
class GridAxis {
 public:
  /// `backward`: for gradients, which PyTorch does not give to what is lost.
  GridAxis(const GridPlan& plan, std::int64_t size, bool backward)
      : size_(static_cast<std::int32_t>(size)),
        padding_(plan.padding),
        dropped_(plan.volumes ? 0 : -1),
        last_(static_cast<C>(size - 1)),
        scale_(static_cast<C>(plan.align_corners ? size - 1 : size) / C(2)),
        half_(plan.align_corners ? C(0) : C(0.5)),
        twice_span_(C(4) * scale_) {
    // A place that is no number is the first element in images. In volumes it is the last, and has no
    // gradient.
    if (plan.volumes && plan.mode != GridMode::Cubic) lost_ = backward ? C(-2) : last_;
  }

  GridPadding padding() const { return padding_; }

  template <GridMode mode>
  TERN_FN void find(C coordinate, GridTaps<C, grid_taps(mode)>& taps) const {
    find<mode>(coordinate, padding_, taps);
  }
  /// The same with the padding again, which loops know as a constant.
  template <GridMode mode>
  TERN_FN void find(C coordinate, GridPadding padding, GridTaps<C, grid_taps(mode)>& taps) const {
    const C place = (coordinate + C(1)) * scale_ - half_;
    C slope = scale_;
    if constexpr (mode == GridMode::Nearest) {
      taps.place[0] = element(std::rint(inside(place, padding, slope)));
      taps.weight[0] = C(1);
      taps.slope[0] = C(0);
    } else if constexpr (mode == GridMode::Linear) {
      const C at = inside(place, padding, slope), first = std::floor(at), t = at - first;
      const std::int32_t i = whole(first);
      taps.place[0] = bounded(i);
      taps.place[1] = bounded(i + 1);
      taps.weight[0] = taps.place[0] < dropped_ ? C(0) : C(1) - t;
      taps.weight[1] = taps.place[1] < dropped_ ? C(0) : t;
      taps.slope[0] = -slope;
      taps.slope[1] = slope;
    } else {
      const C first = std::floor(place), t = place - first, u = C(1) - t, a = C(-0.75);
      taps.weight[0] = cubic::far_weight(t + C(1), a);
      taps.weight[1] = cubic::near_weight(t, a);
      taps.weight[2] = cubic::near_weight(u, a);
      taps.weight[3] = cubic::far_weight(u + C(1), a);
      taps.slope[0] = scale_ * cubic::far_slope(t + C(1), a);
      taps.slope[1] = scale_ * cubic::near_slope(t, a);
      taps.slope[2] = -scale_ * cubic::near_slope(u, a);
      taps.slope[3] = -scale_ * cubic::far_slope(u + C(1), a);
      taps.place[0] = element(inside(first - C(1), padding, slope));
      taps.place[1] = element(inside(first, padding, slope));
      taps.place[2] = element(inside(first + C(1), padding, slope));
      taps.place[3] = element(inside(first + C(2), padding, slope));
    }
  }

 private:
  /// Where a place lies after padding, but for zeros. `slope` is multiplied by that of the padding, which is
  /// 0 at the border and beyond. Written without branches.
  TERN_FN C inside(C place, GridPadding padding, C& slope) const {
    if (padding == GridPadding::Zeros) return place;
    if (padding == GridPadding::Reflection) {
      const C from_edge = place + half_, distance = from_edge < C(0) ? -from_edge : from_edge;
      const C periods = std::trunc(distance / twice_span_);
      const C rest = twice_span_ == C(0) ? C(0) : distance - periods * twice_span_;
      const C other = twice_span_ - rest;
      const bool flips = rest > other;
      slope = flips != (from_edge < C(0)) ? -slope : slope;
      place = (flips ? other : rest) - half_;
    }
    const bool within = (place > C(0)) & (place < last_);
    slope = within ? slope : C(0);
    const C lower = place >= last_ ? last_ : place;
    return lower > C(0) ? lower : lower <= C(0) ? C(0) : lost_;
  }

  /// A whole number as such; -2 for those that are too far outside, and for no number.
  TERN_FN std::int32_t whole(C place) const {
    const bool near = (place >= C(-2)) & (place <= last_ + C(1));
    return near ? static_cast<std::int32_t>(place) : -2;
  }
  TERN_FN std::int32_t bounded(std::int32_t i) const {
    return static_cast<std::uint32_t>(i) < static_cast<std::uint32_t>(size_) ? i : -1;
  }
  TERN_FN std::int32_t element(C place) const { return bounded(whole(place)); }

  std::int32_t size_;
  GridPadding padding_;
  std::int32_t dropped_;  ///< places below it have weight 0, even where it is no number
  C last_;                ///< the last element
  C scale_, half_;        ///< from a coordinate to a place
  C twice_span_;          ///< after which reflections begin anew
  C lost_ = C(0);         ///< where a place that is no number lies
};

template <class C>
struct GridAxes {
  GridAxis<C> x, y, z;

  explicit GridAxes(const GridPlan& plan, bool backward)
      : x(plan, plan.w, backward), y(plan, plan.h, backward), z(plan, plan.d, backward) {}
};

}  // namespace tern
