// Whole networks.
#include "tern/nn/models.h"

#include "tern/base/check.h"
#include "tern/nn/activation.h"
#include "tern/ops/pool.h"

namespace tern::nn {
namespace {

/// Number of features after both convolutions and poolings.
int64_t lenet_features(Size2 image) {
  const int64_t h = (image.h / 2 - 4) / 2, w = (image.w / 2 - 4) / 2;
  TERN_CHECK(image.h >= 12 && image.w >= 12, ValueError,
             "LeNet: images must be at least 12 by 12, got {} by {}", image.h, image.w);
  return 16 * h * w;
}

}  // namespace

LeNet::LeNet(const LeNetOptions& options)
    : conv1(options.in_channels, 6, 5, {.padding = 2}),
      conv2(6, 16, 5),
      fc1(lenet_features(options.image_size), 120),
      fc2(120, 84),
      fc3(84, options.num_classes) {}

Tensor LeNet::forward(const Tensor& x) const {
  Tensor y = max_pool2d(relu_after(conv1, x), 2);
  y = max_pool2d(relu_after(conv2, y), 2);
  y = relu_after(fc1, y.flatten(1));
  return fc3(relu_after(fc2, y));
}

MLP::MLP(const std::vector<int64_t>& sizes) {
  TERN_CHECK(sizes.size() >= 2, ValueError, "MLP: needs at least the sizes of input and output, got {} sizes",
             sizes.size());
  for (size_t i = 0; i + 1 < sizes.size(); ++i) layers_.emplace_back(sizes[i], sizes[i + 1]);
}

Tensor MLP::forward(const Tensor& x) const {
  Tensor y = x.dim() > 2 ? x.flatten(1) : x;
  for (size_t i = 0; i + 1 < layers_.size(); ++i) y = relu_after(layers_[i], y);
  return layers_.back()(y);
}

void MLP::collect_fields(Fields& fields) {
  for (size_t i = 0; i < layers_.size(); ++i) fields.add("fc" + std::to_string(i + 1), layers_[i]);
}

}  // namespace tern::nn
