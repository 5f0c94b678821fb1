// How processes that know the address of the first of them, or a file that says it, their own number and how
// many they are, get a connection from each to each. The names are those of torchrun's environment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tern/parallel/process_group.h"
#include "tern/parallel/socket.h"

namespace tern::dist {

/// Where the processes of a group meet.
struct Rendezvous {
  std::string host;       ///< of rank 0 (MASTER_ADDR)
  uint16_t port = 0;      ///< where it waits (MASTER_PORT)
  std::string file = {};  ///< where rank 0 writes that; host and port are not used
  int rank = 0;
  int size = 1;
  std::string job;  ///< those of another one are turned away (TERN_JOB, TORCHELASTIC_RUN_ID)
};

/// What the options say, "tcp://host:port" or "file:///path" with rank and world_size, and the environment
/// where they do not; nothing where neither does. Throws ValueError, and DistributedError where something is
/// missing.
std::optional<Rendezvous> find_rendezvous(const ProcessGroupOptions& options);

/// A connection to each of the others, in the order of ranks; this one's own is not open. Throws
/// DistributedError when they do not all come in time, or do not fit together. Strangers at the ports are
/// ignored.
std::vector<Socket> meet(const Rendezvous& rendezvous, std::chrono::milliseconds timeout);

}  // namespace tern::dist
