// Sine, cosine and tangent, and the angle of a point. The forms named `_near` are branch-free, so
// that compilers vectorise them, and hold up to kTrigonometricLimit; callers take the C library's beyond.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "tern/kernels/target.h"

namespace tern::math {

inline constexpr float kTrigonometricLimit = 1e6f;  // below 2^20 quarters of a turn

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

/// x as quadrant * pi/2 + angle + rest, where `rest` is what the angle was rounded by; of the quadrant the
/// lowest two bits count.
struct QuadrantDouble {
  double angle, rest;
  int64_t quadrant;
};
/// The first two parts of pi/2 have 33 bits, so that their products with a number of quadrants are exact.
TERN_FN QuadrantDouble reduce_angle(double x) {
  const double shifted = x * 0.63661977236758134308 + 6755399441055744.0;  // rounds to an integer
  const double n = shifted - 6755399441055744.0;
  const double first = x - n * 1.57079632673412561417e+00, second = n * 6.07710050630396597660e-11;
  const double angle = first - second;
  double rest = first - angle - second;
  rest = rest - n * 2.02226624871116645580e-21 - n * 8.47842766036889956997e-32;
  return {angle, rest, std::bit_cast<int64_t>(shifted)};
}
/// Sine and cosine of an angle in [-pi/4, pi/4] with its rest: fdlibm's k_sin.c and FreeBSD's k_cos.c.
TERN_FN double sin_polynomial(double r, double rest) {
  const double z = r * r, cube = z * r;
  double p = 1.58969099521155010221e-10;
  p = p * z - 2.50507602534068634195e-08;
  p = p * z + 2.75573137070700676789e-06;
  p = p * z - 1.98412698298579493134e-04;
  p = p * z + 8.33333333332248946124e-03;
  return r - ((z * (0.5 * rest - cube * p) - rest) + cube * 1.66666666666666324348e-01);
}
TERN_FN double cos_polynomial(double r, double rest) {
  const double z = r * r, half = 0.5 * z, near = 1.0 - half;
  double p = -1.13596475577881948265e-11;
  p = p * z + 2.08757232129817482790e-09;
  p = p * z - 2.75573143513906633035e-07;
  p = p * z + 2.48015872894767294178e-05;
  p = p * z - 1.38888888888741095749e-03;
  p = p * z + 4.16666666666666019037e-02;
  return near + ((1.0 - near - half) + (z * z * p - r * rest));
}
TERN_FN double sin_near(double x) {
  const QuadrantDouble q = reduce_angle(x);
  const double sine = sin_polynomial(q.angle, q.rest), cosine = cos_polynomial(q.angle, q.rest);
  double value = q.quadrant & 1 ? cosine : sine;
  value = q.quadrant & 2 ? -value : value;
  return x == 0.0 ? x : value;  // keeps -0
}
TERN_FN double cos_near(double x) {
  const QuadrantDouble q = reduce_angle(x);
  const double sine = sin_polynomial(q.angle, q.rest), cosine = cos_polynomial(q.angle, q.rest);
  const double value = q.quadrant & 1 ? sine : cosine;
  return (q.quadrant + 1) & 2 ? -value : value;
}
TERN_FN double tan_near(double x) {
  const QuadrantDouble q = reduce_angle(x);
  const double sine = sin_polynomial(q.angle, q.rest), cosine = cos_polynomial(q.angle, q.rest);
  const double value = q.quadrant & 1 ? -cosine / sine : sine / cosine;
  return x == 0.0 ? x : value;
}

/// atan(a) for a from 0 to 1, fitted; in double with Cephes' coefficients of atan.c.
TERN_FN float atan_near(float a) {
  float z = a * a;
  float p = 2.8499369509518147e-3f;
  p = p * z - 1.6068829223513603e-2f;
  p = p * z + 4.269186779856682e-2f;
  p = p * z - 7.504326850175858e-2f;
  p = p * z + 1.0640951246023178e-1f;
  p = p * z - 1.4203649759292603e-1f;
  p = p * z + 1.999261975288391e-1f;
  p = p * z - 3.333307206630707e-1f;
  return a + a * z * p;
}
TERN_FN double atan_near(double a) {
  const bool far = a > 0.66;  // atan(a) = pi/4 + atan((a - 1) / (a + 1))
  const double r = far ? (a - 1.0) / (a + 1.0) : a, z = r * r;
  double p = -8.750608600031904122785e-1;
  p = p * z - 1.615753718733365076637e1;
  p = p * z - 7.500855792314704667340e1;
  p = p * z - 1.228866684490136173410e2;
  p = p * z - 6.485021904942025371773e1;
  double q = z + 2.485846490142306297962e1;
  q = q * z + 1.650270098316988542046e2;
  q = q * z + 4.328810604912902668951e2;
  q = q * z + 4.853903996359136964868e2;
  q = q * z + 1.945506571482613964425e2;
  const double angle = r + r * (z * p / q);
  return far ? 0.78539816339744830962 + (angle + 3.061616997868382943065e-17) : angle;
}
/// Within 3 ulp.
template <class T>
TERN_FN T atan(T x) {
#if defined(__CUDA_ARCH__)
  return std::atan(x);
#else
  const T ax = std::abs(x);
  const bool far = ax > T(1);
  const T angle = atan_near((far ? T(1) : ax) / (far ? ax : T(1)));
  constexpr T kRight = T(1.57079632679489661923),
              kRest = sizeof(T) == 4 ? T(0) : T(6.123233995736765886130e-17);
  return std::copysign(far ? kRight - (angle - kRest) : angle, x);
#endif
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
  float angle = atan_near(a);
  angle = ay > ax ? 1.57079632679489661923f - angle : angle;
  angle = is_negative(x) ? 3.14159265358979323846f - angle : angle;
  angle = ((x != x) | (y != y)) ? x + y : angle;
  return as_float(as_bits(angle) | (as_bits(y) & 0x80000000u));
#endif
}
TERN_FN double atan2(double y, double x) {
#if defined(__CUDA_ARCH__)
  return ::atan2(y, x);
#else
  const double ax = x < 0 ? -x : x, ay = y < 0 ? -y : y;
  const double low = ax < ay ? ax : ay, high = ax < ay ? ay : ax;
  double a = low / high;
  a = low == high ? 1.0 : a;  // infinities
  a = high == 0.0 ? 0.0 : a;  // the origin
  double angle = atan_near(a);
  angle = ay > ax ? 1.57079632679489661923 - (angle - 6.123233995736765886130e-17) : angle;
  const uint64_t sign = std::bit_cast<uint64_t>(x) >> 63;
  angle = sign != 0 ? 3.14159265358979323846 - (angle - 1.2246467991473531772e-16) : angle;
  angle = ((x != x) | (y != y)) ? x + y : angle;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(angle) |
                               (std::bit_cast<uint64_t>(y) & 0x8000000000000000u));
#endif
}

}  // namespace tern::math
