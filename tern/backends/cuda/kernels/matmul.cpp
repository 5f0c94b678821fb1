// Matrix products by cuBLASLt. Its matrices are column-major: out = a @ b is computed as out' = b' @ a' of
// the transposed ones, which are the same memory. Plans (layouts, epilogue and the algorithm that cuBLASLt's
// heuristic advises, or with set_matmul_benchmark() the fastest of several) are kept for every shape that was
// met. What it has no algorithm for is left to the plain kernel.
#include "tern/backends/cuda/kernels/matmul.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/kernels/measure.h"
#include "tern/backends/cuda/kernels/plan_key.h"
#include "tern/backends/cuda/library.h"
#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/kernels/precision.h"

#define TERN_LT_CALL(...) check_cublaslt(cublaslt().__VA_ARGS__, #__VA_ARGS__)

namespace tern::cuda_backend {
namespace {

void check_cublaslt(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) [[unlikely]]
    TERN_THROW(NotImplementedError, "{} of cuBLASLt: {}", call, cublaslt().cublasLtGetStatusString(status));
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    throw_library_error("cuBLASLt", call, cublaslt().cublasLtGetStatusString(status));
}

constexpr int kMaxBatch = MatmulArgs::kMaxBatchDims;
using BatchStrides = std::array<int64_t, kMaxBatch>;

/// cuBLASLt's own limit is below 65536.
constexpr int64_t kMostMatrices = 32768;
/// And of rows, columns and leading dimensions; it tells that at the product, when it may have advised an
/// algorithm.
constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();
/// That cuBLASLt is told of: it moves no more bytes at once, and each alignment has plans of its own.
/// Operands of an epilogue need it, whatever it was told.
constexpr int64_t kMostAlignment = 16;

/// cuBLASLt refuses a pointer to a bias with any other epilogue.
bool has_bias(cublasLtEpilogue_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS ||
         epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS || epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

bool has_gelu_input(cublasLtEpilogue_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
         epilogue == CUBLASLT_EPILOGUE_DGELU;
}

/// A matrix as cuBLASLt takes it, for a batch.
struct Matrix {
  const void* data = nullptr;
  bool transposed = false;
  int64_t ld = 1;
  BatchStrides batch_strides{};
  Storage packed;  ///< keeps `data` where it had to be copied
};

/// Element (i, j) of a rows x cols matrix is at i * row_stride + j * col_stride. True when it can be taken as
/// it is.
bool fit(Matrix& x, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
  if ((rows > 1 && row_stride > kMostRows) || (cols > 1 && col_stride > kMostRows)) return false;
  const bool dense_row =
      rows == 1 && col_stride == 1;  // as a column: aligned, where rows of one element are not
  if (!dense_row && (row_stride == 1 || rows == 1) && (cols == 1 || col_stride >= rows)) {
    x.transposed = false;
    x.ld = cols == 1 ? rows : col_stride;
    return true;
  }
  if ((col_stride == 1 || cols == 1) && (rows == 1 || row_stride >= cols)) {
    x.transposed = true;
    x.ld = rows == 1 ? cols : row_stride;
    return true;
  }
  return false;
}

/// out[batch..., rows, cols] = in, by the copy kernel.
void copy_matrices(const LaunchContext& context, const MatmulArgs& args, void* out,
                   const std::array<int64_t, kMaxBatch + 2>& out_strides, const void* in,
                   const std::array<int64_t, kMaxBatch + 2>& in_strides,
                   const std::array<int64_t, kMaxBatch + 2>& shape) {
  CopyArgs copy_args{args.dtype, args.dtype, out, in, {}};
  const size_t rank = static_cast<size_t>(args.batch_dims) + 2;
  const int64_t* const strides[2] = {out_strides.data(), in_strides.data()};
  collapse<2>(copy_args.geometry, IntArrayRef(shape.data(), rank), strides);
  if (copy_args.geometry.numel > 0) copy(context, copy_args);
}

/// What is read of one side of the product, rows and columns as in fit().
struct Operand {
  const void* data;
  int64_t rows, cols, row_stride, col_stride;
  const int64_t* batch_strides;
};

/// Copies the matrices of an operand to where they follow each other, each in the order that it has. What
/// batches share they go on sharing, unless `whole`.
Matrix packed(const LaunchContext& context, const MatmulArgs& args, const Operand& from, bool whole) {
  Matrix x;
  x.transposed = from.col_stride < from.row_stride;
  x.ld = x.transposed ? from.cols : from.rows;
  std::array<int64_t, kMaxBatch + 2> shape{}, out_strides{}, in_strides{};
  int64_t numel = from.rows * from.cols;
  for (int d = args.batch_dims - 1; d >= 0; --d) {
    const auto at = static_cast<size_t>(d);
    const bool shares = !whole && from.batch_strides[d] == 0;
    shape[at] = shares ? 1 : args.batch_sizes[d];
    in_strides[at] = from.batch_strides[d];
    out_strides[at] = x.batch_strides[at] = shares ? 0 : numel;
    numel *= shape[at];
  }
  const auto outer = static_cast<size_t>(args.batch_dims);
  shape[outer] = x.transposed ? from.rows : from.cols;
  shape[outer + 1] = x.ld;
  in_strides[outer] = x.transposed ? from.row_stride : from.col_stride;
  in_strides[outer + 1] = x.transposed ? from.col_stride : from.row_stride;
  out_strides[outer] = x.ld;
  out_strides[outer + 1] = 1;
  x.packed = workspace(context, static_cast<size_t>(numel) * itemsize(args.dtype));
  copy_matrices(context, args, x.packed->data(), out_strides, from.data, in_strides, shape);
  x.data = x.packed->data();
  return x;
}

/// The matrix of an operand; copied when cuBLASLt can not take it as it is.
Matrix matrix_of(const LaunchContext& context, const MatmulArgs& args, const Operand& from) {
  Matrix x;
  if (!fit(x, from.rows, from.cols, from.row_stride, from.col_stride))
    return packed(context, args, from, /*whole=*/false);
  x.data = from.data;
  std::copy_n(from.batch_strides, kMaxBatch, x.batch_strides.begin());
  return x;
}

/// What a plan depends on.
struct Problem {
  int64_t gpu, dtype, m, n, k, left_transposed, right_transposed, left_ld, right_ld, c_ld, out_ld;
  int64_t batch, left_stride, right_stride, c_stride, out_stride;
  int64_t epilogue, left_align, right_align, c_align, out_align;
  int64_t compute;  ///< cublasComputeType_t
  int64_t fastest;  ///< whether the algorithm was chosen by measuring
  bool operator==(const Problem&) const = default;
};

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return CUDA_R_16F;
    case DType::BFloat16:
      return CUDA_R_16BF;
    case DType::Float64:
      return CUDA_R_64F;
    default:
      return CUDA_R_32F;
  }
}

constinit thread_local bool full_float32 = false;

bool allows_tf32() {
  return !full_float32 && kernels::matmul_precision() != kernels::MatmulPrecision::Highest;
}

/// What set_float32_matmul_precision() allows; 16-bit floats are summed in float32 either way.
cublasComputeType_t compute_type(DType dtype) {
  if (dtype == DType::Float64) return CUBLAS_COMPUTE_64F;
  if (dtype != DType::Float32) return CUBLAS_COMPUTE_32F;
  return allows_tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

class Plan {
 public:
  /// Delegates, so that what was made goes again when something fails.
  Plan(cublasLtHandle_t handle, const Problem& p) : Plan() {
    const auto dtype = static_cast<DType>(p.dtype);
    const cudaDataType_t type = data_type(dtype);
    const bool wide = dtype == DType::Float64;
    TERN_LT_CALL(cublasLtMatmulDescCreate(&operation_, static_cast<cublasComputeType_t>(p.compute),
                                          wide ? CUDA_R_64F : CUDA_R_32F));
    const cublasOperation_t left = p.left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t right = p.right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, left);
    set(CUBLASLT_MATMUL_DESC_TRANSB, right);
    const auto epilogue = static_cast<cublasLtEpilogue_t>(p.epilogue);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    // The heuristic sees addresses of the least alignment that operands will have.
    const auto* some = reinterpret_cast<const void*>(kMostAlignment);
    if (has_bias(epilogue)) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, some);
    if (has_gelu_input(epilogue)) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, some);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.n);
    }
    left_ = layout(type, p.left_transposed ? p.k : p.n, p.left_transposed ? p.n : p.k, p.left_ld, p.batch,
                   p.left_stride);
    right_ = layout(type, p.right_transposed ? p.m : p.k, p.right_transposed ? p.k : p.m, p.right_ld, p.batch,
                    p.right_stride);
    c_ = layout(type, p.n, p.m, p.c_ld, p.batch, p.c_stride);
    out_ = layout(type, p.n, p.m, p.out_ld, p.batch, p.out_stride);

    cublasLtMatmulPreference_t preference = nullptr;
    TERN_LT_CALL(cublasLtMatmulPreferenceCreate(&preference));
    const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, void (*)(cublasLtMatmulPreference_t)> owner(
        preference, [](cublasLtMatmulPreference_t old) { cublaslt().cublasLtMatmulPreferenceDestroy(old); });
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      TERN_LT_CALL(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{32} << 20);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(p.left_align));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(p.right_align));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(p.c_align));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(p.out_align));
    if (itemsize(dtype) == 2)  // sums of parts in float32, so that the result is rounded once
      prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    std::array<cublasLtMatmulHeuristicResult_t, 8> advice{};
    int count = 0;
    const cublasStatus_t status = cublaslt().cublasLtMatmulAlgoGetHeuristic(
        handle, operation_, left_, right_, c_, out_, preference,
        p.fastest ? static_cast<int>(advice.size()) : 1, advice.data(), &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return;
    check_cublaslt(status, "cublasLtMatmulAlgoGetHeuristic");
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      if (advice[i].state == CUBLAS_STATUS_SUCCESS)
        algorithms_.push_back({advice[i].algo, advice[i].workspaceSize});
  }
  ~Plan() {
    for (cublasLtMatrixLayout_t each : {left_, right_, c_, out_})
      if (each != nullptr) cublaslt().cublasLtMatrixLayoutDestroy(each);
    if (operation_ != nullptr) cublaslt().cublasLtMatmulDescDestroy(operation_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// What a product reads and writes.
  struct Operands {
    const void *alpha, *left, *right, *beta, *c;
    void* out;
    const void* bias;  ///< of the epilogue, which reads it or writes its gradient; may be null
    void* gelu_input;  ///< of the epilogue, see MatmulEpilogue; may be null
  };

  /// False when cuBLASLt has no algorithm.
  bool usable() const noexcept { return !algorithms_.empty(); }

  void run(const LaunchContext& context, cublasLtHandle_t handle, const Operands& x) {
    execute(algorithms_.front(), context, handle, x);
  }

  /// Leaves the algorithm that takes the least time with these operands.
  void measure(const LaunchContext& context, cublasLtHandle_t handle, const Operands& x) {
    keep_fastest(algorithms_, stream_of(context.stream),
                 [&](const Algorithm& algorithm) { execute(algorithm, context, handle, x); });
  }

 private:
  struct Algorithm {
    cublasLtMatmulAlgo_t algo;
    size_t workspace;  ///< in bytes
  };

  Plan() = default;

  void execute(const Algorithm& algorithm, const LaunchContext& context, cublasLtHandle_t handle,
               const Operands& x) {
    if (x.bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, x.bias);
    if (x.gelu_input != nullptr) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, x.gelu_input);
    Storage scratch;
    if (algorithm.workspace > 0) scratch = workspace(context, algorithm.workspace);
    TERN_LT_CALL(cublasLtMatmul(handle, operation_, x.alpha, x.left, left_, x.right, right_, x.beta, x.c, c_,
                                x.out, out_, &algorithm.algo, scratch ? scratch->data() : nullptr,
                                algorithm.workspace, stream_of(context.stream).handle()));
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    TERN_LT_CALL(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof value));
  }
  static cublasLtMatrixLayout_t layout(cudaDataType_t type, int64_t rows, int64_t cols, int64_t ld,
                                       int64_t batch, int64_t stride) {
    cublasLtMatrixLayout_t made = nullptr;
    TERN_LT_CALL(cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows),
                                            static_cast<uint64_t>(cols), ld));
    const auto count = static_cast<int32_t>(batch);
    TERN_LT_CALL(
        cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    TERN_LT_CALL(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                  sizeof stride));
    return made;
  }

  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, c_ = nullptr, out_ = nullptr;
  std::vector<Algorithm> algorithms_;  ///< the first is used
};

/// The handles and plans of all GPUs. Never destroyed: CUDA may be gone before.
struct Plans {
  std::mutex mutex;
  std::unordered_map<int64_t, cublasLtHandle_t> handles;
  std::unordered_map<Problem, std::unique_ptr<Plan>, PlanHash<Problem>> plans;

  cublasLtHandle_t handle(int64_t gpu) {
    cublasLtHandle_t& handle = handles[gpu];
    if (handle == nullptr) TERN_LT_CALL(cublasLtCreate(&handle));
    return handle;
  }
  static Plans& all() {
    static auto* plans = new Plans;
    return *plans;
  }
};

/// Dimensions of the batch, with those merged that all operands walk alike, and the longest as the last: that
/// one cuBLASLt gets, the others are walked here.
struct Batch {
  int dims = 0;
  std::array<int64_t, kMaxBatch> sizes{};
  std::array<BatchStrides, 4> strides{};  ///< left, right, c, out

  Batch(const MatmulArgs& args, const std::array<BatchStrides, 4>& all) {
    for (size_t d = 0; d < static_cast<size_t>(args.batch_dims); ++d) {
      const int64_t size = args.batch_sizes[d];
      if (size == 1) continue;
      const size_t before = static_cast<size_t>(dims) - 1;
      bool merges = dims > 0;
      for (size_t i = 0; i < 4 && merges; ++i) merges = strides[i][before] == all[i][d] * size;
      const size_t at = merges ? before : static_cast<size_t>(dims++);
      sizes[at] = merges ? sizes[at] * size : size;
      for (size_t i = 0; i < 4; ++i) strides[i][at] = all[i][d];
    }
    if (dims < 2) return;
    const auto last = static_cast<size_t>(dims) - 1;
    const auto longest =
        static_cast<size_t>(std::max_element(sizes.begin(), sizes.begin() + dims) - sizes.begin());
    std::swap(sizes[longest], sizes[last]);
    for (BatchStrides& each : strides) std::swap(each[longest], each[last]);
  }

  /// Matrices of one call, and of calls.
  int64_t inner() const { return dims > 0 ? sizes[static_cast<size_t>(dims) - 1] : 1; }
  int64_t outer() const {
    int64_t count = 1;
    for (int d = 0; d + 1 < dims; ++d) count *= sizes[static_cast<size_t>(d)];
    return count;
  }
};

/// True when calls for each of the outer products would take longer than copying operands, so that one call
/// does: many calls, of less work than it takes to start them.
bool better_packed(const MatmulArgs& args, const Batch& batch) {
  constexpr int64_t kManyCalls = 4, kLittleWork = int64_t{1} << 27;
  return batch.outer() > kManyCalls && args.k <= kLittleWork / batch.inner() / args.m / args.n;
}

const char* moved(const void* data, int64_t elements, DType dtype) {
  return static_cast<const char*>(data) + elements * static_cast<int64_t>(itemsize(dtype));
}

/// out = relu(out).
void apply_relu(const LaunchContext& context, const MatmulArgs& args) {
  UnaryArgs unary_args{};
  unary_args.op = UnaryOp::Relu;
  unary_args.dtype = args.dtype;
  unary_args.out = args.out;
  unary_args.in = args.out;
  std::array<int64_t, kMaxBatch + 2> shape{}, strides{};
  std::copy_n(args.batch_sizes, args.batch_dims, shape.begin());
  std::copy_n(args.out_batch_strides, args.batch_dims, strides.begin());
  const auto last = static_cast<size_t>(args.batch_dims);
  shape[last] = args.m;
  shape[last + 1] = args.n;
  strides[last] = args.out_row_stride;
  strides[last + 1] = 1;
  const int64_t* const both[2] = {strides.data(), strides.data()};
  collapse<2>(unary_args.geometry, IntArrayRef(shape.data(), last + 2), both);
  unary(context, unary_args);
}

/// out = addend, broadcast.
void copy_addend(const LaunchContext& context, const MatmulArgs& args) {
  std::array<int64_t, kMaxBatch + 2> shape{}, out_strides{}, in_strides{};
  std::copy_n(args.batch_sizes, args.batch_dims, shape.begin());
  std::copy_n(args.out_batch_strides, args.batch_dims, out_strides.begin());
  std::copy_n(args.addend_batch_strides, args.batch_dims, in_strides.begin());
  const auto last = static_cast<size_t>(args.batch_dims);
  shape[last] = args.m;
  shape[last + 1] = args.n;
  out_strides[last] = args.out_row_stride;
  out_strides[last + 1] = 1;
  in_strides[last] = args.addend_row_stride;
  in_strides[last + 1] = args.addend_col_stride;
  copy_matrices(context, args, args.out, out_strides, args.addend, in_strides, shape);
}

/// Whether what MatmulArgs::epilogue asks for can be a part of cuBLASLt's product. Its relu turns NaN into 0.
bool fits_epilogue(const MatmulArgs& args) {
  constexpr int64_t kGeluColumns = 8;  // by which rows of the other matrix must be apart
  return args.epilogue >= MatmulEpilogue::Gelu && itemsize(args.dtype) == 2 && args.n % kGeluColumns == 0 &&
         (args.gelu_input == nullptr || alignment(args.gelu_input, kMostAlignment) == kMostAlignment);
}

cublasLtEpilogue_t epilogue_of(const MatmulArgs& args, bool bias, bool row_sums) {
  if (row_sums) return CUBLASLT_EPILOGUE_BGRADB;  // to cuBLASLt, a is on the right, and its rows are columns
  if (args.epilogue == MatmulEpilogue::GeluGradient) return CUBLASLT_EPILOGUE_DGELU;
  if (args.epilogue != MatmulEpilogue::Gelu) return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  if (args.gelu_input != nullptr) return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
}

/// Where `epilogues`, with gelu and with an addend that is a bias as parts of the product. `row_sums`, if not
/// null, gets the sums of a's rows. False where cuBLASLt has no algorithm: nothing but `out` has changed.
bool multiply(const LaunchContext& context, const MatmulArgs& args, bool epilogues,
              void* row_sums = nullptr) {
  const int64_t out_ld = args.m == 1 ? args.n : args.out_row_stride;
  if (std::max({args.m, args.n, args.k, out_ld}) > kMostRows) return false;
  const bool wide = args.dtype == DType::Float64;
  const Operand b{args.b, args.n, args.k, args.b_col_stride, args.b_row_stride, args.b_batch_strides};
  const Operand a{args.a, args.k, args.m, args.a_col_stride, args.a_row_stride, args.a_batch_strides};
  Matrix left = matrix_of(context, args, b), right = matrix_of(context, args, a);

  // The addend is a bias of the epilogue, a matrix that cuBLASLt reads, or else copied to where the result
  // goes.
  const bool shared = std::all_of(args.addend_batch_strides, args.addend_batch_strides + args.batch_dims,
                                  [](int64_t stride) { return stride == 0; });
  const bool bias = epilogues && args.addend != nullptr && !wide && args.beta == 1 && shared &&
                    args.addend_row_stride == 0 && args.addend_col_stride == 1 &&
                    alignment(args.addend, kMostAlignment) == kMostAlignment;
  const void* c = args.out;
  int64_t c_ld = out_ld;
  double beta = 0;
  BatchStrides c_strides{}, out_strides{};
  std::copy_n(args.out_batch_strides, kMaxBatch, out_strides.begin());
  c_strides = out_strides;
  if (args.addend != nullptr && !bias) {
    beta = args.beta;
    if (args.addend_col_stride == 1 &&
        (args.m == 1 || (args.addend_row_stride >= args.n && args.addend_row_stride <= kMostRows))) {
      c = args.addend;
      c_ld = args.m == 1 ? args.n : args.addend_row_stride;
      std::copy_n(args.addend_batch_strides, kMaxBatch, c_strides.begin());
    } else {
      copy_addend(context, args);
    }
  }
  const cublasLtEpilogue_t epilogue = epilogue_of(args, bias, row_sums != nullptr);

  const auto walk = [&] {
    return Batch(args, {left.batch_strides, right.batch_strides, c_strides, out_strides});
  };
  const auto scattered = [&](const BatchStrides& strides) {
    return Batch(args, {strides, strides, strides, out_strides}).dims > 1;
  };
  Batch batch = walk();
  if (better_packed(args, batch) && !scattered(out_strides)) {
    if (scattered(left.batch_strides)) left = packed(context, args, b, /*whole=*/true);
    if (scattered(right.batch_strides)) right = packed(context, args, a, /*whole=*/true);
    if (scattered(c_strides)) {
      copy_addend(context, args);
      c = args.out;
      c_ld = out_ld;
      c_strides = out_strides;
    }
    batch = walk();
  }
  const int inner = batch.dims - 1;
  const auto inner_stride = [&](size_t operand) {
    return inner >= 0 ? batch.strides[operand][static_cast<size_t>(inner)] : 0;
  };
  const int64_t matrices = batch.inner();
  const int64_t parts = (matrices + kMostMatrices - 1) / kMostMatrices;
  const int64_t turns = parts * batch.outer();

  const float alpha_float = static_cast<float>(args.alpha), beta_float = static_cast<float>(beta);
  const void* alpha_pointer = wide ? static_cast<const void*>(&args.alpha) : &alpha_float;
  const void* beta_pointer = wide ? static_cast<const void*>(&beta) : &beta_float;

  Plans& all = Plans::all();
  const std::lock_guard lock(all.mutex);
  const int64_t gpu = stream_of(context.stream).gpu().number();
  const cublasLtHandle_t handle = all.handle(gpu);
  // A result that is added to can not be written again and again.
  const bool measurable = matmul_benchmark() && (beta == 0 || c != args.out);
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t first = turn % parts * kMostMatrices;
    int64_t rest = turn / parts;
    std::array<int64_t, 4> offsets{};
    for (size_t i = 0; i < 4; ++i) offsets[i] = first * inner_stride(i);
    for (int d = inner - 1; d >= 0; --d) {
      const auto at = static_cast<size_t>(d);
      for (size_t i = 0; i < 4; ++i) offsets[i] += rest % batch.sizes[at] * batch.strides[i][at];
      rest /= batch.sizes[at];
    }
    const void* left_data = moved(left.data, offsets[0], args.dtype);
    const void* right_data = moved(right.data, offsets[1], args.dtype);
    const void* c_data = moved(c, offsets[2], args.dtype);
    void* out_data = const_cast<char*>(moved(args.out, offsets[3], args.dtype));
    const Problem problem{.gpu = gpu,
                          .dtype = static_cast<int64_t>(args.dtype),
                          .m = args.m,
                          .n = args.n,
                          .k = args.k,
                          .left_transposed = left.transposed,
                          .right_transposed = right.transposed,
                          .left_ld = left.ld,
                          .right_ld = right.ld,
                          .c_ld = c_ld,
                          .out_ld = out_ld,
                          .batch = std::min(kMostMatrices, matrices - first),
                          .left_stride = inner_stride(0),
                          .right_stride = inner_stride(1),
                          .c_stride = inner_stride(2),
                          .out_stride = inner_stride(3),
                          .epilogue = epilogue,
                          .left_align = alignment(left_data, kMostAlignment),
                          .right_align = alignment(right_data, kMostAlignment),
                          .c_align = alignment(c_data, kMostAlignment),
                          .out_align = alignment(out_data, kMostAlignment),
                          .compute = compute_type(args.dtype),
                          .fastest = measurable};
    const Plan::Operands operands{alpha_pointer,
                                  left_data,
                                  right_data,
                                  beta_pointer,
                                  c_data,
                                  out_data,
                                  bias ? args.addend : row_sums,
                                  has_gelu_input(epilogue) ? args.gelu_input : nullptr};
    Plan& plan = plan_of(all.plans, problem, context, handle, operands);
    if (!plan.usable()) return false;
    plan.run(context, handle, operands);
  }
  return true;
}

enum class Ways : size_t { Small, Cublas, Separate };

/// Which products are whose, to find out who is wrong or slow.
Ways wanted_ways() {
  static const size_t wanted = env_choice("TERN_CUDA_MATMUL", {"small", "cublas", "separate"});
  return static_cast<Ways>(wanted);
}

/// For an addend that cuBLASLt has no way for, such as one matrix for a whole batch.
bool multiply_onto_copy(const LaunchContext& context, const MatmulArgs& args) {
  copy_addend(context, args);
  MatmulArgs onto = args;
  onto.addend = args.out;
  onto.addend_row_stride = args.out_row_stride;
  onto.addend_col_stride = 1;
  std::copy_n(args.out_batch_strides, args.batch_dims, onto.addend_batch_strides);
  return multiply(context, onto, /*epilogues=*/false);
}

}  // namespace

bool matmul_with_row_sums(const LaunchContext& context, const MatmulArgs& args, void* row_sums) {
  // cuBLASLt sums those of a transposed matrix alone.
  const bool transposed =
      args.a_row_stride == 1 && (args.k == 1 || (args.m > 1 && args.a_col_stride >= args.m));
  return wanted_ways() != Ways::Separate && is_floating_point(args.dtype) && itemsize(args.dtype) == 2 &&
         transposed && args.m > 0 && args.n > 0 && args.k > 0 &&
         multiply(context, args, /*epilogues=*/true, row_sums);
}

bool matmul_suits_small(DType dtype, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kMostProducts = int64_t{1} << 26, kMostResults = int64_t{1} << 20, kLongest = 1024;
  return wanted_ways() != Ways::Cublas && dtype == DType::Float32 && !allows_tf32() &&
         std::min({m, n, k}) > 0 && k <= kLongest && m <= kMostResults && n <= kMostResults / m &&
         k <= kMostProducts / (m * n);
}

FullFloat32::FullFloat32() noexcept : outer_(std::exchange(full_float32, true)) {}
FullFloat32::~FullFloat32() { full_float32 = outer_; }

void matmul(const LaunchContext& context, const MatmulArgs& args) {
  if (args.m == 0 || args.n == 0 || args.batch_count() == 0) return;
  if (args.epilogue >= MatmulEpilogue::Gelu) {
    if (fits_epilogue(args) && args.k > 0 && wanted_ways() != Ways::Separate &&
        multiply(context, args, /*epilogues=*/true))
      return;
    matmul(context, without_gelu(args));
    if (args.epilogue == MatmulEpilogue::Gelu) return unary(context, gelu_of(args));
    return binary(context, gelu_gradient_of(args));
  }
  if (args.k == 0 || !is_floating_point(args.dtype)) return matmul_plain(context, args);
  if (args.batch_dims == 0 && matmul_suits_small(args.dtype, args.m, args.n, args.k))
    return matmul_small(context, args);
  if (!multiply(context, args, /*epilogues=*/true) &&
      (args.addend == nullptr ||
       (!multiply(context, args, /*epilogues=*/false) && !multiply_onto_copy(context, args))))
    return matmul_plain(context, args);
  if (args.epilogue == MatmulEpilogue::Relu) apply_relu(context, args);
}

}  // namespace tern::cuda_backend
