// Threads that take the parts of a group's processes.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "tern/parallel/process_group.h"

namespace tern::dist {

/// Calls body(group) for each of `size` processes at once. The first exception, in the order of ranks, is
/// thrown.
inline void on_each(int size, const std::function<void(const ProcessGroup&)>& body,
                    const ProcessGroupOptions& options = {.timeout = std::chrono::seconds(60)}) {
  std::vector<ProcessGroup> groups = ProcessGroup::simulate(size, options);
  std::vector<std::exception_ptr> errors(groups.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < groups.size(); ++r)
    threads.emplace_back([&errors, &body, r, group = std::move(groups[r])]() mutable {
      try {
        const ProcessGroup mine = std::move(group);
        body(mine);
      } catch (...) {
        errors[r] = std::current_exception();
      }
    });
  groups.clear();
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace tern::dist
