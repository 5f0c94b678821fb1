// Choosing of engines by what the heuristic advises and the rules allow.
#include "tern/backends/cuda/kernels/cudnn_plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tern/backends/cuda/check.h"

namespace tern::cuda_backend {
namespace {

bool ask(const Descriptor& from, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         int64_t most, int64_t& count, void* values) {
  return cudnn()->cudnnBackendGetAttribute(from.get(), name, type, most, &count, values) ==
         CUDNN_STATUS_SUCCESS;
}

/// Whether the engine gives the same result every time and computes in the precision that was asked for.
bool is_allowed(const Descriptor& configuration, const EngineRules& rules) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.get();
  int64_t count = 0;
  if (!ask(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, count, &handle))
    return false;
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  if (!ask(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
           CUDNN_NUMERICAL_NOTE_TYPE_COUNT, count, notes.data()))
    return false;
  return std::none_of(notes.begin(),
                      notes.begin() + std::min<int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT),
                      [&](cudnnBackendNumericalNote_t note) {
                        return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
                               note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
                               (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && rules.full_float32);
                      });
}

/// What the heuristic advises.
std::vector<Descriptor> advice(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (!heuristic.try_finish()) return {};
  int64_t count = 0, found = 0;
  if (!ask(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, count, nullptr) ||
      count == 0)
    return {};
  std::vector<Descriptor> configurations;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < count; ++i) {
    configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    handles.push_back(configurations.back().get());
  }
  if (!ask(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, found,
           handles.data()))
    return {};
  configurations.resize(static_cast<size_t>(std::min(found, count)));
  return configurations;
}

}  // namespace

cudnnHandle_t make_cudnn_handle(cudaStream_t stream) {
  cudnnHandle_t handle = nullptr;
  check_cudnn(cudnn()->cudnnCreate(&handle), "cudnnCreate");
  check_cudnn(cudnn()->cudnnSetStream(handle, stream), "cudnnSetStream");
  return handle;
}

std::vector<CudnnEngine> find_engines(cudnnHandle_t handle, std::span<const Descriptor> operations,
                                      const EngineRules& rules) {
  std::vector<cudnnBackendDescriptor_t> parts;
  for (const Descriptor& operation : operations) parts.push_back(operation.get());
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(parts.size()),
            parts.data());
  std::vector<CudnnEngine> engines;
  if (!graph.try_finish()) return engines;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& configuration : advice(graph, mode)) {
      if (!is_allowed(configuration, rules)) continue;
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      if (!plan.try_finish()) continue;
      int64_t one = 0, nbytes = 0;
      if (!ask(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, one, &nbytes) ||
          nbytes > rules.most_workspace)
        continue;
      engines.push_back({std::move(plan), nbytes});
      if (engines.size() == rules.most_engines) return engines;
    }
    if (!engines.empty()) return engines;
  }
  return engines;
}

void run_engine(const CudnnEngine& engine, const LaunchContext& context, cudnnHandle_t handle,
                std::span<const int64_t> ids, std::span<const void* const> pointers) {
  Storage scratch;
  if (engine.nbytes > 0) scratch = workspace(context, static_cast<size_t>(engine.nbytes));
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const void* scratch_data = scratch ? scratch->data() : nullptr;
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(pointers.size()),
           pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, static_cast<int64_t>(ids.size()),
           ids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch_data);
  pack.finish();
  touches(context, handle, 1);  // what it keeps on the GPU is not known: no two plans side by side
  check_cudnn(cudnn()->cudnnBackendExecute(handle, engine.plan.get(), pack.get()), "cudnnBackendExecute");
}

}  // namespace tern::cuda_backend
