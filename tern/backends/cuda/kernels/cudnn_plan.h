// Plans of cuDNN's graph API: which engine runs a graph of operations, and the running of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tern/backends/cuda/cudnn.h"
#include "tern/backends/cuda/stream_handle.h"
#include "tern/device/backend.h"

namespace tern::cuda_backend {

cudnnHandle_t make_cudnn_handle(cudaStream_t stream);
/// While one lives no other thread uses cuDNN, nor the plans that are kept.
using CudnnHandle = StreamHandle<cudnnHandle_t, &make_cudnn_handle>;

/// An execution plan, and the bytes of workspace that it needs.
struct CudnnEngine {
  Descriptor plan;
  int64_t nbytes = 0;
};

/// Which engines are out of the question, besides those that may give another result next time and those that
/// convert inputs down.
struct EngineRules {
  bool full_float32 = false;  ///< float32 must not be rounded to TF32
  int64_t most_workspace = int64_t{1} << 30;
  size_t most_engines = 1;  ///< that are looked for
};

/// The best engines by cuDNN's heuristic for a graph of finished operations, best first; none where it takes
/// no such graph.
std::vector<CudnnEngine> find_engines(cudnnHandle_t handle, std::span<const Descriptor> operations,
                                      const EngineRules& rules);

/// Queues the work. `pointers` belong to the tensors of the graph that have these numbers, scalars that are
/// passed by value included.
void run_engine(const CudnnEngine& engine, const LaunchContext& context, cudnnHandle_t handle,
                std::span<const int64_t> ids, std::span<const void* const> pointers);

}  // namespace tern::cuda_backend
