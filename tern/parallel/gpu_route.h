// GpuRoute: how tensors on GPUs travel between the processes of a group. Internal to parallel: its user is
// parallel/process_group.h.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tern/core/tensor.h"
#include "tern/device/event.h"
#include "tern/device/link.h"
#include "tern/parallel/transport.h"

namespace tern::dist {

/// By a link between the GPUs where all processes can open one, else through host memory. All calls are made
/// by the thread that speaks with the transport.
class GpuRoute {
 public:
  /// `timeout`: for an operation, and for the opening of the link.
  explicit GpuRoute(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  /// Opens the link, once. Called by all processes at once, each with the GPU that it computes on. Where one
  /// of them cannot, none does, and description() says why.
  void open(Device device, Transport& transport);
  bool is_opened() const noexcept { return opened_; }  ///< with or without a link
  /// True where the link takes tensors of this device.
  bool links(Device device) const noexcept { return link_ && device == device_; }
  /// "NCCL 2.28.9", or "host memory: " and why.
  const std::string& description() const noexcept { return description_; }

  DeviceLink& link() noexcept { return *link_; }
  /// Runs `body`, which uses the link, on a stream of its own behind `ready`, and returns when the GPU has
  /// done it. Throws DistributedError when that does not come; the link is gone then.
  void run_on_link(const Event& ready, const std::function<void()>& body);
  /// Runs `body` with the numbers of `dense`, a tensor on a GPU, in a row in host memory; `dense` becomes
  /// what the row then is.
  void run_on_host(const Tensor& dense, const Event& ready, const std::function<void(const Tensor&)>& body);

 private:
  /// A stream for this alone, so that it waits for nothing else, nor meets the errors of anything else.
  Stream stream_of(Device device);

  std::chrono::milliseconds timeout_;
  bool opened_ = false;
  Device device_ = kCPU;
  std::unique_ptr<DeviceLink> link_;
  std::string description_;
  std::map<int, Stream> streams_;  ///< by the number of the GPU
};

}  // namespace tern::dist
