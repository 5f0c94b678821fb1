// Comparing what the processes have, and giving all of them what rank 0 has.
#include "tern/parallel/same_start.h"

#include <algorithm>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/ops/copy.h"
#include "tern/parallel/packing.h"

namespace tern::dist {

void check_same(const char* wrapper, const NamedTensors& parameters, const NamedTensors& buffers,
                const ProcessGroup& group) {
  std::string mine;
  const auto add = [&](const char* what, const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors)
      mine += fmt::format("{} '{}' {} {}{}\n", what, name, tern::name(tensor.dtype()),
                          to_string(tensor.shape()), tensor.requires_grad() ? "" : ", frozen");
  };
  add("parameter", parameters);
  add("buffer", buffers);
  const std::vector<std::string> all = group.all_gather(mine);
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    const auto line_from = [](const std::string& text, size_t at) {
      const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
      return begin >= text.size() ? std::string("nothing more")
                                  : text.substr(begin, text.find('\n', begin) - begin);
    };
    const auto [here, there] = std::mismatch(all[0].begin(), all[0].end(), all[r].begin(), all[r].end());
    TERN_THROW(DistributedError, "{}: the processes have different modules: rank 0 has {}, rank {} has {}",
               wrapper, line_from(all[0], static_cast<size_t>(here - all[0].begin())), r,
               line_from(all[r], static_cast<size_t>(there - all[r].begin())));
  }
}

void broadcast_all(const std::vector<Tensor>& tensors, const ProcessGroup& group) {
  const NoGradGuard no_grad;
  for (const auto& packing :
       parallel::pack_by_dtype(tensors, /*aligned=*/false, [](size_t) { return true; })) {
    std::vector<Tensor> dense;
    for (const Tensor& tensor : tensors) dense.push_back(tensor.detach());
    const Tensor row = packing.pack(dense);
    group.broadcast(row);
    for (size_t m = 0; group.rank() != 0 && m < packing.members.size(); ++m)
      dense[packing.members[m]].copy_(packing.view(row, m));
  }
}

}  // namespace tern::dist
