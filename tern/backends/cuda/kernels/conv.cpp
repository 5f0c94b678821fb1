// The convolution kernels: those for few channels, matrix products, cuDNN where it has a plan, else plain
// ones.
#include "tern/backends/cuda/kernels/conv.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <mutex>
#include <string>

#include "tern/backends/cuda/cudnn.h"
#include "tern/backends/cuda/device.h"
#include "tern/base/check.h"
#include "tern/base/env.h"

namespace tern::cuda_backend {
namespace {

/// The ways of computing that TERN_CUDA_CONV leaves, to find out who is wrong or slow.
enum class Ways { All, CudnnOrPlain, Plain };

Ways ways() {
  static const auto allowed = static_cast<Ways>(env_choice("TERN_CUDA_CONV", {"direct", "cudnn", "plain"}));
  return allowed;
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
using Way = bool (*)(const LaunchContext&, const Args&);

/// By the first way that takes the shape; the last is cuDNN's.
template <class Args>
bool by_one_of(std::initializer_list<Way<Args>> all, const LaunchContext& context, const Args& args) {
  if (ways() == Ways::Plain) return false;
  for (Way<Args> way : all)
    if ((ways() == Ways::All || way == *std::prev(all.end())) && way(context, args)) return true;
  tell_plain(args.shape);
  return false;
}

/// The gradient of the output where relu let something through.
Storage masked_gradient(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  const Conv2dShape& s = args.shape;
  const int64_t numel = s.batch * s.out_channels * s.out_h * s.out_w;
  Storage masked = workspace(context, static_cast<size_t>(numel) * itemsize(args.dtype));
  const int64_t dense = 1;
  binary(context, relu_mask(args.dtype, masked->data(), args.grad_output, args.relu_output,
                            IntArrayRef(&numel, 1), &dense));
  return masked;
}

/// The gradient of the bias: sums over images and places.
void sum_bias(const LaunchContext& context, const Conv2dBackwardArgs& args) {
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
  if (s.in_channels == 0) return conv_plain(context, args);
  if (ways() == Ways::All && (conv_directly(context, args) || conv_depthwise(context, args))) return;
  if (!by_one_of<Conv2dArgs>({conv_by_matmul, conv_by_cudnn}, context, args))
    return conv_plain(context, args);
  if (args.bias != nullptr || args.relu) add_bias(context, args);
}

void conv2d_backward(const LaunchContext& context, const Conv2dBackwardArgs& given) {
  const Conv2dShape& s = given.shape;
  const bool no_images = s.batch == 0 || s.in_channels == 0 || s.in_h == 0 || s.in_w == 0;
  const bool no_products = no_images || s.out_channels == 0 || s.out_h <= 0 || s.out_w <= 0;
  Conv2dBackwardArgs args = given;
  if (no_images) args.grad_input = nullptr;
  if (s.out_channels == 0) args.grad_weight = args.grad_bias = nullptr;
  if (ways() == Ways::All && !no_products) {
    if (args.grad_input != nullptr && conv_input_directly(context, args)) args.grad_input = nullptr;
    if (args.grad_weight != nullptr && conv_weight_directly(context, args))
      args.grad_weight = args.grad_bias = nullptr;
  }
  if (args.grad_input == nullptr && args.grad_weight == nullptr && args.grad_bias == nullptr) return;
  Storage masked;
  if (args.relu_output != nullptr && s.batch * s.out_channels * s.out_h * s.out_w > 0) {
    masked = masked_gradient(context, args);
    args.grad_output = masked->data();
  }
  const auto done = [&](std::initializer_list<Way<Conv2dBackwardArgs>> all) {
    return !no_products && by_one_of(all, context, args);
  };
  if (args.grad_input != nullptr && !done({conv_input_depthwise, conv_input_by_matmul, conv_input_by_cudnn}))
    conv_input_plain(context, args);
  if (args.grad_weight != nullptr &&
      !done({conv_weight_depthwise, conv_weight_by_matmul, conv_weight_by_cudnn}))
    conv_weight_plain(context, args);
  if (args.grad_bias != nullptr) sum_bias(context, args);
}

}  // namespace tern::cuda_backend
