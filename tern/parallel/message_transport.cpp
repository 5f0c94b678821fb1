// Collective operations made of messages.
#include "tern/parallel/message_transport.h"

#include <algorithm>
#include <cstring>

namespace tern::dist {

template <class Body>
void MessageTransport::with_lasting(const Body& body) {
  try {
    body();
    sent();
  } catch (...) {
    forget_lasting();
    throw;
  }
}

void MessageTransport::all_gather(const void* sent, void* received, size_t nbytes) {
  exchange([&](int) { return static_cast<const char*>(sent); }, received, nbytes);
}

void MessageTransport::all_to_all(const void* sent, void* received, size_t nbytes) {
  exchange([&](int r) { return static_cast<const char*>(sent) + static_cast<size_t>(r) * nbytes; }, received,
           nbytes);
}

void MessageTransport::broadcast(void* data, size_t nbytes, int source) {
  constexpr size_t kBroadcastBytes = size_t{16} << 20;
  with_lasting([&] {
    for (size_t done = 0; done < nbytes; done += kBroadcastBytes) {
      const size_t count = std::min(kBroadcastBytes, nbytes - done);
      char* const piece = static_cast<char*>(data) + done;
      if (rank() != source)
        receive(piece, count, source, kOperations);
      else
        for (int r = 0; r < size(); ++r)
          if (r != source) send_lasting(piece, count, r, kOperations);
    }
  });
}

void MessageTransport::leave(const void* last, size_t nbytes) {
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    if (last != nullptr) send(last, nbytes, r, kOperations);
    send(nullptr, 0, r, kMessages);
  }
}

/// Sends everybody its bytes, `of(rank)`, and takes everybody's. Each begins with the one after it, so that
/// they do not all speak to one.
void MessageTransport::exchange(const std::function<const char*(int)>& of, void* received, size_t nbytes) {
  const auto place = [&](int r) { return static_cast<char*>(received) + static_cast<size_t>(r) * nbytes; };
  with_lasting([&] {
    for (int i = 1; i < size(); ++i) {
      const int r = (rank() + i) % size();
      send_lasting(of(r), nbytes, r, kOperations);
    }
    std::memcpy(place(rank()), of(rank()), nbytes);
    for (int i = 1; i < size(); ++i) {
      const int r = (rank() - i + size()) % size();
      receive(place(r), nbytes, r, kOperations);
    }
  });
}

}  // namespace tern::dist
