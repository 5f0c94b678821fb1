// libcublasLt as the backend calls it: three loops. Its heuristic advises an algorithm that takes long and
// rounds after every step before one that refuses and one that does neither. What the real library would
// refuse (sizes that do not fit, leading dimensions that are too small, pointers less aligned than was
// promised or not of the epilogue, very many matrices) is refused here too.
#include <cublasLt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "tests/emulator/gpus.h"
#include "tests/emulator/numbers.h"
#include "tests/emulator/queue.h"

using emulator::read_number;
using emulator::rounded;
using emulator::write_number;

namespace {

struct Operation {
  cublasComputeType_t compute{};
  cudaDataType scale{};
  int32_t transposed_a = CUBLAS_OP_N, transposed_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  void* aux = nullptr;
  int64_t aux_ld = 0;

  bool is(std::initializer_list<cublasLtEpilogue_t> any) const {
    return std::find(any.begin(), any.end(), epilogue) != any.end();
  }
  bool adds_bias() const {
    return is({CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS});
  }
  bool writes_bias_gradient() const { return is({CUBLASLT_EPILOGUE_BGRADB}); }
  bool has_bias() const { return adds_bias() || writes_bias_gradient(); }
  bool writes_aux() const { return is({CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS}); }
  bool is_gelu() const { return writes_aux() || is({CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS}); }
  bool is_gelu_gradient() const { return is({CUBLASLT_EPILOGUE_DGELU}); }
  bool has_aux() const { return writes_aux() || is_gelu_gradient(); }
  bool is_known() const { return has_bias() || is_gelu() || is_gelu_gradient(); }
};

/// Column-major, as is the default.
struct Layout {
  cudaDataType type{};
  int64_t rows = 0, cols = 0, ld = 0;
  int32_t batch = 1;
  int64_t stride = 0;

  int64_t at(int64_t row, int64_t col) const { return row + col * ld; }
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t align_a = 256, align_b = 256, align_c = 256, align_d = 256;
};

/// In the order in which they are advised.
enum class Way : uint64_t { Slow, Refusing, Fast };
constexpr int kWays = 3;

/// The bytes of an algorithm.
struct Algorithm {
  uint64_t magic;
  Way way;
  uint32_t align_a, align_b, align_c, align_d, align_bias, align_aux;
  uint64_t workspace;
};
constexpr uint64_t kMagic = 0x7465726e6c74;
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <class T, class Opaque>
const T& of(Opaque* opaque) {
  return *reinterpret_cast<const T*>(opaque);
}
template <class T, class Opaque>
cublasStatus_t make(Opaque** made, const T& value) {
  *made = reinterpret_cast<Opaque*>(new T(value));
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t take(T& field, const void* value, size_t nbytes) {
  if (value == nullptr || nbytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, nbytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool fits(const Operation& op, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const bool ta = op.transposed_a == CUBLAS_OP_T, tb = op.transposed_b == CUBLAS_OP_T;
  const bool sizes = (ta ? a.cols : a.rows) == d.rows && (ta ? a.rows : a.cols) == (tb ? b.cols : b.rows) &&
                     (tb ? b.rows : b.cols) == d.cols && c.rows == d.rows && c.cols == d.cols;
  bool layouts = true;
  for (const Layout* x : {&a, &b, &c, &d})
    layouts =
        layouts && x->rows > 0 && x->cols > 0 && x->ld >= x->rows && x->batch == d.batch && x->type == d.type;
  // Columns of the result must not lie in each other, nor its matrices.
  const bool apart = d.batch == 1 || d.stride >= d.rows || d.stride <= -d.rows;
  return sizes && layouts && apart;
}

/// Of these many matrices, and more, algorithms are scarce.
constexpr int32_t kTooManyMatrices = 65536;

/// The real library takes biases that are aligned to an element, and may fault on them.
constexpr uint32_t kBiasAlignment = 16;
constexpr uint32_t kWorkspaceAlignment = 256;

/// By tanh, as the library's.
double gelu(double x) { return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

/// What the heuristic takes from an address that it does not read.
uint32_t alignment(const void* data) {
  constexpr uintptr_t kMost = 256;
  const auto address = reinterpret_cast<uintptr_t>(data) | kMost;
  return static_cast<uint32_t>(address & (~address + 1));
}
bool aligned(const void* data, uint32_t nbytes) { return reinterpret_cast<uintptr_t>(data) % nbytes == 0; }

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int only = 0;
  *handle = reinterpret_cast<cublasLtHandle_t>(&only);
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "the emulator takes no such values"
                                               : "the emulator does not support this";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return make(made, Operation{.compute = compute, .scale = scale});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t old) {
  delete &of<Operation>(old);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name,
                                              const void* value, size_t nbytes) {
  auto& op = *reinterpret_cast<Operation*>(desc);
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(op.transposed_a, value, nbytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(op.transposed_b, value, nbytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(op.epilogue, value, nbytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(op.bias, value, nbytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return take(op.aux, value, nbytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return take(op.aux_ld, value, nbytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  return make(
      made,
      Layout{.type = type, .rows = static_cast<int64_t>(rows), .cols = static_cast<int64_t>(cols), .ld = ld});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t old) {
  delete &of<Layout>(old);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t name, const void* value,
                                                size_t nbytes) {
  auto& x = *reinterpret_cast<Layout*>(layout);
  if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return take(x.batch, value, nbytes);
  if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return take(x.stride, value, nbytes);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return make(made, Preference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t old) {
  delete &of<Preference>(old);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, size_t nbytes) {
  auto& p = *reinterpret_cast<Preference*>(preference);
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return take(p.workspace, value, nbytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return take(p.reductions, value, nbytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return take(p.align_a, value, nbytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return take(p.align_b, value, nbytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return take(p.align_c, value, nbytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(p.align_d, value, nbytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  *count = 0;
  const auto& op = of<Operation>(desc);
  const auto& wanted = of<Preference>(preference);
  if (!fits(op, of<Layout>(a), of<Layout>(b), of<Layout>(c), of<Layout>(d)) || asked < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool wide = of<Layout>(d).type == CUDA_R_64F;
  // Float64 has no epilogues, and of the others the backend asks for some alone.
  if (op.epilogue != CUBLASLT_EPILOGUE_DEFAULT && (wide || !op.is_known()))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  // As documented, of 16-bit floats: rows of the other matrix are 16 bytes apart, or a multiple of that.
  if (op.has_aux() && (op.aux_ld < of<Layout>(d).rows || op.aux_ld % 8 != 0))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (op.writes_bias_gradient() && op.transposed_b != CUBLAS_OP_T) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (wide && op.compute != CUBLAS_COMPUTE_64F) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (of<Layout>(d).batch >= kTooManyMatrices) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (; *count < std::min(asked, kWays); ++*count) {
    const Algorithm algorithm{
        kMagic,          static_cast<Way>(*count), wanted.align_a,     wanted.align_b,
        wanted.align_c,  wanted.align_d,           alignment(op.bias), alignment(op.aux),
        /*workspace=*/72};
    cublasLtMatmulHeuristicResult_t& result = results[*count];
    result = {};
    std::memcpy(&result.algo, &algorithm, sizeof algorithm);
    result.workspaceSize = algorithm.workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a_data, cublasLtMatrixLayout_t a_layout, const void* b_data,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c_data,
                              cublasLtMatrixLayout_t c_layout, void* d_data, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  const Operation op = of<Operation>(desc);
  const Layout a = of<Layout>(a_layout), b = of<Layout>(b_layout), c = of<Layout>(c_layout),
               d = of<Layout>(d_layout);
  if (!emulator::thread_has_context()) return CUBLAS_STATUS_NOT_INITIALIZED;
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.magic != kMagic || !fits(op, a, b, c, d) || workspace_bytes < algorithm.workspace ||
      workspace == nullptr || !aligned(workspace, kWorkspaceAlignment) ||
      !aligned(a_data, algorithm.align_a) || !aligned(b_data, algorithm.align_b) ||
      !aligned(c_data, algorithm.align_c) || !aligned(d_data, algorithm.align_d) ||
      (op.has_bias() &&
       (op.bias == nullptr || !aligned(op.bias, std::max(kBiasAlignment, algorithm.align_bias)))) ||
      (!op.has_bias() && op.bias != nullptr) || (!op.has_aux() && op.aux != nullptr) ||
      (op.has_aux() &&
       (op.aux == nullptr || !aligned(op.aux, std::max(kBiasAlignment, algorithm.align_aux)))))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto is_large = [](const Layout& x) { return std::max({x.rows, x.cols, x.ld}) > INT32_MAX; };
  if (algorithm.way == Way::Refusing || is_large(a) || is_large(b) || is_large(c) || is_large(d))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const double factor = read_number(op.scale, alpha, 0), keep = read_number(op.scale, beta, 0);
  const bool slow = algorithm.way == Way::Slow, rounds = slow && d.type == CUDA_R_32F;
  const int bits = op.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? 13 : 0;
  const auto work = [=] {
    const int64_t k = op.transposed_a == CUBLAS_OP_T ? a.rows : a.cols;
    const auto input = [bits](const Layout& x, const void* data, int64_t at) {
      const double value = read_number(x.type, data, at);
      return bits > 0 ? rounded(value, bits) : value;
    };
    for (int64_t batch = 0; batch < d.batch; ++batch)
      for (int64_t col = 0; col < d.cols; ++col)
        for (int64_t row = 0; row < d.rows; ++row) {
          double sum = 0;
          for (int64_t i = 0; i < k; ++i) {
            sum += input(a, a_data,
                         batch * a.stride + (op.transposed_a == CUBLAS_OP_T ? a.at(i, row) : a.at(row, i))) *
                   input(b, b_data,
                         batch * b.stride + (op.transposed_b == CUBLAS_OP_T ? b.at(col, i) : b.at(i, col)));
            if (rounds) sum = static_cast<double>(static_cast<float>(sum));
          }
          sum *= factor;
          if (keep != 0) sum += keep * read_number(c.type, c_data, batch * c.stride + c.at(row, col));
          if (op.adds_bias()) sum += read_number(d.type, op.bias, row);
          const int64_t at = row + col * op.aux_ld;
          if (op.writes_aux()) write_number(d.type, op.aux, at, sum);
          if (op.is_gelu()) sum = gelu(sum);
          if (op.is_gelu_gradient()) sum *= gelu_slope(read_number(d.type, op.aux, at));
          write_number(d.type, d_data, batch * d.stride + d.at(row, col), sum);
        }
    for (int64_t col = 0; op.writes_bias_gradient() && col < d.cols; ++col) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum += input(b, b_data, op.transposed_b == CUBLAS_OP_T ? b.at(col, i) : b.at(i, col));
      write_number(d.type, const_cast<void*>(op.bias), col, sum);
    }
    if (slow) emulator::pass_time(1);
  };
  return emulator::enqueue(stream, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                        : CUBLAS_STATUS_EXECUTION_FAILED;
}
