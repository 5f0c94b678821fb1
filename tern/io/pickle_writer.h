// Writing values as pickles of protocol 2, in the opcodes that PyTorch's restricted reader
// (weights_only=True) understands.
#pragma once

#include <functional>
#include <string>

#include "tern/io/value.h"

namespace tern::io {

/// Elements [begin, end) of a storage.
struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// How a storage is referred to from a pickle.
struct StorageReference {
  std::string key;
  std::string location;
  ElementRange part;   ///< what of the storage is written under this key
  int64_t nbytes = 0;  ///< of that, which may be more than whole elements
};

/// Gives a storage its key, the same each time; called when a tensor or storage is met that uses the elements
/// `range` of it.
using ReferStorage = std::function<StorageReference(const Storage& storage, DType dtype, ElementRange range)>;

/// The pickle of `value`. Shared containers and tensors stay shared, cycles too. With `stream`, ids of
/// storages have the sixth item of the stream format. `refer` may be empty when there are no tensors. Throws
/// ValueError, naming the place, for what cannot be written: undefined tensors, text that is not UTF-8,
/// nesting deeper than 1000.
std::string write_pickle(const Value& value, const ReferStorage& refer, bool stream = false);

/// "FloatStorage"; empty for dtypes that have no storage class of their own.
std::string_view storage_class(DType dtype) noexcept;

}  // namespace tern::io
