// Pooling layers. The operators are in ops/pool.h.
#pragma once

#include <optional>

#include "tern/nn/module.h"
#include "tern/ops/pool.h"

namespace tern::nn {

struct MaxPool2dOptions {
  std::optional<Size2> stride = std::nullopt;  ///< kernel_size when left out
  Size2 padding = 0;
  Size2 dilation = 1;
  bool ceil_mode = false;
};

/// The maximum of each window of [N, C, H, W] or [C, H, W].
class MaxPool2d final : public Module {
 public:
  explicit MaxPool2d(Size2 kernel_size, const MaxPool2dOptions& options = {});
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return max_pool2d(x, options_); }
  std::string extra_repr() const override;
  const tern::MaxPool2dOptions& options() const noexcept { return options_; }

 private:
  tern::MaxPool2dOptions options_;
};

struct AvgPool2dOptions {
  std::optional<Size2> stride = std::nullopt;  ///< kernel_size when left out
  Size2 padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = std::nullopt;
};

/// The mean of each window of [N, C, H, W] or [C, H, W].
class AvgPool2d final : public Module {
 public:
  explicit AvgPool2d(Size2 kernel_size, const AvgPool2dOptions& options = {});
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return avg_pool2d(x, options_); }
  std::string extra_repr() const override;
  const tern::AvgPool2dOptions& options() const noexcept { return options_; }

 private:
  tern::AvgPool2dOptions options_;
};

struct MaxPool1dOptions {
  std::optional<int64_t> stride = std::nullopt;  ///< kernel_size when left out
  int64_t padding = 0;
  int64_t dilation = 1;
  bool ceil_mode = false;
};

/// The maximum of each window of [N, C, L] or [C, L].
class MaxPool1d final : public Module {
 public:
  explicit MaxPool1d(int64_t kernel_size, const MaxPool1dOptions& options = {});
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return max_pool1d(x, options_); }
  std::string extra_repr() const override;
  const tern::MaxPool1dOptions& options() const noexcept { return options_; }

 private:
  tern::MaxPool1dOptions options_;
};

struct AvgPool1dOptions {
  std::optional<int64_t> stride = std::nullopt;  ///< kernel_size when left out
  int64_t padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};

/// The mean of each window of [N, C, L] or [C, L].
class AvgPool1d final : public Module {
 public:
  explicit AvgPool1d(int64_t kernel_size, const AvgPool1dOptions& options = {});
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return avg_pool1d(x, options_); }
  std::string extra_repr() const override;
  const tern::AvgPool1dOptions& options() const noexcept { return options_; }

 private:
  tern::AvgPool1dOptions options_;
};

/// The mean over windows that divide an image into output_size parts; -1 keeps the image's size.
class AdaptiveAvgPool2d final : public Module {
 public:
  explicit AdaptiveAvgPool2d(Size2 output_size);
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return adaptive_avg_pool2d(x, output_size_); }
  std::string extra_repr() const override;
  Size2 output_size() const noexcept { return output_size_; }

 private:
  Size2 output_size_;
};

/// The maximum over such windows.
class AdaptiveMaxPool2d final : public Module {
 public:
  explicit AdaptiveMaxPool2d(Size2 output_size);
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return adaptive_max_pool2d(x, output_size_); }
  std::string extra_repr() const override;
  Size2 output_size() const noexcept { return output_size_; }

 private:
  Size2 output_size_;
};

/// The mean over windows that divide a sequence into output_size parts; -1 keeps the sequence's size.
class AdaptiveAvgPool1d final : public Module {
 public:
  explicit AdaptiveAvgPool1d(int64_t output_size);
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return adaptive_avg_pool1d(x, output_size_); }
  std::string extra_repr() const override;
  int64_t output_size() const noexcept { return output_size_; }

 private:
  int64_t output_size_;
};

/// The maximum over such windows.
class AdaptiveMaxPool1d final : public Module {
 public:
  explicit AdaptiveMaxPool1d(int64_t output_size);
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return adaptive_max_pool1d(x, output_size_); }
  std::string extra_repr() const override;
  int64_t output_size() const noexcept { return output_size_; }

 private:
  int64_t output_size_;
};

}  // namespace tern::nn
