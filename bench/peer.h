// The side of a benchmark that is measured: a process that waits for requests on standard input and times one
// case at a time. bench/compare.py drives several such processes in turn, so that all see the same machine.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

namespace peer {

/// One iteration of a case.
using Step = std::function<void()>;
/// Builds a case's data and returns its iteration; called when the case is first asked for with a number of
/// threads.
using Setup = std::function<Step()>;

/// Nanoseconds for one iteration, measured for at least `seconds` after as long a warm-up.
inline double time_step(const Step& step, double seconds) {
  using Clock = std::chrono::steady_clock;
  auto run = [&](int64_t count) {
    auto start = Clock::now();
    for (int64_t i = 0; i < count; ++i) step();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  step();
  int64_t count = 1;
  double taken = run(count);
  while (taken < seconds) {
    count = std::max(count + 1, static_cast<int64_t>(static_cast<double>(count) *
                                                     std::min(10.0, 1.2 * seconds / std::max(taken, 1e-9))));
    taken = run(count);
  }
  return taken / static_cast<double>(count) * 1e9;
}

/// Answers "CASE THREADS SECONDS" with nanoseconds, or with "error: ..."; ends with standard input. The first
/// line that it writes is `version`.
inline int serve(const std::string& version, const std::function<void(int)>& set_threads,
                 const std::map<std::string, Setup>& cases) {
  std::cout << version << std::endl;
  std::string line, current;
  Step step;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string name;
    int threads = 1;
    double seconds = 0.1;
    words >> name >> threads >> seconds;
    try {
      auto found = cases.find(name);
      if (found == cases.end()) throw std::invalid_argument("unknown case " + name);
      set_threads(threads);
      if (std::string key = name + "/" + std::to_string(threads); key != current) {
        step = nullptr;
        step = found->second();
        current = key;
      }
      std::cout << time_step(step, seconds) << std::endl;
    } catch (const std::exception& error) {
      std::cout << "error: " << error.what() << std::endl;
    }
  }
  return 0;
}

}  // namespace peer
