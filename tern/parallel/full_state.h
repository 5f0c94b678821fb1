// Whole state dicts of modules that fully_shard divided, and of their optimizers: what files hold, so that
// any number of processes, or one without them, goes on from there (torch.distributed.checkpoint.state_dict
// with full_state_dict=True).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tern/core/state_dict.h"
#include "tern/nn/module.h"
#include "tern/optim/optimizer.h"

namespace tern::dist {

struct FullParametersOptions {
  /// Only rank 0 has them; the others take part in gathering them.
  bool rank0_only = false;
  /// In host memory, where they come one module after the other.
  bool offload_to_cpu = false;
};

/// While it lives, which must be shorter than the module does, the fields of a divided module and of those
/// below it hold whole parameters, which are copies (FullyShardedDataParallel.summon_full_params). All
/// processes make one. Blocks. They are for looking at and changing, not for forward.
class [[nodiscard]] FullParameters {
 public:
  explicit FullParameters(const nn::Module& module, const FullParametersOptions& options = {});
  ~FullParameters();
  FullParameters(const FullParameters&) = delete;
  FullParameters& operator=(const FullParameters&) = delete;

  /// Those of rank 0, and the module's buffers, become those of all. Not with rank0_only. Blocks.
  void broadcast() const;
  /// Each process takes its pieces of what they are now; those that have none leave theirs as they are.
  void write_back() const;

 private:
  struct Part;
  const nn::Module& module_;
  std::vector<Part> parts_;
};

struct FullStateOptions {
  /// Tensors come to host memory, one after the other, and only rank 0 keeps them: the others get an empty
  /// dict. False: all processes have all, where the parameters are.
  bool cpu_offload = false;
};

/// module.state_dict() with whole parameters, as the module would have that was not divided. Tensors of
/// divided parameters are copies. All processes call it. Blocks. Modules that are not divided give theirs as
/// they are.
StateDict full_state_dict(const nn::Module& module, const FullStateOptions& options = {});

/// As nn::LoadStateDictOptions has them, without `assign`.
struct LoadFullStateOptions {
  bool strict = true;
  std::string prefix = {};
  nn::OnMismatch on_mismatch = nn::OnMismatch::Error;
  /// Only rank 0 has the dict (the others give an empty one), and what it loads goes to all.
  bool broadcast_from_rank0 = false;
};

/// module.load_state_dict() of whole parameters, of which each process takes its pieces. All processes call
/// it, with the same dict. Blocks. Throws as load_state_dict, and then nothing has been changed.
nn::IncompatibleKeys load_full_state_dict(nn::Module& module, const StateDict& dict,
                                          const LoadFullStateOptions& options = {});

/// The rank of this process among those that the module is divided over; nothing when it is not.
std::optional<int> rank_of_shards(const nn::Module& module);

/// optimizer.state_dict() as it would be if the module were not divided: state of the sizes of whole
/// parameters. All processes call it. Blocks. Throws ValueError for LBFGS, whose state is not by parameters.
optim::OptimizerState full_optimizer_state_dict(const nn::Module& module, const optim::Optimizer& optimizer,
                                                const FullStateOptions& options = {});

/// optimizer.load_state_dict() of such a state, of which each process takes its pieces.
void load_full_optimizer_state_dict(const nn::Module& module, optim::Optimizer& optimizer,
                                    const optim::OptimizerState& state);

}  // namespace tern::dist
