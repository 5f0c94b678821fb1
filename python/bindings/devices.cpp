// What tern.cuda has: which GPUs there are, their memory, streams and events, and simulated GPUs.
#include "bindings.h"

namespace tern::python {

void bind_devices(py::module_& m) {
  using MaybeDevice = std::optional<Device>;
  const auto of_device = [&](const char* name, auto f) {
    m.def(name, f, py::arg("device") = py::none(), ReleaseGil());
  };
  m.def("cuda_is_available", &cuda::is_available, ReleaseGil());
  m.def("cuda_unavailable_reason", &cuda::unavailable_reason, ReleaseGil());
  m.def("cuda_device_count", &cuda::device_count, ReleaseGil());
  m.def("cuda_current_device", &cuda::current_device);
  m.def("cuda_set_device", &cuda::set_device, py::arg("device"));
  of_device("cuda_get_device_name", &cuda::get_device_name);
  of_device("cuda_get_device_properties", &cuda::get_device_properties);
  of_device("cuda_synchronize", &cuda::synchronize);
  of_device("cuda_memory_allocated", &cuda::memory_allocated);
  of_device("cuda_memory_reserved", &cuda::memory_reserved);
  of_device("cuda_max_memory_allocated", &cuda::max_memory_allocated);
  of_device("cuda_max_memory_reserved", &cuda::max_memory_reserved);
  of_device("cuda_reset_peak_memory_stats", &cuda::reset_peak_memory_stats);
  of_device("cuda_memory_summary", &cuda::memory_summary);
  of_device("cuda_mem_get_info", &cuda::mem_get_info);
  of_device("cuda_current_stream", &cuda::current_stream);
  of_device("cuda_default_stream", &cuda::default_stream);
  m.def("cuda_set_stream", &cuda::set_stream, py::arg("stream"));
  m.def("cuda_empty_cache", &cuda::empty_cache, ReleaseGil());
  m.def("cuda_manual_seed", &cuda::manual_seed, py::arg("seed"));
  m.def("cuda_set_per_process_memory_fraction", &cuda::set_per_process_memory_fraction, py::arg("fraction"),
        py::arg("device") = py::none());
  m.def("try_gpu", &try_gpu, py::arg("index") = 0, "The GPU of this number if there is one, else the CPU.");
  m.def("try_all_gpus", &try_all_gpus, "All GPUs, or the CPU where there are none.");
  m.def(
      "simulate_gpus", [](int count) { simulate_gpus(SimulationOptions{.gpus = count}); }, py::arg("count"),
      "From now on the program sees this many simulated GPUs. Before tensors are made on GPUs.");

  py::class_<DeviceProperties>(m, "_CudaDeviceProperties")
      .def_readonly("name", &DeviceProperties::name)
      .def_readonly("total_memory", &DeviceProperties::total_memory)
      .def_readonly("multi_processor_count", &DeviceProperties::processors)
      .def_readonly("major", &DeviceProperties::major)
      .def_readonly("minor", &DeviceProperties::minor)
      .def_readonly("simulated", &DeviceProperties::simulated);
  py::class_<Event>(m, "Event")
      .def(py::init([](bool enable_timing) { return std::make_unique<Event>(EventOptions{enable_timing}); }),
           py::arg("enable_timing") = false)
      .def("record", [](Event& self) { self.record(); })
      .def(
          "record", [](Event& self, Stream stream) { self.record(stream); }, py::arg("stream"))
      .def(
          "wait", [](const Event& self, Stream stream) { self.wait(stream); }, py::arg("stream"))
      .def("query", &Event::query)
      .def("synchronize", &Event::synchronize, ReleaseGil())
      .def("elapsed_time", &Event::elapsed_time, py::arg("end_event"), "In milliseconds.");
  py::class_<Stream>(m, "Stream")
      .def(py::init(
               [](MaybeDevice device) { return new_stream(device.value_or(Device(DeviceType::CUDA, -1))); }),
           py::arg("device") = py::none())
      .def("synchronize", &Stream::synchronize, ReleaseGil())
      .def("query", &Stream::query)
      .def("wait_stream", &Stream::wait_stream, py::arg("stream"))
      .def("wait_event", &Stream::wait_event, py::arg("event"))
      .def_property_readonly("device", [](const Stream& self) { return self.device; })
      .def("_set", [](const Stream& self) {
        const Stream before = current_stream(self.device);
        cuda::set_stream(self);
        return before;
      });

  m.def("get_float32_matmul_precision", &get_float32_matmul_precision);
  m.def("set_float32_matmul_precision", &set_float32_matmul_precision, py::arg("precision"));
  m.def("get_num_threads", &num_threads);
  m.def("set_num_threads", &set_num_threads, py::arg("threads"));
}

}  // namespace tern::python
