// Initialisation of parameters, in place, as torch.nn.init. Nothing is recorded for gradients.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/core/generator.h"
#include "tern/core/storage.h"
#include "tern/core/tensor.h"

namespace tern::nn::init {

// Each takes a tensor by value (a handle) and returns it. Without a generator the default one is used.
using MaybeGenerator = std::optional<Generator>;

Tensor uniform_(Tensor tensor, double a = 0, double b = 1, const MaybeGenerator& generator = {});
Tensor normal_(Tensor tensor, double mean = 0, double std = 1, const MaybeGenerator& generator = {});
/// Normal numbers, those outside [a, b] drawn again (by the inverse of the distribution function).
Tensor trunc_normal_(Tensor tensor, double mean = 0, double std = 1, double a = -2, double b = 2,
                     const MaybeGenerator& generator = {});
Tensor constant_(Tensor tensor, double value);
Tensor zeros_(Tensor tensor);
Tensor ones_(Tensor tensor);
/// Ones on the diagonal of a matrix. Throws ShapeError unless 2-d.
Tensor eye_(Tensor tensor);

/// The number of inputs and outputs of one unit: sizes 1 and 0 times the product of the others. Throws
/// ShapeError below two dimensions.
std::pair<int64_t, int64_t> fan_in_and_out(const Tensor& tensor);

/// The factor that keeps the variance through a nonlinearity: "linear", "conv1d", "conv2d", "conv3d",
/// "sigmoid": 1, "tanh": 5/3, "relu": sqrt(2), "leaky_relu": sqrt(2 / (1 + param^2)) with 0.01 by default,
/// "selu": 3/4. Throws ValueError.
double calculate_gain(std::string_view nonlinearity, std::optional<double> param = {});

/// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.
Tensor xavier_uniform_(Tensor tensor, double gain = 1, const MaybeGenerator& generator = {});
Tensor xavier_normal_(Tensor tensor, double gain = 1, const MaybeGenerator& generator = {});

struct KaimingOptions {
  /// Slope of the leaky ReLU that follows.
  double a = 0;
  /// "fan_in" keeps the variance forward, "fan_out" backward.
  std::string mode = "fan_in";
  std::string nonlinearity = "leaky_relu";
};
/// He et al., "Delving deep into rectifiers", 2015.
Tensor kaiming_uniform_(Tensor tensor, const KaimingOptions& options = {},
                        const MaybeGenerator& generator = {});
Tensor kaiming_normal_(Tensor tensor, const KaimingOptions& options = {},
                       const MaybeGenerator& generator = {});

/// Rows (or columns, if there are fewer) of length `gain` at right angles to each other, the tensor seen as a
/// matrix of size 0 by the rest (Saxe et al., 2013). Blocks the host. Throws ShapeError below two dimensions.
Tensor orthogonal_(Tensor tensor, double gain = 1, const MaybeGenerator& generator = {});

/// While it lives, the functions above that draw random numbers draw none in the calling thread: tensors stay
/// as they are, and generators where they are (torch.nn.utils.skip_init). For layers that get their numbers
/// from elsewhere:
///
///     nn::Linear layer = [] {
///       const nn::init::SkipInitGuard skip;
///       return nn::Linear(4096, 4096);
///     }();
///     layer.load_state_dict(load("layer.pt").as_state_dict());
///
/// Until then such a layer has uninitialised memory where it would have drawn; constants are there as always.
class SkipInitGuard {
 public:
  /// `skipped` gets the storages of what stays as it is.
  explicit SkipInitGuard(std::vector<Storage>* skipped = nullptr) noexcept;
  ~SkipInitGuard();
  SkipInitGuard(const SkipInitGuard&) = delete;
  SkipInitGuard& operator=(const SkipInitGuard&) = delete;

  /// Whether `tensor` is to stay as it is, for initialisation of one's own; the guards take note of it.
  static bool skips(const Tensor& tensor);

 private:
  std::vector<Storage>* skipped_;
  SkipInitGuard* outer_;
};

}  // namespace tern::nn::init
