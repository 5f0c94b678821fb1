// Runs the threads of a kernel on the CPU: one block after the other, the threads of a block as fibers that
// change where they wait for each other. The order of blocks and threads is drawn anew for every grid, so
// that a missing __syncthreads() shows in the results.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace emulator {

/// Where the running thread stands.
struct Position {
  uint3 thread, block;
  dim3 block_size, grid_size;
};
const Position& position() noexcept;
/// Its number in its block.
unsigned thread_number() noexcept;

/// Of memory whose size the launch says, without asking for more first.
inline constexpr size_t kMostDynamicShared = size_t{48} << 10;
/// It lies in as much memory, so that what goes beyond it meets nothing else.
inline constexpr size_t kDynamicSharedRegion = size_t{64} << 10;

/// Runs `thread` once for every thread of the grid. One grid runs at a time. A deadlock or a barrier that
/// some threads of the block left out ends the process with a message. `shared_bytes`: of each block's memory
/// whose size the launch says.
void run_grid(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& thread);

/// The running block's memory whose size the launch says; at first it holds NaN.
void* dynamic_shared() noexcept;

/// Waits for the block; gives the number of threads whose `vote` was true.
int sync_block(bool vote = false);

/// Waits for the warp; gives what the lane `source` handed over. A lane that does not take part gives
/// garbage.
uint64_t shuffle(uint64_t value, unsigned source);
/// Waits for the warp; a bit for every lane whose `vote` was true.
uint32_t ballot(bool vote);

}  // namespace emulator
