// What the processes of one run do together: one start, sums of what is measured, one decision to stop.
// Without a group there is one process, and nothing is sent. Means of gradients are
// parallel/distributed_data_parallel.h's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tern/nn/module.h"
#include "tern/parallel/distributed_data_parallel.h"
#include "tern/parallel/process_group.h"
#include "tern/train/checkpoint.h"
#include "tern/train/metrics.h"

namespace tern::train {

/// The checkpoint that the first process of the group finds at `path`, for all of them; without a group
/// Checkpoint::load. Throws what that throws.
Checkpoint load_checkpoint(const std::filesystem::path& path, const std::optional<dist::ProcessGroup>& group);

/// One run's. Every process calls the same functions in the same order.
class Processes {
 public:
  explicit Processes(const std::optional<dist::ProcessGroup>& group);

  bool are_many() const noexcept { return group_.has_value(); }
  int rank() const { return group_ ? group_->rank() : 0; }

  /// Throws DistributedError where the others say something else.
  void check_same(const std::string& what) const;
  /// The module starts as the first process has it; from now on its gradients are means over all of them.
  void share(nn::Module& module);
  /// To be called before each forward in training, and kept until its end.
  dist::GroupGuard begin_forward(nn::Module& module);
  /// Whether the next backward makes gradients means, of all that was gathered without.
  void set_synchronizes(bool on);

  Averages::Sums total(const Averages::Sums& own) const;
  /// Whether one of them said true. Known one call later, so that nobody waits for it; at once with one
  /// process.
  bool any(bool own);
  /// What all others have, in the order of ranks from 1 on.
  std::vector<std::vector<uint8_t>> of_others(const std::vector<uint8_t>& own) const;

 private:
  std::optional<dist::ProcessGroup> group_;  ///< of several
  std::unique_ptr<dist::detail::DistributedModule> shared_;
  Tensor asked_;
  std::shared_future<void> answer_;
};

}  // namespace tern::train
