// Normalisation layers. The operators are in ops/norm.h.
#pragma once

#include <optional>
#include <vector>

#include "tern/nn/lazy.h"
#include "tern/nn/module.h"

namespace tern::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  /// The share of a new batch in the running statistics; nothing: the average over all batches.
  std::optional<double> momentum = 0.1;
  bool affine = true;
  bool bias = true;  ///< with `affine`
  bool track_running_stats = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// What normalisations of channels share: their weights, and running statistics.
class ChannelNorm : public Module {
 public:
  Parameter weight;            ///< [num_features], ones at first; absent without `affine`
  Parameter bias;              ///< [num_features], zeros at first
  Buffer running_mean;         ///< [num_features]; the buffers are absent without `track_running_stats`
  Buffer running_var;          ///< [num_features]
  Buffer num_batches_tracked;  ///< 0-d int64
  TERN_MODULE(weight, bias, running_mean, running_var, num_batches_tracked)

  void reset_parameters();
  void reset_running_stats();
  std::string extra_repr() const override;
  int64_t state_version() const override { return 2; }
  bool may_be_absent(std::string_view name, std::optional<int64_t> version) const override;

  int64_t num_features() const;
  double eps() const noexcept { return eps_; }
  void set_eps(double eps) noexcept { eps_ = eps; }
  std::optional<double> momentum() const noexcept { return momentum_; }
  void set_momentum(std::optional<double> momentum) noexcept { momentum_ = momentum; }

 protected:
  /// With its parameters and buffers, which have no numbers yet.
  ChannelNorm(const char* layer, int64_t num_features, const BatchNormOptions& options);
  const char* layer() const noexcept { return layer_; }
  /// Marks all tensors but the count, whose size is not known.
  void defer() const;
  bool is_lazy() const;
  /// Takes num_features from dimension `dim` of the first input.
  void see_input(const Tensor& x, int64_t dim, detail::DimRange dims) const;

 private:
  const char* layer_;
  int64_t num_features_;
  double eps_;
  std::optional<double> momentum_;
};

/// What BatchNorm1d, BatchNorm2d and BatchNorm3d share: normalisation of each channel over the batch in
/// training, with running statistics otherwise (Ioffe and Szegedy, "Batch normalization", 2015).
class BatchNorm : public ChannelNorm {
 public:
  TERN_MODULE_CALL

  /// Throws ShapeError unless the number of dimensions is one that the layer takes.
  Tensor forward(const Tensor& x) const;
  std::string class_name() const override;

  /// Another way to normalise in training, over more than one input (parallel/sync_batch_norm.h).
  struct TrainingNorm {
    const char* class_name;  ///< as which the layer prints
    /// Normalises x and updates the running statistics with this momentum.
    Tensor (*normalize)(const BatchNorm& layer, const Tensor& x, double momentum);
  };
  /// `norm` must live as long as the layer; null: over the input alone.
  void set_training_norm(const TrainingNorm* norm) noexcept { training_norm_ = norm; }
  const TrainingNorm* training_norm() const noexcept { return training_norm_; }

 protected:
  /// Without `num_features`: lazy.
  BatchNorm(const char* layer, std::optional<int64_t> num_features, detail::DimRange dims,
            const BatchNormOptions& options);

 private:
  detail::DimRange dims_;
  const TrainingNorm* training_norm_ = nullptr;
};

/// Batch normalisation of [N, C] and [N, C, L], of [N, C, H, W], or of [N, C, D, H, W].
template <int N>
struct BatchNormNd : BatchNorm {
  explicit BatchNormNd(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNorm(kName, num_features, kDims, options) {}

 protected:
  BatchNormNd(detail::Lazy, const BatchNormOptions& options)
      : BatchNorm(kName, std::nullopt, kDims, options) {}

 private:
  static constexpr const char* kName = N == 1 ? "BatchNorm1d" : N == 2 ? "BatchNorm2d" : "BatchNorm3d";
  static constexpr detail::DimRange kDims = {N == 1 ? 2 : N + 2, N + 2};
};
using BatchNorm1d = BatchNormNd<1>;
using BatchNorm2d = BatchNormNd<2>;
using BatchNorm3d = BatchNormNd<3>;

/// One whose num_features are the channels of its first input.
template <int N>
struct LazyBatchNormNd final : BatchNormNd<N> {
  explicit LazyBatchNormNd(const BatchNormOptions& options = {}) : BatchNormNd<N>(detail::Lazy(), options) {}
};
using LazyBatchNorm1d = LazyBatchNormNd<1>;
using LazyBatchNorm2d = LazyBatchNormNd<2>;
using LazyBatchNorm3d = LazyBatchNormNd<3>;

struct InstanceNormOptions {
  double eps = 1e-5;
  /// The share of a new batch in the running statistics; nothing: they stay as they are.
  std::optional<double> momentum = 0.1;
  bool affine = false;
  bool bias = true;  ///< with `affine`
  bool track_running_stats = false;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// What InstanceNorm1d, InstanceNorm2d and InstanceNorm3d share: normalisation of each channel of each
/// element of the batch, outside of training with running statistics where they are tracked (Ulyanov et al.,
/// "Instance normalization", 2016).
class InstanceNorm : public ChannelNorm {
 public:
  TERN_MODULE_CALL
  std::string class_name() const override { return is_lazy() ? std::string("Lazy") + layer() : layer(); }

  /// Throws ShapeError unless the number of dimensions is one that the layer takes, and unless the channels
  /// are num_features where there are parameters or statistics for them. num_batches_tracked stays 0, as in
  /// PyTorch.
  Tensor forward(const Tensor& x) const;

 protected:
  /// `dims` are those of an input without a batch.
  /// Without `num_features`: lazy.
  InstanceNorm(const char* layer, std::optional<int64_t> num_features, int64_t dims,
               const InstanceNormOptions& options);

 private:
  int64_t dims_;
};

/// Instance normalisation of [N, C, L], [N, C, H, W], or [N, C, D, H, W], or without N.
template <int N>
struct InstanceNormNd : InstanceNorm {
  explicit InstanceNormNd(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNorm(kName, num_features, N + 1, options) {}

 protected:
  InstanceNormNd(detail::Lazy, const InstanceNormOptions& options)
      : InstanceNorm(kName, std::nullopt, N + 1, options) {}

 private:
  static constexpr const char* kName = N == 1   ? "InstanceNorm1d"
                                       : N == 2 ? "InstanceNorm2d"
                                                : "InstanceNorm3d";
};
using InstanceNorm1d = InstanceNormNd<1>;
using InstanceNorm2d = InstanceNormNd<2>;
using InstanceNorm3d = InstanceNormNd<3>;

/// One whose num_features are the channels of its first input, if it has parameters or statistics.
template <int N>
struct LazyInstanceNormNd final : InstanceNormNd<N> {
  explicit LazyInstanceNormNd(const InstanceNormOptions& options = {})
      : InstanceNormNd<N>(detail::Lazy(), options) {}
};
using LazyInstanceNorm1d = LazyInstanceNormNd<1>;
using LazyInstanceNorm2d = LazyInstanceNormNd<2>;
using LazyInstanceNorm3d = LazyInstanceNormNd<3>;

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;  ///< with `elementwise_affine`
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// Normalisation over the last dimensions, which have the sizes `normalized_shape` (Ba et al., "Layer
/// normalization", 2016).
class LayerNorm final : public Module {
 public:
  explicit LayerNorm(std::vector<int64_t> normalized_shape, const LayerNormOptions& options = {});
  explicit LayerNorm(int64_t size, const LayerNormOptions& options = {})
      : LayerNorm(std::vector<int64_t>(1, size), options) {}

  Parameter weight;  ///< ones at first; absent without `elementwise_affine`
  Parameter bias;    ///< zeros at first
  TERN_MODULE(weight, bias)

  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
  const std::vector<int64_t>& normalized_shape() const noexcept { return normalized_shape_; }
  double eps() const noexcept { return eps_; }
  void set_eps(double eps) noexcept { eps_ = eps; }

 private:
  std::vector<int64_t> normalized_shape_;
  double eps_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// Normalisation of [N, num_channels, ...] over groups of channels (Wu and He, "Group normalization", 2018).
class GroupNorm final : public Module {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {});

  Parameter weight;  ///< [num_channels], ones at first; absent without `affine`
  Parameter bias;    ///< [num_channels], zeros at first
  TERN_MODULE(weight, bias)

  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
  int64_t num_groups() const noexcept { return num_groups_; }
  int64_t num_channels() const noexcept { return num_channels_; }
  double eps() const noexcept { return eps_; }
  void set_eps(double eps) noexcept { eps_ = eps; }

 private:
  int64_t num_groups_;
  int64_t num_channels_;
  double eps_;
};

struct LocalResponseNormOptions {
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
};

/// Division of each channel by what neighbouring channels have; see tern::local_response_norm.
struct LocalResponseNorm final : Module {
  /// Throws ValueError for a size below 1.
  explicit LocalResponseNorm(int64_t size_, const LocalResponseNormOptions& options_ = {});
  int64_t size;
  LocalResponseNormOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

struct RMSNormOptions {
  std::optional<double> eps = std::nullopt;  ///< float32's epsilon when left out, for float64 its own
  bool elementwise_affine = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// Division by the root of the mean square over the last dimensions (Zhang and Sennrich, 2019).
class RMSNorm final : public Module {
 public:
  explicit RMSNorm(std::vector<int64_t> normalized_shape, const RMSNormOptions& options = {});
  explicit RMSNorm(int64_t size, const RMSNormOptions& options = {})
      : RMSNorm(std::vector<int64_t>(1, size), options) {}

  Parameter weight;  ///< ones at first; absent without `elementwise_affine`
  TERN_MODULE(weight)

  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
  const std::vector<int64_t>& normalized_shape() const noexcept { return normalized_shape_; }
  std::optional<double> eps() const noexcept { return eps_; }
  void set_eps(std::optional<double> eps) noexcept { eps_ = eps; }

 private:
  std::vector<int64_t> normalized_shape_;
  std::optional<double> eps_;
};

}  // namespace tern::nn
