// Random proportions, by which pictures are mixed. Not public.
#pragma once

#include <cstddef>
#include <vector>

#include "tern/data/random.h"

namespace tern::data::detail {

/// Numbers that are positive and sum to 1, as many as `size`, from the symmetric Dirichlet distribution with
/// concentration `alpha`, which must be positive. The first of two has the distribution Beta(alpha, alpha).
std::vector<double> random_dirichlet(size_t size, double alpha, Random& random);

}  // namespace tern::data::detail
