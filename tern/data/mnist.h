// MNIST, FashionMNIST and KMNIST: 28x28 grey pictures of ten classes in idx files. The format is in idx.h.
#pragma once

#include <string>

#include "tern/data/image_tensors.h"

namespace tern::data {

/// Mean and deviation of the training pictures of MNIST, as commonly used.
inline constexpr double kMnistMean = 0.1307;
inline constexpr double kMnistStd = 0.3081;

/// The handwritten digits of LeCun, Cortes and Burges: 60,000 for training, 10,000 for testing. `root` holds
/// train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each
/// plain or gzipped with ".gz", in the folder itself, in raw/ or in MNIST/raw/ (where torchvision puts them).
/// Files of the same form with another number of pictures, or pictures of another size, will do too.
///
/// Throws DataError if files are missing (saying which names were looked for), broken or do not fit each
/// other, with the byte; IoError if one cannot be read; ValueError for contradicting options.
class MNIST : public ImageTensors {
 public:
  explicit MNIST(const std::string& root, bool train = true, ImageOptions options = {});
};

/// Zalando's pictures of clothes (Xiao, Rasul and Vollgraf, 2017), in files of the same names and form; also
/// found in FashionMNIST/raw/. Throws as MNIST.
class FashionMNIST : public ImageTensors {
 public:
  explicit FashionMNIST(const std::string& root, bool train = true, ImageOptions options = {});
};

/// Ten characters of old Japanese script (Clanuwat et al., "Deep Learning for Classical Japanese Literature",
/// 2018), in files of the same names and form; also found in KMNIST/raw/. `normalize` needs mean and std.
/// Throws as MNIST.
class KMNIST : public ImageTensors {
 public:
  explicit KMNIST(const std::string& root, bool train = true, ImageOptions options = {});
};

}  // namespace tern::data
