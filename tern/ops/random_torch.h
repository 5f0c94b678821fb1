// PyTorch's random numbers on the CPU: what its kernels there make of a Mersenne Twister's words, one number
// after the other in the order of memory. As of version 2.15; PyTorch with MKL on Intel's processors draws
// Bernoulli and exponential numbers from MKL instead, and older versions made 16-bit floats, integers of
// wide ranges and masks of strided dropout otherwise. The words are core/mersenne_twister.h's.
#pragma once

#include "tern/core/generator.h"
#include "tern/core/tensor.h"
#include "tern/kernels/random.h"

namespace tern::detail {

/// A draw as the caller asked for it.
struct TorchDraw {
  Distribution distribution;
  double a = 0;               ///< Uniform: low; Normal: mean; Exponential: rate; Bernoulli: p
  double b = 0;               ///< Uniform: high; Normal: standard deviation
  int64_t low = 0;            ///< Integer
  uint64_t range = 0;         ///< Integer: count of values
  bool all_integers = false;  ///< Integer: `random_()` without bounds
};

/// Whether a draw on `device` gives PyTorch's numbers: with a Mersenne Twister, on the CPU.
bool draws_as_torch(const Generator& generator, Device device);

/// A new tensor on the CPU of x's shape whose dimensions lie in memory in the order of x's, as PyTorch's
/// `empty_like` makes it and draws follow.
Tensor empty_in_order_of(const Tensor& x, DType dtype);

/// Fills x, strided or not. In a recorded step every replay draws again.
void draw_as_torch(const Tensor& x, const TorchDraw& draw, Generator generator);

/// Fills `out` with numbers of the distribution with the parameters of each element; all are contiguous and
/// of out's dtype, b may be undefined.
void draw_variates_as_torch(Variate variate, const Tensor& out, const Tensor& a, const Tensor& b,
                            Generator generator);

/// Fills `out` (int64 [rows, samples], contiguous) with indices drawn with replacement from the weights
/// (floating [rows, categories], contiguous), which have been checked.
void choose_as_torch(const Tensor& out, const Tensor& weights, Generator generator);

/// Fills x (int64, contiguous, not empty) with `torch.randperm(x.numel())`.
void permute_as_torch(const Tensor& x, Generator generator);

}  // namespace tern::detail
