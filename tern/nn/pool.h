// Pooling layers. The operators are in ops/pool.h.
#pragma once

#include <optional>

#include "tern/nn/module.h"
#include "tern/ops/pool.h"

namespace tern::nn {

template <int N>
struct MaxPoolOptions {
  std::optional<SizeOf<N>> stride = std::nullopt;  ///< kernel_size when left out
  SizeOf<N> padding = 0;
  SizeOf<N> dilation = 1;
  bool ceil_mode = false;
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
  Tensor forward(const Tensor& x) const;
  std::string class_name() const override;
  std::string extra_repr() const override;
  const tern::MaxPoolOptions<N>& options() const noexcept { return options_; }

 private:
  tern::MaxPoolOptions<N> options_;
};
using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;

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

/// The root of order norm_type of the sum of x^norm_type over each window, of sequences or images.
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
  std::string class_name() const override;
  std::string extra_repr() const override;
  SizeOf<N> output_size() const noexcept { return output_size_; }

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
extern template class AvgPool<1>;
extern template class AvgPool<2>;
extern template class AvgPool<3>;
extern template class LPPool<1>;
extern template class LPPool<2>;
extern template class AdaptivePool<1, false>;
extern template class AdaptivePool<2, false>;
extern template class AdaptivePool<3, false>;
extern template class AdaptivePool<1, true>;
extern template class AdaptivePool<2, true>;
extern template class AdaptivePool<3, true>;

}  // namespace tern::nn
