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

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Seconds of the measurement at hand that do not count.
inline double excluded_seconds = 0;
/// Calls `body` without counting its time.
inline void untimed(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  excluded_seconds += seconds_since(start);
}

/// Nanoseconds for one iteration, measured for at least `seconds` after as long a warm-up. `wait` is called
/// after the last one: where steps are only queued, it waits for them.
inline double time_step(const Step& step, double seconds, const Step& wait) {
  auto run = [&](int64_t count) {
    excluded_seconds = 0;
    const auto start = Clock::now();
    for (int64_t i = 0; i < count; ++i) step();
    wait();
    return seconds_since(start) - excluded_seconds;
  };
  step();
  wait();
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
/// line that it writes is `version`. `wait` is what time_step says.
inline int serve(
    const std::string& version, const std::function<void(int)>& set_threads,
    const std::map<std::string, Setup>& cases, const Step& wait = [] {}) {
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
      std::cout << time_step(step, seconds, wait) << std::endl;
    } catch (const std::exception& error) {
      std::cout << "error: " << error.what() << std::endl;
    }
  }
  return 0;
}

}  // namespace peer
