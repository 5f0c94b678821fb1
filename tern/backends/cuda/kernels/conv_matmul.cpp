// Convolutions by kernels of 1x1 as matrix products: an image is a matrix [channels, places], and all images
// are a batch. cuBLASLt reads them as they lie; cuDNN's ways to the gradient of the weight, those that give
// the same result every time, are several times slower.
#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/kernels/conv.h"
#include "tern/backends/cuda/kernels/matmul.h"
#include "tern/kernels/precision.h"

namespace tern::cuda_backend {
namespace {

/// Few places, or rows of them that begin anywhere, are better merged with those of other images, as cuDNN
/// does.
bool is_product(const Conv2dShape& s, DType dtype) {
  constexpr int64_t kLeastPlaces = 128, kPack = 16;  // in bytes
  const int64_t places = s.out_h * s.out_w;
  const bool tf32 = kernels::matmul_precision() != kernels::MatmulPrecision::Highest;
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.padding_h == 0 &&
         s.padding_w == 0 && s.groups == 1 && places >= kLeastPlaces &&
         places * static_cast<int64_t>(itemsize(dtype)) % kPack == 0 &&
         (dtype != DType::Float32 || tf32 == cudnn_allow_tf32());
}

/// A batch of products [m, k] @ [k, n] whose operands are dense; `a` is the same for all where its stride is
/// 0.
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

/// out = sums of `count` matrices of `numel` elements.
void sum_matrices(const LaunchContext& context, DType dtype, const void* matrices, int64_t count,
                  int64_t numel, void* out) {
  ReduceArgs sums{};
  sums.op = ReduceOp::Sum;
  sums.dtype = dtype;
  sums.param = 1;
  sums.out = out;
  sums.in = matrices;
  set_flat(sums.kept, numel);
  sums.kept.strides[0][0] = 1;
  set_flat(sums.reduced, count);
  sums.reduced.strides[0][0] = numel;
  reduce(context, sums);
}

}  // namespace

bool conv_by_matmul(const LaunchContext& context, const Conv2dArgs& args) {
  const Conv2dShape& s = args.shape;
  if (!is_product(s, args.dtype)) return false;
  MatmulArgs product = products(s, args.dtype, s.out_channels, s.out_h * s.out_w, s.in_channels);
  product.a = args.weight;
  product.b = args.input;
  product.out = args.output;
  matmul(context, product);
  return true;
}

bool conv_input_by_matmul(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  const Conv2dShape& s = args.shape;
  if (!is_product(s, args.dtype)) return false;
  MatmulArgs product = products(s, args.dtype, s.in_channels, s.out_h * s.out_w, s.out_channels);
  product.a = args.weight;
  product.a_row_stride = 1;
  product.a_col_stride = s.in_channels;
  product.b = args.grad_output;
  product.out = args.grad_input;
  matmul(context, product);
  return true;
}

bool conv_weight_by_matmul(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  const Conv2dShape& s = args.shape;
  const int64_t places = s.out_h * s.out_w, numel = s.out_channels * s.in_channels;
  // The products of images are rounded before they are added; and there must be few beside the images.
  if (!is_product(s, args.dtype) || itemsize(args.dtype) < sizeof(float) ||
      numel > (s.in_channels + s.out_channels) * places / 2)
    return false;
  MatmulArgs product = products(s, args.dtype, s.out_channels, s.in_channels, places);
  product.a = args.grad_output;
  product.a_batch_strides[0] = s.out_channels * places;
  product.b = args.input;
  product.b_row_stride = 1;
  product.b_col_stride = places;
  const Storage partial = workspace(context, static_cast<size_t>(s.batch * numel) * itemsize(args.dtype));
  product.out = partial->data();
  matmul(context, product);
  sum_matrices(context, args.dtype, partial->data(), s.batch, numel, args.grad_weight);
  return true;
}

}  // namespace tern::cuda_backend
