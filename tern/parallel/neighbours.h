// Which of a group's processes share this machine.
#pragma once

#include "tern/parallel/transport.h"

namespace tern::dist {

struct Neighbours {
  /// The number of this process among those of its machine.
  int local_rank = 0;
  /// The cores that this process may use, each divided by the processes of its machine that may use it. 0
  /// where that is not known, or does not matter.
  double cores = 0;
  /// All processes of the group are on one machine.
  bool are_all = true;
};

/// A number of this machine, by its name and start: machines that were cloned have one name.
uint64_t this_machine();

/// To be called by all processes. Containers of one machine with names of their own count as machines.
Neighbours find_neighbours(Transport& transport);

}  // namespace tern::dist
