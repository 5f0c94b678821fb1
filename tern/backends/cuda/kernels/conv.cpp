// The convolution kernels: cuDNN where it has a plan, else plain kernels.
#include "tern/backends/cuda/kernels/conv.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>

#include "tern/backends/cuda/cudnn.h"
#include "tern/base/check.h"
#include "tern/base/env.h"

namespace tern::cuda_backend {
namespace {

/// TERN_CUDA_CONV=plain leaves cuDNN alone, to find out who is wrong.
bool wants_cudnn() {
  static const bool wanted = [] {
    const std::optional<std::string> text = env_text("TERN_CUDA_CONV");
    TERN_CHECK(!text || *text == "cudnn" || *text == "plain", ValueError,
               "environment variable TERN_CUDA_CONV: expected cudnn or plain, got '{}'", *text);
    return text != "plain";
  }();
  return wanted;
}

/// Once for each cause, since plain kernels give the same result much more slowly.
void tell_plain(const Conv2dShape& s) {
  static std::once_flag missing, no_plan;
  if (cudnn() == nullptr) {
    std::call_once(missing, [] {
      std::fputs(
          "tern: cuDNN cannot be opened: convolutions run on plain kernels, several times slower "
          "(install it, or add its folder to LD_LIBRARY_PATH)\n",
          stderr);
    });
    return;
  }
  std::call_once(no_plan, [&s] {
    const std::string text = fmt::format(
        "tern: cuDNN has no exact and deterministic way to convolve [{}, {}, {}, {}] to [{}, {}, {}, {}]: "
        "such convolutions run on plain kernels, several times slower (this is told once)\n",
        s.batch, s.in_channels, s.in_h, s.in_w, s.batch, s.out_channels, s.out_h, s.out_w);
    std::fputs(text.c_str(), stderr);
  });
}

template <class Args>
bool by_cudnn(const LaunchContext& context, const Args& args) {
  if (!wants_cudnn()) return false;
  if (conv_by_cudnn(context, args)) return true;
  tell_plain(args.shape);
  return false;
}

/// The gradient of the bias: sums over images and places.
void sum_bias(const LaunchContext& context, const Conv2dBackwardWeightArgs& args) {
  const Conv2dShape& s = args.shape;
  const int64_t plane = std::max<int64_t>(s.out_h, 0) * std::max<int64_t>(s.out_w, 0);
  ReduceArgs sums{};
  sums.op = ReduceOp::Sum;
  sums.dtype = args.dtype;
  sums.param = 1;
  sums.out = args.grad_bias;
  sums.in = args.grad_output;
  set_flat(sums.kept, s.out_channels);
  sums.kept.strides[0][0] = plane;
  const int64_t sizes[2] = {s.batch, plane}, strides[2] = {s.out_channels * plane, 1};
  const int64_t* const all_strides[1] = {strides};
  collapse<1>(sums.reduced, IntArrayRef(sizes, 2), all_strides);
  reduce(context, sums);
}

}  // namespace

void conv2d(const LaunchContext& context, const Conv2dArgs& args) {
  const Conv2dShape& s = args.shape;
  if (s.batch == 0 || s.out_channels == 0 || s.out_h <= 0 || s.out_w <= 0) return;
  if (s.in_channels == 0 || !by_cudnn(context, args)) return conv_plain(context, args);
  if (args.bias != nullptr || args.activation != Activation::None) add_bias(context, args);
}

void conv2d_backward_input(const LaunchContext& context, const Conv2dBackwardInputArgs& args) {
  const Conv2dShape& s = args.shape;
  if (s.batch == 0 || s.in_channels == 0 || s.in_h == 0 || s.in_w == 0) return;
  if (s.out_channels == 0 || s.out_h <= 0 || s.out_w <= 0 || !by_cudnn(context, args))
    conv_plain(context, args);
}

void conv2d_backward_weight(const LaunchContext& context, const Conv2dBackwardWeightArgs& args) {
  const Conv2dShape& s = args.shape;
  if (s.out_channels == 0) return;
  const bool empty = s.batch == 0 || s.in_channels == 0 || s.out_h <= 0 || s.out_w <= 0;
  if (args.grad_weight != nullptr && (empty || !by_cudnn(context, args))) conv_plain(context, args);
  if (args.grad_bias != nullptr) sum_bias(context, args);
}

}  // namespace tern::cuda_backend
