// SyncBatchNorm: batch normalisation whose statistics in training are those of the whole batch, over all
// replicas of a DataParallel call, or all processes of a DistributedDataParallel. BatchNorm itself is in
// nn/norm.h.
#pragma once

#include <utility>

#include "tern/nn/any_module.h"
#include "tern/nn/norm.h"

namespace tern::parallel {

/// Batch normalisation of [N, C, ...]. Inside parallel::DataParallel, in training, mean and variance are
/// taken over the parts of the batch on all devices, so that the result and all gradients are those of one
/// device with the whole batch; inside dist::DistributedDataParallel over the parts of all processes;
/// anywhere else it is nn::BatchNorm. The forwards of the replicas then run on a thread each, in turn, and
/// wait for each other at every such layer; ValueError when one of them does not come. Processes wait for
/// each other there and in its backward; DistributedError when one does something else. A DataParallel inside
/// of a process keeps to the devices of that process.
class SyncBatchNorm final : public nn::BatchNorm {
 public:
  explicit SyncBatchNorm(int64_t num_features, const nn::BatchNormOptions& options = {});
};

/// Makes every BatchNorm in the module, itself and all below it, a synchronised one, in place: they keep
/// their tensors, their type and their names in a state dict, and print as SyncBatchNorm.
void convert_sync_batchnorm_(nn::Module& module);

/// The same for a copy of the struct, which shares the module's tensors
/// (torch.nn.SyncBatchNorm.convert_sync_batchnorm).
template <class Net>
Net convert_sync_batchnorm(Net module) {
  if constexpr (std::is_base_of_v<nn::Module, Net>)
    convert_sync_batchnorm_(module);
  else
    convert_sync_batchnorm_(module.get());
  return module;
}

/// True when the module has a synchronised layer in training mode.
bool needs_meetings(const nn::Module& module);

}  // namespace tern::parallel
