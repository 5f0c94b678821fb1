// Fourier transforms of one length, of as many sequences at once as a register has lanes: Stockham's
// algorithm, which needs no reordering, for lengths of small factors, and Bluestein's for the others (Van
// Loan, "Computational Frameworks for the Fast Fourier Transform", 1992). Where sequences lie in memory is in
// fft.cpp.
#pragma once

#include <memory>
#include <vector>

#include "tern/backends/cpu/kernels/gemm_vec.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// A complex number of each lane.
template <class T>
struct ComplexLanes {
  Vec<T> re, im;
};

/// One pass over the sequence: `before` is the product of the radices of the passes before it, and
/// radix * rest * before the length.
template <class T>
struct FftStage {
  int radix;
  int64_t rest, before;
  std::vector<T> turns;  ///< [rest, radix - 1] complex numbers exp(-2 pi i p k / (radix * rest))
  std::vector<T> roots;  ///< of a radix without code of its own: exp(-2 pi i k / radix)
};

template <class T>
class FftPlan {
 public:
  /// Kept for the next call, unless there are many.
  static std::shared_ptr<const FftPlan> of(int64_t n);
  explicit FftPlan(int64_t n);

  int64_t size() const { return n_; }
  /// Elements of each of the two buffers.
  int64_t room() const { return convolution_ ? convolution_->size() : n_; }
  /// Transforms what is in `x`, without a factor; `y` is working memory. The result is in the one returned.
  ComplexLanes<T>* run(ComplexLanes<T>* x, ComplexLanes<T>* y, bool forward) const;

 private:
  template <bool forward>
  ComplexLanes<T>* run_stages(ComplexLanes<T>* x, ComplexLanes<T>* y) const;
  template <bool forward>
  ComplexLanes<T>* convolve(ComplexLanes<T>* x, ComplexLanes<T>* y) const;
  void add_stage(int radix, int64_t& rest, int64_t& before);
  void prepare_convolution();

  int64_t n_;
  std::vector<FftStage<T>> stages_;
  // Bluestein's: the transform as a convolution with exp(pi i j^2 / n).
  std::shared_ptr<const FftPlan> convolution_;
  std::vector<T> chirp_;     ///< exp(-pi i j^2 / n)
  std::vector<T> spectrum_;  ///< of its conjugate, by the length of the convolution
};

/// exp(-2 pi i k / n), for 0 <= k < n.
struct UnitRoot {
  double re, im;
};
UnitRoot unit_root(int64_t k, int64_t n);
/// exp(-pi i j^2 / n), for 0 <= j < n, as pairs of numbers.
template <class T>
std::vector<T> chirp_of(int64_t n);

}  // namespace tern::cpu::TERN_CPU_VARIANT
