// The networks that the program trains, by name, and finding out which of them a state dict is of. The
// networks themselves are in nn/models.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/core/state_dict.h"
#include "tern/nn/any_module.h"

namespace tern::train {

/// What a network for pictures takes and gives.
struct PictureShape {
  int64_t channels = 1;
  int64_t height = 28;
  int64_t width = 28;
  int64_t classes = 10;
};

/// "lenet" and "mlp".
const std::vector<std::string>& model_names();

/// A new network by name: nn::LeNet, or nn::MLP with one hidden layer of 256 units. Throws ValueError for an
/// unknown name and for sizes that it cannot take.
nn::AnyModule make_model(const std::string& name, const PictureShape& shape);

/// The name of the network that a state dict is of; "" for none that is known.
std::string recognize_model(const StateDict& dict);

/// The shape of the pictures that the state dict of such a network is for, square where only the area is
/// known. Throws CheckpointError when its tensors do not fit the network.
PictureShape picture_shape(const std::string& model, const StateDict& dict);

/// The network that the state dict is of, with its weights, for pictures of this shape. Throws
/// CheckpointError when its tensors do not fit the network.
nn::AnyModule load_model(const std::string& model, const PictureShape& shape, const StateDict& dict);

}  // namespace tern::train
