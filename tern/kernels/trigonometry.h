// Sine, cosine and tangent of floats, and the angle of a point. The forms named `_near` are branch-free, so
// that compilers vectorise them, and hold up to kTrigonometricLimit; callers take the C library's beyond.
#pragma once

#include <cmath>
#include <cstdint>

#include "tern/kernels/target.h"

namespace tern::math {

inline constexpr float kTrigonometricLimit = 1e6f;

/// x as quadrant * pi/2 + angle, -pi/4 <= angle <= pi/4. In double, where two parts of pi/2 suffice for every
/// float up to the limit.
struct Quadrant {
  float angle;
  int32_t quadrant;
};
TERN_FN Quadrant reduce_angle(float x) {
  double n = static_cast<double>(x) * 0.63661977236758134308 + 6755399441055744.0;  // rounds to an integer
  n -= 6755399441055744.0;
  double angle = static_cast<double>(x) - n * 1.57079632673412561417e+00;
  angle -= n * 6.07710050650619224932e-11;
  return {static_cast<float>(angle), static_cast<int32_t>(n)};
}

/// Sine and cosine on [-pi/4, pi/4], Cephes' coefficients.
TERN_FN float sin_polynomial(float r) {
  float z = r * r;
  float p = -1.9515295891e-4f;
  p = p * z + 8.3321608736e-3f;
  p = p * z - 1.6666654611e-1f;
  return r + r * z * p;
}
TERN_FN float cos_polynomial(float r) {
  float z = r * r;
  float p = 2.443315711809948e-5f;
  p = p * z - 1.388731625493765e-3f;
  p = p * z + 4.166664568298827e-2f;
  return 1.0f - 0.5f * z + z * z * p;
}

TERN_FN float sin_near(float x) {
  Quadrant q = reduce_angle(x);
  float value = q.quadrant & 1 ? cos_polynomial(q.angle) : sin_polynomial(q.angle);
  value = q.quadrant & 2 ? -value : value;
  return x == 0.0f ? x : value;  // keeps -0
}
TERN_FN float cos_near(float x) {
  Quadrant q = reduce_angle(x);
  float value = q.quadrant & 1 ? sin_polynomial(q.angle) : cos_polynomial(q.angle);
  return (q.quadrant + 1) & 2 ? -value : value;
}
/// Cephes' coefficients; a cotangent in odd quadrants.
TERN_FN float tan_near(float x) {
  Quadrant q = reduce_angle(x);
  float r = q.angle, z = r * r;
  float p = 9.38540185543e-3f;
  p = p * z + 3.11992232697e-3f;
  p = p * z + 2.44301354525e-2f;
  p = p * z + 5.34112807005e-2f;
  p = p * z + 1.33387994085e-1f;
  p = p * z + 3.33331568548e-1f;
  float value = r + r * z * p;
  value = q.quadrant & 1 ? -1.0f / value : value;
  return x == 0.0f ? x : value;
}

/// The angle of the point (x, y) in [-pi, pi], within 3 ulp; zeros and infinities as C's atan2.
TERN_FN float atan2(float y, float x) {
#if defined(__CUDA_ARCH__)
  return ::atan2f(y, x);
#else
  float ax = magnitude(x), ay = magnitude(y);
  float low = ax < ay ? ax : ay, high = ax < ay ? ay : ax;
  float a = low / high;
  a = low == high ? 1.0f : a;   // infinities
  a = high == 0.0f ? 0.0f : a;  // the origin
  float z = a * a;
  float p = 2.8499369509518147e-3f;
  p = p * z - 1.6068829223513603e-2f;
  p = p * z + 4.269186779856682e-2f;
  p = p * z - 7.504326850175858e-2f;
  p = p * z + 1.0640951246023178e-1f;
  p = p * z - 1.4203649759292603e-1f;
  p = p * z + 1.999261975288391e-1f;
  p = p * z - 3.333307206630707e-1f;
  float angle = a + a * z * p;
  angle = ay > ax ? 1.57079632679489661923f - angle : angle;
  angle = is_negative(x) ? 3.14159265358979323846f - angle : angle;
  angle = ((x != x) | (y != y)) ? x + y : angle;
  return as_float(as_bits(angle) | (as_bits(y) & 0x80000000u));
#endif
}
TERN_FN double atan2(double y, double x) { return ::atan2(y, x); }

}  // namespace tern::math
