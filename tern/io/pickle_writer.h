// Writing values as pickles of protocol 2, in the opcodes that PyTorch's restricted reader
// (weights_only=True) understands.
#pragma once

#include <functional>
#include <string>

#include "tern/io/value.h"

namespace tern::io {

/// How a storage is referred to from a pickle.
struct StorageReference {
  std::string key;
  std::string location;
};

/// Gives a storage its key, the same each time; called when a tensor or storage is met.
using ReferStorage = std::function<StorageReference(const Storage& storage, DType dtype)>;

/// The pickle of `value`. Shared containers and tensors stay shared, cycles too.
/// Throws ValueError, naming the place, for what cannot be written: undefined tensors, nesting deeper than
/// 1000.
std::string write_pickle(const Value& value, const ReferStorage& refer);

/// "FloatStorage"; empty for dtypes that have no storage class of their own.
std::string_view storage_class(DType dtype) noexcept;

}  // namespace tern::io
