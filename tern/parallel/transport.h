// Transport: what carries bytes between the processes of a group. A ProcessGroup (parallel/process_group.h)
// is made of one. There are three: processes that MPI started (the plugin libtern_mpi.so, transports/mpi),
// processes that know the address of the first (parallel/tcp_transport.h), and threads of one process that
// take the parts of processes (parallel/thread_transport.cpp); groups of some of the processes exchange
// messages over that of all (parallel/part_transport.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tern/parallel/process_group.h"

namespace tern::dist {

/// One process' end. All calls but those about messages are made by one thread; every process of the group
/// makes the same ones, in the same order, and each returns when this process has what it gets. They throw
/// DistributedError when that does not come within the time that the transport was opened with.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// The `nbytes` bytes of each process, in the order of ranks.
  virtual void all_gather(const void* sent, void* received, size_t nbytes) = 0;
  /// The r-th `nbytes` bytes of what is sent go to rank r; received are those for this process, in the order
  /// of ranks.
  virtual void all_to_all(const void* sent, void* received, size_t nbytes) = 0;
  /// The source's bytes go to everybody.
  virtual void broadcast(void* data, size_t nbytes, int source) = 0;

  // Messages between two processes, from any thread. Those of a channel arrive in the order in which they
  // were sent. Groups have two channels: that of number 0 for the operations that are made of messages.
  static constexpr int kOperations = 0, kMessages = 1, kChannels = 2;

  /// Copies the bytes and returns; they travel by themselves.
  virtual void send(const void* data, size_t nbytes, int destination, int channel) = 0;
  /// The next message of that process; DistributedError for one of another length. One without bytes says
  /// that the process has left, and stays the next.
  virtual void receive(void* data, size_t nbytes, int source, int channel) = 0;
  /// True while something is on its way that only gets on when this is called.
  virtual bool is_sending() = 0;
  /// This process receives nothing more on that channel: calls that wait for it throw.
  virtual void close(int channel) = 0;

  /// The last call. Those that call all_gather of `nbytes` instead receive `last` from this process; null
  /// where nobody does any more. May wait for the others to leave.
  virtual void leave(const void* last, size_t nbytes) = 0;
};

using Timeout = std::chrono::milliseconds;

/// Raised whenever what library and plugin say to each other changes.
inline constexpr uint32_t kTransportInterface = 5;

/// The function that a plugin exports, `const TransportPlugin* tern_transport_plugin()`. The first member
/// never moves.
struct TransportPlugin {
  uint32_t interface_number;
  const char* version;  ///< of Tern
  /// Null with a reason where there is none.
  std::unique_ptr<Transport> (*open)(Timeout timeout, std::string& reason);
};
using TransportPluginFn = const TransportPlugin* (*)();

/// The transport to the processes that this one was started with, or that the options name; null where it is
/// alone. Throws DistributedError where there are others, and nothing leads to them.
std::unique_ptr<Transport> open_transport(const ProcessGroupOptions& options);

/// Ends of a group whose processes are threads of this one.
std::vector<std::unique_ptr<Transport>> open_thread_transports(int size, Timeout timeout);

}  // namespace tern::dist
