// The state of random numbers.
#include "tern/core/generator.h"

#include <cstring>
#include <mutex>
#include <random>
#include <utility>

#include "tern/base/check.h"
#include "tern/core/mersenne_twister.h"
#include "tern/core/recording.h"

namespace tern {

struct Generator::Shared {
  mutable std::mutex mutex;
  State state;
  std::optional<MersenneTwister> twister;  ///< the engine, where there is one
  bool repeats = false;                    ///< numbers that another generator has drawn

  void seed(uint64_t seed, RandomEngine engine) {
    std::lock_guard lock(mutex);
    state = {seed, 0};
    twister.reset();
    if (engine == RandomEngine::MersenneTwister) twister.emplace(seed);
  }
};

namespace {

void check_not_recording() {
  TERN_CHECK(
      !detail::step_recorder, CaptureError,
      "capture: the step sets the state of a generator: every replay would draw the same numbers: seed "
      "outside the step");
}

}  // namespace

Generator::Generator(uint64_t seed, RandomEngine engine) : shared_(std::make_shared<Shared>()) {
  shared_->seed(seed, engine);
}

void Generator::manual_seed(uint64_t seed) { manual_seed(seed, engine()); }

void Generator::manual_seed(uint64_t seed, RandomEngine engine) {
  check_not_recording();
  shared_->seed(seed, engine);
}

RandomEngine Generator::engine() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->twister ? RandomEngine::MersenneTwister : RandomEngine::Philox;
}

Generator::State Generator::state() const {
  std::lock_guard lock(shared_->mutex);
  TERN_CHECK(
      !shared_->twister, ValueError,
      "Generator::state: a Mersenne Twister has no seed and position: use bytes(), or get_rng_state()");
  return shared_->state;
}

void Generator::set_state(State state) {
  check_not_recording();
  std::lock_guard lock(shared_->mutex);
  shared_->twister.reset();
  shared_->state = state;
}

std::vector<uint8_t> Generator::bytes() const {
  std::lock_guard lock(shared_->mutex);
  if (shared_->twister) return shared_->twister->bytes();
  std::vector<uint8_t> bytes(sizeof(State));
  std::memcpy(bytes.data(), &shared_->state, sizeof(State));
  return bytes;
}

void Generator::set_bytes(std::span<const uint8_t> bytes) {
  const Generator read = repeating(bytes);
  check_not_recording();
  std::lock_guard lock(shared_->mutex);
  shared_->state = read.shared_->state;
  shared_->twister = read.shared_->twister;
}

Generator Generator::repeating(std::span<const uint8_t> bytes) {
  Generator generator;
  Shared& shared = *generator.shared_;
  shared.repeats = true;
  if (bytes.size() == sizeof(State)) {
    std::memcpy(&shared.state, bytes.data(), sizeof(State));
    return generator;
  }
  TERN_CHECK(
      MersenneTwister::has_size_of_bytes(bytes.size()), ValueError,
      "random state: expected {} bytes (Philox, as PyTorch's of a GPU) or 5056 (a Mersenne Twister, as "
      "PyTorch's of the CPU), got {}",
      sizeof(State), bytes.size());
  shared.twister = MersenneTwister::from_bytes(bytes);
  return generator;
}

Generator::State Generator::reserve(uint64_t counters) {
  State before;
  {
    std::lock_guard lock(shared_->mutex);
    if (shared_->twister) {
      TERN_CHECK(
          !detail::step_recorder, CaptureError,
          "capture: the step draws from a Mersenne Twister in a way that cannot be repeated: every replay "
          "would draw the same numbers: use a generator with RandomEngine::Philox");
      return {shared_->twister->next64(), 0};
    }
    before = shared_->state;
    shared_->state.position += counters;
  }
  if (detail::step_recorder && !shared_->repeats) [[unlikely]]
    detail::step_recorder->random_reserved(*this, before, counters);
  return before;
}

void Generator::with_twister(const std::function<void(MersenneTwister&)>& draw) {
  std::lock_guard lock(shared_->mutex);
  TERN_CHECK(shared_->twister, ValueError, "Generator: the engine is Philox, not a Mersenne Twister");
  draw(*shared_->twister);
}

namespace {
constinit thread_local Generator* stand_in = nullptr;  // for the default generator
}

Generator& default_generator() {
  static Generator generator(67280421310721u);  // PyTorch's default seed
  return stand_in ? *stand_in : generator;
}

DefaultGeneratorGuard::DefaultGeneratorGuard(Generator generator)
    : generator_(std::move(generator)), before_(std::exchange(stand_in, &generator_)) {}
DefaultGeneratorGuard::~DefaultGeneratorGuard() { stand_in = before_; }

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }
void manual_seed(uint64_t seed, RandomEngine engine) { default_generator().manual_seed(seed, engine); }

uint64_t seed() {
  std::random_device entropy;
  uint64_t value = static_cast<uint64_t>(entropy()) << 32 | entropy();
  manual_seed(value);
  return value;
}

}  // namespace tern
