// The state of random numbers.
#include "tern/core/generator.h"

#include <mutex>
#include <random>

#include "tern/core/recording.h"

namespace tern {

struct Generator::Shared {
  mutable std::mutex mutex;
  State state;
};

Generator::Generator(uint64_t seed) : shared_(std::make_shared<Shared>()) { shared_->state.seed = seed; }

void Generator::manual_seed(uint64_t seed) { set_state({seed, 0}); }

Generator::State Generator::state() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->state;
}

void Generator::set_state(State state) {
  std::lock_guard lock(shared_->mutex);
  shared_->state = state;
}

Generator::State Generator::reserve(uint64_t counters) {
  State before;
  {
    std::lock_guard lock(shared_->mutex);
    before = shared_->state;
    shared_->state.position += counters;
  }
  if (detail::step_recorder) [[unlikely]]
    detail::step_recorder->random_reserved(*this, before, counters);
  return before;
}

Generator& default_generator() {
  static Generator generator(67280421310721u);  // PyTorch's default seed
  return generator;
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

uint64_t seed() {
  std::random_device entropy;
  uint64_t value = static_cast<uint64_t>(entropy()) << 32 | entropy();
  manual_seed(value);
  return value;
}

}  // namespace tern
