// The text form of the options of simulated GPUs.
#include <charconv>
#include <cmath>
#include <span>

#include "tern/base/check.h"
#include "tern/device/simulation.h"
#include "tern/device/stream.h"

namespace tern {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kSizes[] = {{"", 1},         {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                           {"TiB", 0x1p40}, {"KB", 1e3}, {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};
constexpr Unit kRates[] = {{"B/s", 1},        {"KB/s", 1e3},     {"MB/s", 1e6},    {"GB/s", 1e9},
                           {"KiB/s", 0x1p10}, {"MiB/s", 0x1p20}, {"GiB/s", 0x1p30}};
constexpr Unit kTimes[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};

[[noreturn]] void refuse(std::string_view part, const char* expected) {
  TERN_THROW(ValueError, "simulated GPUs: '{}': expected {}", part, expected);
}

uint64_t integer(std::string_view part, std::string_view text, uint64_t low, uint64_t high,
                 const char* expected) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < low || number > high)
    refuse(part, expected);
  return number;
}

double quantity(std::string_view part, std::string_view text, std::span<const Unit> units,
                const char* expected) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error == std::errc() && std::isfinite(number) && number >= 0)
    for (const Unit& known : units)
      if (unit == known.name) return number * known.factor;
  refuse(part, expected);
}

SimulatedFault fault(std::string_view part, std::string_view text) {
  constexpr const char* kExpected =
      "launch:N, copy:N, alloc:N or lost:N, with @DEVICE after it for one device, several joined by +, such "
      "as fail=launch:1000+lost:50@1";
  SimulatedFault result;
  if (const size_t at = text.find('@'); at != text.npos) {
    result.device = static_cast<int>(integer(part, text.substr(at + 1), 0, kMaxGpus - 1, kExpected));
    text = text.substr(0, at);
  }
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view kind = text.substr(0, colon);
  if (kind == "launch")
    result.kind = SimulatedFault::Kind::Launch;
  else if (kind == "copy")
    result.kind = SimulatedFault::Kind::Copy;
  else if (kind == "alloc")
    result.kind = SimulatedFault::Kind::Allocation;
  else if (kind == "lost")
    result.kind = SimulatedFault::Kind::Lost;
  else
    refuse(part, kExpected);
  if (colon < text.size()) result.number = integer(part, text.substr(colon + 1), 1, ~uint64_t{0}, kExpected);
  return result;
}

bool flag(std::string_view part, std::string_view text) { return integer(part, text, 0, 1, "0 or 1") == 1; }

/// Calls `f` with each piece between separators.
template <class F>
void split(std::string_view text, char separator, F&& f) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

SimulationOptions parse_simulation(std::string_view text) {
  SimulationOptions options;
  split(text, ',', [&](std::string_view part) {
    const size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    constexpr const char* kRate = "a rate such as 12GB/s";
    constexpr const char* kTime = "a time such as 5us";
    if (key == "gpus") {
      options.gpus = static_cast<int>(integer(part, value, 0, kMaxGpus, "0 to 64 GPUs"));
    } else if (key == "memory") {
      const double bytes = quantity(part, value, kSizes, "a size such as 2GiB");
      if (bytes < 0x1p22 || bytes > 0x1p42) refuse(part, "4MiB to 4TiB");
      options.memory = static_cast<uint64_t>(bytes);
    } else if (key == "h2d") {
      options.h2d = quantity(part, value, kRates, kRate);
    } else if (key == "d2h") {
      options.d2h = quantity(part, value, kRates, kRate);
    } else if (key == "d2d") {
      options.d2d = quantity(part, value, kRates, kRate);
    } else if (key == "latency") {
      options.latency = quantity(part, value, kTimes, kTime);
    } else if (key == "jitter") {
      options.jitter = integer(part, value, 0, ~uint64_t{0}, "a seed such as 7");
    } else if (key == "delay") {
      options.delay = quantity(part, value, kTimes, kTime);
    } else if (key == "closed") {
      options.closed_pages = flag(part, value);
    } else if (key == "races") {
      options.check_races = flag(part, value);
    } else if (key == "fail") {
      split(value, '+', [&](std::string_view one) { options.faults.push_back(fault(part, one)); });
    } else {
      refuse(part,
             "gpus=N, memory=SIZE, h2d=RATE, d2h=RATE, d2d=RATE, latency=TIME, jitter=SEED, delay=TIME, "
             "closed=0|1, races=0|1 or fail=KIND:N, separated by commas");
    }
  });
  return options;
}

}  // namespace tern
