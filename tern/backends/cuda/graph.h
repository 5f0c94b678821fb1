// GraphRecording: what a stream is given while a step is recorded becomes a CUDA graph. Where many kernels do
// not need each other, the graph lets them run side by side.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tern/device/kept_launch.h"
#include "tern/kernels/launch_order.h"

namespace tern::cuda_backend {

class CudaStream;

class GraphRecording {
 public:
  /// From here on the stream, whose name is given too, keeps what it is given. Its GPU must be the current
  /// one.
  GraphRecording(CudaStream& stream, Stream name);

  /// Around each launch. Kernels are given the args that the first returns, valid until the next launch.
  const void* begin_launch(const Launch& launch);
  void end_launch(const Launch& launch);
  /// The launch that is being made touches this memory beside that of its arguments.
  void touches(const void* data, size_t nbytes) { beside_.push_back({data, nbytes, true, true}); }

  std::unique_ptr<RecordedWork> end();

 private:
  using Nodes = std::vector<cudaGraphNode_t>;

  Nodes last_nodes() const;
  bool branches() const;
  void branch(cudaGraph_t graph) const;

  CudaStream& stream_;
  Stream name_;
  LaunchOrder order_;
  std::vector<std::vector<uint32_t>> after_;  ///< of each launch, those that it comes after
  std::vector<Nodes> last_;                   ///< of each launch, its last nodes
  SmallVector<Operand, 8> beside_;
  Storage origins_;  ///< of random numbers
  bool is_random_ = false;
  std::optional<KeptLaunch> redirected_;
  bool in_launch_ = false;
  bool known_ = true;  ///< what every kernel touches
};

}  // namespace tern::cuda_backend
