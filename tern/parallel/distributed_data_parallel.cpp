// One start for all processes, and their buffers before each forward.
#include "tern/parallel/distributed_data_parallel.h"

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/parallel/gradient_reducer.h"
#include "tern/parallel/same_start.h"

namespace tern::dist::detail {

DistributedModule::DistributedModule(nn::Module& module, const ProcessGroup& group,
                                     const DistributedDataParallelOptions& options)
    : group_(group), broadcast_buffers_(options.broadcast_buffers) {
  TERN_CHECK(options.bucket_cap_mb > 0, ValueError,
             "DistributedDataParallel: bucket_cap_mb must be positive, got {}", options.bucket_cap_mb);
  nn::detail::check_initialized("DistributedDataParallel", module);
  std::vector<Tensor> learned;
  for (const Tensor& parameter : module.parameters())
    if (parameter.requires_grad()) learned.push_back(parameter);
  TERN_CHECK(!learned.empty(), ValueError,
             "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
             "gradient");
  check_same("DistributedDataParallel", module.named_parameters(), module.named_buffers(), group);
  std::vector<Tensor> all = module.parameters();
  for (const Tensor& buffer : module.buffers()) all.push_back(buffer);
  broadcast_all(all, group);
  reducer_ = std::make_unique<GradientReducer>(group, learned,
                                               static_cast<size_t>(options.bucket_cap_mb * (1 << 20)));
}

DistributedModule::~DistributedModule() = default;

GroupGuard DistributedModule::begin_forward(nn::Module& module) {
  reducer_->restart();
  if (broadcast_buffers_ && module.is_training() && is_grad_enabled() && synchronizes()) {
    const std::vector<Tensor> buffers = module.buffers();
    if (group_.size() > 1 && !buffers.empty()) broadcast_all(buffers, group_);
  }
  return GroupGuard(&group_);
}

bool DistributedModule::synchronizes() const noexcept { return reducer_->enabled(); }
void DistributedModule::set_synchronizes(bool on) noexcept { reducer_->set_enabled(on); }

}  // namespace tern::dist::detail
