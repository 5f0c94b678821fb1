// Watches what kernels do to memory. They were compiled with -fsanitize=thread, so that every access calls
// watch_hooks.cpp. Told of are races: two threads touch one byte, one of them writes, and no __syncthreads()
// lies between; shared memory that is read before it is written; and accesses beyond what is allocated or
// what the launch asked for. It is what compute-sanitizer's memcheck, racecheck and initcheck find, and races
// between blocks beside it. A warp's shuffles and votes order no memory, in CUDA as here.
//
// Each pair of lines is told of once on stderr, and a process that had any ends with status 66.
#pragma once

#include <cstddef>
#include <cstdint>

namespace emulator::watch {

/// `Atomic`: also of volatile variables. One races with the other kinds only.
enum class Access { Read, Write, Atomic };

/// What the thread of the kernel that runs does at [address, address + nbytes); nothing outside of kernels.
/// `from`: the address of the instruction, for the report.
void touch(const void* address, size_t nbytes, Access access, const void* from) noexcept;

/// A block's variables of a loaded library, from a multiple of 4 on; they are read by nobody before a thread
/// of the block wrote them.
void add_shared(const void* first, size_t nbytes);

/// The memory of the GPUs; all of it is free.
void add_global(const void* first, size_t nbytes);

/// Of the GPUs' memory [first, first + nbytes) may be touched from now on; later, no byte of it. `first` is a
/// multiple of kAlignment beyond the beginning.
void allocated(const void* first, size_t nbytes);
void freed(const void* first, size_t nbytes);

/// Told by the grid that runs.
void grid_begins();
void block_begins(const void* dynamic_shared, size_t nbytes);
void barrier();
void grid_ends();

}  // namespace emulator::watch
