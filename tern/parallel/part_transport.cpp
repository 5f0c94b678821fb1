// Collective operations made of messages.
#include "tern/parallel/part_transport.h"

#include <algorithm>
#include <cstring>

namespace tern::dist {
namespace {

class PartTransport final : public Transport {
 public:
  PartTransport(std::shared_ptr<Transport> whole, std::vector<int> ranks, int number,
                std::function<void()> sent)
      : whole_(std::move(whole)),
        ranks_(std::move(ranks)),
        first_channel_(number * kChannels),
        sent_(std::move(sent)) {
    rank_ = static_cast<int>(std::find(ranks_.begin(), ranks_.end(), whole_->rank()) - ranks_.begin());
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  int local_rank() const override { return whole_->local_rank(); }

  void all_gather(const void* sent, void* received, size_t nbytes) override {
    exchange([&](int) { return static_cast<const char*>(sent); }, received, nbytes);
  }
  void all_to_all(const void* sent, void* received, size_t nbytes) override {
    exchange([&](int r) { return static_cast<const char*>(sent) + static_cast<size_t>(r) * nbytes; },
             received, nbytes);
  }
  void broadcast(void* data, size_t nbytes, int source) override {
    constexpr size_t kPieceBytes = size_t{16} << 20;
    for (size_t done = 0; done < nbytes; done += kPieceBytes) {
      const size_t count = std::min(kPieceBytes, nbytes - done);
      char* const piece = static_cast<char*>(data) + done;
      if (rank_ != source)
        receive(piece, count, source, kOperations);
      else
        for (int r = 0; r < size(); ++r)
          if (r != rank_) send(piece, count, r, kOperations);
    }
  }

  void send(const void* data, size_t nbytes, int destination, int channel) override {
    whole_->send(data, nbytes, ranks_[static_cast<size_t>(destination)], first_channel_ + channel);
    sent_();
  }
  void receive(void* data, size_t nbytes, int source, int channel) override {
    whole_->receive(data, nbytes, ranks_[static_cast<size_t>(source)], first_channel_ + channel);
  }
  bool is_sending() override { return whole_->is_sending(); }
  void close(int channel) override { whole_->close(first_channel_ + channel); }

  void leave(const void* last, size_t nbytes) override {
    for (int r = 0; r < size(); ++r) {
      if (r == rank_) continue;
      if (last != nullptr) send(last, nbytes, r, kOperations);
      send(nullptr, 0, r, kMessages);
    }
  }

 private:
  /// Sends everybody its bytes, `of(rank)`, and takes everybody's.
  template <class Of>
  void exchange(const Of& of, void* received, size_t nbytes) {
    for (int r = 0; r < size(); ++r)
      if (r != rank_) send(of(r), nbytes, r, kOperations);
    for (int r = 0; r < size(); ++r) {
      char* const place = static_cast<char*>(received) + static_cast<size_t>(r) * nbytes;
      if (r == rank_)
        std::memcpy(place, of(r), nbytes);
      else
        receive(place, nbytes, r, kOperations);
    }
  }

  std::shared_ptr<Transport> whole_;
  std::vector<int> ranks_;
  int rank_ = 0, first_channel_;
  std::function<void()> sent_;
};

}  // namespace

std::unique_ptr<Transport> open_part_transport(std::shared_ptr<Transport> whole, std::vector<int> ranks,
                                               int number, std::function<void()> sent) {
  return std::make_unique<PartTransport>(std::move(whole), std::move(ranks), number, std::move(sent));
}

}  // namespace tern::dist
