// The processes tell each other where they are and which cores they may use.
#include "tern/parallel/neighbours.h"

#include <sched.h>

#include <fstream>
#include <functional>
#include <vector>

#include "tern/parallel/socket.h"

namespace tern::dist {
namespace {

/// Sent as bytes.
struct Residence {
  uint64_t machine;
  cpu_set_t cores;
};

}  // namespace

uint64_t this_machine() {
  std::string start;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), start);
  return std::hash<std::string>()(own_host_name() + '/' + start);
}

Neighbours find_neighbours(Transport& transport) {
  Residence mine{this_machine(), {}};
  CPU_ZERO(&mine.cores);
  ::sched_getaffinity(0, sizeof mine.cores, &mine.cores);  // none where there are more than it can tell
  std::vector<Residence> all(static_cast<size_t>(transport.size()));
  transport.all_gather(&mine, all.data(), sizeof mine);
  Neighbours result;
  for (size_t r = 0; r < static_cast<size_t>(transport.rank()); ++r)
    if (all[r].machine == mine.machine) ++result.local_rank;
  for (const Residence& other : all) result.are_all &= other.machine == mine.machine;
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &mine.cores)) continue;
    int users = 0;
    for (const Residence& other : all)
      if (other.machine == mine.machine && CPU_ISSET(core, &other.cores)) ++users;
    result.cores += 1.0 / users;
  }
  return result;
}

}  // namespace tern::dist
