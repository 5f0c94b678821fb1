// DataParallel of modules that are written in Python, and comm: what is sent between devices.
#include "bindings.h"
#include "modules.h"

namespace tern::python {

namespace {

/// A Python module as parallel::DataParallel takes one: a copy has the same structure and shares the tensors.
/// It is called with the tensors of its arguments; the function `call` puts them back into their places.
class PythonNet final : public nn::Module {
 public:
  explicit PythonNet(py::object module) : module_(held(std::move(module))) {}
  PythonNet(const PythonNet& other) : nn::Module(other) {
    const py::gil_scoped_acquire gil;
    module_ = held(imported("tern.nn.copies", "replica")(*other.module_));
  }
  PythonNet(PythonNet&&) = default;

  void collect_fields(nn::Fields& fields) override {
    const py::gil_scoped_acquire gil;
    fields = module_->cast<nn::Module&>().fields();
  }
  std::string class_name() const override {
    const py::gil_scoped_acquire gil;
    return module_->cast<nn::Module&>().class_name();
  }
  std::vector<Tensor> forward(const std::vector<Tensor>& tensors, const Callback& call) {
    const py::gil_scoped_acquire gil;
    return call(*module_, tensors).cast<std::vector<Tensor>>();
  }
  TERN_MODULE_CALL

 private:
  std::shared_ptr<py::object> module_;
};

using SplitNet = parallel::DataParallel<PythonNet>;

}  // namespace

void bind_parallel(py::module_& m) {
  py::class_<SplitNet>(m, "_DataParallel")
      .def(py::init([](py::object module, const std::vector<Device>& device_ids,
                       std::optional<Device> output_device, int64_t dim,
                       std::optional<py::function> on_warning) {
             parallel::DataParallelOptions options{
                 .device_ids = device_ids, .output_device = output_device, .dim = dim};
             if (on_warning)
               options.on_warning = [warn = Callback(*on_warning)](const std::string& text) {
                 const py::gil_scoped_acquire gil;
                 warn(text);
               };
             return std::make_unique<SplitNet>(PythonNet(std::move(module)), std::move(options));
           }),
           py::arg("module"), py::arg("device_ids"), py::arg("output_device"), py::arg("dim"),
           py::arg("on_warning"))
      .def_property_readonly("device_ids", &SplitNet::device_ids)
      .def_property_readonly("output_device", &SplitNet::output_device)
      .def("__call__", [](SplitNet& self, const std::vector<Tensor>& tensors, py::function call) {
        const Callback callback(std::move(call));
        const py::gil_scoped_release no_gil;
        return self.forward(tensors, callback);
      });

  using Devices = std::vector<Device>;
  m.def(
      "_scatter",
      [](const Tensor& tensor, const Devices& devices, int64_t dim) {
        return parallel::scatter(tensor, devices, dim);
      },
      ReleaseGil());
  m.def(
      "_gather",
      [](const Tensors& tensors, Device destination, int64_t dim) {
        return parallel::gather(tensors, destination, dim);
      },
      ReleaseGil());
  m.def("_broadcast", &parallel::broadcast, ReleaseGil());
  m.def("_broadcast_coalesced", &parallel::broadcast_coalesced, ReleaseGil());
  m.def("_reduce_add", &parallel::reduce_add, ReleaseGil());
  m.def("_reduce_add_coalesced", &parallel::reduce_add_coalesced, ReleaseGil());
}

}  // namespace tern::python
