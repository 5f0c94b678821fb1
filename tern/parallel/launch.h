// launch: starts a program as several processes that work together (torchrun). In them ProcessGroup::start()
// finds the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tern::dist {

struct LaunchOptions {
  /// Processes on this machine, and machines: each starts its own processes, with the same options but the
  /// number of its node.
  int nproc_per_node = 1;
  int nnodes = 1;
  int node_rank = 0;
  /// Of node 0, where the processes meet. Port 0 is one that is free, with a single machine; else 29500.
  std::string master_addr = "localhost";
  uint16_t master_port = 0;
  /// Before every line of the processes stands "[rank] ".
  bool tag_output = false;
  /// When one has failed, the others have so long to end by themselves; then they are asked to (SIGTERM), and
  /// after that time again they are ended.
  std::chrono::milliseconds grace = std::chrono::seconds(5);
};

/// How the processes ended.
struct LaunchResult {
  int exit_code = 0;     ///< 0 when all ended with that, else of the first that failed; 128 + its signal
  int failed_rank = -1;  ///< its rank; -1 for none
  std::string
      reason;  ///< "rank 1 ended with exit code 3", "rank 1 was ended by signal 11 (Segmentation fault)"
};

/// Starts `command`, a program that is looked for in PATH and its arguments, with RANK, LOCAL_RANK,
/// WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and, on a single machine, a secret TERN_JOB in the
/// environment, and waits for all. SIGINT and SIGTERM end the processes too. Throws ValueError, and
/// DistributedError where the program can not be started.
LaunchResult launch(const std::vector<std::string>& command, const LaunchOptions& options = {});

}  // namespace tern::dist
