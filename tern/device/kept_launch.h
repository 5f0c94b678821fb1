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

  /// With the copies.
  const Launch& launch() const noexcept { return launch_; }
  std::byte* args() const noexcept { return args_.get(); }

 private:
  Launch launch_;
  std::unique_ptr<std::byte[]> args_;
};

}  // namespace tern
