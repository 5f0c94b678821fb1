// Threads that take the parts of a group's processes, and with TERN_TEST_TRANSPORT=tcp speak as such do.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tern/base/env.h"
#include "tern/parallel/process_group.h"
#include "tern/parallel/socket.h"

namespace tern::dist {

/// Where processes of this machine can meet while the port is reserved.
inline std::string address_of(const Socket& reserved) {
  return "tcp://localhost:" + std::to_string(reserved.port());
}

/// Calls body(group) for each of `size` processes at once. The first exception, in the order of ranks, is
/// thrown.
inline void on_each(int size, const std::function<void(const ProcessGroup&)>& body,
                    const ProcessGroupOptions& options = {.timeout = std::chrono::seconds(60)}) {
  std::vector<std::function<ProcessGroup()>> starts;
  Socket reserved;
  if (env_text("TERN_TEST_TRANSPORT") == "tcp") {
    ProcessGroupOptions mine = options;
    reserved = Socket::reserve();
    mine.init_method = address_of(reserved);
    mine.world_size = size;
    for (mine.rank = 0; mine.rank < size; ++mine.rank)
      starts.emplace_back([mine] { return ProcessGroup::start(mine); });
  } else {
    for (ProcessGroup& group : ProcessGroup::simulate(size, options))
      starts.emplace_back([group = std::move(group)] { return group; });
  }
  std::vector<std::exception_ptr> errors(starts.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < starts.size(); ++r)
    threads.emplace_back([&errors, &body, r, start = std::move(starts[r])]() mutable {
      try {
        const ProcessGroup mine = start();
        start = nullptr;
        body(mine);
      } catch (...) {
        errors[r] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace tern::dist
