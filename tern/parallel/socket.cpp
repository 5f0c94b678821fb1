// The system's sockets, none of which ever waits by itself.
#include "tern/parallel/socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "tern/base/check.h"
#include "tern/device/machine.h"

namespace tern::dist {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// Empty with a reason where the name leads nowhere.
Addresses addresses_of(const std::string& host, uint16_t port, std::string& reason) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) reason = code == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(code);
  return {code == 0 ? found : nullptr, &::freeaddrinfo};
}

Socket made(int family) { return Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

void set(const Socket& socket, int level, int option, int value) {
  ::setsockopt(socket.fd(), level, option, &value, sizeof value);
}

/// Small messages leave at once; a machine that is gone is noticed after some minutes.
void set_up(const Socket& socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 20);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 6);
}

bool can_try_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

template <class Name>
sockaddr_storage name_of(int fd, Name get_name) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  get_name(fd, reinterpret_cast<sockaddr*>(&name), &size);
  return name;
}

std::string in_digits(const sockaddr_storage& name) {
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&name), sizeof name, text.data(), text.size(), nullptr, 0,
                NI_NUMERICHOST);
  const std::string digits = text.data();
  constexpr std::string_view kMapped = "::ffff:";  // IPv4 in IPv6
  return digits.starts_with(kMapped) ? digits.substr(kMapped.size()) : digits;
}

}  // namespace

Socket::~Socket() {
  if (is_open()) ::close(fd_);
}

Socket Socket::listen(uint16_t port, bool from_here_only) {
  int error = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    Socket socket = made(family);
    if (!socket.is_open()) {
      error = errno;
      continue;
    }
    set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    v4.sin_addr.s_addr = htonl(from_here_only ? INADDR_LOOPBACK : INADDR_ANY);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_addr = in6addr_any;
    if (family == AF_INET6) {
      if (from_here_only) continue;
      set(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    }
    const auto* const name =
        family == AF_INET6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
    if (::bind(socket.fd(), name, family == AF_INET6 ? sizeof v6 : sizeof v4) == 0 &&
        ::listen(socket.fd(), SOMAXCONN) == 0)
      return socket;
    error = errno;
    if (error == EADDRINUSE) break;
  }
  TERN_THROW(DistributedError, "cannot wait for the other processes at port {}: {}", port,
             error == EADDRINUSE ? "it is in use: choose another MASTER_PORT" : std::strerror(error));
}

Socket Socket::reserve() {
  Socket socket = made(AF_INET);
  set(socket, SOL_SOCKET, SO_REUSEADDR,
      1);  // what lets listen() bind the port too, as this one never listens
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_ANY);
  TERN_CHECK(::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0,
             DistributedError, "no port is free: {}", std::strerror(errno));
  return socket;
}

Socket Socket::try_connect(const std::string& host, uint16_t port, Clock::time_point deadline,
                           std::string& reason) {
  const Addresses addresses = addresses_of(host, port, reason);
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    Socket socket = made(at->ai_family);
    int error = 0;
    if (!socket.is_open() || ::connect(socket.fd(), at->ai_addr, at->ai_addrlen) != 0) error = errno;
    if (error == EINPROGRESS) {
      std::vector<Awaited> awaited{{socket.fd(), POLLOUT}};
      wait_for(awaited, std::min(deadline, Clock::now() + std::chrono::seconds(10)));
      socklen_t size = sizeof error;
      if (awaited[0].come == 0)
        error = ETIMEDOUT;
      else
        ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    // Where nobody waits, the system may connect a socket of this machine to itself.
    if (error == 0 && socket.port() == port && socket.own_address() == socket.peer_address())
      error = ECONNREFUSED;
    if (error == 0) {
      set_up(socket);
      return socket;
    }
    reason = std::strerror(error);
  }
  return {};
}

Socket Socket::connect(const std::string& host, uint16_t port, Clock::time_point deadline) {
  std::string reason = "there was no time";
  for (auto pause = std::chrono::milliseconds(20); Clock::now() < deadline;) {
    if (Socket socket = try_connect(host, port, deadline, reason); socket.is_open()) return socket;
    std::this_thread::sleep_for(
        std::min<Clock::duration>(pause, std::max(deadline - Clock::now(), Clock::duration(0))));
    pause = std::min(pause * 2, std::chrono::milliseconds(500));
  }
  TERN_THROW(DistributedError, "cannot reach the process at {} port {}: {}", printable(host), port, reason);
}

std::optional<Socket> Socket::accept() const {
  Socket socket(::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open()) return std::nullopt;
  set_up(socket);
  return socket;
}

uint16_t Socket::port() const {
  const sockaddr_storage name = name_of(fd_, ::getsockname);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

std::string Socket::own_address() const { return in_digits(name_of(fd_, ::getsockname)); }
std::string Socket::peer_address() const { return in_digits(name_of(fd_, ::getpeername)); }

std::optional<size_t> Socket::receive_some(void* data, size_t nbytes) const {
  const ssize_t count = ::recv(fd_, data, nbytes, 0);
  if (count > 0) return static_cast<size_t>(count);
  if (count < 0 && can_try_again()) return 0;
  return std::nullopt;
}

std::optional<size_t> Socket::send_some(const void* data, size_t nbytes, const void* more,
                                        size_t more_nbytes) const {
  iovec parts[] = {{const_cast<void*>(data), nbytes}, {const_cast<void*>(more), more_nbytes}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = more_nbytes == 0 ? 1 : 2;
  const ssize_t count = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
  if (count >= 0) return static_cast<size_t>(count);
  if (can_try_again()) return 0;
  return std::nullopt;
}

template <class Some>
bool Socket::move_all(size_t nbytes, short events, Clock::time_point deadline, const Some& some) const {
  for (size_t done = 0; done < nbytes;) {
    const std::optional<size_t> count = some(done);
    if (!count) return false;
    done += *count;
    if (*count != 0) continue;
    std::vector<Awaited> awaited{{fd_, events}};
    wait_for(awaited, deadline);
    if (awaited[0].come == 0 && Clock::now() >= deadline) return false;
  }
  return true;
}

bool Socket::receive(void* data, size_t nbytes, Clock::time_point deadline) const {
  return move_all(nbytes, POLLIN, deadline,
                  [&](size_t done) { return receive_some(static_cast<char*>(data) + done, nbytes - done); });
}

bool Socket::send(const void* data, size_t nbytes, Clock::time_point deadline) const {
  return move_all(nbytes, POLLOUT, deadline, [&](size_t done) {
    return send_some(static_cast<const char*>(data) + done, nbytes - done);
  });
}

void Socket::finish() const { ::shutdown(fd_, SHUT_WR); }

void wait_for(std::vector<Awaited>& sockets, Clock::time_point deadline) {
  std::vector<pollfd> polled;
  polled.reserve(sockets.size());
  for (const Awaited& each : sockets) polled.push_back({each.fd, each.events, 0});
  constexpr auto kLongest = std::chrono::milliseconds(60'000);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  const auto timeout = std::clamp(left, std::chrono::milliseconds(0), kLongest);
  const int count = ::poll(polled.data(), polled.size(), static_cast<int>(timeout.count()));
  for (size_t i = 0; i < sockets.size(); ++i) sockets[i].come = count > 0 ? polled[i].revents : short{0};
}

Clock::time_point deadline_after(std::chrono::milliseconds timeout) {
  constexpr auto kMost = std::chrono::hours(24 * 365);
  return Clock::now() + std::min<std::chrono::milliseconds>(timeout, kMost);
}

Secret make_secret() {
  std::random_device device;
  Secret secret;
  for (char& c : secret) c = "0123456789abcdef"[device() % 16];
  return secret;
}

std::string own_host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return addresses;
  for (const ifaddrs* at = found; at != nullptr; at = at->ifa_next) {
    const int family = at->ifa_addr == nullptr ? AF_UNSPEC : at->ifa_addr->sa_family;
    if (!(at->ifa_flags & IFF_UP) || (at->ifa_flags & IFF_LOOPBACK)) continue;
    if (family != AF_INET && family != AF_INET6) continue;
    sockaddr_storage name{};
    std::memcpy(&name, at->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    addresses.push_back(in_digits(name));
  }
  ::freeifaddrs(found);
  return addresses;
}

bool is_this_machine(const std::string& host) { return host == "localhost" || host == "127.0.0.1"; }

}  // namespace tern::dist
