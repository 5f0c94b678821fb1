// CIFAR-10: 32x32 colour pictures of ten classes. CIFAR-100 is in cifar100.h, the form of the files in
// cifar_binary.h.
#pragma once

#include <string>

#include "tern/data/image_tensors.h"

namespace tern::data {

/// The pictures of Krizhevsky (2009): 50,000 for training, 10,000 for testing. `root` holds the binary
/// version, data_batch_1.bin to data_batch_5.bin and test_batch.bin (each may be gzipped, with ".gz"), in the
/// folder itself or in cifar-10-batches-bin/.
///
/// Throws DataError if files are missing or broken, with the byte; IoError if one cannot be read; ValueError
/// for contradicting options. `normalize` uses the mean (0.4914, 0.4822, 0.4465) and deviation (0.2470,
/// 0.2435, 0.2616) of the training pictures.
class CIFAR10 : public ImageTensors {
 public:
  explicit CIFAR10(const std::string& root, bool train = true, ImageOptions options = {});
};

}  // namespace tern::data
