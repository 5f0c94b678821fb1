// What is kept for backward in place of tensors: nothing but how to compute them again, a copy on the host, a
// file. nn/checkpoint.h is made of it.
#pragma once

#include <functional>

#include "tern/core/tensor.h"

namespace tern {
struct PackingScope;
}  // namespace tern

namespace tern::autograd {

/// In the scope of this guard, on this thread, operators that keep a tensor for backward call `pack` with it
/// and keep what that returns, a function that gives the same values back, of the same shape, dtype and
/// device. As torch.autograd.graph.saved_tensors_hooks:
///
///     SavedTensorsHooks on_disk([](const Tensor& x) {
///       std::string file = next_file();
///       save(x, file);
///       return [file] { return load(file).as_tensor(); };
///     });
///
/// The function is called at each use, on the thread and stream of backward, and goes when the graph does.
/// Both are called without recording. Leaves that require gradients (parameters) are kept as they are. Guards
/// nest; the innermost counts, unless its `pack` returns an empty function: then the next one out is asked,
/// and what nobody packs is kept as it is. Backward throws AutogradError where something else comes back;
/// that what was packed has been changed in place since goes unnoticed, as in PyTorch.
class SavedTensorsHooks {
 public:
  using Unpack = std::function<Tensor()>;
  using Pack = std::function<Unpack(const Tensor&)>;

  explicit SavedTensorsHooks(Pack pack);
  ~SavedTensorsHooks();
  SavedTensorsHooks(const SavedTensorsHooks&) = delete;
  SavedTensorsHooks& operator=(const SavedTensorsHooks&) = delete;

 private:
  friend struct tern::PackingScope;

  Pack pack_;
  const SavedTensorsHooks* before_;
};

}  // namespace tern::autograd
