// The numbers of sparse tensors, without making them dense.
#pragma once

#include <optional>

#include "tern/io/find_tensors.h"
#include "tern/io/tensor_numbers.h"

namespace tern::io {

/// The sum of a sparse tensor, and the first four elements of the dense tensor that it stands for. Where a
/// COO tensor stores several values for one place, they add up; those of bools are or-ed. No first elements
/// when the parts do not fit each other, nothing when the numbers were not read. Throws as summarize_numbers.
std::optional<NumberSummary> summarize_sparse(const FoundTensor& sparse);

}  // namespace tern::io
