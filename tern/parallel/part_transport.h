// The transport of some of a group's processes: messages over that of all of them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tern/parallel/transport.h"

namespace tern::dist {

/// `ranks` are those in `whole`, this process' among them, `number` (from 1 on) that of the group among those
/// made of `whole`: the same on all of them, and no other's. `sent` is called after messages were given to
/// `whole`, which has to see to them.
std::unique_ptr<Transport> open_part_transport(std::shared_ptr<Transport> whole, std::vector<int> ranks,
                                               int number, std::function<void()> sent);

}  // namespace tern::dist
