// The line search of L-BFGS, after torch/optim/lbfgs.py.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/optim/lbfgs.h"

namespace tern::optim {
namespace {

struct CubicPoint {
  double x, loss, slope;
};

/// The least point of the cubic through two points with their slopes, within bounds.
double cubic_interpolate(const CubicPoint& a, const CubicPoint& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.x - b.x);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double least = a.x <= b.x ? b.x - (b.x - a.x) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                                  : a.x - (a.x - b.x) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return std::min(std::max(least, low), high);
}

}  // namespace

LBFGS::Found LBFGS::strong_wolfe(const std::function<Evaluation(double)>& evaluate, double step_size,
                                 const Evaluation& start, double slope, int64_t max_evaluations) const {
  constexpr double c1 = 1e-4, c2 = 0.9;
  struct Point : CubicPoint {
    Tensor grad;
  };
  const auto at = [&](double x) {
    Evaluation found = evaluate(x);
    const double inner = dot(found.grad, memory_.direction).item<double>();
    return Point{{x, found.loss, inner}, found.grad};
  };
  const auto rises = [&](const Point& p) { return p.loss > start.loss + c1 * p.x * slope; };
  const auto is_flat = [&](const Point& p) { return std::fabs(p.slope) <= -c2 * slope; };

  // A bracket with a point between its ends that fulfils the Wolfe conditions, or such a point itself.
  const Point origin{{0, start.loss, slope}, start.grad};
  Point before = origin, now = at(step_size);
  int64_t evaluations = 1, iteration = 0;
  std::array<Point, 2> bracket{origin, now};
  bool done = false;
  for (; iteration < max_evaluations; ++iteration) {
    if (rises(now) || (iteration > 1 && now.loss >= before.loss)) {
      bracket = {before, now};
      break;
    }
    if (is_flat(now)) {
      bracket = {now, now};
      done = true;
      break;
    }
    if (now.slope >= 0) {
      bracket = {before, now};
      break;
    }
    const double next = cubic_interpolate(before, now, now.x + 0.01 * (now.x - before.x), now.x * 10);
    before = std::exchange(now, at(next));
    ++evaluations;
  }
  if (iteration >= max_evaluations) bracket = {origin, now};

  // The bracket is made smaller until its lower end fulfils them.
  const double longest = max(abs(memory_.direction)).item<double>();
  bool stalled = false;
  size_t low = bracket[0].loss <= bracket[1].loss ? 0 : 1, high = 1 - low;
  while (!done && iteration < max_evaluations) {
    const double least = std::min(bracket[0].x, bracket[1].x), most = std::max(bracket[0].x, bracket[1].x);
    if ((most - least) * longest < options().tolerance_change) break;
    const double margin = 0.1 * (most - least);
    double next = cubic_interpolate(bracket[0], bracket[1], least, most);
    if (std::min(most - next, next - least) < margin) {
      // Close to an end for the second time, or at it: a step of a tenth away from it.
      if (stalled || next >= most || next <= least) {
        next = std::fabs(next - most) < std::fabs(next - least) ? most - margin : least + margin;
        stalled = false;
      } else {
        stalled = true;
      }
    } else {
      stalled = false;
    }
    now = at(next);
    ++evaluations;
    ++iteration;
    if (rises(now) || now.loss >= bracket[low].loss) {
      bracket[high] = now;
      low = bracket[0].loss <= bracket[1].loss ? 0 : 1;
      high = 1 - low;
    } else {
      if (is_flat(now))
        done = true;
      else if (now.slope * (bracket[high].x - bracket[low].x) >= 0)
        bracket[high] = bracket[low];
      bracket[low] = now;
    }
  }
  return {bracket[low].x, {bracket[low].loss, bracket[low].grad}, evaluations};
}

}  // namespace tern::optim
