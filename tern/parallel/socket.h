// Socket: a TCP connection, or what waits for some. What is said over it is in tcp_rendezvous.h and
// tcp_transport.h.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tern::dist {

using Clock = std::chrono::steady_clock;

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  /// Waits for connections to this port, 0 for any that is free: from this machine only, or from everywhere.
  /// Throws DistributedError.
  static Socket listen(uint16_t port, bool from_here_only);
  /// A free port of this machine for one who is yet to wait there: while this is open the system gives the
  /// port to nobody who asks for any, and listen() may take it, here or in another process. Throws
  /// DistributedError.
  static Socket reserve();
  /// Asks again and again until the deadline. Throws DistributedError.
  static Socket connect(const std::string& host, uint16_t port, Clock::time_point deadline);
  /// Asks once; not open, with the reason, where nobody answers.
  static Socket try_connect(const std::string& host, uint16_t port, Clock::time_point deadline,
                            std::string& reason);
  /// Nothing where nobody is waiting.
  std::optional<Socket> accept() const;

  int fd() const noexcept { return fd_; }
  bool is_open() const noexcept { return fd_ >= 0; }
  uint16_t port() const;
  /// In digits: this end's, and the other's.
  std::string own_address() const;
  std::string peer_address() const;

  /// What can be had or given without waiting: a number of bytes, perhaps 0. Nothing when the connection is
  /// over.
  std::optional<size_t> receive_some(void* data, size_t nbytes) const;
  std::optional<size_t> send_some(const void* data, size_t nbytes, const void* more = nullptr,
                                  size_t more_nbytes = 0) const;
  /// All of it, waiting until the deadline. False when the connection is over, or the time.
  bool receive(void* data, size_t nbytes, Clock::time_point deadline) const;
  bool send(const void* data, size_t nbytes, Clock::time_point deadline) const;
  /// Nothing more is sent.
  void finish() const;

 private:
  /// Calls some(done), which moves bytes after the first `done`, until all are; waits for `events` meanwhile.
  template <class Some>
  bool move_all(size_t nbytes, short events, Clock::time_point deadline, const Some& some) const;

  int fd_ = -1;
};

/// The socket's number and what is awaited (POLLIN, POLLOUT); waits until one of them can go on, or the
/// deadline.
struct Awaited {
  int fd;
  short events;
  short come = 0;
};
void wait_for(std::vector<Awaited>& sockets, Clock::time_point deadline);

/// `timeout` from now, or as late as clocks can tell.
Clock::time_point deadline_after(std::chrono::milliseconds timeout);

/// Hexadecimal digits that nobody can guess.
using Secret = std::array<char, 32>;
Secret make_secret();

/// The machine's name, and its addresses in digits, but for those that lead nowhere else.
std::string own_host_name();
std::vector<std::string> own_addresses();

/// True for "localhost" and 127.0.0.1: whoever is called so is on this machine.
bool is_this_machine(const std::string& host);

}  // namespace tern::dist
