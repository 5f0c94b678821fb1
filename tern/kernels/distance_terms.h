// What one coordinate adds to a distance, the distance of a sum, and the slope of a distance along one
// coordinate, for each kind of p. V is what is computed with: a number of type C, or a register of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tern/kernels/target.h"

namespace tern::distance_terms {

template <class V>
TERN_FN V size_of(V x) {
  return x < V{} ? -x : x;
}
template <class V>
TERN_FN V with_sign_of(V x, V value) {
  return x < V{} ? -value : x > V{} ? value : V{};
}
/// p = 0.
struct Unequal {
  template <class V>
  TERN_FN V add(V sum, V difference) const {
    return sum + (difference == V{} ? V{} : V{} + 1);
  }
  template <class V>
  TERN_FN V distance(V sum) const {
    return sum;
  }
  template <class V>
  TERN_FN V slope(V, V) const {
    return V{};
  }
};

/// p = 1.
struct Absolute {
  template <class V>
  TERN_FN V add(V sum, V difference) const {
    return sum + size_of(difference);
  }
  template <class V>
  TERN_FN V distance(V sum) const {
    return sum;
  }
  template <class V>
  TERN_FN V slope(V difference, V) const {
    return with_sign_of(difference, V{} + 1);
  }
};

/// p infinite. NaN is larger than anything.
struct Largest {
  template <class V>
  TERN_FN V add(V largest, V difference) const {
    const V size = size_of(difference);
    return size <= largest ? largest : largest == largest ? size : largest;
  }
  template <class V>
  TERN_FN V distance(V largest) const {
    return largest;
  }
  template <class V>
  TERN_FN V slope(V difference, V distance) const {
    return size_of(difference) == distance ? with_sign_of(difference, V{} + 1) : V{};
  }
};

/// Any other p, whose powers are Powers::of(x, exponent), or products where they are whole and below 8.
template <class C, class Powers, bool kWhole>
struct PowerSum {
  C p;
  TERN_FN explicit PowerSum(double p_) : p(static_cast<C>(p_)) {}
  template <class V>
  TERN_FN V add(V sum, V difference) const {
    return sum + power(size_of(difference), p);
  }
  template <class V>
  TERN_FN V distance(V sum) const {
    return Powers::of(sum, C(1) / p);
  }
  /// (|difference| / distance)^(p - 1) with the sign of the difference.
  template <class V>
  TERN_FN V slope(V difference, V distance) const {
    const V one = V{} + 1, size = size_of(difference);
    const V ratio = distance == V{} ? one : size / distance;
    return distance == V{} ? V{} : with_sign_of(difference, power(size == V{} ? one : ratio, p - 1));
  }

 private:
  template <class V>
  TERN_FN static V power(V x, C exponent) {
    if constexpr (kWhole) {
      const int e = static_cast<int>(exponent);
      const V one = V{} + 1, square = x * x;
      return (e & 1 ? x : one) * (e & 2 ? square : one) * (e & 4 ? square * square : one);
    } else {
      return Powers::of(x, exponent);
    }
  }
};

/// p = 2.
struct Euclidean {
  template <class V>
  TERN_FN V add(V sum, V difference) const {
    return sum + difference * difference;
  }
  template <class V>
  TERN_FN V distance(V sum) const {
    if constexpr (std::is_arithmetic_v<V>) {
      return std::sqrt(sum);
    } else {
      for (size_t i = 0; i < sizeof(V) / sizeof(sum[0]); ++i) sum[i] = std::sqrt(sum[i]);
      return sum;
    }
  }
  template <class V>
  TERN_FN V slope(V difference, V distance) const {
    return distance == V{} ? V{} : difference / distance;
  }
};

/// Calls f(terms) with those of p. Powers::of(x, exponent) gives powers of V.
template <class C, class Powers, class F>
void visit(double p, const F& f) {
  if (p == 0) return f(Unequal{});
  if (p == 1) return f(Absolute{});
  if (p == 2) return f(Euclidean{});
  if (std::isinf(p)) return f(Largest{});
  if (p > 2 && p < 8 && p == std::trunc(p)) return f(PowerSum<C, Powers, true>(p));
  f(PowerSum<C, Powers, false>(p));
}

}  // namespace tern::distance_terms
