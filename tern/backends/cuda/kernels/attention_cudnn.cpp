// Attention by cuDNN's graph API: graphs of products with softmax between them, which its engines know as one
// kernel (FlashAttention-2: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work
// Partitioning", 2023). The engines take the forward pass only with the logarithms of the sums as a second
// result.
#include <cstring>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/kernels/attention.h"
#include "tern/backends/cuda/kernels/cudnn_graph.h"
#include "tern/backends/cuda/kernels/cudnn_plan.h"
#include "tern/backends/cuda/kernels/plan_key.h"
#include "tern/base/check.h"
#include "tern/base/env.h"

namespace tern::cuda_backend {
namespace {

using Graph = CudnnGraph;
using Sizes = Graph::Sizes;

/// The numbers by which a graph calls the tensors that are given to it.
enum Id : int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOutput,
  kGradOutput,
  kGradQuery,
  kGradKey,
  kGradValue,
  kLogSums,
  kMeans,
  kScale,
  kHidden,
  kOne,
  kIds
};
constexpr size_t kOperands = kLogSums - kQuery;  // of which a plan knows the strides

/// What a plan depends on.
struct Problem {
  int64_t gpu, dtype, is_backward;
  AttentionShape shape;
  int64_t strides[kOperands][3];  ///< batch, head, row

  bool operator==(const Problem& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};
static_assert(sizeof(Problem) == (3 + 8 + 3 * kOperands) * sizeof(int64_t), "compared as bytes");

template <class Args>
Problem problem_of(const LaunchContext& context, const Args& args) {
  Problem problem{stream_of(context.stream).gpu().number(),
                  static_cast<int64_t>(args.dtype),
                  std::is_same_v<Args, AttentionBackwardArgs>,
                  args.shape,
                  {}};
  const auto operands = operands_of(args);
  for (size_t i = 0; i < operands.size(); ++i) {
    problem.strides[i][0] = operands[i]->batch_stride;
    problem.strides[i][1] = operands[i]->head_stride;
    problem.strides[i][2] = operands[i]->row_stride;
  }
  return problem;
}

/// Both graphs are made of these.
class Parts {
 public:
  explicit Parts(const Problem& problem)
      : graph(kIds),
        type(static_cast<DType>(problem.dtype) == DType::Float16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16),
        s(problem.shape),
        all{s.batch, s.heads, s.rows, s.columns},
        row{s.batch, s.heads, s.rows, 1},
        scale(Graph::scalar(kScale)),
        log_sums(Graph::tensor(kLogSums, CUDNN_DATA_FLOAT, row, Graph::contiguous(row))),
        problem_(problem) {}

  Sizes strides_of(Id id) const {
    const int64_t(&x)[3] = problem_.strides[id - kQuery];
    return {x[0], x[1], x[2], 1};
  }
  Sizes sizes_of(Id id) const {
    const bool of_key = id == kKey || id == kValue || id == kGradKey || id == kGradValue;
    const bool wide = id == kValue || id == kOutput || id == kGradOutput || id == kGradValue;
    return {s.batch, of_key ? s.key_heads : s.heads, of_key ? s.columns : s.rows,
            wide ? s.value_width : s.width};
  }
  Descriptor operand(Id id) const { return Graph::tensor(id, type, sizes_of(id), strides_of(id)); }
  Descriptor turned(Id id) const {
    return Graph::tensor(id, type, Graph::turned(sizes_of(id)), Graph::turned(strides_of(id)));
  }
  Descriptor inner(const Sizes& sizes) { return graph.inner(CUDNN_DATA_FLOAT, sizes); }

  Descriptor binary(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor& b, const Sizes& sizes) {
    Descriptor y = inner(sizes);
    graph.binary(mode, x, b, y);
    return y;
  }
  Descriptor unary(cudnnPointwiseMode_t mode, const Descriptor& x, const Sizes& sizes) {
    Descriptor y = inner(sizes);
    graph.unary(mode, x, y);
    return y;
  }
  Descriptor reduced(cudnnReduceTensorOp_t op, const Descriptor& x) {
    Descriptor y = inner(row);
    graph.reduce(op, x, y);
    return y;
  }
  /// Scores, with what is hidden at -inf.
  Descriptor scores(const Descriptor& query, const Descriptor& turned_key) {
    const Descriptor products = inner(all);
    graph.matmul(query, turned_key, products);
    Descriptor scaled = binary(CUDNN_POINTWISE_MUL, products, scale, all);
    if (!s.is_causal) return scaled;
    const Descriptor rows = graph.inner(CUDNN_DATA_INT32, all), columns = graph.inner(CUDNN_DATA_INT32, all),
                     sees = graph.inner(CUDNN_DATA_BOOLEAN, all), hidden = Graph::scalar(kHidden);
    graph.number(scaled, 2, rows);
    graph.number(scaled, 3, columns);
    graph.binary(CUDNN_POINTWISE_CMP_GE, rows, columns, sees);
    Descriptor masked = inner(all);
    graph.select(sees, scaled, hidden, masked);
    return masked;
  }
  /// Columns as rows, in 16 bits.
  Descriptor turned_scores(const Descriptor& x) {
    Descriptor y = graph.inner(type, Graph::turned(all), Graph::turned(Graph::contiguous(all)));
    graph.reshape(x, y);
    return y;
  }

  Graph graph;
  cudnnDataType_t type;
  AttentionShape s;
  Sizes all, row;
  Descriptor scale, log_sums;

 private:
  const Problem& problem_;
};

Graph forward_graph(const Problem& problem) {
  Parts p(problem);
  const Descriptor scores = p.scores(p.operand(kQuery), p.turned(kKey));
  const Descriptor largest = p.reduced(CUDNN_REDUCE_TENSOR_MAX, scores);
  const Descriptor differences = p.binary(CUDNN_POINTWISE_SUB, scores, largest, p.all);
  const Descriptor powers = p.unary(CUDNN_POINTWISE_EXP, differences, p.all);
  const Descriptor sums = p.reduced(CUDNN_REDUCE_TENSOR_ADD, powers);
  const Descriptor logarithms = p.unary(CUDNN_POINTWISE_LOG, sums, p.row);
  p.graph.binary(CUDNN_POINTWISE_ADD, largest, logarithms, p.log_sums);
  const Descriptor weights = p.graph.inner(p.type, p.all);
  p.graph.binary(CUDNN_POINTWISE_DIV, powers, sums, weights);
  p.graph.matmul(weights, p.operand(kValue), p.operand(kOutput));
  return std::move(p.graph);
}

/// With weights P = e^(scores - log_sums) and G the gradient of the output: dV = P^T G, dS = P (G V^T - mean)
/// scale with the mean of each row's G output, dQ = dS K, dK = dS^T Q. Where dQ is the product's own result,
/// and not gathered in float32 first, the engines add in one order.
Graph backward_graph(const Problem& problem) {
  Parts p(problem);
  const Descriptor query = p.operand(kQuery), turned_key = p.turned(kKey), grad = p.operand(kGradOutput);
  const Sizes of_output = p.sizes_of(kOutput);
  const Descriptor shares = p.graph.inner(CUDNN_DATA_FLOAT, of_output,
                                          {of_output[1] * of_output[2] * of_output[3],
                                           of_output[2] * of_output[3], of_output[1] * of_output[3], 1});
  p.graph.binary(CUDNN_POINTWISE_MUL, grad, p.operand(kOutput), shares);
  const Descriptor sums = p.reduced(CUDNN_REDUCE_TENSOR_ADD, shares);
  const Descriptor means = Graph::tensor(kMeans, CUDNN_DATA_FLOAT, p.row, Graph::contiguous(p.row));
  p.graph.binary(CUDNN_POINTWISE_MUL, sums, Graph::scalar(kOne), means);

  const Descriptor differences =
      p.binary(CUDNN_POINTWISE_SUB, p.scores(query, turned_key), p.log_sums, p.all);
  const Descriptor weights = p.unary(CUDNN_POINTWISE_EXP, differences, p.all);
  p.graph.matmul(p.turned_scores(weights), grad, p.operand(kGradValue));

  const Descriptor of_weights = p.inner(p.all);
  p.graph.matmul(grad, p.turned(kValue), of_weights);
  const Descriptor around_mean = p.binary(CUDNN_POINTWISE_SUB, of_weights, means, p.all);
  const Descriptor unscaled = p.binary(CUDNN_POINTWISE_MUL, around_mean, weights, p.all);
  const Descriptor of_scores = p.graph.inner(p.type, p.all);
  p.graph.binary(CUDNN_POINTWISE_MUL, unscaled, p.scale, of_scores);
  p.graph.matmul(p.turned_scores(of_scores), query, p.operand(kGradKey));
  const Descriptor key = p.graph.inner(p.type, p.sizes_of(kKey), p.strides_of(kKey));
  p.graph.reshape(turned_key, key);
  p.graph.matmul(of_scores, key, p.operand(kGradQuery));
  return std::move(p.graph);
}

class Plan {
 public:
  Plan(cudnnHandle_t handle, const Problem& problem) {
    try {
      const Graph graph = problem.is_backward ? backward_graph(problem) : forward_graph(problem);
      engines_ = find_engines(handle, graph.operations(), {});
    } catch (const NotImplementedError&) {  // what cuDNN refuses to describe has no plan either
    }
  }

  bool usable() const noexcept { return !engines_.empty(); }

  /// `rest`: what else the graph is given.
  template <class Args>
  void run(const LaunchContext& context, cudnnHandle_t handle, const Args& args,
           std::initializer_list<std::pair<Id, const void*>> rest) const {
    const auto scale = static_cast<float>(args.scale);
    // Before 9.10 cuDNN took no infinity here.
    const float hidden = cudnn()->cudnnGetVersion() < 91000 ? std::numeric_limits<float>::lowest()
                                                            : -std::numeric_limits<float>::infinity();
    std::vector<int64_t> ids;
    std::vector<const void*> pointers;
    const auto give = [&](int64_t number, const void* pointer) {
      ids.push_back(number);
      pointers.push_back(pointer);
    };
    int64_t id = kQuery;
    for (const AttentionOperand* x : operands_of(args)) give(id++, x->data);
    give(kScale, &scale);
    if (args.shape.is_causal) give(kHidden, &hidden);
    for (const auto& [name, pointer] : rest) give(name, pointer);
    run_engine(engines_.front(), context, handle, ids, pointers);
  }

 private:
  std::vector<CudnnEngine> engines_;
};

/// Made when the problem is met first. With the handle alone, which locks them.
const Plan& plan_of(const CudnnHandle& handle, const Problem& problem) {
  static auto* plans = new std::unordered_map<Problem, std::unique_ptr<Plan>, PlanHash<Problem>>;  // for good
  std::unique_ptr<Plan>& plan = (*plans)[problem];
  if (!plan) plan = std::make_unique<Plan>(handle.get(), problem);
  return *plan;
}

/// What TERN_CUDA_ATTENTION asks for.
enum class Wanted { WhereLarge, Never, Always };

/// Engines compile a plan's kernel, which takes tenths of a second: fewer scores than these are not worth it,
/// since another length makes another plan.
constexpr int64_t kFewestScores = int64_t{1} << 22;

template <class Args>
bool fuses(const LaunchContext& context, const Args& args) {
  static const auto wanted =
      static_cast<Wanted>(env_choice("TERN_CUDA_ATTENTION", {"large", "blocks", "always"}));
  if (wanted == Wanted::Never || !fits_fused_attention(args) || cudnn() == nullptr) return false;
  const AttentionShape& s = args.shape;
  if (wanted == Wanted::WhereLarge && s.batch * s.heads * s.rows < kFewestScores / s.columns) return false;
  const CudnnHandle handle(context);
  return plan_of(handle, problem_of(context, args)).usable();
}

Storage a_float_for_each_row(const LaunchContext& context, const AttentionShape& s) {
  return workspace(context, static_cast<size_t>(s.batch * s.heads * s.rows) * sizeof(float));
}

}  // namespace

bool fuses_attention(const LaunchContext& context, const AttentionArgs& args) { return fuses(context, args); }
bool fuses_attention(const LaunchContext& context, const AttentionBackwardArgs& args) {
  return fuses(context, args);
}

void attention(const LaunchContext& context, const AttentionArgs& args) {
  TERN_CHECK(cudnn() != nullptr, NotImplementedError, "attention in one kernel needs cuDNN");
  Storage scratch;
  if (args.log_sums == nullptr) scratch = a_float_for_each_row(context, args.shape);
  const void* const log_sums = args.log_sums != nullptr ? args.log_sums : scratch->data();
  const CudnnHandle handle(context);
  plan_of(handle, problem_of(context, args)).run(context, handle.get(), args, {{kLogSums, log_sums}});
}

void attention_backward(const LaunchContext& context, const AttentionBackwardArgs& args) {
  TERN_CHECK(cudnn() != nullptr, NotImplementedError, "gradients of attention in one kernel need cuDNN");
  const Storage means = a_float_for_each_row(context, args.shape);
  const float one = 1;
  const CudnnHandle handle(context);
  plan_of(handle, problem_of(context, args))
      .run(context, handle.get(), args, {{kLogSums, args.log_sums}, {kMeans, means->data()}, {kOne, &one}});
}

}  // namespace tern::cuda_backend
