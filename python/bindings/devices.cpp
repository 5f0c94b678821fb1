// What tern.cuda has: which GPUs there are, their memory, streams and events, and simulated GPUs.
#include "bindings.h"
#include "tern/device/capture.h"
#include "tern/device/nvml.h"

namespace tern::python {

namespace {

/// What the driver measures of a GPU, by the names of GpuReading; None for what it does not tell.
py::dict measured(std::optional<Device> device) {
  const DeviceProperties properties = cuda::get_device_properties(device);
  py::dict result;
  if (properties.simulated) {
    result["reason"] = "the GPU is simulated";
    return result;
  }
  GpuReadings readings;
  {
    const py::gil_scoped_release no_gil;
    readings = nvml_monitor()->read();
  }
  result["reason"] = readings.reason;
  for (const GpuReading& gpu : readings.gpus)
    if (gpu.pci_bus_id == properties.pci_bus_id) {
      result["reason"] = gpu.error;
      result["memory_total"] = gpu.memory_total;
      result["memory_used"] = gpu.memory_used;
      result["utilization_percent"] = gpu.utilization_percent;
      result["temperature_celsius"] = gpu.temperature_celsius;
      result["power_watts"] = gpu.power_watts;
      py::dict processes;
      for (const GpuProcess& process : gpu.processes) processes[py::int_(process.pid)] = process.nbytes;
      result["processes"] = processes;
    }
  return result;
}

py::dict stats_of(std::optional<Device> device) {
  const MemoryStats stats = cuda::memory_stats(device);
  py::dict result;
  const std::pair<const char*, uint64_t> rows[] = {{"allocated_bytes.all.current", stats.allocated},
                                                   {"allocated_bytes.all.peak", stats.max_allocated},
                                                   {"reserved_bytes.all.current", stats.reserved},
                                                   {"reserved_bytes.all.peak", stats.max_reserved},
                                                   {"allocation.all.allocated", stats.num_allocations},
                                                   {"segment.all.allocated", stats.num_system_allocations},
                                                   {"num_alloc_retries", stats.num_retries},
                                                   {"num_ooms", stats.num_ooms}};
  for (const auto& [name, value] : rows) result[name] = value;
  return result;
}

void bind_capture(py::module_& m) {
  py::class_<CapturedStep>(m, "CapturedStep", py::dynamic_attr(), "A recorded step.")
      .def("replay", &CapturedStep::replay, ReleaseGil(), "Does the step once more.")
      .def_property_readonly("num_launches", &CapturedStep::num_launches, "Kernels that a replay starts.")
      .def_property_readonly("num_bytes", &CapturedStep::num_bytes, "Memory that it holds for itself.");
  py::class_<StepCapture>(m, "_StepCapture").def(py::init<>()).def("end", &StepCapture::end);
  m.def(
      "capture",
      [](py::function step, int warmup) {
        py::object captured = py::cast(capture([&] { step(); }, {.warmup = warmup}));
        captured.attr("step") = step;  // and with it the tensors that it uses
        return captured;
      },
      py::arg("step"), py::kw_only(), py::arg("warmup") = 1,
      "Calls `step` `warmup` times and once more, recording what it gives to devices: replay() then does the "
      "same on the same tensors "
      "without the cost of its operators and of Python. New data is copied into the input tensors, results "
      "are read from the tensors that "
      "the step has set.");
  m.def("cuda_is_current_stream_capturing", [] { return tern::detail::step_recorder != nullptr; });
}

}  // namespace

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
  m.def("cuda_memory_stats", &stats_of, py::arg("device") = py::none());
  m.def("_cuda_measured", &measured, py::arg("device") = py::none());
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
      .def_readonly("simulated", &DeviceProperties::simulated)
      .def_readonly("uuid", &DeviceProperties::uuid)
      .def("__repr__", [](const DeviceProperties& p) {
        return "_CudaDeviceProperties(name='" + p.name + "', major=" + std::to_string(p.major) +
               ", minor=" + std::to_string(p.minor) +
               ", total_memory=" + std::to_string(p.total_memory >> 20) +
               "MB, multi_processor_count=" + std::to_string(p.processors) + ")";
      });
  py::class_<Event, std::shared_ptr<Event>>(m, "Event")
      .def(py::init([](bool enable_timing, bool, bool) {
             return std::make_unique<Event>(EventOptions{enable_timing});
           }),
           py::arg("enable_timing") = false, py::arg("blocking") = false, py::arg("interprocess") = false)
      .def(
          "record",
          [](Event& self, std::optional<Stream> stream) { stream ? self.record(*stream) : self.record(); },
          py::arg("stream") = py::none())
      .def(
          "wait",
          [](const Event& self, std::optional<Stream> stream) {
            self.wait(stream ? *stream : cuda::current_stream());
          },
          py::arg("stream") = py::none())
      .def("query", &Event::query)
      .def("synchronize", &Event::synchronize, ReleaseGil())
      .def("elapsed_time", &Event::elapsed_time, py::arg("end_event"), "In milliseconds.");
  py::class_<Stream>(m, "Stream")
      .def(py::init([](MaybeDevice device, int) {
             return new_stream(device.value_or(Device(DeviceType::CUDA, -1)));
           }),
           py::arg("device") = py::none(), py::arg("priority") = 0)
      .def("__eq__",
           [](const Stream& self, const py::object& other) {
             return py::isinstance<Stream>(other) && other.cast<Stream>() == self;
           })
      .def("__hash__", [](const Stream& self) { return self.device.index * 65536 + self.id; })
      .def(
          "record_event",
          [](const Stream& self, std::shared_ptr<Event> event) {
            if (!event) event = std::make_shared<Event>();
            event->record(self);
            return event;
          },
          py::arg("event") = py::none())
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

  bind_capture(m);

  m.def("get_float32_matmul_precision", &get_float32_matmul_precision);
  m.def("set_float32_matmul_precision", &set_float32_matmul_precision, py::arg("precision"));
  m.def("get_num_threads", &num_threads);
  m.def("set_num_threads", &set_num_threads, py::arg("threads"));
}

}  // namespace tern::python
