// Activation functions of neural networks.
#pragma once

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
/// x for x > 0, negative_slope * x else.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);

}  // namespace tern
