// The transport between threads that take the parts of processes: each shows the others where its bytes are,
// and they copy what is theirs.
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tern/base/check.h"
#include "tern/parallel/transport.h"

namespace tern::dist {
namespace {

/// Where the threads of a group meet. Once they did not, they never do again.
class Meeting {
 public:
  Meeting(int size, Timeout timeout)
      : shown_(static_cast<size_t>(size)),
        last_(shown_.size()),
        has_left_(shown_.size()),
        timeout_(timeout) {}

  /// Shows `data`, waits until all have come, and calls body(what rank r shows) for each. Returns when all
  /// have done so.
  template <class Body>
  void together(int rank, const void* data, const Body& body) {
    shown_[static_cast<size_t>(rank)] = data;
    come(rank, timeout_);
    for (size_t r = 0; r < shown_.size(); ++r) body(r, static_cast<const char*>(shown_[r]));
    come(rank, Timeout::max());  // all are on their way
  }
  int size() const { return static_cast<int>(shown_.size()); }

  /// From now on `rank` shows a copy of `last` wherever others meet, and nobody waits for it.
  void leave(int rank, const void* last, size_t nbytes) {
    const std::lock_guard lock(mutex_);
    const auto r = static_cast<size_t>(rank);
    if (last) last_[r].assign(static_cast<const char*>(last), nbytes);
    shown_[r] = last_[r].data();
    ++left_;
    has_left_[r] = 1;
    if (came_ > 0 && came_ + left_ == size())
      open();
    else
      changed_.notify_all();
  }

  void put(int from, int to, int channel, const void* data, size_t nbytes) {
    const std::lock_guard lock(mutex_);
    const char* const bytes = static_cast<const char*>(data);
    letters_[{from, to, channel}].emplace_back(bytes, bytes + nbytes);
    changed_.notify_all();
  }
  void take(int from, int to, int channel, void* data, size_t nbytes) {
    std::unique_lock lock(mutex_);
    auto& letters = letters_[{from, to, channel}];
    const auto over = [&] {
      return !letters.empty() || !failure_.empty() || has_left_[static_cast<size_t>(from)] ||
             closed_.contains({to, channel});
    };
    const bool came = changed_.wait_for(lock, std::min(timeout_, kLongest), over);
    TERN_CHECK(!letters.empty(), DistributedError, "{}",
               !failure_.empty()                 ? failure_
               : closed_.contains({to, channel}) ? fmt::format("rank {} has ended", to)
               : came                            ? fmt::format("rank {} has left the group", from)
                      : fmt::format("rank {} has waited {} ms for a message of rank {}", to, timeout_.count(),
                                    from));
    TERN_CHECK(nbytes == 0 || !letters.front().empty(), DistributedError, "rank {} has left the group", from);
    const std::vector<char> letter = std::move(letters.front());
    letters.pop_front();
    TERN_CHECK(letter.size() == nbytes, DistributedError, "rank {} has sent {} bytes, not {}", from,
               letter.size(), nbytes);
    std::memcpy(data, letter.data(), nbytes);
  }
  void close(int rank, int channel) {
    const std::lock_guard lock(mutex_);
    closed_.insert({rank, channel});
    changed_.notify_all();
  }

  void fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = reason;
    changed_.notify_all();
  }

 private:
  static constexpr Timeout kLongest = std::chrono::hours(24 * 365);  // what clocks can add

  void come(int rank, Timeout timeout) {
    std::unique_lock lock(mutex_);
    TERN_CHECK(failure_.empty(), DistributedError, "{}", failure_);
    if (++came_ + left_ == size()) return open();
    const uint64_t meeting = meetings_;
    const auto over = [&] { return meetings_ != meeting || !failure_.empty(); };
    if (timeout == Timeout::max())
      changed_.wait(lock, over);
    else if (!changed_.wait_for(lock, timeout, over))
      failure_ =
          fmt::format("rank {} of {} has waited {} ms for the others: they ended, or do something else", rank,
                      size(), timeout.count());
    if (meetings_ != meeting) return;
    changed_.notify_all();
    TERN_THROW(DistributedError, "{}", failure_);
  }

  void open() {
    came_ = 0;
    ++meetings_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const void*> shown_;
  std::vector<std::string> last_;  ///< of those that have left
  std::vector<char> has_left_;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<char>>> letters_;  ///< from, to, channel
  std::set<std::pair<int, int>> closed_;                                        ///< rank, channel
  Timeout timeout_;
  int came_ = 0, left_ = 0;
  uint64_t meetings_ = 0;
  std::string failure_;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Meeting> meeting, int rank) : meeting_(std::move(meeting)), rank_(rank) {}
  ~ThreadTransport() override {
    if (!left_) meeting_->fail(fmt::format("rank {} has ended", rank_));
  }

  int rank() const override { return rank_; }
  int size() const override { return meeting_->size(); }

  void all_gather(const void* sent, void* received, size_t nbytes) override {
    meeting_->together(rank_, sent, [&](size_t r, const char* data) {
      std::memcpy(static_cast<char*>(received) + r * nbytes, data, nbytes);
    });
  }
  void all_to_all(const void* sent, void* received, size_t nbytes) override {
    meeting_->together(rank_, sent, [&](size_t r, const char* data) {
      std::memcpy(static_cast<char*>(received) + r * nbytes, data + static_cast<size_t>(rank_) * nbytes,
                  nbytes);
    });
  }
  void broadcast(void* data, size_t nbytes, int source) override {
    meeting_->together(rank_, data, [&](size_t r, const char* from) {
      if (static_cast<int>(r) == source && source != rank_) std::memcpy(data, from, nbytes);
    });
  }
  void send(const void* data, size_t nbytes, int destination, int channel) override {
    meeting_->put(rank_, destination, channel, data, nbytes);
  }
  void receive(void* data, size_t nbytes, int source, int channel) override {
    meeting_->take(source, rank_, channel, data, nbytes);
  }
  bool is_sending() override { return false; }
  void close(int channel) override { meeting_->close(rank_, channel); }
  void leave(const void* last, size_t nbytes) override {
    meeting_->leave(rank_, last, nbytes);
    left_ = true;
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  int rank_;
  bool left_ = false;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> open_thread_transports(int size, Timeout timeout) {
  TERN_CHECK(size >= 1, ValueError, "a group has at least one process, got {}", size);
  const auto meeting = std::make_shared<Meeting>(size, timeout);
  std::vector<std::unique_ptr<Transport>> ends;
  for (int rank = 0; rank < size; ++rank) ends.push_back(std::make_unique<ThreadTransport>(meeting, rank));
  return ends;
}

}  // namespace tern::dist
