// What looks at a program from outside: gradients against finite differences, and the profiler.
#include "bindings.h"

namespace tern::python {

namespace {

/// gradcheck or gradgradcheck of a Python function of tensors.
template <class Check>
void bind_check(py::module_& m, const char* name, Check check) {
  m.def(
      name,
      [check](py::function function, const std::vector<Tensor>& inputs, double eps, double atol,
              double rtol) {
        const Callback call(std::move(function));
        const py::gil_scoped_release no_gil;
        check(
            [&](const std::vector<Tensor>& tensors) {
              const py::gil_scoped_acquire gil;
              return call(*py::cast(tensors)).template cast<Tensor>();
            },
            inputs, GradcheckOptions{.eps = eps, .atol = atol, .rtol = rtol});
      },
      py::arg("function"), py::arg("inputs"), py::arg("eps"), py::arg("atol"), py::arg("rtol"));
}

void bind_profiler(py::module_& m) {
  py::class_<ProfileEvent>(m, "_ProfileEvent")
      .def_readonly("name", &ProfileEvent::name)
      .def_readonly("kernel", &ProfileEvent::kernel)
      .def_readonly("module", &ProfileEvent::module)
      .def_readonly("begin", &ProfileEvent::begin)
      .def_readonly("duration", &ProfileEvent::duration)
      .def_readonly("bytes", &ProfileEvent::bytes)
      .def_readonly("flops", &ProfileEvent::flops);
  py::class_<ProfileRow>(m, "_ProfileRow")
      .def_readonly("key", &ProfileRow::name)
      .def_readonly("count", &ProfileRow::calls)
      .def_readonly("seconds", &ProfileRow::seconds)
      .def_readonly("bytes", &ProfileRow::bytes)
      .def_readonly("flops", &ProfileRow::flops);
  py::enum_<ProfileOrder>(m, "_ProfileOrder")
      .value("TIME", ProfileOrder::Time)
      .value("MEAN", ProfileOrder::Mean)
      .value("CALLS", ProfileOrder::Calls)
      .value("BYTES", ProfileOrder::Bytes)
      .value("FLOPS", ProfileOrder::Flops);
  py::class_<Profiler>(m, "_Profiler")
      .def(py::init())
      .def("start", &Profiler::start)
      .def("stop", &Profiler::stop, ReleaseGil())
      .def("events", &Profiler::events)
      .def("averages", &Profiler::averages, py::arg("order") = ProfileOrder::Time)
      .def("table", &Profiler::table)
      .def("export_chrome_trace", &Profiler::export_chrome_trace);
}

}  // namespace

void bind_checks(py::module_& m) {
  bind_check(m, "_gradcheck", [](const auto&... args) { gradcheck(args...); });
  bind_check(m, "_gradgradcheck", [](const auto&... args) { gradgradcheck(args...); });
  bind_profiler(m);
}

}  // namespace tern::python
