// Generator: the state of random numbers. By default it is counter-based (philox.h): number i of a draw
// depends on the seed and the position alone, so every device and every number of threads gives the same
// ones. With a Mersenne Twister (mersenne_twister.h) it draws PyTorch's numbers on the CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tern/core/philox.h"

namespace tern {

class MersenneTwister;

/// How a generator makes its numbers.
enum class RandomEngine : uint8_t {
  Philox,           ///< the same numbers on every device and for every number of threads
  MersenneTwister,  ///< on the CPU the numbers of `torch.manual_seed`; on other devices keys for Philox
};

/// A seed and a place in its sequence. Copies of a handle share the place. Safe to use from several threads.
class Generator {
 public:
  using State = PhiloxState;

  explicit Generator(uint64_t seed = 0, RandomEngine engine = RandomEngine::Philox);
  /// Starts again from a seed, with the engine that it has.
  void manual_seed(uint64_t seed);
  void manual_seed(uint64_t seed, RandomEngine engine);
  RandomEngine engine() const;
  /// Throws ValueError for a Mersenne Twister, whose state is only bytes().
  State state() const;
  /// The engine is Philox afterwards.
  void set_state(State state);
  /// The state as PyTorch's `get_state()` lays it out: 16 bytes for Philox (seed, position; little-endian),
  /// as a GPU's generator there, 5056 for a Mersenne Twister, as the CPU's.
  std::vector<uint8_t> bytes() const;
  /// Takes back what bytes() or PyTorch gave; the size decides the engine. Throws ValueError for other sizes
  /// and for bytes that are no state.
  void set_bytes(std::span<const uint8_t> bytes);
  /// A generator that draws once more what another drew from where its bytes() were these. In a recorded step
  /// too: each replay repeats what that one draws in it. Throws as set_bytes().
  static Generator repeating(std::span<const uint8_t> bytes);
  /// Takes `counters` Philox counters and returns the seed and the first of them. A Mersenne Twister gives
  /// one 64-bit number as the seed, and position 0; throws CaptureError while a step is recorded, since every
  /// replay would draw the same.
  State reserve(uint64_t counters);
  /// Calls `draw` with the Mersenne Twister while no other thread draws from it. Throws ValueError for
  /// Philox.
  void with_twister(const std::function<void(MersenneTwister&)>& draw);
  /// True for handles that share their place.
  bool same_as(const Generator& other) const noexcept { return shared_ == other.shared_; }

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

/// The generator that random functions use when none is given. Starts with a fixed seed: runs repeat unless
/// `manual_seed` or `seed` is called.
Generator& default_generator();

/// In the scope of this guard default_generator() is another one, for the calling thread.
class DefaultGeneratorGuard {
 public:
  explicit DefaultGeneratorGuard(Generator generator);
  ~DefaultGeneratorGuard();
  DefaultGeneratorGuard(const DefaultGeneratorGuard&) = delete;
  DefaultGeneratorGuard& operator=(const DefaultGeneratorGuard&) = delete;

 private:
  Generator generator_;
  Generator* before_;
};

/// Seeds the default generator. With `RandomEngine::MersenneTwister` what is drawn on the CPU from now on is
/// what PyTorch draws there after `torch.manual_seed(seed)` (ops/random.h).
void manual_seed(uint64_t seed);
void manual_seed(uint64_t seed, RandomEngine engine);

/// Seeds the default generator from the operating system's entropy and returns the seed.
uint64_t seed();

}  // namespace tern
