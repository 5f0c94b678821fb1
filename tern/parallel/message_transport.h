// MessageTransport: a transport (parallel/transport.h) whose collective operations are made of its messages.
#pragma once

#include <functional>

#include "tern/parallel/transport.h"

namespace tern::dist {

class MessageTransport : public Transport {
 public:
  void all_gather(const void* sent, void* received, size_t nbytes) final;
  void all_to_all(const void* sent, void* received, size_t nbytes) final;
  void broadcast(void* data, size_t nbytes, int source) final;
  /// Gives the others what they are to get. Waits for nobody.
  void leave(const void* last, size_t nbytes) override;

 protected:
  /// As send(), of bytes that stay where they are until sent() has returned, or forget_lasting().
  virtual void send_lasting(const void* data, size_t nbytes, int destination, int channel) {
    send(data, nbytes, destination, channel);
  }
  virtual void sent() {}
  /// What is on its way is not to be looked at any more, since the operation has failed.
  virtual void forget_lasting() noexcept {}

 private:
  /// Calls body(), which sends bytes that last for its time.
  template <class Body>
  void with_lasting(const Body& body);
  void exchange(const std::function<const char*(int)>& of, void* received, size_t nbytes);
};

}  // namespace tern::dist
