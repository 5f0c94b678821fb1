// The CUDA backend and the entry of its plugin (device/plugin.h). Devices, memory, streams and events are in
// the files of those names, kernels in kernels/.
#include "tern/device/backend.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/graph.h"
#include "tern/backends/cuda/kernels/attention.h"
#include "tern/backends/cuda/kernels/table.h"
#include "tern/backends/cuda/nccl.h"
#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/device/copy.h"
#include "tern/device/machine.h"
#include "tern/device/plugin.h"
#include "tern/kernels/fingerprint.h"

namespace tern::cuda_backend {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(int gpus, int parts) : Backend(kernel_table, /*runs_at_once=*/false) {
    for (int i = 0; i < gpus; ++i) {
      gpus_.push_back(std::make_unique<PhysicalGpu>(i));
      for (int part = 0; part < parts && devices_.size() < kMaxGpus; ++part)
        devices_.push_back(
            std::make_unique<CudaDevice>(static_cast<int>(devices_.size()), *gpus_.back(), part, parts));
    }
  }

  std::string_view name() const override { return "cuda"; }
  DeviceType type() const override { return DeviceType::CUDA; }
  DeviceProperties properties(int index) override { return at(index).properties(); }
  int device_count() override { return static_cast<int>(devices_.size()); }
  int current_device() override { return detail::current_gpu; }

  Storage allocate(size_t nbytes, Device device) override {
    return at(device.index).memory().allocate(nbytes, current_stream(device).id);
  }
  Storage allocate_pinned(size_t nbytes) override {
    // A thread that has chosen no GPU would wake the first one.
    use_gpu(at(current_device()).gpu().number());
    return pinned_.allocator().allocate(nbytes);
  }
  void record_stream(const StorageImpl& storage, Stream stream) override {
    if (storage.is_pinned())
      pinned_.allocator().record_stream(storage, stream);
    else
      at(storage.device().index).memory().allocator().record_stream(storage, stream);
  }
  void copy_to_host(void* host, const StorageImpl& from, size_t offset, size_t nbytes) override {
    detail::copy_to_host_blocking(host, from, offset, nbytes);
  }
  void copy_from_host(StorageImpl& to, size_t offset, const void* host, size_t nbytes) override {
    detail::copy_from_host_staged(to, offset, host, nbytes);
  }
  MemoryStats memory_stats(int index) override { return at(index).memory().allocator().stats(); }
  void reset_peak_memory_stats(int index) override { at(index).memory().allocator().reset_peaks(); }
  std::vector<MemorySegment> memory_snapshot(int index) override {
    return at(index).memory().allocator().snapshot();
  }
  void empty_cache(int index) override { at(index).memory().allocator().empty_cache(); }
  void set_memory_limit(int index, size_t nbytes) override {
    at(index).memory().allocator().set_limit(nbytes);
  }
  size_t free_memory(int index) override { return at(index).memory().free_bytes(); }

  uint16_t num_pool_streams() const override { return kNumStreams - 1; }
  bool query(Stream stream) override {
    CudaStream* found = stream.id < kNumStreams ? at(stream.device.index).find_stream(stream.id) : nullptr;
    if (found == nullptr) return true;
    if (const auto before = found->before_recording()) return before->done();
    const Task task{.name = "query", .stream = stream};
    const TaskScope scope(task);
    const cudaError_t error = cudaStreamQuery(found->handle());
    found->tell_observers();
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    TERN_CUDA_CALL(error);
    return true;
  }
  void synchronize(Stream stream) override {
    CudaStream* found = stream.id < kNumStreams ? at(stream.device.index).find_stream(stream.id) : nullptr;
    if (found != nullptr) wait(*found, stream, "synchronize");
  }
  void synchronize_device(int index) override {
    // First all, then the errors: what one stream throws must not leave the others running.
    for (uint16_t id = 0; id < kNumStreams; ++id)
      if (CudaStream* found = at(index).find_stream(id); found != nullptr && !found->before_recording())
        cudaStreamSynchronize(found->handle());
    for (uint16_t id = 0; id < kNumStreams; ++id) synchronize({Device(DeviceType::CUDA, index), id});
  }
  std::shared_ptr<EventRecord> record_event(Stream stream, bool timed) override {
    if (!timed && stream.id < kNumStreams) {
      CudaStream* const found = at(stream.device.index).find_stream(stream.id);
      // A GPU that nobody has used stays asleep: waking it takes time and memory.
      if (found == nullptr) return std::make_shared<PastEvent>();
      if (auto before = found->before_recording()) return before;
    }
    const Task task{.name = "record event", .stream = stream};
    const TaskScope scope(task);
    return std::make_shared<CudaEvent>(at(stream.device.index).stream(stream.id), stream, timed);
  }
  void wait_event(Stream stream, std::shared_ptr<EventRecord> event) override {
    const auto* recorded = dynamic_cast<const CudaEvent*>(event.get());
    if (recorded == nullptr) return;  // of work that is done
    const Task task{.name = "wait for event", .stream = stream};
    const TaskScope scope(task);
    queue({.kind = Activity::Kind::Wait, .stream = stream, .name = "wait for event"},
          [&](CudaStream& waiting) {
            TERN_CUDA_CALL(cudaStreamWaitEvent(waiting.handle(), recorded->handle(), 0));
          });
  }

  void enqueue(Stream stream, const Launch& launch) override {
    const Task task{.name = launch.name, .kernel = launch.id, .args = launch.args, .stream = stream};
    const TaskScope scope(task);
    queue({.stream = stream, .name = launch.name, .kernel = launch.id, .args = launch.args},
          [&](CudaStream& on) {
            on.remember(launch.name);
            GraphRecording* recording = on.recording();
            const void* args = recording ? recording->begin_launch(launch) : launch.args;
            kernels()[launch.id](LaunchContext{stream}, args);
            if (recording) recording->end_launch(launch);
            if (launches_block()) wait(on, stream, nullptr);
          });
  }

  bool fuses(Stream stream, const AttentionArgs& args) override { return fuses_in(stream, args); }
  bool fuses(Stream stream, const AttentionBackwardArgs& args) override { return fuses_in(stream, args); }
  bool begin_recording(Stream stream) override {
    // What waits for each kernel, or asks when each one ran, is no graph.
    if (launches_block() || detail::launch_observer.load(std::memory_order_acquire)) return false;
    const Task task{.name = "begin of a graph", .stream = stream};
    const TaskScope scope(task);
    CudaStream& on = at(stream.device.index).stream(stream.id);
    use_gpu(on.gpu().number());
    on.begin_recording(stream);
    return true;
  }
  std::unique_ptr<RecordedWork> end_recording(Stream stream) override {
    const Task task{.name = "end of a graph", .stream = stream};
    const TaskScope scope(task);
    CudaStream& on = at(stream.device.index).stream(stream.id);
    use_gpu(on.gpu().number());
    return on.end_recording();
  }

  void enqueue_copy(Stream stream, void* to, Device to_device, const void* from, Device from_device,
                    size_t nbytes) override {
    const char* name = to_device.is_cpu()     ? "copy device to host"
                       : from_device.is_cpu() ? "copy host to device"
                                              : "copy device to device";
    const Task task{.name = name, .stream = stream};
    const TaskScope scope(task);
    queue({.kind = Activity::Kind::Copy, .stream = stream, .name = name, .nbytes = nbytes},
          [&](CudaStream& on) {
            on.remember(name);
            if (to_device.is_cpu() || from_device.is_cpu()) {
              const auto kind = to_device.is_cpu() ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
              TERN_CUDA_CALL(cudaMemcpyAsync(to, from, nbytes, kind, on.handle()));
            } else {
              PhysicalGpu &source = at(from_device.index).gpu(), &target = at(to_device.index).gpu();
              if (&source == &target) {
                TERN_CUDA_CALL(cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDeviceToDevice, on.handle()));
              } else {
                source.befriend(target);
                target.befriend(source);
                use_gpu(on.gpu().number());
                TERN_CUDA_CALL(
                    cudaMemcpyPeerAsync(to, target.number(), from, source.number(), nbytes, on.handle()));
              }
            }
            if (launches_block()) wait(on, stream, nullptr);
          });
  }

  LinkMaker* links() override { return &nccl_links(); }

  CudaDevice& at(int index) {
    TERN_CHECK(index >= 0 && static_cast<size_t>(index) < devices_.size(), DeviceError,
               "device cuda:{} is not available: the program sees {} GPU(s), numbered from 0", index,
               devices_.size());
    return *devices_[static_cast<size_t>(index)];
  }

 private:
  template <class Args>
  bool fuses_in(Stream stream, const Args& args) {
    const Task task{.name = "plan of attention", .stream = stream};
    const TaskScope scope(task);
    use_gpu(at(stream.device.index).gpu().number());
    return fuses_attention(LaunchContext{stream}, args);
  }

  /// Runs `body`, which queues something on a stream, with its GPU as the current one, and shows it to an
  /// observer.
  template <class Body>
  void queue(const Activity& activity, Body&& body) {
    CudaDevice& device = at(activity.stream.device.index);
    use_gpu(device.gpu().number());
    CudaStream& stream = device.stream(activity.stream.id);
    LaunchObserver* observer = detail::launch_observer.load(std::memory_order_acquire);
    if (observer == nullptr || stream.recording()) [[likely]]
      return body(stream);
    stream.observed(*observer, activity, [&] { body(stream); });
  }

  /// Waits and throws what the work on the stream found. `name`: null inside another task.
  void wait(CudaStream& on, Stream stream, const char* name) {
    // A step that another thread records is no work yet, and a wait for it would end the recording.
    if (const auto before = on.before_recording()) return before->synchronize();
    const auto body = [&] {
      TERN_CUDA_CALL(cudaStreamSynchronize(on.handle()));
      on.tell_observers();
      deliver(*on.fault());
    };
    if (name == nullptr) return body();
    const Task task{.name = name, .stream = stream};
    const TaskScope scope(task);
    body();
  }

  std::vector<std::unique_ptr<PhysicalGpu>> gpus_;
  std::vector<std::unique_ptr<CudaDevice>> devices_;
  PinnedMemory pinned_;
};

/// Of this process; null before there is one. Never destroyed: tensors of static duration outlive it.
CudaBackend* backend = nullptr;

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string why_no_gpu(cudaError_t error) {
  cudaGetLastError();
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) cudaGetLastError();
  const std::string needed = version_text(CUDART_VERSION);
  const auto oldest = least_driver(*Version::parse(needed));
  const std::string remedy = oldest ? fmt::format("install driver {} or newer", oldest->text)
                                    : fmt::format("install one for CUDA {}", needed);
  if (driver == 0)
    return fmt::format("no NVIDIA driver: libcuda.so.1 is not there or does not answer ({}): {}",
                       cudaGetErrorName(error), remedy);
  if (error == cudaErrorInsufficientDriver)
    return fmt::format("the NVIDIA driver is too old: it runs CUDA up to {}, Tern's plugin needs {}: {}",
                       version_text(driver), needed, remedy);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return fmt::format("the NVIDIA driver gives no GPU: {} ({}){}", cudaGetErrorString(error),
                     cudaGetErrorName(error),
                     visible ? fmt::format("; CUDA_VISIBLE_DEVICES is '{}'", printable(visible, 100)) : "");
}

}  // namespace

CudaStream& stream_of(Stream stream) { return backend->at(stream.device.index).stream(stream.id); }

std::string recent_kernels(Stream stream) {
  if (backend == nullptr || stream.id >= kNumStreams || !stream.device.is_cuda()) return "";
  const CudaStream* found = backend->at(stream.device.index).find_stream(stream.id);
  return found ? found->recent() : "";
}

Storage workspace(const LaunchContext& context, size_t nbytes) {
  // Multiples of 256 bytes are aligned to as much, which cuBLASLt asks for.
  nbytes = (nbytes + 255) / 256 * 256;
  Storage made = backend->at(context.stream.device.index).memory().allocate(nbytes, context.stream.id);
  touches(context, made->data(), nbytes);
  return made;
}

void touches(const LaunchContext& context, const void* data, size_t nbytes) {
  if (GraphRecording* recording = stream_of(context.stream).recording()) recording->touches(data, nbytes);
}

}  // namespace tern::cuda_backend

#define TERN_EXPORT extern "C" __attribute__((visibility("default")))

/// Read from the file's bytes by those who do not open it.
TERN_EXPORT const char tern_plugin_version[];
const char tern_plugin_version[] = "TERN_PLUGIN_VERSION=" TERN_VERSION;

TERN_EXPORT const tern::PluginStamp* tern_plugin_stamp() {
  static const tern::PluginStamp stamp{tern::kPluginInterface,
                                       sizeof(tern::PluginStamp),
                                       tern_plugin_version + sizeof("TERN_PLUGIN_VERSION=") - 1,
                                       tern::layout_fingerprint(),
                                       tern::kernels::fingerprint(),
                                       &tern::detail::load_plugin_when_asked};
  return &stamp;
}

TERN_EXPORT void tern_plugin_start(tern::PluginAnswer* answer) {
  using namespace tern::cuda_backend;
  try {
    int gpus = 0;
    const cudaError_t error = cudaGetDeviceCount(&gpus);
    if (error != cudaSuccess || gpus == 0) {
      answer->reason = why_no_gpu(error == cudaSuccess ? cudaErrorNoDevice : error);
      return;
    }
    const auto parts = tern::env_int("TERN_LOGICAL_GPUS", 1, tern::kMaxGpus).value_or(1);
    if (backend == nullptr) backend = new CudaBackend(gpus, static_cast<int>(parts));
    answer->backend = backend;
  } catch (const std::exception& failure) {
    answer->reason = failure.what();
  }
}

/// The names of the kernels that the plugin has, for tests; ends with null.
TERN_EXPORT const char* const* tern_plugin_kernels() { return tern::cuda_backend::kernel_names(); }
