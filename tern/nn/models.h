// Whole networks: LeNet and a multi-layer perceptron. Their state dicts have the names that PyTorch programs
// use.
#pragma once

#include <vector>

#include "tern/nn/conv.h"
#include "tern/nn/linear.h"
#include "tern/nn/module.h"

namespace tern::nn {

struct LeNetOptions {
  int64_t in_channels = 1;
  Size2 image_size = 28;
  int64_t num_classes = 10;
};

/// LeNet-5 with ReLU and max pooling, for images [N, in_channels, H, W] of at least 12 by 12 (LeCun et al.,
/// "Gradient-based learning applied to document recognition", 1998). Gives logits [N, num_classes].
struct LeNet final : Module {
  /// Throws ValueError for images that are too small.
  explicit LeNet(const LeNetOptions& options = {});

  Conv2d conv1;  ///< to 6 channels, 5x5, padding 2
  Conv2d conv2;  ///< to 16 channels, 5x5
  Linear fc1;    ///< to 120
  Linear fc2;    ///< to 84
  Linear fc3;    ///< to num_classes
  TERN_MODULE(conv1, conv2, fc1, fc2, fc3)

  Tensor forward(const Tensor& x) const;
};

/// Fully connected layers `fc1`, `fc2`, ... with ReLU between them, for inputs [N, ...] of sizes.front()
/// numbers each. Gives logits [N, sizes.back()].
class MLP final : public Module {
 public:
  /// Throws ValueError for fewer than two sizes.
  explicit MLP(const std::vector<int64_t>& sizes = {784, 256, 10});

  Tensor forward(const Tensor& x) const;
  template <class... Args>
  Tensor operator()(Args&&... args) const {
    return detail::call(*this, std::forward<Args>(args)...);
  }
  void collect_fields(Fields& fields) override;
  std::vector<Linear>& layers() noexcept { return layers_; }

 private:
  std::vector<Linear> layers_;
};

}  // namespace tern::nn
