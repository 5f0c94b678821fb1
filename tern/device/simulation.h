// Simulated GPUs: devices on CPU threads that behave like GPUs, for programs and tests on machines without
// any. They exist only when asked for, here or through the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tern {

/// A failure to be simulated.
struct SimulatedFault {
  enum class Kind : uint8_t {
    Launch,      ///< one kernel fails
    Copy,        ///< one copy fails
    Allocation,  ///< the device refuses memory once
    Lost,        ///< the device falls off the bus at a kernel: everything on it fails from then on
  };
  Kind kind = Kind::Launch;
  uint64_t number = 1;             ///< which launch, copy or allocation of a device, counted from 1
  std::optional<int> device = {};  ///< by default every device
};

struct SimulationOptions {
  int gpus = 1;                         ///< 0 takes them away again
  uint64_t memory = uint64_t{4} << 30;  ///< of each, in bytes
  double h2d = 0;                       ///< bytes per second from the host; 0: as fast as it goes
  double d2h = 0;                       ///< to the host
  double d2d = 0;                       ///< between GPUs
  double latency = 0;                   ///< seconds that every kernel and copy takes at least
  std::optional<uint64_t> jitter = {};  ///< seed of random delays before tasks
  double delay = 200e-6;                ///< the longest of them, in seconds
  std::optional<bool> closed_pages =
      {};                    ///< memory faults when the host touches it; by default in debug builds
  bool check_races = false;  ///< launches and copies that nothing orders and that touch the same bytes throw
  std::vector<SimulatedFault> faults = {};
};

/// Reads "gpus=4,memory=2GiB,h2d=12GB/s,latency=5us,jitter=7,fail=launch:1000+lost:50@1,...". Throws
/// ValueError naming the part that is wrong and the valid forms.
SimulationOptions parse_simulation(std::string_view text);

/// Gives the process simulated GPUs, in place of those that it has. A process started with TERN_SIM_GPUS=2 or
/// TERN_SIM="gpus=2,..." has them from the start. Waits for the work of earlier ones; throws DeviceError
/// while tensors live on them, and where there are real GPUs.
void simulate_gpus(const SimulationOptions& options);

namespace detail {
/// Defined in backends/sim; called once before the first device is used.
void register_sim_backend_from_environment();
}  // namespace detail

}  // namespace tern
