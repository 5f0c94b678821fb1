// The shapes that a module shows while processes have divided its parameters among them. Internal to nn and
// to what binds it; parallel/fully_shard.h divides.
#pragma once

#include <atomic>
#include <memory>

#include "tern/nn/module.h"

namespace tern::nn::detail {

/// While it lives, the module's own divided parameters have the shapes of the whole ones, and no numbers: for
/// its text, and for sizes that follow from its parameters.
class WholeShapes {
 public:
  using Show = std::shared_ptr<void> (*)(Module& module);
  /// Puts them in place until the result goes; null while nothing is divided.
  static std::atomic<Show> show;

  explicit WholeShapes(const Module& module) {
    if (const Show shown = show.load(std::memory_order_acquire)) [[unlikely]]
      held_ = shown(const_cast<Module&>(module));
  }

 private:
  std::shared_ptr<void> held_;
};

}  // namespace tern::nn::detail
