// Its channels are those of the whole after the channels of the parts before it.
#include "tern/parallel/part_transport.h"

#include <algorithm>

#include "tern/parallel/message_transport.h"

namespace tern::dist {
namespace {

class PartTransport final : public MessageTransport {
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

  void send(const void* data, size_t nbytes, int destination, int channel) override {
    whole_->send(data, nbytes, ranks_[static_cast<size_t>(destination)], first_channel_ + channel);
    sent_();
  }
  void receive(void* data, size_t nbytes, int source, int channel) override {
    whole_->receive(data, nbytes, ranks_[static_cast<size_t>(source)], first_channel_ + channel);
  }
  bool is_sending() override { return whole_->is_sending(); }
  void close(int channel) override { whole_->close(first_channel_ + channel); }

 private:
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
