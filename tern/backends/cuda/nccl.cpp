// Links by NCCL. Its communicators do not block: whoever waits for the others here asks again and again, and
// so can give up.
#include "tern/backends/cuda/nccl.h"

#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#include <cstring>
#include <thread>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/library.h"
#include "tern/base/check.h"

namespace tern::cuda_backend {

#ifdef NCCL_VERSION_CODE

namespace {

#define TERN_NCCL_FUNCTIONS(X) \
  X(ncclGetVersion)            \
  X(ncclGetUniqueId)           \
  X(ncclCommInitRankConfig)    \
  X(ncclCommAbort)             \
  X(ncclCommGetAsyncError)     \
  X(ncclGetErrorString)        \
  X(ncclGetLastError)          \
  X(ncclGroupStart)            \
  X(ncclGroupEnd)              \
  X(ncclSend)                  \
  X(ncclRecv)                  \
  X(ncclAllGather)             \
  X(ncclBroadcast)

/// NCCL's functions under their own names.
struct Nccl {
  TERN_NCCL_FUNCTIONS(TERN_LIBRARY_MEMBER)
};

/// Opened with the first call. Throws DeviceError where it is missing.
const Nccl& nccl() {
  static const Nccl functions = [] {
    static const Library library("NCCL", "exchanges between processes",
                                 {TERN_SONAME("libnccl", NCCL_MAJOR), "libnccl.so"});
    Nccl found{};
    TERN_NCCL_FUNCTIONS(TERN_LIBRARY_FIND)
    return found;
  }();
  return functions;
}

class NcclLink final : public DeviceLink {
 public:
  NcclLink(int gpu, const LinkPlace& place) : gpu_(gpu), size_(place.size), timeout_(place.timeout) {
    ncclUniqueId meeting;
    TERN_CHECK(place.meeting.size() == sizeof meeting, DistributedError, "NCCL: {} bytes are no meeting",
               place.meeting.size());
    std::memcpy(&meeting, place.meeting.data(), sizeof meeting);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    use_gpu(gpu_);
    try {
      finish(nccl().ncclCommInitRankConfig(&comm_, size_, meeting, place.rank, &config),
             "ncclCommInitRankConfig");
    } catch (...) {
      abort();
      throw;
    }
  }
  ~NcclLink() override { abort(); }

  void all_gather(Stream stream, const void* sent, void* received, size_t nbytes) override {
    const cudaStream_t on = begin(stream);
    finish(nccl().ncclAllGather(sent, received, nbytes, ncclUint8, comm_, on), "ncclAllGather");
  }
  void all_to_all(Stream stream, const void* sent, void* received, size_t nbytes) override {
    const cudaStream_t on = begin(stream);
    check_queued(nccl().ncclGroupStart(), "ncclGroupStart");
    ncclResult_t result = ncclSuccess;
    for (int r = 0; r < size_; ++r) {
      const size_t at = static_cast<size_t>(r) * nbytes;
      const auto keep_first = [&](ncclResult_t next) {
        if (result == ncclSuccess || result == ncclInProgress) result = next;
      };
      keep_first(nccl().ncclSend(static_cast<const char*>(sent) + at, nbytes, ncclUint8, r, comm_, on));
      keep_first(nccl().ncclRecv(static_cast<char*>(received) + at, nbytes, ncclUint8, r, comm_, on));
    }
    const ncclResult_t ended = nccl().ncclGroupEnd();
    check_queued(result, "ncclSend");
    finish(ended, "ncclGroupEnd");
  }
  void broadcast(Stream stream, void* data, size_t nbytes, int source) override {
    const cudaStream_t on = begin(stream);
    finish(nccl().ncclBroadcast(data, data, nbytes, ncclUint8, source, comm_, on), "ncclBroadcast");
  }
  void check() override { state("a link"); }

 private:
  cudaStream_t begin(Stream stream) {
    use_gpu(gpu_);
    return stream_of(stream).handle();
  }
  void check_queued(ncclResult_t result, const char* call) {
    if (result != ncclSuccess && result != ncclInProgress) [[unlikely]]
      fail(result, call);
  }
  /// ncclSuccess or ncclInProgress.
  ncclResult_t state(const char* call) {
    ncclResult_t result = ncclSuccess;
    check_queued(nccl().ncclCommGetAsyncError(comm_, &result), "ncclCommGetAsyncError");
    check_queued(result, call);
    return result;
  }
  /// Waits until what was called is queued, for which other processes may be needed.
  void finish(ncclResult_t result, const char* call) {
    check_queued(result, call);
    const auto start = std::chrono::steady_clock::now();
    for (int tries = 0; result == ncclInProgress; ++tries) {
      if (tries < 1000) {
        std::this_thread::yield();
      } else {
        TERN_CHECK(std::chrono::steady_clock::now() - start < timeout_, DistributedError,
                   "{} of NCCL has waited {} ms for the other processes: they ended, or cannot be reached",
                   call, timeout_.count());
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      result = state(call);
    }
  }
  [[noreturn]] void fail(ncclResult_t result, const char* call) {
    const char* details = nccl().ncclGetLastError(comm_);
    TERN_THROW(DistributedError, "{} of NCCL failed: {}{}{}", call, nccl().ncclGetErrorString(result),
               details && *details ? ": " : "", details ? details : "");
  }
  /// Local: what has not been done yet ends.
  void abort() noexcept {
    if (comm_ != nullptr) nccl().ncclCommAbort(std::exchange(comm_, nullptr));
  }

  const int gpu_, size_;
  const std::chrono::milliseconds timeout_;
  ncclComm_t comm_ = nullptr;
};

class NcclLinks final : public LinkMaker {
 public:
  std::string name() override {
    int version = 0;
    nccl().ncclGetVersion(&version);
    return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }
  std::string new_meeting() override {
    ncclUniqueId meeting;
    const ncclResult_t result = nccl().ncclGetUniqueId(&meeting);
    TERN_CHECK(result == ncclSuccess, DeviceError, "ncclGetUniqueId of NCCL failed: {}",
               nccl().ncclGetErrorString(result));
    return {reinterpret_cast<const char*>(&meeting), sizeof meeting};
  }
  std::unique_ptr<DeviceLink> open(int index, const LinkPlace& place) override {
    return std::make_unique<NcclLink>(stream_of({Device(DeviceType::CUDA, index), 0}).gpu().number(), place);
  }
};

}  // namespace

#else  // no nccl.h

namespace {

class NcclLinks final : public LinkMaker {
 public:
  std::string name() override { missing(); }
  std::string new_meeting() override { missing(); }
  std::unique_ptr<DeviceLink> open(int, const LinkPlace&) override { missing(); }

 private:
  [[noreturn]] static void missing() {
    TERN_THROW(DeviceError, "Tern's CUDA plugin was built without NCCL's header (nccl.h)");
  }
};

}  // namespace

#endif

LinkMaker& nccl_links() {
  static auto* only = new NcclLinks;  // outlives what tensors of static duration use
  return *only;
}

}  // namespace tern::cuda_backend
