// The table of this variant: every kernel of kernels/list.h, in its order. A kernel that is missing fails the
// link.
#include <array>

#include "tern/backends/cpu/kernels/gemm_tiles.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {

#define TERN_DECLARE(kernel, Args) void kernel(const LaunchContext&, const Args&);
TERN_KERNELS(TERN_DECLARE)
#undef TERN_DECLARE

#define TERN_ENTRY(kernel, Args) \
  [](const LaunchContext& context, const void* args) { kernel(context, *static_cast<const Args*>(args)); }
#define TERN_LIST_ENTRY(kernel, Args) TERN_ENTRY(kernel, Args),
extern const KernelFn kernel_table[kernels::kCount];
const KernelFn kernel_table[kernels::kCount] = {TERN_KERNELS(TERN_LIST_ENTRY)};

// The kernels that have a form for processors with tiles.
#define TERN_TILE_KERNELS(X)             \
  X(matmul, MatmulArgs)                  \
  X(linear_backward, LinearBackwardArgs) \
  X(conv2d, Conv2dArgs)                  \
  X(conv2d_backward, Conv2dBackwardArgs)

#define TERN_DECLARE(kernel, Args) void kernel##_tiles(const LaunchContext&, const Args&);
TERN_TILE_KERNELS(TERN_DECLARE)
#undef TERN_DECLARE

/// The table with those in their places, or null. Constants, since they are there before the processor is
/// asked.
#define TERN_REPLACE(kernel, Args) entries[kernels::kernel.id] = TERN_ENTRY(kernel##_tiles, Args);
constinit const auto entries_with_tiles = [] {
  std::array<KernelFn, kernels::kCount> entries = {TERN_KERNELS(TERN_LIST_ENTRY)};
  TERN_TILE_KERNELS(TERN_REPLACE)
  return entries;
}();
extern const KernelFn* const tiles_table;
constinit const KernelFn* const tiles_table = kHasTiles ? entries_with_tiles.data() : nullptr;

}  // namespace tern::cpu::TERN_CPU_VARIANT
