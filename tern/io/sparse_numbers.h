// The numbers of sparse tensors, without making them dense.
#pragma once

#include <optional>

#include "tern/io/find_tensors.h"
#include "tern/io/tensor_numbers.h"

namespace tern::io {

/// The sum of a sparse tensor, and the first four elements of the dense tensor that it stands for (COO, CSR
/// and CSC with scalar values; none for others). Nothing when its numbers were not read.
std::optional<NumberSummary> summarize_sparse(const FoundTensor& sparse);

}  // namespace tern::io
