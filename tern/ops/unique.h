// Distinct elements, and which elements occur in another tensor. None has a gradient. The number of distinct
// elements makes the host wait, once for a call.
#pragma once

#include <optional>

#include "tern/core/tensor.h"

namespace tern {

struct UniqueOptions {
  bool return_inverse = false;
  bool return_counts = false;
  std::optional<int64_t> dim = {};  ///< slices of this dimension are compared, instead of all elements
};

struct Unique {
  Tensor values;
  Tensor inverse;  ///< int64, where each element or slice of x stands in `values`; undefined unless asked for
  Tensor counts;   ///< int64, how often each of `values` occurs; undefined unless asked for
};

/// The distinct elements in ascending order, 1-D; every NaN is one of its own. With a dimension the distinct
/// slices, in the order of their first elements that differ. Throws ShapeError for slices without elements.
Tensor unique(const Tensor& x);
Unique unique(const Tensor& x, const UniqueOptions& options);

/// The first of each run of equal elements in row-major order, or of equal slices.
Tensor unique_consecutive(const Tensor& x);
Unique unique_consecutive(const Tensor& x, const UniqueOptions& options);

/// Which elements occur in `test_elements` (or with `invert`, do not), as bool. Dtypes are promoted; NaN is
/// in nothing. `assume_unique` is a promise that is not needed here. The host does not wait.
Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique = false,
            bool invert = false);
Tensor isin(const Tensor& elements, const Scalar& test_element, bool assume_unique = false,
            bool invert = false);

}  // namespace tern
