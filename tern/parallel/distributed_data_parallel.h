// DistributedDataParallel: one module in each of several processes, each with a part of the data
// (torch.nn.parallel.DistributedDataParallel). The processes are a ProcessGroup (parallel/process_group.h);
// many devices of one process are parallel/data_parallel.h.
#pragma once

#include <memory>
#include <utility>

#include "tern/nn/any_module.h"
#include "tern/nn/module.h"
#include "tern/parallel/collectives.h"

namespace tern::dist {

struct DistributedDataParallelOptions {
  /// Gradients are sent in rows of about this size.
  double bucket_cap_mb = 25;
  /// Buffers become those of rank 0 before each forward in training.
  bool broadcast_buffers = true;
};

class GradientReducer;

namespace detail {

inline nn::Module& module_of(nn::Module& module) { return module; }
inline nn::Module& module_of(nn::AnyModule& module) { return module.get(); }

/// What all wrapped modules share.
class DistributedModule {
 public:
  DistributedModule(nn::Module& module, const ProcessGroup& group,
                    const DistributedDataParallelOptions& options);
  ~DistributedModule();
  DistributedModule(const DistributedModule&) = delete;
  DistributedModule& operator=(const DistributedModule&) = delete;

  /// To be called before each forward, and kept until its end.
  GroupGuard begin_forward(nn::Module& module);
  bool synchronizes() const noexcept;
  void set_synchronizes(bool on) noexcept;

 private:
  ProcessGroup group_;
  bool broadcast_buffers_;
  std::unique_ptr<GradientReducer> reducer_;
};

}  // namespace detail

/// While it lives, backward of the model leaves gradients as they are (DistributedDataParallel::no_sync).
class [[nodiscard]] NoSyncGuard {
 public:
  explicit NoSyncGuard(std::shared_ptr<detail::DistributedModule> module)
      : module_(std::move(module)), before_(module_->synchronizes()) {
    module_->set_synchronizes(false);
  }
  ~NoSyncGuard() { module_->set_synchronizes(before_); }
  NoSyncGuard(const NoSyncGuard&) = delete;
  NoSyncGuard& operator=(const NoSyncGuard&) = delete;

 private:
  std::shared_ptr<detail::DistributedModule> module_;
  bool before_;
};

/// A module that every process of a group has: all start from the parameters and buffers of rank 0, and at
/// the end of each backward() their gradients are the means over the processes, the same to the bit on all of
/// them, so that their optimizers do the same.
///
///     dist::DistributedDataParallel model(net, group);
///     data::DistributedSampler sampler(set.size(), {.num_replicas = group.size(), .rank = group.rank()});
///     data::DataLoader loader(set, {.batch_size = 64, .sampler = sampler, .device = group.device()});
///     for (auto& [x, y] : loader) {
///       optimizer.zero_grad();
///       nn::cross_entropy(model(x), y).backward();
///       optimizer.step();
///     }
///
/// - Means are taken while backward goes on, and wait at its end. Each process calls backward() as often as
///   the others, with at least one parameter in it; which ones is its own affair. A parameter that no process
///   used keeps its gradient (or none); one that some used gets the sum of all gradients that there are,
///   divided by the number of processes.
/// - A SyncBatchNorm (parallel/sync_batch_norm.h) in it takes its statistics over all processes.
/// - no_sync() leaves gradients alone for a while, to accumulate them; the next backward() outside of it
///   takes the means of all that was gathered.
/// - The optimizer takes the parameters of `net` or of the model; they are the same tensors. state_dict() has
///   PyTorch's prefix "module."; save model.module.state_dict(), on one process, to load it without.
///
/// Throws DistributedError when the processes' modules differ, or do not come together. A step cannot be
/// recorded (CaptureError).
template <class Net>
class DistributedDataParallel final : public nn::Module {
 public:
  Net module;
  TERN_MODULE(module)

  DistributedDataParallel(Net net, const ProcessGroup& group,
                          const DistributedDataParallelOptions& options = {})
      : module(std::move(net)),
        shared_(
            std::make_shared<detail::DistributedModule>(detail::module_of(this->module), group, options)) {}

  template <class... Args>
  auto forward(Args&&... args) {
    const GroupGuard in_group = shared_->begin_forward(detail::module_of(module));
    return module(std::forward<Args>(args)...);
  }
  NoSyncGuard no_sync() { return NoSyncGuard(shared_); }

  std::string class_name() const override { return "DistributedDataParallel"; }

 private:
  std::shared_ptr<detail::DistributedModule> shared_;
};

}  // namespace tern::dist
