// GraphRecording: what a stream is given while a step is recorded becomes a CUDA graph. Where many kernels do
// not need each other, the graph lets them run side by side.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tern/device/backend.h"
#include "tern/kernels/launch_order.h"

namespace tern::cuda_backend {

class CudaStream;

class GraphRecording {
 public:
  /// From here on the stream keeps what it is given. Its GPU must be the current one.
  explicit GraphRecording(CudaStream& stream);

  /// Around each launch.
  void begin_launch() noexcept;
  void end_launch(const Launch& launch);
  /// The launch that is being made touches this memory beside that of its arguments.
  void touches(const void* data, size_t nbytes) { beside_.push_back({data, nbytes, true, true}); }

  /// Ends it. `name` is the stream.
  std::unique_ptr<RecordedWork> end(Stream name);

 private:
  using Nodes = std::vector<cudaGraphNode_t>;

  Nodes last_nodes() const;
  bool branches() const;
  void branch(cudaGraph_t graph) const;

  CudaStream& stream_;
  LaunchOrder order_;
  std::vector<std::vector<uint32_t>> after_;  ///< of each launch, those that it comes after
  std::vector<Nodes> last_;                   ///< of each launch, its last nodes
  SmallVector<Operand, 8> beside_;
  bool in_launch_ = false;
  bool known_ = true;  ///< what every kernel touches
};

}  // namespace tern::cuda_backend
