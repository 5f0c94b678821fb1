// Attention by cuDNN's graph API: a graph of two products with softmax between them, which its engines know
// as one kernel (FlashAttention-2: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work
// Partitioning", 2023). The engines take the graph only with the logarithms of the sums as a second result.
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/kernels/attention.h"
#include "tern/backends/cuda/kernels/cudnn_plan.h"
#include "tern/backends/cuda/kernels/plan_key.h"
#include "tern/base/check.h"
#include "tern/base/env.h"

namespace tern::cuda_backend {
namespace {

using Sizes = std::array<int64_t, 4>;  // batch, heads, rows, columns

/// What a plan depends on.
struct Problem {
  int64_t gpu, dtype, is_causal;
  int64_t batch, heads, key_heads, rows, columns, width, value_width;
  int64_t strides[4][3];  ///< of query, key, value and output: batch, head, row

  bool operator==(const Problem& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};
static_assert(sizeof(Problem) == 22 * sizeof(int64_t), "compared as bytes");

Problem problem_of(const LaunchContext& context, const AttentionArgs& args) {
  Problem problem{stream_of(context.stream).gpu().number(),
                  static_cast<int64_t>(args.dtype),
                  args.is_causal,
                  args.batch,
                  args.heads,
                  args.key_heads,
                  args.rows,
                  args.columns,
                  args.width,
                  args.value_width,
                  {}};
  const AttentionOperand* operands[] = {&args.query, &args.key, &args.value, &args.output};
  for (size_t i = 0; i < 4; ++i) {
    problem.strides[i][0] = operands[i]->batch_stride;
    problem.strides[i][1] = operands[i]->head_stride;
    problem.strides[i][2] = operands[i]->row_stride;
  }
  return problem;
}

/// The numbers by which a graph calls the tensors that are given to it.
enum Id : int64_t { kQuery = 1, kKey, kValue, kOutput, kLogSums, kScale, kHidden, kFirstInner };

/// The operations of a graph, as they are added.
class Graph {
 public:
  /// A tensor in memory, whose strides say where.
  Descriptor tensor(Id id, cudnnDataType_t type, const Sizes& sizes, const Sizes& strides) {
    Descriptor made = describe(id, type, sizes, strides);
    made.finish();
    return made;
  }
  /// A number in the host's memory.
  Descriptor scalar(Id id) {
    Descriptor made = describe(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1});
    made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    made.finish();
    return made;
  }
  /// What one operation gives to others, and is never in memory.
  Descriptor inner(cudnnDataType_t type, const Sizes& sizes) {
    const Sizes strides{sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
    Descriptor made = describe(next_++, type, sizes, strides);
    made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    made.finish();
    return made;
  }

  void matmul(const Descriptor& a, const Descriptor& b, const Descriptor& c) {
    Descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finish();
    Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    add(std::move(operation));
  }
  void reduce(cudnnReduceTensorOp_t op, const Descriptor& x, const Descriptor& y) {
    Descriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op);
    how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finish();
    Descriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    add(std::move(operation));
  }
  /// y = mode(x, b), or with `choice`: x where that is true, else b.
  void pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b, const Descriptor& y,
                 const Descriptor* choice = nullptr) {
    add(pointwise_of(mode, x, b, y, choice, -1));
  }
  /// The number of each element in its dimension `axis`.
  void number(const Descriptor& x, int64_t axis, const Descriptor& y) {
    add(pointwise_of(CUDNN_POINTWISE_GEN_INDEX, x, nullptr, y, nullptr, axis));
  }

  const std::vector<Descriptor>& operations() const { return operations_; }

 private:
  static Descriptor describe(int64_t id, cudnnDataType_t type, const Sizes& sizes, const Sizes& strides) {
    Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::vector<int64_t>(sizes.begin(), sizes.end()));
    made.set(CUDNN_ATTR_TENSOR_STRIDES, std::vector<int64_t>(strides.begin(), strides.end()));
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16});
    return made;
  }
  static Descriptor pointwise_of(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b,
                                 const Descriptor& y, const Descriptor* choice, int64_t axis) {
    Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
    how.finish();
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    if (choice != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *choice);
    return operation;
  }
  void add(Descriptor operation) {
    operation.finish();
    operations_.push_back(std::move(operation));
  }

  std::vector<Descriptor> operations_;
  int64_t next_ = kFirstInner;
};

class Plan {
 public:
  Plan(cudnnHandle_t handle, const Problem& problem) {
    try {
      const Graph graph = graph_of(problem);
      engines_ = find_engines(handle, graph.operations(), {});
    } catch (const NotImplementedError&) {  // what cuDNN refuses to describe has no plan either
    }
  }

  bool usable() const noexcept { return !engines_.empty(); }

  void run(const LaunchContext& context, cudnnHandle_t handle, const AttentionArgs& args) const {
    const auto scale = static_cast<float>(args.scale);
    // Before 9.10 cuDNN took no infinity here.
    const float hidden = cudnn()->cudnnGetVersion() < 91000 ? std::numeric_limits<float>::lowest()
                                                            : -std::numeric_limits<float>::infinity();
    const Storage log_sums =
        workspace(context, static_cast<size_t>(args.batch * args.heads * args.rows) * sizeof(float));
    const std::array<int64_t, 7> ids = {kQuery, kKey, kValue, kOutput, kLogSums, kScale, kHidden};
    const std::array<const void*, 7> pointers = {
        args.query.data, args.key.data, args.value.data, args.output.data, log_sums->data(), &scale, &hidden};
    const size_t count = args.is_causal ? 7 : 6;
    run_engine(engines_.front(), context, handle, {ids.data(), count}, {pointers.data(), count});
  }

 private:
  static Graph graph_of(const Problem& p) {
    Graph g;
    const cudnnDataType_t type =
        static_cast<DType>(p.dtype) == DType::Float16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
    const auto strides = [&](size_t i) {
      return Sizes{p.strides[i][0], p.strides[i][1], p.strides[i][2], 1};
    };
    const Sizes all{p.batch, p.heads, p.rows, p.columns}, row{p.batch, p.heads, p.rows, 1};
    const Descriptor query = g.tensor(kQuery, type, {p.batch, p.heads, p.rows, p.width}, strides(0));
    const Descriptor key = g.tensor(kKey, type, {p.batch, p.key_heads, p.width, p.columns},
                                    {p.strides[1][0], p.strides[1][1], 1, p.strides[1][2]});
    const Descriptor value =
        g.tensor(kValue, type, {p.batch, p.key_heads, p.columns, p.value_width}, strides(2));
    const Descriptor output = g.tensor(kOutput, type, {p.batch, p.heads, p.rows, p.value_width}, strides(3));
    const auto inner = [&](const Sizes& sizes) { return g.inner(CUDNN_DATA_FLOAT, sizes); };

    const Descriptor products = inner(all), scale = g.scalar(kScale);
    g.matmul(query, key, products);
    Descriptor scores = inner(all);
    g.pointwise(CUDNN_POINTWISE_MUL, products, &scale, scores);
    if (p.is_causal) {
      const Descriptor rows = g.inner(CUDNN_DATA_INT32, all), columns = g.inner(CUDNN_DATA_INT32, all);
      g.number(scores, 2, rows);
      g.number(scores, 3, columns);
      const Descriptor sees = g.inner(CUDNN_DATA_BOOLEAN, all), hidden = g.scalar(kHidden);
      g.pointwise(CUDNN_POINTWISE_CMP_GE, rows, &columns, sees);
      Descriptor masked = inner(all);
      g.pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores, &hidden, masked, &sees);
      scores = std::move(masked);
    }
    const Descriptor largest = inner(row), differences = inner(all), powers = inner(all), sums = inner(row);
    g.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
    g.pointwise(CUDNN_POINTWISE_SUB, scores, &largest, differences);
    g.pointwise(CUDNN_POINTWISE_EXP, differences, nullptr, powers);
    g.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sums);
    const Descriptor logs = inner(row);
    const Descriptor log_sums = g.tensor(kLogSums, CUDNN_DATA_FLOAT, row, {p.heads * p.rows, p.rows, 1, 1});
    g.pointwise(CUDNN_POINTWISE_LOG, sums, nullptr, logs);
    g.pointwise(CUDNN_POINTWISE_ADD, largest, &logs, log_sums);
    const Descriptor weights = g.inner(type, all);
    g.pointwise(CUDNN_POINTWISE_DIV, powers, &sums, weights);
    g.matmul(weights, value, output);
    return g;
  }

  std::vector<CudnnEngine> engines_;
};

/// Made when the problem is met first. With the handle alone, which locks them.
const Plan& plan_of(const CudnnHandle& handle, const Problem& problem) {
  static auto* plans = new std::unordered_map<Problem, std::unique_ptr<Plan>, PlanHash<Problem>>;  // for good
  std::unique_ptr<Plan>& plan = (*plans)[problem];
  if (!plan) plan = std::make_unique<Plan>(handle.get(), problem);
  return *plan;
}

}  // namespace

bool fuses_attention(const LaunchContext& context, const AttentionArgs& args) {
  static const bool wanted = env_choice("TERN_CUDA_ATTENTION", {"fused", "blocks"}) == 0;
  if (!wanted || !fits_fused_attention(args) || cudnn() == nullptr) return false;
  const CudnnHandle handle(context);
  return plan_of(handle, problem_of(context, args)).usable();
}

void attention(const LaunchContext& context, const AttentionArgs& args) {
  TERN_CHECK(cudnn() != nullptr, NotImplementedError, "attention in one kernel needs cuDNN");
  const CudnnHandle handle(context);
  plan_of(handle, problem_of(context, args)).run(context, handle.get(), args);
}

}  // namespace tern::cuda_backend
