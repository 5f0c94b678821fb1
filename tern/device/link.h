// DeviceLink: GPUs of several processes that give each other memory without the host. A backend
// makes it (device/backend.h); its user is parallel/gpu_route.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "tern/device/stream.h"

namespace tern {

/// One process' end, of one of its GPUs. Every process of the group makes the same calls, in the same order,
/// from one thread. They queue work to a stream of that GPU and do not block, but for the first ones, which
/// make connections. All pointers are to its memory. They throw DistributedError.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;

  /// The `nbytes` bytes of each process, in the order of ranks.
  virtual void all_gather(Stream stream, const void* sent, void* received, size_t nbytes) = 0;
  /// The r-th `nbytes` bytes of what is sent go to rank r; received are those for this process, in the order
  /// of ranks.
  virtual void all_to_all(Stream stream, const void* sent, void* received, size_t nbytes) = 0;
  /// The source's bytes go to everybody.
  virtual void broadcast(Stream stream, void* data, size_t nbytes, int source) = 0;

  /// Throws DistributedError when the link is broken. Does not block.
  virtual void check() = 0;
};

/// What all processes of a group know when they open a link.
struct LinkPlace {
  std::string meeting;  ///< of LinkMaker::new_meeting(), of one of them
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout;  ///< for the others to come
};

/// The library that makes links.
class LinkMaker {
 public:
  virtual ~LinkMaker() = default;
  /// "NCCL 2.28.9". Throws DeviceError where the library is missing, as the others do.
  virtual std::string name() = 0;
  /// Where processes meet to open a link, as some bytes: one makes them and tells the others.
  virtual std::string new_meeting() = 0;
  /// Called by all processes at once, for one GPU each. Blocks until they have come. Throws DistributedError.
  virtual std::unique_ptr<DeviceLink> open(int index, const LinkPlace& place) = 0;
};

}  // namespace tern
