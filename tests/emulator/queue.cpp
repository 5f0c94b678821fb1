// Streams, events and graphs.
#include "tests/emulator/queue.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tern/backends/cuda/graph_edges.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/settings.h"

using namespace emulator;

namespace {

struct Item {
  std::function<void()> work;
  std::shared_ptr<const Mark> after;  ///< null, or what must be reached before
};

}  // namespace

struct CUgraphNode_st {
  cudaGraph_t graph;
  Item item;
  std::vector<cudaGraphNode_t> after;
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  struct Node {
    Item item;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
};
struct CUstream_st {
  std::deque<Item> queue;
  std::unique_ptr<CUgraph_st> graph;  ///< while one is made
  cudaGraphNode_t last = nullptr;     ///< of the graph
  bool broken = false;                ///< the graph, by a question that no graph can answer
};
struct CUevent_st {
  bool timed;
  std::shared_ptr<Mark> last;
};

namespace {

constexpr size_t kMostWaiting = 256;

struct Streams {
  std::vector<cudaStream_t> all;
  size_t waiting = 0;
  std::minstd_rand random{static_cast<unsigned>(settings().seed)};
};
Streams& streams() {
  static auto* only = new Streams;
  return *only;
}

double passed_seconds = 0;  // beside the clock's

double now() {
  return passed_seconds +
         std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool can_run(cudaStream_t stream) {
  return !stream->queue.empty() &&
         (stream->queue.front().after == nullptr || stream->queue.front().after->reached);
}

/// Does one thing of a stream that is drawn; false where there is none.
bool step() {
  Streams& s = streams();
  std::vector<cudaStream_t> able;
  std::copy_if(s.all.begin(), s.all.end(), std::back_inserter(able), can_run);
  if (able.empty()) return false;
  cudaStream_t stream = able[s.random() % able.size()];
  Item item = std::move(stream->queue.front());
  stream->queue.pop_front();
  --s.waiting;
  const OpenMemory open;
  if (item.work) item.work();
  return true;
}

template <class Done>
void run_until(const Done& done) {
  while (!done()) {
    {
      const OpenMemory open;
      while (!done() && step()) {
      }
    }
    if (done()) return;
    if (awaited_calls() == 0) {
      std::fputs("CUDA emulator: streams wait for each other\n", stderr);
      std::abort();
    }
    big_lock().pause();
  }
}

void run_some() {
  Streams& s = streams();
  if (!settings().lazy || s.waiting > kMostWaiting) return finish_all();
  if (s.random() % 8 != 0) return;
  const OpenMemory open;
  for (auto left = s.random() % 8; left > 0 && step(); --left) {
  }
}

cudaError_t push(cudaStream_t stream, Item item) {
  if (stream->graph) {
    auto node = std::unique_ptr<CUgraphNode_st>(new CUgraphNode_st{stream->graph.get(), std::move(item), {}});
    if (stream->last) node->after.push_back(stream->last);
    stream->last = node.get();
    stream->graph->nodes.push_back(std::move(node));
    return cudaSuccess;
  }
  stream->queue.push_back(std::move(item));
  ++streams().waiting;
  run_some();
  return cudaSuccess;
}

cudaError_t break_capture(cudaStream_t stream) {
  stream->broken = true;
  return cudaErrorStreamCaptureUnsupported;
}

bool is_per_thread(cudaStream_t stream) { return stream == cudaStreamPerThread; }

}  // namespace

namespace emulator {

BigLock& big_lock() {
  static auto* only = new BigLock;
  return *only;
}

void BigLock::pause() {
  const int depth = depth_;
  for (int i = 0; i < depth; ++i) unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(20));
  for (int i = 0; i < depth; ++i) lock();
}

int& awaited_calls() {
  static int count = 0;
  return count;
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(big_lock());
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;  // the backend never uses the legacy stream
  return push(stream, {std::move(work), nullptr});
}

cudaError_t wait_for(cudaStream_t stream, std::shared_ptr<const Mark> mark) {
  const std::lock_guard lock(big_lock());
  return push(stream, {nullptr, std::move(mark)});
}

void pass_time(double seconds) {
  const std::lock_guard lock(big_lock());
  passed_seconds += seconds;
}

cudaError_t finish(cudaStream_t stream) {
  const std::lock_guard lock(big_lock());
  if (stream->graph) return break_capture(stream);
  run_until([&] { return stream->queue.empty(); });
  return cudaSuccess;
}

void finish_all() {
  run_until([] { return streams().waiting == 0; });
}

}  // namespace emulator

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned) {
  const std::lock_guard lock(big_lock());
  streams().all.push_back(*made = new CUstream_st);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return finish(stream); }

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(big_lock());
  if (stream->graph) return break_capture(stream);
  if (!stream->queue.empty()) step();
  return stream->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(big_lock());
  return event->last == nullptr ? cudaSuccess : wait_for(stream, event->last);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) {
  *made = new CUevent_st{.timed = (flags & cudaEventDisableTiming) == 0, .last = nullptr};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(big_lock());
  event->last = std::make_shared<Mark>();
  const auto reach = [mark = event->last] {
    mark->reached = true;
    mark->seconds = now();
  };
  if (!is_per_thread(stream)) return push(stream, {reach, nullptr});
  reach();
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(big_lock());
  if (event->last == nullptr || event->last->reached) return cudaSuccess;
  step();
  return event->last->reached ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(big_lock());
  if (event->last) run_until([&] { return event->last->reached; });
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const std::lock_guard lock(big_lock());
  if (!begin->last || !end->last || !begin->timed || !end->timed) return cudaErrorInvalidResourceHandle;
  if (!begin->last->reached || !end->last->reached) return cudaErrorNotReady;
  *milliseconds = static_cast<float>((end->last->seconds - begin->last->seconds) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock(big_lock());
  if (stream->graph) return cudaErrorIllegalState;
  stream->graph = std::make_unique<CUgraph_st>();
  stream->last = nullptr;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(big_lock());
  *status = !stream->graph   ? cudaStreamCaptureStatusNone
            : stream->broken ? cudaStreamCaptureStatusInvalidated
                             : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* made) {
  const std::lock_guard lock(big_lock());
  if (!stream->graph) return cudaErrorIllegalState;
  const bool broken = std::exchange(stream->broken, false);
  *made = broken ? nullptr : stream->graph.release();
  stream->graph.reset();
  return broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t*, const cudaGraphNode_t** nodes,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  static const cudaGraphEdgeData plain{};
  const std::lock_guard lock(big_lock());
  cudaStreamIsCapturing(stream, status);
  *nodes = &stream->last;
  *edges = &plain;
  *count = stream->graph && stream->last ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents,
                                           cudaGraphEdgeData* edges, size_t* count) {
  size_t found = 0;
  for (const auto& other : node->graph->nodes) {
    if (std::find(other->after.begin(), other->after.end(), node) == other->after.end()) continue;
    if (dependents) {
      if (found == *count) break;
      dependents[found] = other.get();
      edges[found] = {};
    }
    ++found;
  }
  *count = found;
  return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData*, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    auto& after = to[i]->after;
    if (from[i] == to[i] || std::find(after.begin(), after.end(), from[i]) != after.end())
      return cudaErrorInvalidValue;
    after.push_back(from[i]);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData*, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (std::erase(to[i]->after, from[i]) == 0) return cudaErrorInvalidValue;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  std::map<cudaGraphNode_t, size_t> numbers;
  for (const auto& node : graph->nodes) numbers.emplace(node.get(), numbers.size());
  *made = new CUgraphExec_st;
  for (const auto& node : graph->nodes) {
    auto& copy = (*made)->nodes.emplace_back(CUgraphExec_st::Node{node->item, {}});
    for (cudaGraphNode_t before : node->after) copy.after.push_back(numbers.at(before));
  }
  return cudaSuccess;
}

/// In an order that is drawn among those that the edges allow.
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const std::lock_guard lock(big_lock());
  const size_t count = graph->nodes.size();
  std::vector<size_t> missing(count);
  std::vector<std::vector<size_t>> followers(count);
  std::vector<size_t> able;
  for (size_t i = 0; i < count; ++i) {
    missing[i] = graph->nodes[i].after.size();
    for (size_t before : graph->nodes[i].after) followers[before].push_back(i);
    if (missing[i] == 0) able.push_back(i);
  }
  while (!able.empty()) {
    std::swap(able[streams().random() % able.size()], able.back());
    const size_t next = able.back();
    able.pop_back();
    if (const cudaError_t error = push(stream, graph->nodes[next].item); error != cudaSuccess) return error;
    for (size_t follower : followers[next])
      if (--missing[follower] == 0) able.push_back(follower);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
