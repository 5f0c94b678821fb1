// Of two processes the one of lower rank opens a socket of a random name and tells it; the other one comes to
// it, and says so. Names of this kind ("abstract") need no file, and end with the socket.
#include "tern/parallel/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "tern/base/check.h"
#include "tern/parallel/neighbours.h"

namespace tern::dist {
namespace {

/// What the lower rank tells. Sent as bytes.
struct Invitation {
  uint64_t machine = 0;
  Secret name{};  ///< zeros where there is no socket
};

sockaddr_un address_of(const Invitation& invitation, socklen_t& size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, invitation.name.data(), invitation.name.size());
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + invitation.name.size());
  return address;
}

Socket new_local_socket() {
  Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  constexpr int kBufferBytes = 1 << 20;  // as much of it as the system allows
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes);
  return socket;
}

bool is_of_this_user(const Socket& socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return ::getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == ::geteuid();
}

void check_there(bool is_there, size_t rank) {
  TERN_CHECK(is_there, DistributedError, "rank {} has ended", rank);
}

/// A socket from the other side, or none.
Socket invite(const Socket& peer, size_t rank, Clock::time_point deadline) {
  const Socket door = new_local_socket();
  Invitation invitation{this_machine(), make_secret()};
  socklen_t size = 0;
  const sockaddr_un address = address_of(invitation, size);
  if (::bind(door.fd(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(door.fd(), 8) != 0)
    invitation.name = {};
  char came = 0;
  check_there(peer.send(&invitation, sizeof invitation, deadline) && peer.receive(&came, 1, deadline), rank);
  while (came != 0) {  // it is in the queue already, perhaps behind strangers
    Socket socket(::accept4(door.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    check_there(socket.is_open(), rank);
    if (is_of_this_user(socket)) return socket;
  }
  return {};
}

Socket follow(const Socket& peer, size_t rank, Clock::time_point deadline) {
  Invitation invitation;
  check_there(peer.receive(&invitation, sizeof invitation, deadline), rank);
  Socket socket = new_local_socket();
  socklen_t size = 0;
  const sockaddr_un address = address_of(invitation, size);
  const bool is_here = invitation.machine == this_machine() && invitation.name[0] != 0;
  const char came = is_here &&
                    ::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                    is_of_this_user(socket);
  check_there(peer.send(&came, 1, deadline), rank);
  return came ? std::move(socket) : Socket();
}

}  // namespace

void use_local_sockets(std::vector<Socket>& peers, int rank, Clock::time_point deadline) {
  for (size_t r = 0; r < peers.size(); ++r) {  // in one order everywhere, so that nobody waits in a ring
    if (!peers[r].is_open()) continue;
    Socket local = static_cast<int>(r) > rank ? invite(peers[r], r, deadline) : follow(peers[r], r, deadline);
    if (local.is_open()) peers[r] = std::move(local);
  }
}

}  // namespace tern::dist
