// Processes of one machine speak over sockets that the network knows nothing of, which are faster.
#pragma once

#include <vector>

#include "tern/parallel/socket.h"

namespace tern::dist {

/// Puts such sockets into the places of connections to processes of this machine, and of this user, where
/// that is possible (not between containers). To be called by all of the processes, with their connections to
/// each other in the order of ranks. Throws DistributedError when one has ended.
void use_local_sockets(std::vector<Socket>& peers, int rank, Clock::time_point deadline);

}  // namespace tern::dist
