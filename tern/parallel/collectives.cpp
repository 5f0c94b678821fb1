// Sums and their gradients.
#include "tern/parallel/collectives.h"

#include "tern/autograd/grad_mode.h"
#include "tern/autograd/record.h"
#include "tern/ops/copy.h"

namespace tern::dist {
namespace {

thread_local const ProcessGroup* current_group = nullptr;

}  // namespace

Tensor all_reduce(const Tensor& tensor, const ProcessGroup& group) {
  const Tensor sum = tensor.detach().clone();
  group.all_reduce(sum);
  if (tracks_grad(tensor))
    record("all_reduce", sum, {tensor},
           [group](GradContext&, const Tensor& grad) { return all_reduce(grad, group); });
  return sum;
}

GroupGuard::GroupGuard(const ProcessGroup* group) noexcept : before_(current_group) {
  current_group = group && group->size() > 1 ? group : nullptr;
}

GroupGuard::~GroupGuard() { current_group = before_; }

const ProcessGroup* GroupGuard::current() noexcept { return current_group; }

}  // namespace tern::dist
