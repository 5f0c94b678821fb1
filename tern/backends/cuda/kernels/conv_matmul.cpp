// Convolutions as matrix products, of which images are a batch. For a kernel of 1x1 an image is a matrix
// [channels, places] as it lies. Gradients of other weights need a matrix of what each place sees; that is
// worth its memory where cuDNN's ways that give the same result every time are slow.
#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/kernels/conv.h"
#include "tern/backends/cuda/kernels/matmul.h"
#include "tern/kernels/precision.h"

#include <algorithm>

namespace tern::cuda_backend {
namespace {

/// Whether float32 is to be rounded as much in products as in convolutions.
bool is_as_exact(DType dtype) {
  const bool tf32 = kernels::matmul_precision() != kernels::MatmulPrecision::Highest;
  return dtype != DType::Float32 || tf32 == cudnn_allow_tf32();
}

/// Few places, or rows of them that begin anywhere, are better merged with those of other images, as cuDNN
/// does.
bool has_matrices(const Conv2dShape& s, DType dtype) {
  constexpr int64_t kLeastPlaces = 128, kMostPlaces = 0x7fffffff, kPack = 16;  // in bytes
  const int64_t places = s.out_h * s.out_w;
  return s.groups == 1 && places >= kLeastPlaces && places <= kMostPlaces &&
         places * static_cast<int64_t>(itemsize(dtype)) % kPack == 0 && is_as_exact(dtype);
}

bool is_pointwise(const Conv2dShape& s) {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.padding_h == 0 &&
         s.padding_w == 0;
}

/// Where cuDNN is slow: steps of more than one place, one dimension, few channels.
bool suits_patches(const Conv2dShape& s) {
  constexpr int64_t kFewChannels = 4, kMostTaps = 65535;  // blocks along y
  return (s.stride_h > 1 || s.stride_w > 1 || s.in_h == 1 || s.in_channels <= kFewChannels) &&
         s.in_channels * s.kernel_h * s.kernel_w <= kMostTaps;
}

/// A batch of products [m, k] @ [k, n], for now with dense operands, of which `a` is the same for all.
MatmulArgs products(const Conv2dShape& s, DType dtype, int64_t m, int64_t n, int64_t k) {
  MatmulArgs args{};
  args.dtype = dtype;
  args.m = m;
  args.n = n;
  args.k = k;
  args.a_row_stride = k;
  args.a_col_stride = 1;
  args.b_row_stride = n;
  args.b_col_stride = 1;
  args.out_row_stride = n;
  args.batch_dims = 1;
  args.batch_sizes[0] = s.batch;
  args.b_batch_strides[0] = k * n;
  args.out_batch_strides[0] = m * n;
  return args;
}

/// out = weight @ image for images of k channels, each element (i, j) of the weight at i * row_stride + j *
/// col_stride. False where that is no convolution of 1x1, or not a fast one.
bool multiply_images(const LaunchContext& context, const Conv2dShape& s, DType dtype, int64_t m, int64_t k,
                     const void* weight, int64_t row_stride, int64_t col_stride, const void* images,
                     void* out) {
  if (!is_pointwise(s) || !has_matrices(s, dtype)) return false;
  MatmulArgs product = products(s, dtype, m, s.out_h * s.out_w, k);
  product.a = weight;
  product.a_row_stride = row_stride;
  product.a_col_stride = col_stride;
  product.b = images;
  product.out = out;
  matmul(context, product);
  return true;
}

}  // namespace

bool conv_by_matmul(const LaunchContext& context, const Conv2dArgs& args) {
  const Conv2dShape& s = args.shape;
  return multiply_images(context, s, args.dtype, s.out_channels, s.in_channels, args.weight, s.in_channels, 1,
                         args.input, args.output);
}

bool conv_input_by_matmul(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  const Conv2dShape& s = args.shape;
  return multiply_images(context, s, args.dtype, s.in_channels, s.out_channels, args.weight, 1, s.in_channels,
                         args.grad_output, args.grad_input);
}

bool conv_weight_by_matmul(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  constexpr int64_t kMostPatches = int64_t{1} << 28, kMostImages = 65535;  // bytes; blocks along z
  const Conv2dShape& s = args.shape;
  const bool as_it_is = is_pointwise(s);
  const int64_t places = s.out_h * s.out_w, taps = s.in_channels * s.kernel_h * s.kernel_w;
  const int64_t numel = s.out_channels * taps, item = static_cast<int64_t>(itemsize(args.dtype));
  // The products of images are rounded before they are added; and they must be few beside what is read.
  if (!has_matrices(s, args.dtype) || !(as_it_is || suits_patches(s)) || item < 4 ||
      numel > (taps + s.out_channels) * places / 2)
    return false;
  const Storage partial = workspace(context, static_cast<size_t>(s.batch * numel * item));
  const int64_t most = std::clamp<int64_t>(kMostPatches / (taps * places * item), 1, kMostImages);
  const int64_t at_once = as_it_is ? s.batch : std::min(s.batch, most);
  Storage patches;
  if (!as_it_is) patches = workspace(context, static_cast<size_t>(at_once * taps * places * item));
  const auto* image = static_cast<const char*>(args.input);
  const auto* grad = static_cast<const char*>(args.grad_output);
  auto* to = static_cast<char*>(partial->data());
  for (int64_t first = 0; first < s.batch; first += at_once) {
    Conv2dShape some = s;
    some.batch = std::min(at_once, s.batch - first);
    if (patches) conv_patches(context, args.dtype, some, image, patches->data());
    MatmulArgs product = products(some, args.dtype, s.out_channels, taps, places);
    product.a = grad;
    product.a_batch_strides[0] = s.out_channels * places;
    product.b = patches ? patches->data() : image;
    product.b_row_stride = 1;
    product.b_col_stride = places;
    product.out = to;
    matmul(context, product);
    image += some.batch * s.in_channels * s.in_h * s.in_w * item;
    grad += some.batch * s.out_channels * places * item;
    to += some.batch * numel * item;
  }
  LinearBackwardArgs parts{};  // that are added as rows are for a bias
  parts.dtype = args.dtype;
  parts.rows = s.batch;
  parts.out_features = numel;
  parts.grad_output = partial->data();
  parts.grad_row_stride = numel;
  parts.grad_col_stride = 1;
  parts.grad_bias = args.grad_weight;
  reduce(context, bias_sums(parts));
  return true;
}

}  // namespace tern::cuda_backend
