// Everybody opens a port and tells rank 0 of it, which tells everybody of all; then each goes to those before
// it.
#include "tern/parallel/tcp_rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <functional>
#include <list>
#include <string_view>
#include <type_traits>

#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/device/machine.h"
#include "tern/device/plugin.h"
#include "tern/parallel/file_rendezvous.h"
#include "tern/parallel/local_socket.h"
#include "tern/parallel/transport.h"

namespace tern::dist {
namespace {

/// What a process says first, to rank 0 and to the others. Sent as bytes.
struct Hello {
  std::array<char, 8> magic{'T', 'e', 'r', 'n', 'd', 'i', 's', 't'};
  uint32_t interface_number = kTransportInterface;
  int32_t rank = 0, size = 0;
  uint32_t port = 0;               ///< where it waits for the others
  std::array<char, 24> version{};  ///< of Tern
  uint64_t job = 0;                ///< a hash
  Secret token{};                  ///< what rank 0 has told all of them; zeros to rank 0

  bool is_of_tern() const { return magic == Hello().magic && interface_number == kTransportInterface; }
};

/// Rank 0's answer, before an address for each process, or a text.
struct Answer {
  Secret token{};
  uint32_t refusal_nbytes = 0;
};
struct Place {
  std::array<char, 56> host{};
  uint32_t port = 0;
};
static_assert(std::is_trivially_copyable_v<Hello> && std::is_trivially_copyable_v<Answer>);

template <size_t N>
std::array<char, N> text_of(std::string_view text) {
  std::array<char, N> result{};
  std::copy_n(text.begin(), std::min(text.size(), N - 1), result.begin());
  return result;
}

uint64_t hash_of(std::string_view text) { return add_to_fingerprint(kEmptyFingerprint, text); }

/// Takes connections until `arrived(hello, socket)`, which gets those that have said something whole, says
/// that this was the last. False when the time is over.
bool take_visitors(const Socket& door, Clock::time_point deadline,
                   const std::function<bool(const Hello&, Socket&)>& arrived) {
  struct Visitor {
    Socket socket;
    Clock::time_point since = Clock::now();
    Hello hello{};
    size_t nbytes = 0;
  };
  constexpr auto kPatience = std::chrono::seconds(20);  // with those who say nothing
  std::list<Visitor> visitors;
  while (Clock::now() < deadline) {
    std::vector<Awaited> awaited{{door.fd(), POLLIN}};
    for (const Visitor& visitor : visitors) awaited.push_back({visitor.socket.fd(), POLLIN});
    wait_for(awaited, std::min(deadline, Clock::now() + std::chrono::seconds(1)));
    for (auto visitor = visitors.begin(); visitor != visitors.end();) {
      char* const bytes = reinterpret_cast<char*>(&visitor->hello);
      const auto count =
          visitor->socket.receive_some(bytes + visitor->nbytes, sizeof(Hello) - visitor->nbytes);
      visitor->nbytes += count.value_or(0);
      const bool is_whole = visitor->nbytes == sizeof(Hello);
      if (is_whole && visitor->hello.is_of_tern() && arrived(visitor->hello, visitor->socket)) return true;
      const bool is_done = !count || is_whole || Clock::now() - visitor->since > kPatience;
      visitor = is_done ? visitors.erase(visitor) : std::next(visitor);
    }
    while (auto socket = door.accept()) visitors.emplace_back().socket = std::move(*socket);
  }
  return false;
}

std::string waited_for(const std::vector<Socket>& peers, int rank, std::chrono::milliseconds timeout) {
  std::string missing;
  int count = 0;
  for (size_t r = 0; r < peers.size(); ++r)
    if (!peers[r].is_open() && static_cast<int>(r) != rank && ++count <= 8)
      missing += (missing.empty() ? "" : ", ") + std::to_string(r);
  if (count > 8) missing += ", ...";
  return fmt::format("rank {} of {} has waited {} ms for {} {}: start {}, or ask for fewer processes", rank,
                     peers.size(), timeout.count(), count == 1 ? "rank" : "ranks", missing,
                     count == 1 ? "it" : "them");
}

/// Why a process is not to take part; empty where it may.
std::string refusal_of(const Hello& hello, const Rendezvous& here, const std::vector<Socket>& peers) {
  const std::string version(hello.version.data());
  if (version != TERN_VERSION)
    return fmt::format("rank {} has Tern {}, rank 0 {}: let all processes have one version", hello.rank,
                       printable(version), TERN_VERSION);
  if (hello.size != here.size)
    return fmt::format("rank {} is one of {} processes, rank 0 of {}: give all the same number", hello.rank,
                       hello.size, here.size);
  if (hello.rank <= 0 || hello.rank >= here.size)
    return fmt::format("there is no rank {} among {}", hello.rank, here.size);
  if (peers[static_cast<size_t>(hello.rank)].is_open())
    return fmt::format("there are two processes of rank {}: give each a rank of its own", hello.rank);
  return "";
}

void meet_as_first(Rendezvous here, std::vector<Socket>& peers, std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = deadline_after(timeout);
  const Socket door = Socket::listen(here.port, is_this_machine(here.host));
  std::optional<Notice> notice;
  if (!here.file.empty()) {
    const Secret secret = make_secret();
    here.job = {secret.data(), secret.size()};
    notice.emplace(here.file, door.port(), here.job);
  }
  std::vector<Place> places(peers.size());
  int missing = here.size - 1;
  std::string refusal;
  Socket refused;
  const bool all_came = take_visitors(door, deadline, [&](const Hello& hello, Socket& socket) {
    if (hello.job != hash_of(here.job)) return false;
    refusal = refusal_of(hello, here, peers);
    Socket& place = refusal.empty() ? peers[static_cast<size_t>(hello.rank)] : refused;
    place = std::move(socket);
    if (!refusal.empty()) return true;
    places[static_cast<size_t>(hello.rank)] = {text_of<56>(place.peer_address()), hello.port};
    return --missing == 0;
  });
  if (!all_came) refusal = waited_for(peers, 0, timeout);
  if (!refusal.empty()) {
    const Answer answer{{}, static_cast<uint32_t>(refusal.size())};
    const Clock::time_point soon = Clock::now() + std::chrono::seconds(1);
    peers.push_back(std::move(refused));
    for (const Socket& peer : peers)
      if (peer.is_open() && peer.send(&answer, sizeof answer, soon))
        peer.send(refusal.data(), refusal.size(), soon);
    TERN_THROW(DistributedError, "{}", refusal);
  }
  const Answer answer{make_secret(), 0};
  for (size_t r = 1; r < peers.size(); ++r) {
    // Those on this machine may have come by a name that leads nowhere from others.
    std::vector<Place> seen = places;
    const std::string own = peers[r].own_address();
    for (Place& place : seen)
      if (std::string_view(place.host.data()).starts_with("127.") && !own.starts_with("127."))
        place.host = text_of<56>(own);
    peers[r].send(&answer, sizeof answer, deadline);
    peers[r].send(seen.data(), seen.size() * sizeof(Place), deadline);
  }
}

void meet_as_other(Rendezvous here, std::vector<Socket>& peers, std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = deadline_after(timeout);
  const Socket door = Socket::listen(0, is_this_machine(here.host));
  peers[0] = here.file.empty() ? Socket::connect(here.host, here.port, deadline)
                               : Notice::follow(here.file, deadline, here.job);
  Hello hello{.rank = here.rank,
              .size = here.size,
              .port = door.port(),
              .version = text_of<24>(TERN_VERSION),
              .job = hash_of(here.job)};
  Answer answer;
  std::vector<Place> places(peers.size());
  // Rank 0, whose time is over first, says who is missing.
  const Clock::time_point later = deadline_after(timeout) + std::chrono::seconds(5);
  const auto hears = [&](void* data, size_t nbytes) {
    TERN_CHECK(
        peers[0].receive(data, nbytes, later), DistributedError, "rank {}: what waits at {} {}", here.rank,
        here.file.empty() ? fmt::format("{} port {}", printable(here.host), here.port) : printable(here.file),
        Clock::now() < later ? "has ended, or belongs to another job"
                             : "has not found all processes in time");
  };
  peers[0].send(&hello, sizeof hello, deadline);
  hears(&answer, sizeof answer);
  if (answer.refusal_nbytes != 0) {
    std::string refusal(std::min<uint32_t>(answer.refusal_nbytes, 1000), ' ');
    hears(refusal.data(), refusal.size());
    TERN_THROW(DistributedError, "{}", printable(refusal));
  }
  hears(places.data(), places.size() * sizeof(Place));

  hello.token = answer.token;
  for (size_t r = 1; r < static_cast<size_t>(here.rank); ++r) {
    places[r].host.back() = 0;
    peers[r] = Socket::connect(places[r].host.data(), static_cast<uint16_t>(places[r].port), deadline);
    TERN_CHECK(peers[r].send(&hello, sizeof hello, deadline), DistributedError, "rank {} has ended", r);
  }
  int missing = here.size - 1 - here.rank;
  if (missing == 0) return;
  const bool all_came = take_visitors(door, deadline, [&](const Hello& visitor, Socket& socket) {
    if (visitor.token != answer.token || visitor.rank <= here.rank || visitor.rank >= here.size) return false;
    peers[static_cast<size_t>(visitor.rank)] = std::move(socket);
    return --missing == 0;
  });
  TERN_CHECK(all_came, DistributedError, "{}", waited_for(peers, here.rank, timeout));
}

uint16_t port_of(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  TERN_CHECK(error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535,
             ValueError, "init_method: '{}' is no port: a number from 1 to 65535",
             printable(std::string(text)));
  return static_cast<uint16_t>(port);
}

}  // namespace

std::optional<Rendezvous> find_rendezvous(const ProcessGroupOptions& options) {
  const std::string& method = options.init_method;
  Rendezvous here;
  const auto size = options.world_size >= 0 ? options.world_size : env_int("WORLD_SIZE", 1, 1 << 20);
  const auto rank = options.rank >= 0 ? options.rank : env_int("RANK", 0, (1 << 20) - 1);
  if (constexpr std::string_view kTcp = "tcp://"; method.starts_with(kTcp)) {
    const std::string_view address = std::string_view(method).substr(kTcp.size());
    const size_t colon = address.rfind(':');
    TERN_CHECK(colon != std::string_view::npos && colon > 0, ValueError,
               "init_method: '{}' has no host and port: 'tcp://10.0.0.1:29500'", printable(method));
    here.host = address.substr(0, colon);
    if (here.host.starts_with('[') && here.host.ends_with(']')) here.host = here.host.substr(1, colon - 2);
    here.port = port_of(address.substr(colon + 1));
  } else if (constexpr std::string_view kFile = "file://"; method.starts_with(kFile)) {
    here.file = method.substr(kFile.size());
    TERN_CHECK(here.file.starts_with('/'), ValueError,
               "init_method: '{}' has no path that begins with /: 'file:///shared/meeting'",
               printable(method));
  } else {
    TERN_CHECK(method.empty() || method == "env://", ValueError,
               "init_method: '{}' is not known: 'env://', 'tcp://host:port', or 'file:///path'",
               printable(method));
    if (size.value_or(1) == 1 && options.world_size < 0 && !rank) return std::nullopt;
    const auto host = env_text("MASTER_ADDR");
    here.host = host.value_or("localhost");
    here.port = static_cast<uint16_t>(env_int("MASTER_PORT", 1, 65535).value_or(29500));
    // There torchrun keeps a place for PyTorch's own use.
    if (env_text("TORCHELASTIC_USE_AGENT_STORE") == "True") ++here.port;
    TERN_CHECK(
        host || size.value_or(1) == 1, DistributedError,
        "this process is one of {}, and MASTER_ADDR does not say where the first is: start the program "
        "with `tern launch -n {} program` or `mpirun -n {} program`",
        *size, *size, *size);
  }
  TERN_CHECK(size && rank, DistributedError,
             "{} is not known: set {}, or start the program with `tern launch` or `mpirun`",
             size ? "the rank of this process" : "the number of processes", size ? "RANK" : "WORLD_SIZE");
  TERN_CHECK(*size >= 1 && *rank < *size, ValueError, "there is no rank {} among {} processes", *rank, *size);
  here.rank = static_cast<int>(*rank);
  here.size = static_cast<int>(*size);
  here.job = env_text("TERN_JOB").value_or(env_text("TORCHELASTIC_RUN_ID").value_or(""));
  return here;
}

std::vector<Socket> meet(const Rendezvous& rendezvous, std::chrono::milliseconds timeout) {
  std::vector<Socket> peers(static_cast<size_t>(rendezvous.size));
  if (rendezvous.rank == 0)
    meet_as_first(rendezvous, peers, timeout);
  else
    meet_as_other(rendezvous, peers, timeout);
  use_local_sockets(peers, rendezvous.rank, deadline_after(timeout));
  return peers;
}

}  // namespace tern::dist
