// Profiler: records every kernel, copy and wait with times, bytes, operations, operator and module, on all
// devices and streams. It hangs on the launch point (device/launch.h); what a kernel does is counted by
// kernels/work.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tern/device/launch.h"

namespace tern {

/// One thing that a device, or the host while it waited, spent time on.
struct ProfileEvent {
  Activity::Kind kind = Activity::Kind::Kernel;
  Stream stream;
  std::string
      name;  ///< PyTorch's name of the operator: "addmm"; "backward of conv2d"; of a copy its direction
  std::string kernel;   ///< the kernel's name
  std::string module;   ///< "LeNet.fc1", or "" outside modules
  double begin = 0;     ///< seconds since the profiler was started
  double duration = 0;  ///< seconds
  double bytes = 0;     ///< that must move at least
  double flops = 0;     ///< floating-point operations
};

/// Events of one name together.
struct ProfileRow {
  std::string name;
  uint64_t calls = 0;
  double seconds = 0;
  double bytes = 0;
  double flops = 0;
};

/// What the rows of a table are ordered by, the most first.
enum class ProfileOrder { Time, Mean, Calls, Bytes, Flops };

struct ProfilerOptions {
  size_t max_events = 1'000'000;  ///< what comes after is counted, not recorded
};

/// Records from start() to stop(), or to its end:
///
///     Profiler profiler;
///     profiler.start();
///     train_step();
///     profiler.stop();
///     std::cout << profiler.table();
///     profiler.export_chrome_trace("trace.json");   // open it in ui.perfetto.dev or chrome://tracing
///
/// One profiler records at a time.
class Profiler {
 public:
  explicit Profiler(ProfilerOptions options = {});
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Forgets what was recorded before. Throws ValueError when a profiler is recording already.
  void start();
  /// Waits for the work of all devices. Errors of that work stay for whoever waits next.
  void stop();

  /// In the order in which they were started.
  const std::vector<ProfileEvent>& events() const;
  /// How many events came after max_events.
  uint64_t dropped() const;
  /// Events by name; waits are left out, for they overlap with what they wait for.
  std::vector<ProfileRow> averages(ProfileOrder order = ProfileOrder::Time) const;
  /// The first `rows` of them as a table.
  std::string table(size_t rows = 15, ProfileOrder order = ProfileOrder::Time) const;
  /// Everything as a trace in Chrome's JSON format, a process for each device and a thread for each stream.
  std::string chrome_trace() const;
  /// Writes it to a file. Throws IoError.
  void export_chrome_trace(const std::string& path) const;

 private:
  class Recorder;
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace tern
