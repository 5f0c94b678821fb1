// One start for all processes, and their buffers before each forward.
#include "tern/parallel/distributed_data_parallel.h"

#include <algorithm>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/ops/copy.h"
#include "tern/parallel/gradient_reducer.h"

namespace tern::dist::detail {
namespace {

/// A line for each parameter and buffer.
std::vector<std::string> describe(const nn::Module& module) {
  std::vector<std::string> lines;
  const auto add = [&](const char* what, const std::vector<std::pair<std::string, Tensor>>& tensors) {
    for (const auto& [name, tensor] : tensors)
      lines.push_back(fmt::format("{} '{}' {} {}{}", what, name, tern::name(tensor.dtype()),
                                  to_string(tensor.shape()), tensor.requires_grad() ? "" : ", frozen"));
  };
  add("parameter", module.named_parameters());
  add("buffer", module.named_buffers());
  return lines;
}

void check_same(const nn::Module& module, const ProcessGroup& group) {
  std::string mine;
  for (const std::string& line : describe(module)) mine += line + "\n";
  const std::vector<std::string> all = group.all_gather(mine);
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    const auto line_from = [](const std::string& text, size_t at) {
      const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
      return begin >= text.size() ? std::string("nothing more")
                                  : text.substr(begin, text.find('\n', begin) - begin);
    };
    const auto [here, there] = std::mismatch(all[0].begin(), all[0].end(), all[r].begin(), all[r].end());
    TERN_THROW(DistributedError,
               "DistributedDataParallel: the processes have different modules: rank 0 has {}, rank {} has {}",
               line_from(all[0], static_cast<size_t>(here - all[0].begin())), r,
               line_from(all[r], static_cast<size_t>(there - all[r].begin())));
  }
}

/// All tensors become those of rank 0; few of them travel at a time.
void broadcast_all(const std::vector<Tensor>& tensors, const ProcessGroup& group) {
  const NoGradGuard no_grad;
  for (const auto& packing :
       parallel::pack_by_dtype(tensors, /*aligned=*/false, [](size_t) { return true; })) {
    std::vector<Tensor> dense;
    for (const Tensor& tensor : tensors) dense.push_back(tensor.detach());
    const Tensor row = packing.pack(dense);
    group.broadcast(row);
    for (size_t m = 0; group.rank() != 0 && m < packing.members.size(); ++m)
      dense[packing.members[m]].copy_(packing.view(row, m));
  }
}

}  // namespace

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
  check_same(module, group);
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
