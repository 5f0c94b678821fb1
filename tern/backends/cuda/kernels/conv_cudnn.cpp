// Convolutions by cuDNN's graph API: a graph of one operation, the first engine that takes it, or with
// set_cudnn_benchmark() the fastest, and a plan that is kept for the shape. Engines that round float32 to
// TF32 where set_cudnn_allow_tf32() does not allow it are passed over.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tern/backends/cuda/cudnn.h"
#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/kernels/conv.h"
#include "tern/backends/cuda/kernels/cudnn_plan.h"
#include "tern/backends/cuda/kernels/measure.h"
#include "tern/backends/cuda/kernels/plan_key.h"
#include "tern/kernels/precision.h"

namespace tern::cuda_backend {
namespace {

constexpr int64_t kMostAlignment = 16;  // that cuDNN is told of

enum class Pass : int64_t { Forward, BackwardInput, BackwardWeight };

/// What a plan depends on.
struct Problem {
  Conv2dShape shape;
  Pass pass;
  int64_t gpu, dtype, image_align, weight_align, out_align;
  int64_t tf32;     ///< whether float32 may be rounded
  int64_t fastest;  ///< whether the engine was chosen by measuring

  bool operator==(const Problem& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};
static_assert(sizeof(Problem) == 24 * sizeof(int64_t), "compared as bytes");

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return CUDNN_DATA_HALF;
    case DType::BFloat16:
      return CUDNN_DATA_BFLOAT16;
    case DType::Float64:
      return CUDNN_DATA_DOUBLE;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

/// The numbers by which a graph calls its tensors: the input's image, the weight, the output's image.
enum Tensor : int64_t { kImage = 1, kWeight = 2, kOut = 3 };
using Pointers = std::array<const void*, 3>;  // of these tensors

Descriptor tensor(Tensor id, cudnnDataType_t type, const std::array<int64_t, 4>& sizes, int64_t align) {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::vector<int64_t> strides = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::vector<int64_t>(sizes.begin(), sizes.end()));
  made.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(id));
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, align);
  made.finish();
  return made;
}

class Plan {
 public:
  Plan(cudnnHandle_t handle, const Problem& problem) {
    try {
      make(handle, problem);
    } catch (const NotImplementedError&) {  // what cuDNN refuses to describe has no plan either
    }
  }

  /// False when no engine takes the problem.
  bool usable() const noexcept { return !engines_.empty(); }

  void run(const LaunchContext& context, cudnnHandle_t handle, const Pointers& pointers) const {
    execute(engines_.front(), context, handle, pointers);
  }

  /// Leaves the engine that takes the least time with these operands.
  void measure(const LaunchContext& context, cudnnHandle_t handle, const Pointers& pointers) {
    keep_fastest(engines_, stream_of(context.stream),
                 [&](const CudnnEngine& engine) { execute(engine, context, handle, pointers); });
  }

 private:
  static void execute(const CudnnEngine& engine, const LaunchContext& context, cudnnHandle_t handle,
                      const Pointers& pointers) {
    const std::array<int64_t, 3> ids = {kImage, kWeight, kOut};
    run_engine(engine, context, handle, ids, pointers);
  }

  void make(cudnnHandle_t handle, const Problem& problem) {
    const Conv2dShape& s = problem.shape;
    const auto dtype = static_cast<DType>(problem.dtype);
    const cudnnDataType_t type = data_type(dtype);
    const cudnnDataType_t compute = dtype == DType::Float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    const Descriptor image =
        tensor(kImage, type, {s.batch, s.in_channels, s.in_h, s.in_w}, problem.image_align);
    const Descriptor weight =
        tensor(kWeight, type, {s.out_channels, s.in_channels / s.groups, s.kernel_h, s.kernel_w},
               problem.weight_align);
    const Descriptor out = tensor(kOut, type, {s.batch, s.out_channels, s.out_h, s.out_w}, problem.out_align);

    Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, compute);
    convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
    convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::vector<int64_t>{s.stride_h, s.stride_w});
    convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::vector<int64_t>{s.dilation_h, s.dilation_w});
    convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::vector<int64_t>{s.padding_h, s.padding_w});
    convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::vector<int64_t>{s.padding_h, s.padding_w});
    convolution.finish();

    const Descriptor operation = operation_of(problem.pass, convolution, image, weight, out, compute);
    engines_ = find_engines(handle, {&operation, 1},
                            {.full_float32 = dtype == DType::Float32 && problem.tf32 == 0,
                             .most_workspace = most_workspace(problem),
                             .most_engines = problem.fastest ? size_t{8} : size_t{1}});
  }

  static Descriptor operation_of(Pass pass, const Descriptor& convolution, const Descriptor& image,
                                 const Descriptor& weight, const Descriptor& out, cudnnDataType_t compute) {
    struct Names {
      cudnnBackendDescriptorType_t type;
      cudnnBackendAttributeName_t convolution, image, weight, out, alpha, beta;
    };
    constexpr Names kNames[] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
    };
    const Names& names = kNames[static_cast<int64_t>(pass)];
    Descriptor operation(names.type);
    operation.set(names.convolution, convolution);
    operation.set(names.image, image);
    operation.set(names.weight, weight);
    operation.set(names.out, out);
    if (compute == CUDNN_DATA_DOUBLE) {
      const double one = 1, zero = 0;
      operation.set(names.alpha, CUDNN_TYPE_DOUBLE, 1, &one);
      operation.set(names.beta, CUDNN_TYPE_DOUBLE, 1, &zero);
    } else {
      const float one = 1, zero = 0;
      operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1, &one);
      operation.set(names.beta, CUDNN_TYPE_FLOAT, 1, &zero);
    }
    operation.finish();
    return operation;
  }

  /// In bytes. Engines for tensor cores turn whole images to channels last and back.
  static int64_t most_workspace(const Problem& problem) {
    const Conv2dShape& s = problem.shape;
    const int64_t image = s.batch * s.in_channels * s.in_h * s.in_w,
                  out = s.batch * s.out_channels * s.out_h * s.out_w;
    const auto item = static_cast<int64_t>(itemsize(static_cast<DType>(problem.dtype)));
    return std::max(int64_t{1} << 30, (image + out) * item + (int64_t{256} << 20));
  }

  std::vector<CudnnEngine> engines_;  ///< the first is used
};

bool run(const LaunchContext& context, Pass pass, DType dtype, const Conv2dShape& shape, const void* image,
         const void* weight, const void* out) {
  if (cudnn() == nullptr) return false;
  static auto* plans = new std::unordered_map<Problem, std::unique_ptr<Plan>, PlanHash<Problem>>;  // for good
  const CudnnHandle handle(context);
  const Problem problem{shape,
                        pass,
                        stream_of(context.stream).gpu().number(),
                        static_cast<int64_t>(dtype),
                        alignment(image, kMostAlignment),
                        alignment(weight, kMostAlignment),
                        alignment(out, kMostAlignment),
                        dtype == DType::Float32 && cudnn_allow_tf32(),
                        cudnn_benchmark()};
  const Pointers pointers = {image, weight, out};
  Plan& plan = plan_of(*plans, problem, context, handle.get(), pointers);
  if (!plan.usable()) return false;
  plan.run(context, handle.get(), pointers);
  return true;
}

}  // namespace

bool conv_by_cudnn(const LaunchContext& context, const Conv2dArgs& args) {
  return run(context, Pass::Forward, args.dtype, args.shape, args.input, args.weight, args.output);
}

bool conv_input_by_cudnn(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  return run(context, Pass::BackwardInput, args.dtype, args.shape, args.grad_input, args.weight,
             args.grad_output);
}

bool conv_weight_by_cudnn(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  return run(context, Pass::BackwardWeight, args.dtype, args.shape, args.input, args.grad_weight,
             args.grad_output);
}

}  // namespace tern::cuda_backend
