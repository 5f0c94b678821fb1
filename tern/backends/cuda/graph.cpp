// Graphs of recorded steps. CUDA records a stream as a chain; where the launches' operands show that much of
// it need not wait for each other, the edges are drawn anew.
#include "tern/backends/cuda/graph.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/graph_edges.h"
#include "tern/backends/cuda/kernels/random_origin.h"
#include "tern/base/env.h"

namespace tern::cuda_backend {
namespace {

/// A graph of CUDA, started as a whole.
class Graph final : public RecordedWork {
 public:
  /// `origins`: null, or the memory that the kernels have the origins of random numbers from.
  Graph(CudaStream& stream, Stream name, cudaGraph_t graph, Storage origins)
      : stream_(stream), name_(name), origins_(std::move(origins)) {
    TERN_CUDA_CALL(cudaGraphInstantiate(&graph_, graph, 0));
  }
  ~Graph() override { cudaGraphExecDestroy(graph_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void run(std::span<const PhiloxState> origins) override {
    const Task task{.name = "graph", .stream = name_};
    const TaskScope scope(task);
    use_gpu(stream_.gpu().number());
    stream_.remember("graph");
    const auto start = [&] {
      if (origins_) set_random_origins({name_}, static_cast<PhiloxState*>(origins_->data()), origins);
      TERN_CUDA_CALL(cudaGraphLaunch(graph_, stream_.handle()));
    };
    LaunchObserver* observer = detail::launch_observer.load(std::memory_order_acquire);
    if (observer == nullptr) return start();
    stream_.observed(*observer, {.kind = Activity::Kind::Wait, .stream = name_, .name = "graph"}, start);
  }

 private:
  CudaStream& stream_;
  Stream name_;
  Storage origins_;
  cudaGraphExec_t graph_ = nullptr;
};

/// Edges of a graph, as CUDA takes them.
struct Edges {
  std::vector<cudaGraphNode_t> from, to;
  std::vector<cudaGraphEdgeData> data;

  void add(cudaGraphNode_t before, cudaGraphNode_t after, const cudaGraphEdgeData& kind = {}) {
    from.push_back(before);
    to.push_back(after);
    data.push_back(kind);
  }
};

/// All edges that leave a node. Their number is not asked for beforehand: CUDA may refuse to tell it without
/// what kind they are (cudaErrorLossyQuery).
Edges edges_from(cudaGraphNode_t node) {
  Edges edges;
  size_t count = 0;
  for (size_t room = 16; count == edges.to.size(); room *= 2) {
    edges.to.resize(room);
    edges.data.resize(room);
    count = room;
    TERN_CUDA_CALL(cudaGraphNodeGetDependentNodes(node, edges.to.data(), edges.data.data(), &count));
  }
  edges.from.resize(count, node);
  edges.to.resize(count);
  edges.data.resize(count);
  return edges;
}

}  // namespace

// The origins get their memory before anything is recorded: they are written ahead of the graph, whose
// kernels would write over memory that one of them had before.
GraphRecording::GraphRecording(CudaStream& stream, Stream name)
    : stream_(stream), name_(name), origins_(workspace({name}, kMostOrigins * sizeof(PhiloxState))) {
  // Relaxed: memory may be had from CUDA meanwhile, and other threads do as they like.
  TERN_CUDA_CALL(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeRelaxed));
}

GraphRecording::Nodes GraphRecording::last_nodes() const {
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  TERN_CUDA_CALL(
      cudaStreamGetCaptureInfo(stream_.handle(), &status, nullptr, nullptr, &nodes, &edges, &count));
  return Nodes(nodes, nodes + count);
}

const void* GraphRecording::begin_launch(const Launch& launch) {
  // The one before has thrown, perhaps between two kernels.
  if (std::exchange(in_launch_, true)) known_ = false;
  const void* args = launch.args;
  if (launch.origin != 0) {
    is_random_ = true;
    const auto* origin = static_cast<const PhiloxState*>(origins_->data()) + launch.origin - 1;
    redirected_.emplace(launch);
    std::memcpy(redirected_->args() + launch.random.origin_offset, &origin, sizeof origin);
    args = redirected_->args();
  }
  beside_.clear();
  return args;
}

void GraphRecording::end_launch(const Launch& launch) {
  in_launch_ = false;
  Nodes nodes = last_nodes();
  if (nodes == (last_.empty() ? Nodes() : last_.back())) return;  // of no elements
  for (const Operand& operand : work_of(launch.id, launch.args).operands) beside_.push_back(operand);
  after_.push_back(order_.add(beside_));
  last_.push_back(std::move(nodes));
}

bool GraphRecording::branches() const {
  enum Shape : size_t { Auto, Chain, Branches };
  static const size_t shape = env_choice("TERN_CUDA_GRAPH", {"auto", "chain", "branches"});
  if (!known_ || in_launch_ || shape == Chain) return false;
  // A chain is what CUDA starts fastest, and side branches of a few kernels save little.
  return shape == Branches || order_.size() >= size_t{2} * order_.depth();
}

void GraphRecording::branch(cudaGraph_t graph) const {
  Edges old_edges, new_edges;
  for (size_t i = 1; i < after_.size(); ++i) {
    if (after_[i].size() == 1 && after_[i][0] == i - 1) continue;
    Nodes firsts;
    for (cudaGraphNode_t last : last_[i - 1]) {
      const Edges leaving = edges_from(last);
      for (size_t e = 0; e < leaving.to.size(); ++e) {
        old_edges.add(last, leaving.to[e], leaving.data[e]);
        if (std::find(firsts.begin(), firsts.end(), leaving.to[e]) == firsts.end())
          firsts.push_back(leaving.to[e]);
      }
    }
    for (uint32_t before : after_[i])
      for (cudaGraphNode_t last : last_[before])
        for (cudaGraphNode_t first : firsts) new_edges.add(last, first);
  }
  if (old_edges.from.empty()) return;
  TERN_CUDA_CALL(cudaGraphRemoveDependencies(graph, old_edges.from.data(), old_edges.to.data(),
                                             old_edges.data.data(), old_edges.from.size()));
  TERN_CUDA_CALL(cudaGraphAddDependencies(graph, new_edges.from.data(), new_edges.to.data(),
                                          new_edges.data.data(), new_edges.from.size()));
}

std::unique_ptr<RecordedWork> GraphRecording::end() {
  cudaGraph_t graph = nullptr;
  TERN_CUDA_CALL(cudaStreamEndCapture(stream_.handle(), &graph));
  const std::unique_ptr<CUgraph_st, cudaError_t (*)(cudaGraph_t)> owned(graph, cudaGraphDestroy);
  if (branches()) branch(graph);
  return std::make_unique<Graph>(stream_, name_, graph, is_random_ ? std::move(origins_) : Storage());
}

}  // namespace tern::cuda_backend
