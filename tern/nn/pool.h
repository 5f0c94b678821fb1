// Pooling layers. The operators are in ops/pool.h.
#pragma once

#include <optional>
#include <utility>

#include "tern/nn/module.h"
#include "tern/ops/pool.h"

namespace tern::nn {

template <int N>
struct MaxPoolOptions {
  std::optional<SizeOf<N>> stride = std::nullopt;  ///< kernel_size when left out
  SizeOf<N> padding = 0;
  SizeOf<N> dilation = 1;
  bool ceil_mode = false;
  /// The layer gives the places of the maxima too: it is called by forward_with_indices.
  bool return_indices = false;
};
using MaxPool1dOptions = MaxPoolOptions<1>;
using MaxPool2dOptions = MaxPoolOptions<2>;
using MaxPool3dOptions = MaxPoolOptions<3>;

/// The maximum of each window of [N, C, sizes...] or [C, sizes...].
template <int N>
class MaxPool final : public Module {
 public:
  static constexpr int kDims = N;
  explicit MaxPool(SizeOf<N> kernel_size, const MaxPoolOptions<N>& options = {});
  TERN_MODULE()
  /// Throws ValueError for a layer with return_indices.
  Tensor forward(const Tensor& x) const;
  /// The maxima and their places; see tern::max_pool2d_with_indices. Hooks are not called.
  std::pair<Tensor, Tensor> forward_with_indices(const Tensor& x) const;
  std::string class_name() const override;
  std::string extra_repr() const override;
  const tern::MaxPoolOptions<N>& options() const noexcept { return options_; }
  bool return_indices() const noexcept { return return_indices_; }

 private:
  tern::MaxPoolOptions<N> options_;
  bool return_indices_;
};
using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;

template <int N>
struct MaxUnpoolOptions {
  std::optional<SizeOf<N>> stride = std::nullopt;  ///< kernel_size when left out
  SizeOf<N> padding = 0;
};
using MaxUnpool1dOptions = MaxUnpoolOptions<1>;
using MaxUnpool2dOptions = MaxUnpoolOptions<2>;
using MaxUnpool3dOptions = MaxUnpoolOptions<3>;

/// Maxima in the places that a MaxPool of the same sizes took them from, with zeros elsewhere; see
/// tern::max_unpool2d: `auto [y, indices] = pool.forward_with_indices(x); unpool(y, indices, x.shape());`.
template <int N>
class MaxUnpool final : public Module {
 public:
  static constexpr int kDims = N;
  explicit MaxUnpool(SizeOf<N> kernel_size, const MaxUnpoolOptions<N>& options = {});
  TERN_MODULE()
  Tensor forward(const Tensor& x, const Tensor& indices, const Shape& output_size = {}) const;
  std::string class_name() const override;
  std::string extra_repr() const override;
  SizeOf<N> kernel_size() const noexcept { return kernel_size_; }
  SizeOf<N> stride() const noexcept { return stride_; }
  SizeOf<N> padding() const noexcept { return padding_; }

 private:
  SizeOf<N> kernel_size_;
  SizeOf<N> stride_;
  SizeOf<N> padding_;
};
using MaxUnpool1d = MaxUnpool<1>;
using MaxUnpool2d = MaxUnpool<2>;
using MaxUnpool3d = MaxUnpool<3>;

template <int N>
struct AvgPoolOptions {
  std::optional<SizeOf<N>> stride = std::nullopt;  ///< kernel_size when left out
  SizeOf<N> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = std::nullopt;
};
template <>
struct AvgPoolOptions<1> {
  std::optional<int64_t> stride = std::nullopt;  ///< kernel_size when left out
  int64_t padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
using AvgPool1dOptions = AvgPoolOptions<1>;
using AvgPool2dOptions = AvgPoolOptions<2>;
using AvgPool3dOptions = AvgPoolOptions<3>;

/// The mean of each window of [N, C, sizes...] or [C, sizes...].
template <int N>
class AvgPool final : public Module {
 public:
  static constexpr int kDims = N;
  explicit AvgPool(SizeOf<N> kernel_size, const AvgPoolOptions<N>& options = {});
  TERN_MODULE()
  Tensor forward(const Tensor& x) const;
  std::string class_name() const override;
  std::string extra_repr() const override;
  const tern::AvgPoolOptions<N>& options() const noexcept { return options_; }

 private:
  tern::AvgPoolOptions<N> options_;
};
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;

template <int N>
struct LPPoolOptions {
  std::optional<SizeOf<N>> stride = std::nullopt;  ///< kernel_size when left out
  bool ceil_mode = false;
};

/// The root of order norm_type of the sum of x^norm_type over each window, of sequences, images or
/// volumes.
template <int N>
class LPPool final : public Module {
 public:
  static constexpr int kDims = N;
  /// Throws ValueError for an order of 0.
  LPPool(double norm_type, SizeOf<N> kernel_size, const LPPoolOptions<N>& options = {});
  TERN_MODULE()
  Tensor forward(const Tensor& x) const;
  std::string class_name() const override;
  std::string extra_repr() const override;
  double norm_type() const noexcept { return norm_type_; }
  SizeOf<N> kernel_size() const noexcept { return kernel_size_; }
  const LPPoolOptions<N>& options() const noexcept { return options_; }

 private:
  double norm_type_;
  SizeOf<N> kernel_size_;
  LPPoolOptions<N> options_;
};
using LPPool1d = LPPool<1>;
using LPPool2d = LPPool<2>;
using LPPool3d = LPPool<3>;

/// The mean or the maximum over windows that divide the input into output_size parts; -1 keeps the input's
/// size.
template <int N, bool kMaximum>
class AdaptivePool final : public Module {
 public:
  static constexpr int kDims = N;
  static constexpr bool kIsMaximum = kMaximum;
  explicit AdaptivePool(SizeOf<N> output_size);
  TERN_MODULE()
  Tensor forward(const Tensor& x) const;
  /// Maxima and their places; see tern::adaptive_max_pool2d_with_indices. Hooks are not called.
  std::pair<Tensor, Tensor> forward_with_indices(const Tensor& x) const requires kMaximum;
  std::string class_name() const override;
  std::string extra_repr() const override;
  SizeOf<N> output_size() const noexcept { return output_size_; }
  void set_output_size(SizeOf<N> size) noexcept { output_size_ = size; }

 private:
  SizeOf<N> output_size_;
};
using AdaptiveAvgPool1d = AdaptivePool<1, false>;
using AdaptiveAvgPool2d = AdaptivePool<2, false>;
using AdaptiveAvgPool3d = AdaptivePool<3, false>;
using AdaptiveMaxPool1d = AdaptivePool<1, true>;
using AdaptiveMaxPool2d = AdaptivePool<2, true>;
using AdaptiveMaxPool3d = AdaptivePool<3, true>;

extern template class MaxPool<1>;
extern template class MaxPool<2>;
extern template class MaxPool<3>;
extern template class MaxUnpool<1>;
extern template class MaxUnpool<2>;
extern template class MaxUnpool<3>;
extern template class AvgPool<1>;
extern template class AvgPool<2>;
extern template class AvgPool<3>;
extern template class LPPool<1>;
extern template class LPPool<2>;
extern template class LPPool<3>;
extern template class AdaptivePool<1, false>;
extern template class AdaptivePool<2, false>;
extern template class AdaptivePool<3, false>;
extern template class AdaptivePool<1, true>;
extern template class AdaptivePool<2, true>;
extern template class AdaptivePool<3, true>;

}  // namespace tern::nn
