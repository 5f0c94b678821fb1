// CIFAR-100: 32x32 colour pictures of a hundred classes. CIFAR-10 is in cifar10.h, the form of the files in
// cifar_binary.h.
#pragma once

#include <string>

#include "tern/data/image_tensors.h"

namespace tern::data {

/// Which of the two labels of CIFAR-100's pictures.
enum class CIFAR100Labels {
  kFine,    ///< 100 classes: "maple_tree"
  kCoarse,  ///< 20 superclasses, of 5 classes each: "trees"
};

/// The pictures of Krizhevsky (2009) in a hundred classes: 50,000 for training, 10,000 for testing. `root`
/// holds the binary version, train.bin and test.bin (each may be gzipped, with ".gz"), in the folder itself
/// or in cifar-100-binary/.
///
/// Throws as CIFAR10. `normalize` uses the mean (0.5071, 0.4865, 0.4409) and deviation (0.2673, 0.2564,
/// 0.2762) of the training pictures.
class CIFAR100 : public ImageTensors {
 public:
  explicit CIFAR100(const std::string& root, bool train = true, ImageOptions options = {},
                    CIFAR100Labels labels = CIFAR100Labels::kFine);
};

}  // namespace tern::data
