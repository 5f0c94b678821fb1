// Messages over connections. There is no thread: whoever waits for a message looks after all connections
// meanwhile, one thread at a time. What a connection does not take at once is kept, and given to it later.
#include "tern/parallel/tcp_transport.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tern/base/check.h"
#include "tern/parallel/message_transport.h"

namespace tern::dist {
namespace {

/// What stands before each message.
struct Frame {
  uint64_t nbytes;
  int64_t channel;
};
constexpr uint64_t kMostMessageBytes = uint64_t{1} << 30;
/// The channel of a process' last words: the rank of the one for which it ends.
constexpr int kLastWords = -1;
/// So much of a connection is read before another has its turn.
constexpr size_t kTurnBytes = size_t{4} << 20;

/// Where a message is to be put that somebody waits for already.
struct Awaiting {
  char* data;
  size_t nbytes;
  bool has_come = false;
};

/// The messages from and to another process.
class Peer {
 public:
  explicit Peer(Socket socket) : socket_(std::move(socket)) {}

  bool is_over() const { return is_over_; }
  /// Whom its last words name; negative where it has said none.
  int named() const { return named_; }
  bool is_sending() const { return !outgoing_.empty(); }
  bool is_sending_lasting() const {
    return std::any_of(outgoing_.begin(), outgoing_.end(), [](const Kept& kept) { return !kept.copy; });
  }
  Awaited awaited() const {
    return {socket_.fd(), static_cast<short>(POLLIN | (is_sending() ? POLLOUT : 0))};
  }

  /// With `lasting` data stays where it is until is_sending_lasting() is false.
  void send(const void* data, size_t nbytes, int channel, bool lasting) {
    if (is_over_) return;  // who waits for an answer is told
    const Frame frame{nbytes, channel};
    size_t sent = 0;
    if (!is_sending()) {
      if (const auto count = socket_.send_some(&frame, sizeof frame, data, nbytes))
        sent = *count;
      else
        return end_of_sending();
    }
    if (sent == sizeof frame + nbytes) return;
    if (sent < sizeof frame) keep(reinterpret_cast<const char*>(&frame) + sent, sizeof frame - sent, false);
    const size_t data_sent = std::max(sent, sizeof frame) - sizeof frame;
    if (data_sent < nbytes) keep(static_cast<const char*>(data) + data_sent, nbytes - data_sent, lasting);
  }

  /// Gives the connection what it takes.
  void send_kept() {
    while (is_sending() && !is_over_) {
      Kept& first = outgoing_.front();
      const auto count = socket_.send_some(first.data, first.nbytes);
      if (!count) return end_of_sending();
      if (*count == 0) return;
      first.data += *count;
      first.nbytes -= *count;
      if (first.nbytes == 0) outgoing_.pop_front();
    }
  }

  /// Reads what has come.
  void receive_come() {
    for (size_t taken = 0; taken < kTurnBytes && !is_over_;) {
      const bool in_frame = frame_nbytes_ < sizeof frame_;
      char* const place = in_frame ? reinterpret_cast<char*>(&frame_) + frame_nbytes_ : body() + body_nbytes_;
      const size_t wanted = in_frame ? sizeof frame_ - frame_nbytes_ : frame_.nbytes - body_nbytes_;
      const auto count = socket_.receive_some(place, wanted);
      if (!count) return end();
      if (*count == 0) return;
      taken += *count;
      (in_frame ? frame_nbytes_ : body_nbytes_) += *count;
      if (in_frame && frame_nbytes_ == sizeof frame_) begin_body();
      if (frame_nbytes_ == sizeof frame_ && body_nbytes_ == frame_.nbytes) end_body();
    }
  }

  std::deque<std::vector<char>>& letters(int channel) { return letters_[channel]; }

  /// The next message of `channel`, of which none has come, is to be put there if it is as long.
  void await(int channel, Awaiting& place) { awaiting_[channel] = &place; }
  /// It is not waited for any more. What has come of it stays.
  void give_up(int channel) {
    const auto found = awaiting_.find(channel);
    if (found == awaiting_.end()) return;
    if (direct_ == found->second) {
      body_.assign(direct_->data, direct_->data + body_nbytes_);
      body_.resize(frame_.nbytes);
      direct_ = nullptr;
    }
    awaiting_.erase(found);
  }

  void finish() { socket_.finish(); }
  /// The connection is over.
  void end() {
    is_over_ = true;
    outgoing_.clear();
  }

 private:
  /// The other end takes nothing more; its last words may have come.
  void end_of_sending() {
    receive_come();
    end();
  }

  /// What the connection has not taken.
  struct Kept {
    const char* data;
    size_t nbytes;
    std::unique_ptr<char[]> copy;  ///< null where it lasts
  };

  void keep(const char* data, size_t nbytes, bool lasting) {
    Kept kept{data, nbytes, nullptr};
    if (!lasting) {
      kept.copy.reset(new char[nbytes]);
      std::memcpy(kept.copy.get(), data, nbytes);
      kept.data = kept.copy.get();
    }
    outgoing_.push_back(std::move(kept));
  }

  char* body() { return direct_ ? direct_->data : body_.data(); }

  void begin_body() {
    if (frame_.nbytes > kMostMessageBytes) return end();  // no process of ours speaks so
    const auto found = awaiting_.find(static_cast<int>(frame_.channel));
    if (found != awaiting_.end() && found->second->nbytes == frame_.nbytes && frame_.nbytes != 0)
      direct_ = found->second;
    else
      body_.resize(frame_.nbytes);
  }
  void end_body() {
    const int channel = static_cast<int>(frame_.channel);
    if (direct_)
      direct_->has_come = true;
    else if (channel == kLastWords && body_.size() == sizeof named_)
      std::memcpy(&named_, body_.data(), sizeof named_);
    else
      letters_[channel].push_back(std::move(body_));
    awaiting_.erase(channel);
    direct_ = nullptr;
    body_.clear();
    frame_nbytes_ = body_nbytes_ = 0;
  }
  Socket socket_;
  bool is_over_ = false;
  int32_t named_ = -1;
  std::deque<Kept> outgoing_;
  Frame frame_{};
  std::vector<char> body_;
  Awaiting* direct_ = nullptr;  ///< instead of body_
  size_t frame_nbytes_ = 0, body_nbytes_ = 0;
  std::map<int, std::deque<std::vector<char>>> letters_;  ///< that have come, of each channel
  std::map<int, Awaiting*> awaiting_;
};

class TcpTransport final : public MessageTransport {
 public:
  TcpTransport(int rank, std::vector<Socket> sockets, Timeout timeout)
      : timeout_(timeout), rank_(rank), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    for (Socket& socket : sockets) peers_.emplace_back(std::move(socket));
  }

  ~TcpTransport() override {
    if (ended_ < 0) return;
    for (Peer& each : peers_)
      if (!is_idle(each) && !each.is_sending())
        each.send(&ended_, sizeof ended_, kLastWords, /*lasting=*/false);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }

  void send(const void* data, size_t nbytes, int destination, int channel) override {
    send_to(destination, data, nbytes, channel, /*lasting=*/false);
  }

  void receive(void* data, size_t nbytes, int source, int channel) override {
    const Clock::time_point deadline = deadline_after(timeout_);
    std::unique_lock lock(mutex_);
    Peer& from = peer(source);
    auto& letters = from.letters(channel);
    if (letters.empty()) {
      Awaiting place{static_cast<char*>(data), nbytes};
      from.await(channel, place);
      const bool in_time = until(lock, deadline, [&] {
        return place.has_come || !letters.empty() || from.is_over() || closed_.contains(channel);
      });
      if (place.has_come) return;
      from.give_up(channel);
      if (letters.empty()) {
        TERN_CHECK(!closed_.contains(channel), DistributedError, "rank {} has ended", rank_);
        if (from.is_over()) throw_ended(source);
        TERN_CHECK(in_time, DistributedError,
                   "rank {} of {} has waited {} ms for rank {}: it ended, or does something else", rank_,
                   size(), timeout_.count(), source);
      }
    }
    TERN_CHECK(nbytes == 0 || !letters.front().empty(), DistributedError, "rank {} has left the group",
               source);
    const std::vector<char> letter = std::move(letters.front());
    letters.pop_front();
    TERN_CHECK(letter.size() == nbytes, DistributedError, "rank {} has sent {} bytes, not {}", source,
               letter.size(), nbytes);
    std::memcpy(data, letter.data(), nbytes);
  }

  bool is_sending() override {
    const std::lock_guard lock(mutex_);
    for (Peer& each : peers_) each.send_kept();
    return some_send();
  }

  void close(int channel) override {
    const std::lock_guard lock(mutex_);
    closed_.insert(channel);
    changed_.notify_all();
    ring();
  }

  /// Waits until the others have all that was sent to them, and leave too: a connection that is closed before
  /// would take back what has not been read.
  void leave(const void* last, size_t nbytes) override {
    MessageTransport::leave(last, nbytes);
    const Clock::time_point deadline = deadline_after(timeout_);
    std::unique_lock lock(mutex_);
    until(lock, deadline, [&] { return !some_send(); });
    for (Peer& each : peers_)
      if (!is_idle(each)) each.finish();
    until(lock, deadline, [&] {
      return std::all_of(peers_.begin(), peers_.end(), [&](const Peer& each) { return is_idle(each); });
    });
  }

 protected:
  void send_lasting(const void* data, size_t nbytes, int destination, int channel) override {
    send_to(destination, data, nbytes, channel, /*lasting=*/true);
  }
  void sent() override {
    std::unique_lock lock(mutex_);
    const bool in_time = until(lock, deadline_after(timeout_), [&] {
      return std::none_of(peers_.begin(), peers_.end(),
                          [](const Peer& each) { return each.is_sending_lasting(); });
    });
    TERN_CHECK(in_time, DistributedError, "rank {} of {} has waited {} ms for others to take what it sends",
               rank_, size(), timeout_.count());
  }
  void forget_lasting() noexcept override {
    const std::lock_guard lock(mutex_);
    for (Peer& each : peers_)
      if (each.is_sending_lasting()) each.end();  // in the middle of a message
    changed_.notify_all();
  }

 private:
  /// Those that end because another one did say which: so everybody is told of the first.
  [[noreturn]] void throw_ended(int source) {
    const int named = peer(source).named();
    const bool is_another = named >= 0 && named < size() && named != rank_ && named != source;
    if (ended_ < 0) ended_ = is_another ? named : source;
    TERN_CHECK(!is_another, DistributedError, "rank {} has ended: so says rank {}, which has ended for that",
               named, source);
    TERN_THROW(DistributedError, "rank {} has ended: the connection of rank {} to it is over", source, rank_);
  }

  void send_to(int destination, const void* data, size_t nbytes, int channel, bool lasting) {
    TERN_CHECK(nbytes <= kMostMessageBytes, ValueError, "a message of {} bytes is too large", nbytes);
    const std::lock_guard lock(mutex_);
    peer(destination).send(data, nbytes, channel, lasting);
    if (peer(destination).is_sending()) ring();
  }
  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  bool is_idle(const Peer& each) const {
    return each.is_over() || &each == &peers_[static_cast<size_t>(rank_)];
  }
  bool some_send() const {
    return std::any_of(peers_.begin(), peers_.end(), [](const Peer& each) { return each.is_sending(); });
  }
  /// Whoever looks after the connections does so anew.
  void ring() { [[maybe_unused]] const int failed = ::eventfd_write(bell_.fd(), 1); }

  /// Looks after the connections until is_done(), or another thread that does so has brought that about.
  template <class IsDone>
  bool until(std::unique_lock<std::mutex>& lock, Clock::time_point deadline, const IsDone& is_done) {
    while (!is_done()) {
      if (Clock::now() >= deadline) return false;
      if (is_looked_after_) {
        changed_.wait_until(lock, deadline);
        continue;
      }
      is_looked_after_ = true;
      look_after(lock, deadline);
      is_looked_after_ = false;
      changed_.notify_all();
    }
    return true;
  }

  void look_after(std::unique_lock<std::mutex>& lock, Clock::time_point deadline) {
    std::vector<Peer*> looked_at;
    std::vector<Awaited> awaited{{bell_.fd(), POLLIN}};
    for (Peer& each : peers_) {
      if (is_idle(each)) continue;
      looked_at.push_back(&each);
      awaited.push_back(each.awaited());
    }
    lock.unlock();
    wait_for(awaited, deadline);
    lock.lock();
    eventfd_t rings = 0;
    ::eventfd_read(bell_.fd(), &rings);
    for (size_t i = 0; i < looked_at.size(); ++i) {
      if (awaited[i + 1].come & POLLOUT) looked_at[i]->send_kept();
      if (awaited[i + 1].come & ~POLLOUT) looked_at[i]->receive_come();
    }
  }

  Timeout timeout_;
  int rank_;
  Socket bell_;  ///< closed like one
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;  ///< with an idle one at its own place
  std::set<int> closed_;
  int32_t ended_ = -1;  ///< the process whose end was met first; negative: none
  bool is_looked_after_ = false;
};

}  // namespace

std::unique_ptr<Transport> open_tcp_transport(const Rendezvous& rendezvous, Timeout timeout) {
  return std::make_unique<TcpTransport>(rendezvous.rank, meet(rendezvous, timeout), timeout);
}

}  // namespace tern::dist
