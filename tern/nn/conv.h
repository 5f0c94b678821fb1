// Convolution layers. The operators are in ops/conv.h.
#pragma once

#include <optional>

#include "tern/nn/lazy.h"
#include "tern/nn/module.h"
#include "tern/ops/conv.h"

namespace tern::nn {

struct Conv1dOptions {
  int64_t stride = 1;
  ConvPadding padding = 0;  ///< a number, "valid" or "same"
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// Convolution of sequences: [N, in_channels, L] (or without N) to [N, out_channels, L'].
class Conv1d : public Module {
 public:
  Conv1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size, const Conv1dOptions& options = {});

  Parameter weight;  ///< [out_channels, in_channels / groups, kernel_size]
  Parameter bias;    ///< [out_channels], or absent
  TERN_MODULE(weight, bias)

  Tensor forward(const Tensor& x) const;
  void reset_parameters();
  std::string class_name() const override { return is_lazy(weight) ? "LazyConv1d" : "Conv1d"; }
  std::string extra_repr() const override;
  const tern::Conv1dOptions& options() const noexcept { return options_; }

 protected:
  Conv1d(detail::Lazy, int64_t out_channels, int64_t kernel_size, const Conv1dOptions& options);

 private:
  void set_in_channels(int64_t in_channels) const;
  void see_input(const Tensor& x) const;

  tern::Conv1dOptions options_;
};

/// A Conv1d whose in_channels are those of its first input.
struct LazyConv1d final : Conv1d {
  LazyConv1d(int64_t out_channels, int64_t kernel_size, const Conv1dOptions& options = {})
      : Conv1d(detail::Lazy(), out_channels, kernel_size, options) {}
};

struct Conv2dOptions {
  Size2 stride = 1;
  ConvPadding padding = 0;  ///< a number, {h, w}, "valid" or "same"
  Size2 dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// Convolution of images: [N, in_channels, H, W] (or without N) to [N, out_channels, H', W']. Weight and bias
/// start uniform within 1 / sqrt(in_channels / groups * kernel area).
class Conv2d : public Module {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, Size2 kernel_size, const Conv2dOptions& options = {});

  Parameter weight;  ///< [out_channels, in_channels / groups, kernel height, kernel width]
  Parameter bias;    ///< [out_channels], or absent
  TERN_MODULE(weight, bias)

  Tensor forward(const Tensor& x) const;
  /// relu(forward(x)) by fewer kernels; see nn::relu_after.
  Tensor forward_relu(const Tensor& x) const;
  void reset_parameters();
  std::string class_name() const override { return is_lazy(weight) ? "LazyConv2d" : "Conv2d"; }
  std::string extra_repr() const override;
  const tern::Conv2dOptions& options() const noexcept { return options_; }

 protected:
  Conv2d(detail::Lazy, int64_t out_channels, Size2 kernel_size, const Conv2dOptions& options);

 private:
  void set_in_channels(int64_t in_channels) const;
  void see_input(const Tensor& x) const;

  tern::Conv2dOptions options_;
};

/// A Conv2d whose in_channels are those of its first input.
struct LazyConv2d final : Conv2d {
  LazyConv2d(int64_t out_channels, Size2 kernel_size, const Conv2dOptions& options = {})
      : Conv2d(detail::Lazy(), out_channels, kernel_size, options) {}
};

struct ConvTranspose1dOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  int64_t dilation = 1;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// The transpose of a convolution: [N, in_channels, L] (or without N) to longer sequences.
class ConvTranspose1d : public Module {
 public:
  ConvTranspose1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size,
                  const ConvTranspose1dOptions& options = {});

  Parameter weight;  ///< [in_channels, out_channels / groups, kernel_size]
  Parameter bias;    ///< [out_channels], or absent
  TERN_MODULE(weight, bias)

  Tensor forward(const Tensor& x) const;
  void reset_parameters();
  std::string class_name() const override {
    return is_lazy(weight) ? "LazyConvTranspose1d" : "ConvTranspose1d";
  }
  std::string extra_repr() const override;
  const tern::ConvTranspose1dOptions& options() const noexcept { return options_; }

 protected:
  ConvTranspose1d(detail::Lazy, int64_t out_channels, int64_t kernel_size,
                  const ConvTranspose1dOptions& options);

 private:
  void set_in_channels(int64_t in_channels) const;
  void see_input(const Tensor& x) const;

  tern::ConvTranspose1dOptions options_;
};

/// A ConvTranspose1d whose in_channels are those of its first input.
struct LazyConvTranspose1d final : ConvTranspose1d {
  LazyConvTranspose1d(int64_t out_channels, int64_t kernel_size, const ConvTranspose1dOptions& options = {})
      : ConvTranspose1d(detail::Lazy(), out_channels, kernel_size, options) {}
};

struct ConvTranspose2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  Size2 dilation = 1;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// The transpose of a convolution: [N, in_channels, H, W] (or without N) to larger images.
class ConvTranspose2d : public Module {
 public:
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, Size2 kernel_size,
                  const ConvTranspose2dOptions& options = {});

  Parameter weight;  ///< [in_channels, out_channels / groups, kernel height, kernel width]
  Parameter bias;    ///< [out_channels], or absent
  TERN_MODULE(weight, bias)

  Tensor forward(const Tensor& x) const;
  void reset_parameters();
  std::string class_name() const override {
    return is_lazy(weight) ? "LazyConvTranspose2d" : "ConvTranspose2d";
  }
  std::string extra_repr() const override;
  const tern::ConvTranspose2dOptions& options() const noexcept { return options_; }

 protected:
  ConvTranspose2d(detail::Lazy, int64_t out_channels, Size2 kernel_size,
                  const ConvTranspose2dOptions& options);

 private:
  void set_in_channels(int64_t in_channels) const;
  void see_input(const Tensor& x) const;

  tern::ConvTranspose2dOptions options_;
};

/// A ConvTranspose2d whose in_channels are those of its first input.
struct LazyConvTranspose2d final : ConvTranspose2d {
  LazyConvTranspose2d(int64_t out_channels, Size2 kernel_size, const ConvTranspose2dOptions& options = {})
      : ConvTranspose2d(detail::Lazy(), out_channels, kernel_size, options) {}
};

}  // namespace tern::nn
