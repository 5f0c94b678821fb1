// What the emulator finds, shown with kernels that are wrong on purpose. Compiled like a .cu file of the
// backend.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tern/backends/cuda/graph_edges.h"
#include "tests/emulator/sanitizer.h"

namespace {

constexpr int kThreads = 64;

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

template <class... P>
cudaError_t start(cudaStream_t stream, dim3 grid, dim3 block, void (*kernel)(P...),
                  std::type_identity_t<P>... args) {
  void* pointers[] = {nullptr, &args...};
  return cudaLaunchKernel(kernel, grid, block, pointers + 1, 0, stream);
}

int* device_ints(int count) {
  void* made = nullptr;
  EXPECT_EQ(cudaMalloc(&made, sizeof(int) * static_cast<size_t>(count)), cudaSuccess);
  return static_cast<int*>(made);
}

std::vector<int> read(const int* device, int count, cudaStream_t stream) {
  std::vector<int> host(static_cast<size_t>(count));
  EXPECT_EQ(cudaMemcpyAsync(host.data(), device, host.size() * sizeof(int), cudaMemcpyDeviceToHost, stream),
            cudaSuccess);
  return host;
}

__global__ void reverse(int* out, bool wait) {
  __shared__ int shared[kThreads];
  shared[threadIdx.x] = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (wait) __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
}

TEST(Emulator, AMissingBarrierShowsInTheResults) {
  cudaStream_t stream = new_stream();
  constexpr int kBlocks = 5;
  int* out = device_ints(kBlocks * kThreads);
  const auto is_right = [&](bool wait) {
    start(stream, kBlocks, kThreads, reverse, out, wait);
    const std::vector<int> found = read(out, kBlocks * kThreads, stream);
    bool right = true;
    for (int i = 0; i < kBlocks * kThreads; ++i)
      right = right && found[static_cast<size_t>(i)] == i / kThreads * kThreads + kThreads - 1 - i % kThreads;
    return right;
  };
  EXPECT_TRUE(is_right(true));
  EXPECT_FALSE(is_right(false));
}

__global__ void some_leave() {
  if (threadIdx.x == 3) return;
  __syncthreads();
}

__global__ void each_waits_elsewhere() {
  if (threadIdx.x < 32) __syncthreads();
  __ballot_sync(~0u, 1);
  if (threadIdx.x >= 32 && blockDim.y == 2) __syncthreads();
}

TEST(EmulatorDeathTest, BarriersThatNotAllThreadsReach) {
  EXPECT_DEATH((start(new_stream(), 1, kThreads, some_leave), emulator::finish_all()), "__syncthreads");
  EXPECT_DEATH((start(new_stream(), 1, kThreads, each_waits_elsewhere), emulator::finish_all()),
               "__syncthreads");
}

__global__ void exchange(int* out, uint32_t* votes) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  out[threadIdx.x] =
      __shfl_xor_sync(~0u, static_cast<int>(threadIdx.x), 1) * 1000 + __shfl_up_sync(~0u, lane, 3);
  const uint32_t mine = __ballot_sync(~0u, threadIdx.x % 3 == 0);
  if (lane == 0) votes[threadIdx.x / 32] = mine;
}

TEST(Emulator, LanesExchangeValues) {
  cudaStream_t stream = new_stream();
  int *out = device_ints(kThreads), *votes = device_ints(2);
  start(stream, 1, kThreads, exchange, out, reinterpret_cast<uint32_t*>(votes));
  const std::vector<int> found = read(out, kThreads, stream);
  for (int i = 0; i < kThreads; ++i)
    EXPECT_EQ(found[static_cast<size_t>(i)], (i ^ 1) * 1000 + (i % 32 < 3 ? i % 32 : i % 32 - 3));
  EXPECT_EQ(read(votes, 2, stream), (std::vector<int>{0x49249249, static_cast<int>(0x92492492u)}));
}

__global__ void append(int* list, int value) { list[++list[0]] = value; }

/// The orders in which two streams write, over many rounds.
bool keeps_order(bool wait) {
  cudaStream_t first = new_stream(), second = new_stream();
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDefault);
  int* list = device_ints(3);
  bool kept = true;
  for (int round = 0; round < 50; ++round) {
    const int zero = 0;
    cudaMemcpyAsync(list, &zero, sizeof zero, cudaMemcpyHostToDevice, first);
    cudaStreamSynchronize(first);
    start(first, 1, 1, append, list, 1);
    cudaEventRecord(event, first);
    if (wait) cudaStreamWaitEvent(second, event, 0);
    start(second, 1, 1, append, list, 2);
    cudaStreamSynchronize(first);
    kept &= read(list, 3, second) == std::vector<int>{2, 1, 2};
  }
  cudaEventDestroy(event);
  return kept;
}

TEST(Emulator, AMissingWaitShowsInTheOrder) {
  EXPECT_TRUE(keeps_order(true));
  EXPECT_FALSE(keeps_order(false));
}

TEST(Emulator, PinnedMemoryIsReadWhenItsTurnComes) {
  cudaStream_t stream = new_stream();
  int* device = device_ints(1);
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, sizeof(int), cudaHostAllocPortable), cudaSuccess);
  int late = 0;
  for (int round = 0; round < 50; ++round) {
    int* source = static_cast<int*>(pinned);
    *source = 1;
    cudaMemcpyAsync(device, source, sizeof(int), cudaMemcpyHostToDevice, stream);
    *source = 2;  // too early
    late += read(device, 1, stream)[0] == 2;
  }
  EXPECT_GT(late, 0);
}

#if !defined(TERN_UNDER_ASAN)
TEST(EmulatorDeathTest, TheHostCannotTouchTheMemoryOfAGpu) {
  volatile int* device = device_ints(1);
  EXPECT_DEATH(*device = 1, "");
}
#endif

TEST(Emulator, AGraphRunsWhatItWasMadeOf) {
  cudaStream_t stream = new_stream();
  int* list = device_ints(5);
  const int zero = 0;
  cudaMemcpyAsync(list, &zero, sizeof zero, cudaMemcpyHostToDevice, stream);
  cudaStreamSynchronize(stream);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  start(stream, 1, 1, append, list, 7);
  start(stream, 1, 1, append, list, 8);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runs = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&runs, graph, 0), cudaSuccess);
  EXPECT_EQ(read(list, 1, stream)[0], 0);
  cudaGraphLaunch(runs, stream);
  cudaGraphLaunch(runs, stream);
  EXPECT_EQ(read(list, 5, stream), (std::vector<int>{4, 7, 8, 7, 8}));
  cudaGraphDestroy(graph);
  cudaGraphExecDestroy(runs);
}

TEST(Emulator, OnlyEdgesOrderTheKernelsOfAGraph) {
  cudaStream_t stream = new_stream();
  int* list = device_ints(4);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  std::vector<cudaGraphNode_t> nodes;
  for (int number : {7, 8, 9}) {
    start(stream, 1, 1, append, list, number);
    cudaStreamCaptureStatus status;
    const cudaGraphNode_t* last;
    const cudaGraphEdgeData* edges;
    size_t count;
    ASSERT_EQ(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, &edges, &count),
              cudaSuccess);
    ASSERT_EQ(count, 1u);
    nodes.push_back(*last);
  }
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphNode_t after = nullptr;
  cudaGraphEdgeData edge;
  size_t count = 1;
  ASSERT_EQ(cudaGraphNodeGetDependentNodes(nodes[0], &after, &edge, &count), cudaSuccess);
  ASSERT_EQ(after, nodes[1]);
  ASSERT_EQ(cudaGraphRemoveDependencies(graph, &nodes[0], &nodes[1], &edge, 1), cudaSuccess);
  EXPECT_EQ(cudaGraphRemoveDependencies(graph, &nodes[0], &nodes[1], &edge, 1), cudaErrorInvalidValue);
  ASSERT_EQ(cudaGraphAddDependencies(graph, &nodes[0], &nodes[2], &edge, 1), cudaSuccess);
  cudaGraphExec_t runs = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&runs, graph, 0), cudaSuccess);
  std::set<std::vector<int>> orders;
  for (int round = 0; round < 50; ++round) {
    cudaMemsetAsync(list, 0, sizeof(int), stream);
    cudaGraphLaunch(runs, stream);
    orders.insert(read(list, 4, stream));
  }
  EXPECT_EQ(orders, (std::set<std::vector<int>>{{3, 7, 8, 9}, {3, 8, 7, 9}}));
  cudaGraphDestroy(graph);
  cudaGraphExecDestroy(runs);
}

TEST(Emulator, AQuestionBreaksACapture) {
  cudaStream_t stream = new_stream();
  for (const auto ask : {cudaStreamSynchronize, cudaStreamQuery}) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    EXPECT_EQ(ask(stream), cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  }
}

TEST(Emulator, RefusesGridsThatNoGpuTakes) {
  cudaStream_t stream = new_stream();
  const auto error = [&](dim3 grid, dim3 block) { return start(stream, grid, block, some_leave); };
  EXPECT_EQ(error(1, 1025), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error(dim3(1, 65536), 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error(0, 1), cudaErrorInvalidConfiguration);
}

}  // namespace
