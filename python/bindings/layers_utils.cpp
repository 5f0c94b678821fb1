// What changes layers (nn/utils.h): weight and spectral norm, batch norm folded into the layer before.
#include "layers.h"
#include "rows.h"
#include "tern/nn/utils.h"

namespace tern::python {

namespace {

nn::utils::NormNames names_of(bool parametrization) {
  return parametrization ? nn::utils::NormNames::Parametrization : nn::utils::NormNames::Hook;
}

template <int N>
void bind_fuse(py::module_& m) {
  m.def(
      "fuse_conv_bn_eval",
      [](const nn::ConvLayer<N, false>& conv, const nn::BatchNorm& bn) {
        return std::make_shared<nn::ConvLayer<N, false>>(nn::utils::fuse_conv_bn_eval(conv, bn));
      },
      py::arg("conv"), py::arg("bn"));
}

}  // namespace

void bind_layer_utils(py::module_& m) {
  m.def(
      "weight_norm",
      [](py::object module, const std::string& name, std::optional<int64_t> dim, bool parametrization) {
        nn::utils::weight_norm(module.cast<nn::Module&>(), name,
                               {.dim = dim, .names = names_of(parametrization)});
        return module;
      },
      py::arg("module"), py::arg("name") = "weight", py::arg("dim") = 0, py::kw_only(),
      py::arg("parametrization") = false);
  m.def(
      "remove_weight_norm",
      [](py::object module, const std::string& name) {
        nn::utils::remove_weight_norm(module.cast<nn::Module&>(), name);
        return module;
      },
      py::arg("module"), py::arg("name") = "weight");
  m.def(
      "spectral_norm",
      [](py::object module, const std::string& name, int64_t n_power_iterations, double eps,
         std::optional<int64_t> dim, bool parametrization) {
        nn::utils::spectral_norm(module.cast<nn::Module&>(), name,
                                 {.n_power_iterations = n_power_iterations,
                                  .eps = eps,
                                  .dim = dim,
                                  .names = names_of(parametrization)});
        return module;
      },
      py::arg("module"), py::arg("name") = "weight", py::arg("n_power_iterations") = 1,
      py::arg("eps") = 1e-12, py::arg("dim") = py::none(), py::kw_only(), py::arg("parametrization") = false);
  m.def(
      "remove_spectral_norm",
      [](py::object module, const std::string& name) {
        nn::utils::remove_spectral_norm(module.cast<nn::Module&>(), name);
        return module;
      },
      py::arg("module"), py::arg("name") = "weight");
  bind_fuse<1>(m);
  bind_fuse<2>(m);
  bind_fuse<3>(m);
  m.def(
      "fuse_linear_bn_eval",
      [](const nn::Linear& linear, const nn::BatchNorm& bn) {
        return std::make_shared<nn::Linear>(nn::utils::fuse_linear_bn_eval(linear, bn));
      },
      py::arg("linear"), py::arg("bn"));
}

}  // namespace tern::python
