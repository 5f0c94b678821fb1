// Less memory for training, as torch.utils.checkpoint and torch.autograd.graph.save_on_cpu: what operators
// keep for backward is computed again, or waits in host memory.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/autograd/grad_mode.h"
#include "tern/autograd/saved_hooks.h"
#include "tern/nn/containers.h"

namespace tern::nn::utils {

namespace detail {

/// What ends a function that is computed again, once its operators have kept all that they kept before.
struct Enough {};

/// A function that has been called, and can be called again for what its operators kept.
class Recomputation : public std::enable_shared_from_this<Recomputation> {
 public:
  using Call = std::function<void(const std::vector<Tensor>&)>;
  Recomputation(Call call, const std::vector<Tensor>& inputs);
  ~Recomputation();
  autograd::SavedTensorsHooks::Pack pack();

 private:
  struct Place;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail

/// function(inputs...), a tensor or several, of which nothing but the inputs is kept for backward: there it
/// is called again (Chen et al., "Training deep nets with sublinear memory cost", 2016). Gradients are the
/// same to the bit, also those of tensors that the function holds, such as parameters:
///
///     for (Block& block : blocks) x = nn::utils::checkpoint(block, x);
///
/// A module or function is copied, which shares its tensors; what a lambda holds by reference must be there
/// until backward (not so the replicas of a DataParallel). It must do the same each time: random numbers of
/// the default generator, unless other threads draw from it too, and autocast are as they were, training or
/// not is the copy's; batch norm counts a batch twice, as in PyTorch. Other random numbers are not repeated,
/// nor may layers meet those of other devices or processes in it (SyncBatchNorm). Calls nest, work with
/// second derivatives and in recorded steps. Backward throws AutogradError where the function keeps something
/// else than the first time, or an input was changed in place; changes in place of other tensors that
/// operators kept go unnoticed, as in PyTorch.
template <class Function, std::derived_from<Tensor>... Tensors>
auto checkpoint(Function&& function, const Tensors&... inputs) {
  if (!is_grad_enabled()) return function(inputs...);
  auto held = std::make_shared<std::decay_t<Function>>(std::forward<Function>(function));
  const auto again = std::make_shared<detail::Recomputation>(
      [held](const std::vector<Tensor>& x) {
        [&]<size_t... I>(std::index_sequence<I...>) { (*held)(x[I]...); }
        (std::index_sequence_for<Tensors...>());
      },
      std::vector<Tensor>{inputs...});
  const autograd::SavedTensorsHooks hooks(again->pack());
  return (*held)(inputs...);
}

/// net(x) in `segments` parts of about equal numbers of modules, each but the last a checkpoint(). Throws
/// ValueError unless there are 1 to net.size() parts.
Tensor checkpoint_sequential(const Sequential& net, int64_t segments, const Tensor& x);

/// In the scope of this guard what operators keep for backward waits in host memory: tensors on GPUs are
/// copied there, and back when backward needs them. With `pin_memory` in pinned memory, without waiting for
/// the copies.
class SaveOnCpuGuard : public autograd::SavedTensorsHooks {
 public:
  explicit SaveOnCpuGuard(bool pin_memory = false);
};

}  // namespace tern::nn::utils
