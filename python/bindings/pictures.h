// Transforms of pictures as Python has them. The classes are in transforms.cpp; the sets of pictures, which
// take them, in datasets.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "casters.h"

namespace tern::python {

/// A transform of C++, and what it was made of, for attributes, printing and copies.
struct PictureTransform {
  data::Transform transform;
  std::vector<std::pair<std::string, py::object>> arguments = {};
};

/// A picture as a tensor [channels, height, width]: of a tensor, which it is already, an array of NumPy
/// [height, width] or [height, width, channels], or a picture of PIL. Throws TypeError for anything else.
Tensor picture_from(const py::object& picture);

std::vector<data::Transform> transforms_of(const std::vector<PictureTransform*>& steps);

/// The transforms one after the other, none for an empty list.
data::Transform composed(const std::vector<PictureTransform*>& steps);

}  // namespace tern::python
