// The transport between processes that know the address of the first of them (parallel/tcp_rendezvous.h): a
// connection from each to each.
#pragma once

#include <memory>

#include "tern/parallel/tcp_rendezvous.h"
#include "tern/parallel/transport.h"

namespace tern::dist {

/// Waits for the others. Throws DistributedError.
std::unique_ptr<Transport> open_tcp_transport(const Rendezvous& rendezvous, Timeout timeout);

}  // namespace tern::dist
