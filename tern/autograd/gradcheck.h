// Comparison of recorded gradients with finite differences.
#pragma once

#include <functional>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

struct GradcheckOptions {
  double eps = 1e-6;  ///< step of the central differences
  double atol = 1e-5;
  double rtol = 1e-3;
};

/// Compares the gradients of `function` (one float64 result) at `inputs` (contiguous float64 leaves that
/// require gradients, on any device) with central differences, against a fixed weighting of the results.
/// Throws AutogradError naming the input, the element and both values where they differ.
void gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
               const std::vector<Tensor>& inputs, GradcheckOptions options = {});

/// The same for second derivatives: gradcheck of the first gradients.
void gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                   const std::vector<Tensor>& inputs, GradcheckOptions options = {});

}  // namespace tern
