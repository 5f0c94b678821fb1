// The transport between processes that were started by MPI (mpirun, srun). A plugin, so that the library
// needs no MPI. One thread calls it, from MPI_Init_thread to MPI_Finalize; it looks whether an operation is
// done, and so can give up.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <thread>
#include <vector>

#include "tern/base/check.h"
#include "tern/parallel/transport.h"

namespace tern::dist {
namespace {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  TERN_THROW(DistributedError, "MPI: {}: {}", call, std::string(text, static_cast<size_t>(length)));
}

/// MPI counts in ints.
constexpr size_t kMostBytes = size_t{1} << 30;

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(Timeout timeout) : timeout_(timeout) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    MPI_Comm machine;
    check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine),
          "MPI_Comm_split_type");
    check(MPI_Comm_rank(machine, &local_rank_), "MPI_Comm_rank");
    cores_ = share_of_cores(machine);
    check(MPI_Comm_free(&machine), "MPI_Comm_free");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  double cores() const override { return cores_; }

  void all_gather(const void* sent, void* received, size_t nbytes) override {
    MPI_Request request;
    check(MPI_Iallgather(sent, count(nbytes), MPI_BYTE, received, count(nbytes), MPI_BYTE, comm_, &request),
          "MPI_Iallgather");
    wait(request);
  }
  void all_to_all(const void* sent, void* received, size_t nbytes) override {
    MPI_Request request;
    check(MPI_Ialltoall(sent, count(nbytes), MPI_BYTE, received, count(nbytes), MPI_BYTE, comm_, &request),
          "MPI_Ialltoall");
    wait(request);
  }
  void broadcast(void* data, size_t nbytes, int source) override {
    for (size_t done = 0; done < nbytes; done += kMostBytes) {
      MPI_Request request;
      check(MPI_Ibcast(static_cast<char*>(data) + done, count(std::min(kMostBytes, nbytes - done)), MPI_BYTE,
                       source, comm_, &request),
            "MPI_Ibcast");
      wait(request);
    }
  }
  void leave(const void* last, size_t nbytes) override {
    if (last) {
      std::vector<char> others(nbytes * static_cast<size_t>(size_));
      all_gather(last, others.data(), nbytes);
    }
    MPI_Request request;
    check(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
    wait(request);
    check(MPI_Comm_free(&comm_), "MPI_Comm_free");
    check(MPI_Finalize(), "MPI_Finalize");
  }

 private:
  static double share_of_cores(MPI_Comm machine) {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    ::sched_getaffinity(0, sizeof mine, &mine);  // none where there are more cores than it can tell
    std::array<int, CPU_SETSIZE> users{};
    for (size_t core = 0; core < users.size(); ++core) users[core] = CPU_ISSET(core, &mine) ? 1 : 0;
    check(MPI_Allreduce(MPI_IN_PLACE, users.data(), CPU_SETSIZE, MPI_INT, MPI_SUM, machine), "MPI_Allreduce");
    double share = 0;
    for (size_t core = 0; core < users.size(); ++core)
      if (CPU_ISSET(core, &mine)) share += 1.0 / users[core];
    return share;
  }
  static int count(size_t nbytes) {
    TERN_CHECK(nbytes <= kMostBytes, ValueError, "MPI: a piece of {} bytes is too large", nbytes);
    return static_cast<int>(nbytes);
  }

  /// Looks often at first, then less and less, so that processes which share a core do not hold each other
  /// up.
  void wait(MPI_Request& request) const {
    const auto start = std::chrono::steady_clock::now();
    auto pause = std::chrono::microseconds(0);
    for (int tries = 0;; ++tries) {
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done) return;
      if (tries < 200) {
        std::this_thread::yield();
        continue;
      }
      TERN_CHECK(std::chrono::steady_clock::now() - start < timeout_, DistributedError,
                 "rank {} of {} has waited {} ms for the others: they ended, or do something else", rank_,
                 size_, timeout_.count());
      pause = std::min(pause + std::chrono::microseconds(5), std::chrono::microseconds(200));
      std::this_thread::sleep_for(pause);
    }
  }

  Timeout timeout_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, local_rank_ = 0;
  double cores_ = 0;
};

std::unique_ptr<Transport> open(Timeout timeout, std::string& reason) {
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  if (is_initialized) {
    reason = "MPI is in use in this process already, or was";
    return nullptr;
  }
  int level = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS ||
      level < MPI_THREAD_SERIALIZED) {
    reason = "this MPI cannot be used by a thread of its own (MPI_THREAD_SERIALIZED)";
    return nullptr;
  }
  return std::make_unique<MpiTransport>(timeout);
}

}  // namespace
}  // namespace tern::dist

extern "C" __attribute__((visibility("default"))) const tern::dist::TransportPlugin* tern_transport_plugin() {
  static constexpr tern::dist::TransportPlugin kPlugin{tern::dist::kTransportInterface, TERN_VERSION,
                                                       &tern::dist::open};
  return &kPlugin;
}
