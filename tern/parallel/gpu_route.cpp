// Opening of links, and waiting for what goes over them.
#include "tern/parallel/gpu_route.h"

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "tern/base/check.h"
#include "tern/device/copy.h"
#include "tern/device/registry.h"

namespace tern::dist {
namespace {

/// What a process tells the others of its GPU. Sent as bytes.
struct Introduction {
  std::array<char, 64> gpu{};        ///< its uuid
  std::array<char, 64> link{};       ///< the name of the library
  std::array<char, 256> obstacle{};  ///< empty where there is none
  std::array<char, 1024> meeting{};  ///< of rank 0
  uint64_t meeting_bytes = 0;
};

template <size_t N>
void put(std::array<char, N>& place, const std::string& text) {
  std::memcpy(place.data(), text.data(), std::min(text.size(), N - 1));
}

Introduction introduce(Device device, bool makes_meeting) {
  Introduction mine;
  try {
    Backend& backend = backend_of(device.type);
    put(mine.gpu, backend.properties(device.index).uuid);
    LinkMaker* const links = backend.links();
    TERN_CHECK(links != nullptr, DeviceError, "nothing links {} GPUs", backend.name());
    put(mine.link, links->name());
    if (!makes_meeting) return mine;
    const std::string meeting = links->new_meeting();
    TERN_CHECK(meeting.size() <= mine.meeting.size(), DeviceError, "a meeting has {} bytes", meeting.size());
    std::memcpy(mine.meeting.data(), meeting.data(), meeting.size());
    mine.meeting_bytes = meeting.size();
  } catch (const Error& error) {
    put(mine.obstacle, *error.what() ? error.what() : "unknown");
  }
  return mine;
}

std::vector<Introduction> gather(const Introduction& mine, Transport& transport) {
  std::vector<Introduction> all(static_cast<size_t>(transport.size()));
  transport.all_gather(&mine, all.data(), sizeof mine);
  return all;
}

/// Why these processes are not linked; empty where they can be.
std::string obstacle_among(const std::vector<Introduction>& all) {
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].obstacle[0]) return fmt::format("rank {}: {}", r, all[r].obstacle.data());
    if (all[r].link != all[0].link)
      return fmt::format("rank 0 has {}, rank {} has {}", all[0].link.data(), r, all[r].link.data());
    for (size_t other = 0; other < r; ++other)
      if (all[other].gpu == all[r].gpu)
        return fmt::format("ranks {} and {} share the GPU {}", other, r, all[r].gpu.data());
  }
  return "";
}

}  // namespace

void GpuRoute::open(Device device, Transport& transport) {
  opened_ = true;
  device_ = device;
  Introduction mine = introduce(device, transport.rank() == 0);
  std::vector<Introduction> all = gather(mine, transport);
  std::string obstacle = obstacle_among(all);
  if (obstacle.empty()) {
    try {
      link_ = backend_of(device.type)
                  .links()
                  ->open(device.index, {.meeting{all[0].meeting.data(), all[0].meeting_bytes},
                                        .rank = transport.rank(),
                                        .size = transport.size(),
                                        .timeout = timeout_});
    } catch (const Error& error) {
      put(mine.obstacle, error.what());
    }
    obstacle = obstacle_among(gather(mine, transport));
  }
  if (!obstacle.empty()) link_.reset();
  description_ = link_ ? all[0].link.data() : "host memory: " + obstacle;
}

Stream GpuRoute::stream_of(Device device) {
  const auto found = streams_.find(device.index);
  return found != streams_.end() ? found->second
                                 : streams_.emplace(device.index, new_stream(device)).first->second;
}

void GpuRoute::run_on_link(const Event& ready, const std::function<void()>& body) {
  const Stream stream = stream_of(device_);
  const StreamGuard guard(stream);
  try {
    ready.wait(stream);
    body();
    Event done;
    done.record(stream);
    const auto start = std::chrono::steady_clock::now();
    for (int tries = 0; !done.query(); ++tries) {
      if (tries < 1000) {
        std::this_thread::yield();
        continue;
      }
      link_->check();
      TERN_CHECK(std::chrono::steady_clock::now() - start < timeout_, DistributedError,
                 "{} has waited {} ms for the GPUs of the other processes: they ended, or do something else",
                 device_.str(), timeout_.count());
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    done.synchronize();
  } catch (...) {
    link_.reset();  // which ends what is on the GPU still
    throw;
  }
}

void GpuRoute::run_on_host(const Tensor& dense, const Event& ready,
                           const std::function<void(const Tensor&)>& body) {
  const Stream stream = stream_of(dense.device());
  const StreamGuard guard(stream);
  ready.wait(stream);
  const Tensor host = Tensor::view_of(backend_of(dense.device().type).allocate_pinned(dense.nbytes()),
                                      dense.dtype(), {dense.numel()}, {1}, 0);
  const size_t offset = static_cast<size_t>(dense.storage_offset()) * itemsize(dense.dtype());
  copy_bytes(*host.storage(), 0, *dense.storage(), offset, dense.nbytes());
  body(host);
  copy_bytes(*dense.storage(), offset, *host.storage(), 0, dense.nbytes());
}

}  // namespace tern::dist
