// Packing: many tensors of one device in one row of elements, so that they travel in one copy; and the
// history of such a broadcast. Internal to parallel.
#pragma once

#include <functional>
#include <vector>

#include "tern/autograd/node.h"

namespace tern::parallel {

/// Where tensors of one dtype lie in a row of elements.
struct Packing {
  DType dtype = DType::Float32;
  std::vector<size_t> members;   ///< positions in the caller's list
  std::vector<Shape> shapes;     ///< of the members
  std::vector<int64_t> offsets;  ///< in elements
  int64_t numel = 0;             ///< of the row

  /// Adds a tensor at the next multiple of `alignment` elements.
  void add(size_t member, const Tensor& tensor, int64_t alignment);
  /// The members in a row on their device, a new one unless there is one dense member. `tensors` is the
  /// caller's list.
  Tensor pack(const std::vector<Tensor>& tensors) const;
  /// Member number m as a view of the row; no history.
  Tensor view(const Tensor& row, size_t m) const;
};

/// What a packing holds at most, if it has several members: so much memory a row takes beside its tensors.
inline constexpr size_t kMostPackedBytes = size_t{32} << 20;

/// Packings of one dtype each of the tensors for which `take(i)` says so, in order. `aligned`: members start
/// on lines of the cache, for those that are computed with; gaps hold any numbers.
std::vector<Packing> pack_by_dtype(const std::vector<Tensor>& tensors, bool aligned,
                                   const std::function<bool(size_t)>& take);

/// Records `copies[d][i]` as copies of `tensors[i]` on other devices: gradients of each device are packed,
/// sent to the device of the tensors in one copy for each packing, and added in the order of d. An empty list
/// stands for a device that has no copies; tensors that require no gradient are left out.
void record_broadcast(const std::vector<Tensor>& tensors, const std::vector<std::vector<Tensor>>& copies);

/// A dense tensor on another device; no history.
Tensor moved(const Tensor& row, Device device);

}  // namespace tern::parallel
