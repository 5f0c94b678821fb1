// Sets of pictures, and reading and writing of single ones. python/tern/datasets.py gives the sets
// torchvision's arguments and attributes, python/tern/io.py the functions.
#include "bindings.h"
#include "pictures.h"

namespace tern::python {

namespace {

template <class Set, class Base>
using PictureSet = py::class_<Set, Base, std::shared_ptr<Set>>;

/// What all sets of pictures have: one sample, with random changes of its own each time, and what is done to
/// the pictures, also after the set is made.
template <class Class>
Class& bind_pictures(Class& c) {
  using Set = typename Class::type;
  c.def("_sample",
        [](const Set& self, int64_t index, bool random) {
          const int64_t size = self.size(), place = index < 0 ? index + size : index;
          if (place < 0 || place >= size)  // this type ends loops over the set
            throw IndexError("index " + std::to_string(index) + " is out of range for " +
                             std::to_string(size) + " samples");
          data::Example sample;
          {
            const py::gil_scoped_release no_gil;
            sample = self.sample(place, {.seed = random ? data::draw_seed({}) : 0});
          }
          return std::pair(sample.data, sample.target.item<int64_t>());
        })
      .def("_set_steps",
           [](Set& self, const std::vector<PictureTransform*>& steps, bool to_float, std::vector<double> mean,
              std::vector<double> std) {
             const bool normalize = !mean.empty();
             self.set_options({.normalize = normalize,
                               .mean = std::move(mean),
                               .std = std::move(std),
                               .to_float = to_float,
                               .transform = composed(steps)});
           })
      .def_property_readonly("classes", &Set::classes);
  return c;
}

const data::ImageOptions kBytes{.to_float = false};

/// A tensor of uint8 as bytes.
data::Bytes bytes_from(const Tensor& tensor, const char* function) {
  if (tensor.dtype() != DType::UInt8 || tensor.dim() != 1)
    throw TypeError(std::string(function) + ": expects a uint8 tensor with 1 dimension, got " +
                    std::string(name(tensor.dtype())) + " " + to_string(tensor.shape()));
  return tensor.to_vector<uint8_t>();
}

Tensor tensor_from(const data::Bytes& bytes) { return tern::tensor(bytes, {.device = kCPU}); }

}  // namespace

void bind_datasets(py::module_& m) {
  PictureSet<data::ImageTensors, data::Dataset> pictures(m, "_ImageTensors");
  bind_pictures(pictures)
      .def_property_readonly("_images", &data::ImageTensors::images)
      .def_property_readonly("_labels", &data::ImageTensors::labels);
  const auto from_files = [&]<class Set>(std::type_identity<Set>, const char* name) {
    PictureSet<Set, data::ImageTensors>(m, name).def(py::init([](const std::string& root, bool train) {
      const py::gil_scoped_release no_gil;
      return std::make_shared<Set>(root, train, kBytes);
    }));
  };
  from_files(std::type_identity<data::MNIST>(), "_MNIST");
  from_files(std::type_identity<data::FashionMNIST>(), "_FashionMNIST");
  from_files(std::type_identity<data::KMNIST>(), "_KMNIST");
  from_files(std::type_identity<data::CIFAR10>(), "_CIFAR10");
  PictureSet<data::CIFAR100, data::ImageTensors>(m, "_CIFAR100")
      .def(py::init([](const std::string& root, bool train, bool coarse) {
        const py::gil_scoped_release no_gil;
        return std::make_shared<data::CIFAR100>(
            root, train, kBytes, coarse ? data::CIFAR100Labels::kCoarse : data::CIFAR100Labels::kFine);
      }));
  PictureSet<data::Digits, data::ImageTensors>(m, "_Digits")
      .def(py::init([](bool train, std::optional<int64_t> size, uint64_t seed) {
        const py::gil_scoped_release no_gil;
        return std::make_shared<data::Digits>(
            data::DigitsOptions{.train = train, .size = size, .seed = seed, .image = kBytes});
      }));
  PictureSet<data::ImageFolder, data::Dataset> folder(m, "_ImageFolder");
  bind_pictures(folder)
      .def(py::init([](const std::string& root) {
        return std::make_shared<data::ImageFolder>(root, data::ImageFolderOptions{.image = kBytes});
      }))
      .def_property_readonly("samples", &data::ImageFolder::samples);

  m.def("_bytes_of", [](const Tensor& tensor) {  // of uint8
    const std::vector<uint8_t> bytes = tensor.to_vector<uint8_t>();
    return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  // Single pictures, uint8 [channels, height, width].
  m.def(
      "_read_image",
      [](const std::string& path, int64_t channels) {
        return data::image_to_tensor(data::read_image(path, {.channels = channels}));
      },
      ReleaseGil());
  m.def(
      "_decode_image",
      [](const Tensor& bytes, int64_t channels) {
        return data::image_to_tensor(
            data::decode_image(bytes_from(bytes, "decode_image"), "decode_image", {.channels = channels}));
      },
      ReleaseGil());
  m.def(
      "_encode_png",
      [](const Tensor& picture) { return tensor_from(data::encode_png(data::tensor_to_image(picture))); },
      ReleaseGil());
  m.def(
      "_write_png",
      [](const Tensor& picture, const std::string& path) {
        data::write_png(path, data::tensor_to_image(picture));
      },
      ReleaseGil());
}

}  // namespace tern::python
