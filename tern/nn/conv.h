// Convolution layers. The operators are in ops/conv.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tern/nn/lazy.h"
#include "tern/nn/module.h"
#include "tern/ops/conv.h"

namespace tern::nn {

template <int N>
struct ConvOptions {
  SizeOf<N> stride = 1;
  ConvPaddingOf<N> padding = 0;  ///< a number, one for each dimension ({h, w}), "valid" or "same"
  SizeOf<N> dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  /// What lies around the input: "zeros", or "reflect", "replicate", "circular" as tern::pad has them.
  std::string padding_mode = "zeros";
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

template <int N>
struct ConvTransposeOptions {
  SizeOf<N> stride = 1;
  SizeOf<N> padding = 0;
  SizeOf<N> output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  SizeOf<N> dilation = 1;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

/// The numbers of a padding; a sequence has its own in the width.
template <int N>
SizeOf<N> explicit_padding(const ConvPaddingOf<N>& padding) {
  if constexpr (N == 1)
    return padding.size.w;
  else
    return padding.size;
}

/// What convolutions share, in N = 1, 2 or 3 dimensions, transposed or not. Weight and bias start uniform
/// within 1 / sqrt(weight.size(1) * kernel area).
template <int N, bool kTransposed>
class ConvLayer : public Module {
 public:
  static constexpr int kDims = N;
  static constexpr bool kIsTransposed = kTransposed;
  using Options = std::conditional_t<kTransposed, ConvTransposeOptions<N>, ConvOptions<N>>;
  /// Those of the operator.
  using OperatorOptions =
      std::conditional_t<kTransposed, tern::ConvTransposeOptions<N>, tern::ConvOptions<N>>;

  ConvLayer(int64_t in_channels, int64_t out_channels, SizeOf<N> kernel_size, const Options& options = {});

  /// [out_channels, in_channels / groups, kernel sizes...]; transposed [in_channels, out_channels / groups,
  /// kernel sizes...]
  Parameter weight;
  Parameter bias;  ///< [out_channels], or absent
  TERN_MODULE(weight, bias)

  /// x is [N, in_channels, sizes...], or without N.
  Tensor forward(const Tensor& x) const;
  /// relu(forward(x)) by fewer kernels; see nn::relu_after.
  Tensor forward_relu(const Tensor& x) const requires(N == 2 && !kTransposed);
  void reset_parameters();
  std::string class_name() const override;
  std::string extra_repr() const override;
  int64_t in_channels() const { return kTransposed ? weight.size(0) : weight.size(1) * options_.groups; }
  int64_t out_channels() const { return kTransposed ? weight.size(1) * options_.groups : weight.size(0); }
  SizeOf<N> kernel_size() const;
  const OperatorOptions& options() const noexcept { return options_; }
  /// "zeros" of a transposed one.
  const std::string& padding_mode() const noexcept { return padding_mode_; }
  /// The padding in numbers, as tern::pad takes it: {before, after} of the last dimension, and so on.
  std::vector<int64_t> reversed_padding() const;

 protected:
  ConvLayer(detail::Lazy, int64_t out_channels, SizeOf<N> kernel_size, const Options& options);

 private:
  Shape weight_shape(int64_t in_channels, int64_t out_channels, SizeOf<N> kernel_size) const;
  void set_in_channels(int64_t in_channels) const;
  void see_input(const Tensor& x) const;
  /// Calls `convolution(x, options)`; with a padding that the operator has not, of an x with it.
  template <class F>
  Tensor on_padded(const Tensor& x, F convolution) const;

  OperatorOptions options_;
  std::string padding_mode_ = "zeros";
};

extern template class ConvLayer<1, false>;
extern template class ConvLayer<2, false>;
extern template class ConvLayer<3, false>;
extern template class ConvLayer<1, true>;
extern template class ConvLayer<2, true>;
extern template class ConvLayer<3, true>;

using Conv1d = ConvLayer<1, false>;  ///< of sequences, [N, C, L]
using Conv2d = ConvLayer<2, false>;  ///< of images, [N, C, H, W]
using Conv3d = ConvLayer<3, false>;  ///< of volumes, [N, C, D, H, W]

// The transposes of convolutions, to longer sequences and larger images and volumes.
using ConvTranspose1d = ConvLayer<1, true>;
using ConvTranspose2d = ConvLayer<2, true>;
using ConvTranspose3d = ConvLayer<3, true>;

/// One whose in_channels are those of its first input.
template <int N, bool kTransposed>
struct LazyConvLayer final : ConvLayer<N, kTransposed> {
  using Base = ConvLayer<N, kTransposed>;
  LazyConvLayer(int64_t out_channels, SizeOf<N> kernel_size, const typename Base::Options& options = {})
      : Base(detail::Lazy(), out_channels, kernel_size, options) {}
};
using LazyConv1d = LazyConvLayer<1, false>;
using LazyConv2d = LazyConvLayer<2, false>;
using LazyConv3d = LazyConvLayer<3, false>;
using LazyConvTranspose1d = LazyConvLayer<1, true>;
using LazyConvTranspose2d = LazyConvLayer<2, true>;
using LazyConvTranspose3d = LazyConvLayer<3, true>;

}  // namespace tern::nn
