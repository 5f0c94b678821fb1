// Random tensors, random changes in place, random choices, and dropout. Number i of a draw depends on the
// generator's seed and position and on i alone: the same on every device and for every number of threads
// (normal and exponential doubles up to the last bits of the device's logarithm). Definitions of the numbers
// are in kernels/random.h, the state is in core/generator.h. With a Mersenne Twister, tensors on the CPU get
// PyTorch's numbers (random_torch.h).
#pragma once

#include <optional>

#include "tern/core/generator.h"
#include "tern/core/tensor.h"

namespace tern {

// Without a generator the default one is used; every call moves it on. Shapes, dtypes and devices as in
// ops/creation.h.

/// The state of a generator (without one, of the default one) as PyTorch's `get_rng_state` gives it: uint8 of
/// 16 bytes for Philox, 5056 for a Mersenne Twister.
Tensor get_rng_state(const std::optional<Generator>& generator = {});
/// Takes such a state back. One that PyTorch saved makes the generator a Mersenne Twister, which goes on with
/// PyTorch's numbers on the CPU. Throws ValueError for other sizes and for bytes that are no state.
void set_rng_state(const Tensor& state, const std::optional<Generator>& generator = {});

/// Uniform in [0, 1): multiples of 2^-24 (float64: 2^-53, float16: 2^-11, bfloat16: 2^-8).
Tensor rand(IntArrayRef shape, const TensorOptions& options = {},
            const std::optional<Generator>& generator = {});
/// Standard normal (Box-Muller).
Tensor randn(IntArrayRef shape, const TensorOptions& options = {},
             const std::optional<Generator>& generator = {});
/// Uniform integers in [low, high); int64 unless options say otherwise. The share of each value is exact to
/// 2^-64. Throws ValueError unless low < high and both fit the dtype.
Tensor randint(int64_t low, int64_t high, IntArrayRef shape, const TensorOptions& options = {},
               const std::optional<Generator>& generator = {});
Tensor randint(int64_t high, IntArrayRef shape, const TensorOptions& options = {},
               const std::optional<Generator>& generator = {});
/// A random order of 0..n-1 (int64 unless options say otherwise): the numbers sorted by random keys of 64
/// bits.
Tensor randperm(int64_t n, const TensorOptions& options = {}, const std::optional<Generator>& generator = {});
/// Normal with this mean and standard deviation.
Tensor normal(double mean, double std, IntArrayRef shape, const TensorOptions& options = {},
              const std::optional<Generator>& generator = {});

Tensor rand_like(const Tensor& x, const TensorOptions& options = {},
                 const std::optional<Generator>& generator = {});
Tensor randn_like(const Tensor& x, const TensorOptions& options = {},
                  const std::optional<Generator>& generator = {});
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, const TensorOptions& options = {},
                    const std::optional<Generator>& generator = {});

// ---- in place: each counts a version and returns x
// -----------------------------------------------------------------

/// Uniform in [low, high). Floating dtypes.
Tensor& uniform_(Tensor& x, double low = 0, double high = 1, const std::optional<Generator>& generator = {});
Tensor& normal_(Tensor& x, double mean = 0, double std = 1, const std::optional<Generator>& generator = {});
/// Density rate * exp(-rate * v). Floating dtypes.
Tensor& exponential_(Tensor& x, double rate = 1, const std::optional<Generator>& generator = {});
/// 1 with probability p, else 0; exact to 2^-32.
Tensor& bernoulli_(Tensor& x, double p = 0.5, const std::optional<Generator>& generator = {});
/// Uniform integers in [low, high).
Tensor& random_(Tensor& x, int64_t low, int64_t high, const std::optional<Generator>& generator = {});
/// Uniform over all non-negative values of an integer dtype, over the integers up to 2^24 (2^53, 2^11, 2^8)
/// for floats.
Tensor& random_(Tensor& x, const std::optional<Generator>& generator = {});

// ---- choices
// -------------------------------------------------------------------------------------------------------

/// 1 with the probability that `p` (floating, in [0, 1]) has at each place, else 0. Blocks the host to check
/// p.
Tensor bernoulli(const Tensor& p, const std::optional<Generator>& generator = {});
/// Indices drawn from the weights of each row: [n] gives [num_samples], [m, n] gives [m, num_samples], int64.
/// Weights need not add up to 1. Blocks the host to check them. Throws ValueError for negative or infinite
/// weights, a row of zeros, or fewer positive weights than samples without replacement.
Tensor multinomial(const Tensor& weights, int64_t num_samples, bool replacement = false,
                   const std::optional<Generator>& generator = {});

// Numbers of distributions whose parameters are tensors of a floating dtype, which the result has too.
// Gradients of `poisson` and `binomial` are 0.

/// Normal with the means and standard deviations of two tensors, which broadcast, or of a tensor and a
/// number. Throws ValueError for a negative number; those of a tensor are not looked at.
Tensor normal(const Tensor& mean, const Tensor& std, const std::optional<Generator>& generator = {});
Tensor normal(const Tensor& mean, double std = 1, const std::optional<Generator>& generator = {});
Tensor normal(double mean, const Tensor& std, const std::optional<Generator>& generator = {});
/// Counts of events whose mean is the rate (kernels/variates.h has the algorithms). Blocks the host to check
/// that no rate is negative.
Tensor poisson(const Tensor& rate, const std::optional<Generator>& generator = {});
/// Successes among `count` trials of probability `prob`, which broadcast and have one dtype.
Tensor binomial(const Tensor& count, const Tensor& prob, const std::optional<Generator>& generator = {});
/// Gamma distribution of that shape and rate 1; never 0. Its gradient is how a sample moves with the shape
/// while its place in the distribution stays.
Tensor standard_gamma(const Tensor& shape, const std::optional<Generator>& generator = {});

/// Of logits, softmax((logits + noise) / tau) with standard Gumbel noise; with `hard` the one-hot vectors of
/// its maxima, whose gradient is that of the soft result (Jang et al., "Categorical reparameterization with
/// Gumbel-softmax", 2017).
Tensor gumbel_softmax(const Tensor& logits, double tau = 1, bool hard = false, int64_t dim = -1,
                      const std::optional<Generator>& generator = {});

// ---- dropout
// -------------------------------------------------------------------------------------------------------

/// Zeroes each element with probability p and multiplies the others by 1 / (1 - p); x itself when not
/// training or p is 0. Nothing is kept for backward but the position of the generator (Srivastava et al.,
/// 2014).
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true,
               const std::optional<Generator>& generator = {});
/// The same for whole channels: x is [N, C, L] or [C, L] (Tompson et al., "Efficient object localization
/// using convolutional networks", 2015).
Tensor dropout1d(const Tensor& x, double p = 0.5, bool training = true,
                 const std::optional<Generator>& generator = {});
/// The same for x [N, C, ...]; three dimensions are [N, C, L], as in PyTorch.
Tensor dropout2d(const Tensor& x, double p = 0.5, bool training = true,
                 const std::optional<Generator>& generator = {});
/// The same for x [N, C, D, H, W] or [C, D, H, W].
Tensor dropout3d(const Tensor& x, double p = 0.5, bool training = true,
                 const std::optional<Generator>& generator = {});

/// With probability p an element becomes the value that selu tends to, -1.7580993408473766; then all are
/// multiplied and moved so that a mean of 0 and a variance of 1 stay (Klambauer et al., "Self-normalizing
/// neural networks", 2017).
Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = true,
                     const std::optional<Generator>& generator = {});
/// The same for whole channels of x [N, C, ...].
Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5, bool training = true,
                             const std::optional<Generator>& generator = {});

}  // namespace tern
