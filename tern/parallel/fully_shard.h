// fully_shard: a module whose parameters, gradients and optimizer's state are divided over the processes of a
// group (torch.distributed.fsdp.fully_shard), for networks that one process has no memory for. Whole state
// dicts of such a module, for files, are parallel/full_state.h; processes that have the whole module each are
// parallel/distributed_data_parallel.h.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tern/nn/module.h"
#include "tern/optim/clip_grad.h"
#include "tern/parallel/process_group.h"

namespace tern::dist {

struct FullyShardOptions {
  /// Whole parameters go after forward and are gathered again in backward. False: they stay until the end of
  /// backward, which saves that and takes memory. Unset: true but for the outermost module, which backward
  /// begins with.
  std::optional<bool> reshard_after_forward = {};
  /// Floating-point parameters are gathered and computed with in this dtype; the optimizer's stay as they
  /// are (MixedPrecisionPolicy).
  std::optional<DType> param_dtype = {};
  /// Gradients are added up in this dtype; unset: that which they have.
  std::optional<DType> reduce_dtype = {};
};

/// Divides the parameters of `module` over the processes: its own and those of the modules below it that were
/// not given to fully_shard before, which are whole together. A network is divided from the inside out:
///
///     Net net;
///     net.to(group.device());
///     for (Block& block : net.blocks) dist::fully_shard(block, group);
///     dist::fully_shard(net, group);
///     optim::AdamW optimizer(net.parameters());
///     for (auto& [x, y] : loader) {                 // each process has batches of its own
///       optimizer.zero_grad();
///       nn::cross_entropy(net(x), y).backward();
///       optimizer.step();
///     }
///     StateDict whole = dist::full_state_dict(net);  // on all processes
///     if (group.rank() == 0) save(whole, "net.pt");
///
/// All processes begin with the parameters and buffers of rank 0. While a module runs forward its parameters
/// are whole, outside of that each process has a piece of each of them, in one dimension and maybe empty:
/// state_dict() and parameters() give those. Their gradients after backward are the means over all processes.
/// A process keeps 1/n of parameters, gradients and state, and beside them the whole parameters of the
/// modules that are at work. The numbers are those of DistributedDataParallel, to the bit for optimizers that
/// treat each element by itself (all but LBFGS).
///
/// - All processes run the same divided modules in the same order, forward and backward.
/// - The parameters stay the same tensors; an optimizer may be made before or after. A parameter that stands
///   in several places (tied weights) must be in one call's modules.
/// - A parameter that backward does not reach has a gradient of zeros where others of its module have one.
/// - clip_grad_norm_ below takes the norm over all processes, that of optim only over this one's pieces. A
///   GradScaler needs agree_on_finite.
///
/// Throws ValueError for a module that is divided already, is lazy and has no sizes yet, or shares a
/// parameter with a divided module below it, DeviceError for parameters on several devices, DistributedError
/// when the processes' modules differ. Copies of a divided module can not be called (ValueError). Gradients
/// of gradients are an AutogradError. A step cannot be recorded (CaptureError).
void fully_shard(nn::Module& module, const ProcessGroup& group, const FullyShardOptions& options = {});

/// Whether fully_shard was called with this module.
bool is_fully_sharded(const nn::Module& module);

/// While false, backward of the divided modules at and below this one adds up whole gradients on each
/// process, and leaves the parameters' as they are; the next one after that takes the means of all that was
/// gathered.
void set_requires_gradient_sync(nn::Module& module, bool requires_gradient_sync);

/// Whether a tensor is a parameter of a divided module.
bool is_divided(const Tensor& parameter);

/// What a divided parameter is of the whole one: its elements from `start` on, in row-major order.
struct Piece {
  Shape whole;
  int64_t start = 0;
};
/// Nothing for a tensor that is not divided.
std::optional<Piece> piece_of(const Tensor& parameter);
/// Whether a tensor of an optimizer's state, saved under this name, is divided as its parameter is.
bool is_like_parameter(std::string_view name, const Shape& shape, const Shape& parameter);

/// optim::clip_grad_norm_ of divided parameters, their norm taken over all processes, which all call it.
/// Blocks. Throws ValueError where one of them is not divided.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       optim::ClipGradNormOptions options = {});

/// For GradScaler::set_agreement: whether the gradients are finite on all of the processes that these divided
/// parameters are divided over; empty for parameters that are not.
std::function<bool(bool)> agree_on_finite(const std::vector<Tensor>& parameters);

}  // namespace tern::dist
