// nn.init; the functions are called init_uniform_ and so on here.
#include "tern/nn/init.h"
#include "bindings.h"

namespace tern::python {

void bind_init(py::module_& m) {
  using nn::init::MaybeGenerator;
  const auto fills = [&](const char* name, auto f, auto... declared) {
    m.def(name, f, py::arg("tensor").none(false), declared..., ReleaseGil());
  };
  const auto generator = [] { return py::arg("generator") = py::none(); };
  fills("init_uniform_", &nn::init::uniform_, py::arg("a") = 0.0, py::arg("b") = 1.0, generator());
  fills("init_normal_", &nn::init::normal_, py::arg("mean") = 0.0, py::arg("std") = 1.0, generator());
  fills("init_trunc_normal_", &nn::init::trunc_normal_, py::arg("mean") = 0.0, py::arg("std") = 1.0,
        py::arg("a") = -2.0, py::arg("b") = 2.0, generator());
  fills("init_constant_", &nn::init::constant_, py::arg("val"));
  fills("init_zeros_", &nn::init::zeros_);
  fills("init_ones_", &nn::init::ones_);
  fills("init_eye_", &nn::init::eye_);
  fills("init_xavier_uniform_", &nn::init::xavier_uniform_, py::arg("gain") = 1.0, generator());
  fills("init_xavier_normal_", &nn::init::xavier_normal_, py::arg("gain") = 1.0, generator());
  fills("init_orthogonal_", &nn::init::orthogonal_, py::arg("gain") = 1.0, generator());
  const auto kaiming = [&](const char* name, auto f) {
    fills(
        name,
        [f](const Tensor& tensor, double a, const std::string& mode, const std::string& nonlinearity,
            const MaybeGenerator& from) {
          return f(tensor, nn::init::KaimingOptions{.a = a, .mode = mode, .nonlinearity = nonlinearity},
                   from);
        },
        py::arg("a") = 0.0, py::arg("mode") = "fan_in", py::arg("nonlinearity") = "leaky_relu", generator());
  };
  kaiming("init_kaiming_uniform_", &nn::init::kaiming_uniform_);
  kaiming("init_kaiming_normal_", &nn::init::kaiming_normal_);
  m.def("init_calculate_gain", &nn::init::calculate_gain, py::arg("nonlinearity"),
        py::arg("param") = py::none());
}

}  // namespace tern::python
