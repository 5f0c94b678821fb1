// Finds races in kernels that were compiled with -fsanitize=thread, whose every access to memory calls
// race_hooks.cpp: two threads touch one byte, one of them writes, and no __syncthreads() lies between. What
// compute-sanitizer's racecheck and initcheck find in shared memory, and races between blocks beside it. A
// warp's shuffles and votes order no memory, in CUDA as here.
//
// Each pair of lines is told of once on stderr, and a process that had any ends with status 66.
#pragma once

#include <cstddef>
#include <cstdint>

namespace emulator::races {

/// `Atomic`: also of volatile variables. One races with the other kinds only.
enum class Access { Read, Write, Atomic };

/// What the thread of the kernel that runs does at [address, address + nbytes); nothing outside of kernels.
/// `from`: the address of the instruction, for the report.
void touch(const void* address, size_t nbytes, Access access, const void* from) noexcept;

/// A block's variables of a loaded library, from a multiple of 4 on; they are read by nobody before a thread
/// of the block wrote them.
void add_shared(const void* first, size_t nbytes);

/// The memory of the GPUs.
void add_global(const void* first, size_t nbytes);

/// Told by the grid that runs.
void grid_begins();
void block_begins(const void* dynamic_shared, size_t nbytes);
void barrier();
void grid_ends();

}  // namespace emulator::races
