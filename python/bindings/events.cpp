// TensorBoard's event files; python/tern/utils/tensorboard.py is the SummaryWriter that fills them.
#include "bindings.h"

namespace tern::python {

void bind_events(py::module_& m) {
  using train::EventFile;
  using Time = std::optional<double>;
  py::class_<EventFile>(m, "_EventFile")
      .def(py::init([](const std::string& folder, int64_t resume_step) {
        return std::make_unique<EventFile>(folder, resume_step);
      }))
      .def("add_scalar", &EventFile::add_scalar)
      .def("add_histogram",
           [](EventFile& self, const std::string& tag, const Tensor& values, int64_t step, Time time) {
             const auto numbers = values.detach().to(kCPU, DType::Float64).to_vector<double>();
             self.add_histogram(tag, numbers, step, time);
           })
      .def("add_image",
           [](EventFile& self, const std::string& tag, const Tensor& picture, int64_t step, Time time) {
             self.add_image(tag, data::tensor_to_image(picture.detach().to(kCPU)), step, time);
           })
      .def("add_text", &EventFile::add_text)
      .def("sync", &EventFile::sync, ReleaseGil());
}

}  // namespace tern::python
