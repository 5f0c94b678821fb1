// The margins between the targets of a row and all classes that are none, and the gradient: a block for each
// row.
#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/report.cuh"
#include "tern/kernels/loss.h"

namespace tern::cuda_backend {
namespace {

/// The targets of the row, by the whole block: those before the first that is no class.
__device__ int64_t count_targets(const int64_t* target, int64_t classes) {
  int64_t count = classes;
  for (int64_t i = threadIdx.x; i < classes && count == classes; i += kBlock)
    if (target[i] < 0 || target[i] >= classes) count = i;
  return block_reduce(count, Smaller());
}

template <class T>
__global__ void __launch_bounds__(kBlock) margins(MultilabelMarginArgs args, const char* op, Fault* fault) {
  using C = Compute<T>;
  const int64_t row = blockIdx.x * args.classes;
  const T* x = static_cast<const T*>(args.input) + row;
  const int64_t* target = args.target + row;
  uint8_t* is_target = args.is_target + row;
  for (int64_t i = threadIdx.x; i < args.classes; i += kBlock)
    if (target[i] < -1 || target[i] >= args.classes)
      report(fault, FaultKind::Label, op, target[i], args.classes);
  const int64_t targets = count_targets(target, args.classes);
  C sum = C(0);
  for (int64_t c = threadIdx.x; c < args.classes; c += kBlock) {
    bool found = false;
    for (int64_t i = 0; i < targets; ++i) found = found || target[i] == c;
    is_target[c] = found ? 1 : 0;
    if (found) continue;
    for (int64_t i = 0; i < targets; ++i) {
      const C z = C(1) - widen(x[target[i]]) + widen(x[c]);
      sum += z < C(0) ? C(0) : z;
    }
  }
  sum = block_reduce(sum, Plus());
  if (threadIdx.x == 0)
    static_cast<T*>(args.loss)[blockIdx.x] = narrow<T>(sum / static_cast<C>(args.classes));
}

template <class T>
__global__ void __launch_bounds__(kBlock) margin_gradients(MultilabelMarginBackwardArgs args) {
  using C = Compute<T>;
  const int64_t row = blockIdx.x * args.classes;
  const T* x = static_cast<const T*>(args.input) + row;
  const int64_t* target = args.target + row;
  const uint8_t* is_target = args.is_target + row;
  const int64_t targets = count_targets(target, args.classes);
  const C scale = widen(static_cast<const T*>(args.grad_loss)[blockIdx.x]) / static_cast<C>(args.classes);
  for (int64_t c = threadIdx.x; c < args.classes; c += kBlock) {
    const auto too_near = [&](int64_t of_target, int64_t other) {
      return C(1) - widen(x[of_target]) + widen(x[other]) > C(0) ? C(1) : C(0);
    };
    C times = C(0), count = C(0);
    if (is_target[c] == 0) {
      times = C(1);
      for (int64_t i = 0; i < targets; ++i) count += too_near(target[i], c);
    } else {
      for (int64_t i = 0; i < targets; ++i) times -= target[i] == c ? C(1) : C(0);
      for (int64_t other = 0; other < args.classes; ++other)
        if (is_target[other] == 0) count += too_near(c, other);
    }
    static_cast<T*>(args.grad_input)[row + c] = narrow<T>(scale * times * count);
  }
}

}  // namespace

void multilabel_margin(const LaunchContext& context, const MultilabelMarginArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    start(context, blocks(args.rows), kBlock, 0, margins<T>, args, "multilabel_margin_loss",
          stream_of(context.stream).fault());
  });
}

void multilabel_margin_backward(const LaunchContext& context, const MultilabelMarginBackwardArgs& args) {
  visit_floating(args.dtype,
                 [&]<class T>() { start(context, blocks(args.rows), kBlock, 0, margin_gradients<T>, args); });
}

}  // namespace tern::cuda_backend
