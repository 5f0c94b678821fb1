// The transport between processes that were started by MPI (mpirun, srun). A plugin, so that the library
// needs no MPI. It begins operations and looks whether they are done, and so can give up; one thread at a
// time is in MPI.
#include <mpi.h>

#include <algorithm>
#include <ctime>
#include <list>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
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
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_gather(const void* sent, void* received, size_t nbytes) override {
    wait(begin("MPI_Iallgather", [&](MPI_Request* request) {
      return MPI_Iallgather(sent, count(nbytes), MPI_BYTE, received, count(nbytes), MPI_BYTE, comm_, request);
    }));
  }
  void all_to_all(const void* sent, void* received, size_t nbytes) override {
    wait(begin("MPI_Ialltoall", [&](MPI_Request* request) {
      return MPI_Ialltoall(sent, count(nbytes), MPI_BYTE, received, count(nbytes), MPI_BYTE, comm_, request);
    }));
  }
  void broadcast(void* data, size_t nbytes, int source) override {
    for (size_t done = 0; done < nbytes; done += kMostBytes)
      wait(begin("MPI_Ibcast", [&](MPI_Request* request) {
        return MPI_Ibcast(static_cast<char*>(data) + done, count(std::min(kMostBytes, nbytes - done)),
                          MPI_BYTE, source, comm_, request);
      }));
  }
  void send(const void* data, size_t nbytes, int destination, int channel) override {
    const char* const bytes = static_cast<const char*>(data);
    const std::lock_guard lock(mutex_);
    sending_.push_back({MPI_REQUEST_NULL, std::vector<char>(bytes, bytes + nbytes)});
    Message& message = sending_.back();
    check(MPI_Isend(message.bytes.data(), count(nbytes), MPI_BYTE, destination, channel, comm_,
                    &message.request),
          "MPI_Isend");
  }
  void receive(void* data, size_t nbytes, int source, int channel) override {
    size_t length = 0;
    until([&] {
      int has_come = 0, bytes = 0;
      MPI_Status status;
      check(MPI_Iprobe(source, channel, comm_, &has_come, &status), "MPI_Iprobe");
      if (has_come) check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      length = static_cast<size_t>(bytes);
      TERN_CHECK(has_come || !closed_.contains(channel), DistributedError, "rank {} has ended", rank_);
      return has_come != 0;
    });
    TERN_CHECK(nbytes == 0 || length != 0, DistributedError, "rank {} has left the group", source);
    std::list<Message> mine;
    mine.push_back({MPI_REQUEST_NULL, std::vector<char>(length)});
    Message& message = mine.back();
    message.request = begin("MPI_Irecv", [&](MPI_Request* request) {
      return MPI_Irecv(message.bytes.data(), count(length), MPI_BYTE, source, channel, comm_, request);
    });
    try {
      wait(message.request);
    } catch (...) {  // it may be written to still
      const std::lock_guard lock(mutex_);
      abandoned_.splice(abandoned_.end(), mine);
      throw;
    }
    TERN_CHECK(length == nbytes, DistributedError, "rank {} has sent {} bytes, not {}", source, length,
               nbytes);
    std::copy_n(message.bytes.data(), nbytes, static_cast<char*>(data));
  }
  bool is_sending() override {
    const std::lock_guard lock(mutex_);
    for (auto message = sending_.begin(); message != sending_.end();) {
      int done = 0;
      check(MPI_Test(&message->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      message = done ? sending_.erase(message) : std::next(message);
    }
    return !sending_.empty();
  }
  void close(int channel) override {
    const std::lock_guard lock(mutex_);
    closed_.insert(channel);
  }
  void leave(const void* last, size_t nbytes) override {
    for (int r = 0; r < size_; ++r)
      if (r != rank_) send(nullptr, 0, r, kMessages);
    if (last) {
      std::vector<char> others(nbytes * static_cast<size_t>(size_));
      all_gather(last, others.data(), nbytes);
    }
    wait(begin("MPI_Ibarrier", [&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); }));
    is_sending();
    sending_.splice(sending_.end(), abandoned_);
    for (Message& message : sending_) MPI_Request_free(&message.request);  // nobody receives them any more
    check(MPI_Comm_free(&comm_), "MPI_Comm_free");
    check(MPI_Finalize(), "MPI_Finalize");
  }

 private:
  struct Message {
    MPI_Request request;
    std::vector<char> bytes;
  };

  static int count(size_t nbytes) {
    TERN_CHECK(nbytes <= kMostBytes, ValueError, "MPI: a piece of {} bytes is too large", nbytes);
    return static_cast<int>(nbytes);
  }

  template <class Call>
  MPI_Request begin(const char* name, Call&& call) {
    const std::lock_guard lock(mutex_);
    MPI_Request request = MPI_REQUEST_NULL;
    check(call(&request), name);
    return request;
  }

  void wait(MPI_Request&& request) { wait(request); }
  void wait(MPI_Request& request) {
    until([&] {
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      return done != 0;
    });
  }
  /// Asks is_done() often at first, then less and less, so that processes which share a core do not hold each
  /// other up.
  template <class IsDone>
  void until(const IsDone& is_done) {
    const auto start = std::chrono::steady_clock::now();
    auto pause = std::chrono::microseconds(0);
    for (int tries = 0;; ++tries) {
      {
        const std::lock_guard lock(mutex_);
        if (is_done()) return;
      }
      if (tries < 200) {
        std::this_thread::yield();
        continue;
      }
      const auto waited = std::chrono::duration_cast<Timeout>(std::chrono::steady_clock::now() - start);
      TERN_CHECK(waited < timeout_, DistributedError,
                 "rank {} of {} has waited {} ms for the others: they ended, or do something else", rank_,
                 size_, timeout_.count());
      pause = std::min(pause + std::chrono::microseconds(5), std::chrono::microseconds(200));
      std::this_thread::sleep_for(pause);
    }
  }

  Timeout timeout_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::mutex mutex_;  ///< held in MPI
  std::list<Message> sending_, abandoned_;
  std::set<int> closed_;
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
