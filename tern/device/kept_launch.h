// KeptLaunch: a launch whose arguments outlive the call that made it, for queues and recordings.
#pragma once

#include <cstring>
#include <memory>

#include "tern/device/backend.h"

namespace tern {

/// A launch with copies of its args and of the array that they point to.
class KeptLaunch {
 public:
  explicit KeptLaunch(const Launch& launch)
      : launch_(launch), args_(new std::byte[launch.nbytes + launch.array.nbytes]) {
    std::memcpy(args_.get(), launch.args, launch.nbytes);
    launch_.args = args_.get();
    if (launch.array.nbytes == 0) return;
    // The array travels behind the args, and the pointer to it is moved there.
    std::byte* copy = args_.get() + launch.nbytes;
    std::byte* pointer = args_.get() + launch.array.pointer_offset;
    const void* array;
    std::memcpy(&array, pointer, sizeof array);
    std::memcpy(copy, array, launch.array.nbytes);
    std::memcpy(pointer, &copy, sizeof copy);
  }

  /// Where a random launch's numbers begin.
  PhiloxState random_start() const noexcept {
    PhiloxState start;
    std::memcpy(&start.seed, args() + launch_.random.seed_offset, sizeof start.seed);
    std::memcpy(&start.position, args() + launch_.random.position_offset, sizeof start.position);
    return start;
  }
  void set_random(const PhiloxState& start) noexcept {
    std::memcpy(args() + launch_.random.seed_offset, &start.seed, sizeof start.seed);
    std::memcpy(args() + launch_.random.position_offset, &start.position, sizeof start.position);
  }

  /// With the copies.
  const Launch& launch() const noexcept { return launch_; }
  /// See Launch::origin.
  void set_origin(uint32_t origin) noexcept { launch_.origin = origin; }
  std::byte* args() const noexcept { return args_.get(); }

 private:
  Launch launch_;
  std::unique_ptr<std::byte[]> args_;
};

}  // namespace tern
