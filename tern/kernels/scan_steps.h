// What scans of every backend do from one element to the next.
#pragma once

#include <numbers>

#include "tern/kernels/functors.h"

namespace tern::scan_steps {

/// log(e^a + e^b) in a wide running sum; the growth alone is computed in C, as narrow as the elements.
template <class C, class A>
TERN_FN A log_add(A a, A b) {
  const A high = a < b ? b : a, low = a < b ? a : b;
  const C growth = math::log1p(math::exp(static_cast<C>(low - high)));
  return high + (a == b ? static_cast<A>(std::numbers::ln2) : static_cast<A>(growth));  // also of infinities
}

/// Whether x follows `best` as the largest (smallest) so far: not below it, or NaN. Nothing compares with a
/// best that is NaN but the next one.
template <class C>
TERN_FN bool takes_over(C x, C best, bool largest) {
  return (largest ? x >= best : x <= best) || functors::is_nan(x);
}

}  // namespace tern::scan_steps
