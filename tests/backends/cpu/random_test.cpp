// Random words of every instruction set against Philox as core/philox.h has it.
#include "tern/kernels/random.h"

#include "tern/core/philox.h"
#include "tests/backends/cpu/kernel_testing.h"

namespace tern::testing {
namespace {

TEST(CpuRandom, WordsAreThoseOfPhilox) {
  constexpr uint64_t kSeed = 0xfedcba9876543210u,
                     kPosition = 0xfffffff0u;  // counters go on in the second word
  for_each_variant([&](const Variant& variant) {
    for (const size_t count : {1, 127, 128, 1001, 40000}) {
      std::vector<int64_t> got(count);
      RandomArgs args{};
      args.distribution = Distribution::Integer;
      args.dtype = int64;
      args.out = got.data();
      args.numel = static_cast<int64_t>(count);
      args.seed = kSeed;
      args.position = kPosition;
      variant.run(kernels::random, args);
      for (size_t i = 0; i < count; ++i) {
        const auto words = philox(kSeed, kPosition + i / 2);
        const uint64_t expected = uint64_t{words[i % 2 * 2]} << 32 | words[i % 2 * 2 + 1];
        ASSERT_EQ(static_cast<uint64_t>(got[i]), expected) << i << " of " << count;
      }
    }
  });
}

}  // namespace
}  // namespace tern::testing
