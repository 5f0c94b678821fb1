// Keys's kernel of cubic interpolation ("Cubic convolution interpolation for digital image processing", 1981)
// with the parameter a, and its slopes: near at distances up to 1, far from 1 to 2.
#pragma once

#include "tern/kernels/target.h"

namespace tern::cubic {

template <class C>
TERN_FN C near_weight(C x, C a) {
  return ((a + C(2)) * x - (a + C(3))) * x * x + C(1);
}
template <class C>
TERN_FN C far_weight(C x, C a) {
  return ((a * x - C(5) * a) * x + C(8) * a) * x - C(4) * a;
}
template <class C>
TERN_FN C near_slope(C x, C a) {
  return (C(3) * (a + C(2)) * x - C(2) * (a + C(3))) * x;
}
template <class C>
TERN_FN C far_slope(C x, C a) {
  return (C(3) * a * x - C(10) * a) * x + C(8) * a;
}

}  // namespace tern::cubic
