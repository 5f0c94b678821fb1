// Tern's own datasets and samplers, and the DataLoader that reads them without Python. Those that are written
// in Python are read by python/tern/utils/data; sets of pictures are in datasets.cpp.
#include <mutex>

#include "bindings.h"

namespace tern::python {

namespace {

using data::Batch;
using data::Dataset;
using data::Example;

/// One sample or batch as Python has it: a dict where its tensors have names, else a list; a tensor alone as
/// itself.
py::object to_python(const Example& example) {
  const std::vector<Tensor> tensors = example.tensors();
  if (!example.names.empty()) {
    py::dict dict;
    for (size_t i = 0; i < tensors.size(); ++i) dict[py::str(example.names[i])] = tensors[i];
    return py::object(std::move(dict));
  }
  return py::cast(tensors);
}

/// Samples with several tensors are tuples.
py::object sample_to_python(const Example& example) {
  const py::object sample = to_python(example);
  return py::isinstance<py::list>(sample) ? py::object(py::tuple(sample)) : sample;
}

/// One epoch. The iterator of C++ stands at its first batch at once, Python's asks for it.
class Epoch {
 public:
  explicit Epoch(data::DataLoader& loader) : next_(loader.begin()) {}
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;
  ~Epoch() {
    const py::gil_scoped_release no_gil;  // what workers let go may belong to Python
    next_.reset();
  }
  py::object next() {
    std::optional<Batch> batch;
    {
      const py::gil_scoped_release no_gil;
      const std::lock_guard lock(mutex_);
      if (std::exchange(started_, true) && *next_ != std::default_sentinel) ++*next_;
      if (*next_ != std::default_sentinel) batch = **next_;
    }
    if (!batch) throw py::stop_iteration();
    return to_python(*batch);
  }

 private:
  std::mutex mutex_;
  std::optional<data::DataLoader::Iterator> next_;
  bool started_ = false;
};

template <class Set>
using SetClass = py::class_<Set, Dataset, std::shared_ptr<Set>>;

}  // namespace

void bind_data(py::module_& m) {
  const auto get = [](const Dataset& self, int64_t index) {
    if (index < -self.size() || index >= self.size())  // this type ends loops over the dataset
      throw IndexError("index " + std::to_string(index) + " is out of range for " +
                       std::to_string(self.size()) + " samples");
    return sample_to_python(self.get(index < 0 ? index + self.size() : index));
  };
  py::class_<Dataset, std::shared_ptr<Dataset>>(m, "_Dataset", py::dynamic_attr())
      .def("__len__", &Dataset::size)
      .def("__getitem__", get, py::arg("index"))
      .def("_get_batch",
           [](const Dataset& self, const std::vector<int64_t>& indices, uint64_t seed, int64_t epoch) {
             std::optional<Batch> batch;
             {
               const py::gil_scoped_release no_gil;
               batch = self.get_batch(indices, {seed, epoch});
             }
             return to_python(*batch);
           });
  SetClass<data::TensorDataset>(m, "TensorDataset")
      .def(py::init([](py::args tensors) {
        return std::make_shared<data::TensorDataset>(tensors.cast<std::vector<Tensor>>());
      }))
      .def(
          "__getitem__",
          [get](const data::TensorDataset& self, py::object index) -> py::object {
            if (PyLong_Check(index.ptr()) && self.tensors().size() > 1)
              return get(self, index.cast<int64_t>());
            py::list parts;
            for (const Tensor& tensor : self.tensors())
              parts.append(py::cast(tensor).attr("__getitem__")(index));
            return py::tuple(parts);
          },
          py::arg("index"))
      .def_property_readonly(
          "tensors", [](const data::TensorDataset& self) { return py::tuple(py::cast(self.tensors())); });
  SetClass<data::Subset>(m, "_Subset")
      .def(py::init([](std::shared_ptr<Dataset> dataset, std::vector<int64_t> indices) {
        return std::make_shared<data::Subset>(std::move(dataset), std::move(indices));
      }));
  SetClass<data::ConcatDataset>(m, "_ConcatDataset")
      .def(py::init([](const std::vector<std::shared_ptr<Dataset>>& datasets) {
        return std::make_shared<data::ConcatDataset>(
            std::vector<data::DatasetHandle>(datasets.begin(), datasets.end()));
      }));

  py::class_<data::Sampler, std::shared_ptr<data::Sampler>>(m, "_Sampler", py::dynamic_attr())
      .def("__len__", &data::Sampler::size)
      .def("_indices", &data::Sampler::indices)
      .def("__iter__", [](py::object self) {
        const py::object epoch = py::getattr(self, "epoch", py::int_(0));
        return py::iter(py::cast(self.cast<const data::Sampler&>().indices(epoch.cast<int64_t>())));
      });
  py::class_<data::DistributedSampler, data::Sampler, std::shared_ptr<data::DistributedSampler>>(
      m, "DistributedSampler")
      .def(py::init([](py::object dataset, int64_t replicas, int64_t rank, bool shuffle, uint64_t seed,
                       bool drop_last) {
             return std::make_shared<data::DistributedSampler>(
                 static_cast<int64_t>(py::len(dataset)),
                 data::DistributedSamplerOptions{replicas, rank, shuffle, seed, drop_last});
           }),
           py::arg("dataset"), py::arg("num_replicas"), py::arg("rank"), py::arg("shuffle") = true,
           py::arg("seed") = 0, py::arg("drop_last") = false);
  py::class_<data::WeightedRandomSampler, data::Sampler, std::shared_ptr<data::WeightedRandomSampler>>(
      m, "WeightedRandomSampler")
      .def(py::init([](std::vector<double> weights, int64_t num_samples, bool replacement) {
             return std::make_shared<data::WeightedRandomSampler>(std::move(weights), num_samples,
                                                                  replacement);
           }),
           py::arg("weights"), py::arg("num_samples"), py::arg("replacement") = true);

  py::class_<Epoch>(m, "_Epoch")
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &Epoch::next);
  py::class_<data::DataLoader>(m, "_DataLoader")
      .def(py::init([](std::shared_ptr<Dataset> dataset, int64_t batch_size, bool shuffle,
                       std::shared_ptr<data::Sampler> sampler, int64_t num_workers, bool pin_memory,
                       bool drop_last, std::optional<Generator> generator, int64_t prefetch_factor,
                       std::optional<Device> device, std::optional<uint64_t> seed) {
        data::DataLoaderOptions options{.batch_size = batch_size,
                                        .shuffle = shuffle,
                                        .num_workers = num_workers,
                                        .prefetch_factor = prefetch_factor,
                                        .drop_last = drop_last,
                                        .seed = seed,
                                        .generator = std::move(generator),
                                        .device = device,
                                        .pin_memory = pin_memory};
        if (sampler) options.sampler = std::move(sampler);
        return std::make_unique<data::DataLoader>(std::move(dataset), std::move(options));
      }))
      .def("__len__", &data::DataLoader::size)
      .def(
          "__iter__",
          [](data::DataLoader& self) {
            std::unique_ptr<Epoch> epoch;
            {
              const py::gil_scoped_release no_gil;
              epoch = std::make_unique<Epoch>(self);
            }
            return epoch;
          },
          py::keep_alive<0, 1>())
      .def("set_epoch", &data::DataLoader::set_epoch, py::arg("epoch"));
}

}  // namespace tern::python
