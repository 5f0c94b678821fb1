// Operators over the processes of a group that gradients pass through (torch.distributed.nn.functional), and
// the group that layers find while a DistributedDataParallel calls them. Operations without gradients are
// those of parallel/process_group.h.
#pragma once

#include "tern/parallel/process_group.h"

namespace tern::dist {

/// The sum of all processes' tensors, of one shape and dtype, on the device of this one's. Its gradient is
/// the sum of all processes' gradients, so that every process that calls it calls backward() through it too.
/// Blocks. Throws as ProcessGroup::all_reduce.
Tensor all_reduce(const Tensor& tensor, const ProcessGroup& group);

/// Puts into `tensor` what an operation made of its dense copy, which may share its memory; without
/// gradients.
void put_back(const Tensor& tensor, const Tensor& dense);

/// While it lives, layers that the calling thread runs belong to a network that every process of the group
/// has a part of the batch for. The group must outlive it; null: to none.
class [[nodiscard]] GroupGuard {
 public:
  explicit GroupGuard(const ProcessGroup* group) noexcept;
  ~GroupGuard();
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;

  /// The group of several processes that the calling thread is in; null outside of one.
  static const ProcessGroup* current() noexcept;

 private:
  const ProcessGroup* before_;
};

}  // namespace tern::dist
