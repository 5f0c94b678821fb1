// Activation functions of neural networks.
#pragma once

#include <optional>
#include <string_view>

#include "tern/core/generator.h"
#include "tern/core/tensor.h"

namespace tern {

Tensor relu(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor tanh(const Tensor& x);
/// x * sigmoid(x).
Tensor silu(const Tensor& x);
/// x * Phi(x) with Phi the normal distribution function; `approximate` "tanh" gives Hendrycks and Gimpel's
/// approximation (arXiv 1606.08415), "none" the exact form.
Tensor gelu(const Tensor& x, std::string_view approximate = "none");
/// log(1 + e^(beta x)) / beta; x itself where beta * x > threshold.
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
/// log(sigmoid(x)).
Tensor logsigmoid(const Tensor& x);
/// x for x > 0, alpha * (e^x - 1) else.
Tensor elu(const Tensor& x, double alpha = 1);
/// x for x > 0, alpha * (e^(x / alpha) - 1) else (Barron, arXiv 1704.07483). Throws ValueError for an alpha
/// of 0.
Tensor celu(const Tensor& x, double alpha = 1);
/// 1.0507 * elu(x, 1.6733), the constants to double precision (Klambauer et al., arXiv 1706.02515).
Tensor selu(const Tensor& x);
/// x for x > 0, negative_slope * x else.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// x for x > 0, slope * x else; in training the slope of each element is drawn uniformly from [lower, upper),
/// and the gradient has the same slopes, otherwise it is (lower + upper) / 2 (Xu et al., arXiv 1505.00853).
/// Throws ValueError when lower is greater than upper.
Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false,
             const std::optional<Generator>& generator = {});
/// x for x > 0, weight * x else; weight is one number, or [C] with one for each channel of x [N, C, ...].
/// Throws ShapeError for another shape, DTypeError when the dtypes differ.
Tensor prelu(const Tensor& x, const Tensor& weight);
/// x * tanh(softplus(x)) (Misra, arXiv 1908.08681).
Tensor mish(const Tensor& x);
/// x / (1 + |x|).
Tensor softsign(const Tensor& x);
/// relu6(x + 3) / 6.
Tensor hardsigmoid(const Tensor& x);
/// x * relu6(x + 3) / 6 (Howard et al., "Searching for MobileNetV3", 2019).
Tensor hardswish(const Tensor& x);
/// x within the bounds, with slope 0 at them. Throws ValueError when min is greater than max.
Tensor hardtanh(const Tensor& x, double min = -1, double max = 1);
/// hardtanh(x, 0, 6).
Tensor relu6(const Tensor& x);
/// x where |x| > lambd, 0 else.
Tensor hardshrink(const Tensor& x, double lambd = 0.5);
/// x moved towards 0 by lambd, which must not be negative; 0 where |x| <= lambd.
Tensor softshrink(const Tensor& x, double lambd = 0.5);
/// x - tanh(x).
Tensor tanhshrink(const Tensor& x);
/// x where x > threshold, value else.
Tensor threshold(const Tensor& x, double threshold, double value);
/// The first half of x along `dim`, times the sigmoid of the second (Dauphin et al., arXiv 1612.08083).
/// Throws ShapeError for an odd size.
Tensor glu(const Tensor& x, int64_t dim = -1);

}  // namespace tern
