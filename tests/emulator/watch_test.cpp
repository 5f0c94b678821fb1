// What the watch finds, shown with kernels that are wrong on purpose, and what it lets pass.
// Compiled like a .cu file of the backend that is watched.
#include <gtest/gtest.h>

#include "tests/emulator/queue.h"

namespace {

constexpr int kThreads = 64;

using Kernel = void (*)(int*);

void run(Kernel kernel, int blocks) {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4092), cudaSuccess);
  void* arguments[] = {&memory};
  EXPECT_EQ(cudaLaunchKernel(kernel, blocks, kThreads, arguments, 256, stream), cudaSuccess);
  emulator::finish_all();
}

__global__ void reads_a_neighbor(int* out) {
  __shared__ int shared[kThreads];
  shared[threadIdx.x] = 1;
  out[blockIdx.x * kThreads + threadIdx.x] = shared[threadIdx.x ^ 1];
}
__global__ void reads_a_neighbor_after_a_vote(int* out) {
  __shared__ int shared[kThreads];
  shared[threadIdx.x] = 1;
  __ballot_sync(~0u, 1);
  out[blockIdx.x * kThreads + threadIdx.x] = shared[threadIdx.x ^ 1];
}
__global__ void overwrites_what_another_reads(int* out) {
  TERN_DYNAMIC_SHARED(int, shared);
  shared[threadIdx.x] = 1;
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
  shared[threadIdx.x] = 2;
}
__global__ void all_write_one(int* out) { out[0] = 1; }
__global__ void blocks_write_one(int* out) {
  if (threadIdx.x == 0) out[0] = 1;
}
__global__ void blocks_read_what_one_writes(int* out) {
  if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = 1;
  if (threadIdx.x == 0 && blockIdx.x != 0) out[blockIdx.x] = out[0];
}
__global__ void reads_the_last_block(int* out) {
  __shared__ int shared[kThreads];
  if (blockIdx.x == 0) shared[threadIdx.x] = 1;
  out[blockIdx.x * kThreads + threadIdx.x] = shared[threadIdx.x];
}
__global__ void reads_what_atomics_write(int* out) {
  atomicMin(reinterpret_cast<unsigned*>(out), threadIdx.x);
  if (threadIdx.x == 7) out[1] = out[0];
}
__global__ void copies_to_one_place(int* out) {
  struct Piece {
    int parts[24];
  };
  reinterpret_cast<Piece*>(out)[threadIdx.x / 2] = Piece{};
}

__global__ void writes_a_byte_of_a_word(int* out) {
  if (threadIdx.x == 0) out[0] = 1;
  if (threadIdx.x == 1) reinterpret_cast<char*>(out)[3] = 1;
}
__global__ void writes_a_word_of_bytes(int* out) {
  reinterpret_cast<char*>(out)[threadIdx.x] = 1;
  if (blockIdx.x == 1 && threadIdx.x == 9) out[2] = 1;
}

__global__ void writes_beyond_an_allocation(int* out) {
  out[threadIdx.x * 64 / 3] = 1;  // of 1023 elements
}
__global__ void reads_half_beyond_an_allocation(int* in) {
  if (reinterpret_cast<long long*>(in)[511] == 0) __syncthreads();
}
__global__ void writes_beyond_shared_memory(int*) {
  TERN_DYNAMIC_SHARED(int, shared);  // 64 of them
  shared[threadIdx.x + 1] = 1;
}
__global__ void reads_before_an_allocation(int* in) {
  if (in[-1] == 0) __syncthreads();
}

TEST(WatchDeathTest, FaultsAreToldOfAndEndTheProcessWithAStatus) {
  const struct {
    Kernel kernel;
    int blocks;
    const char* told;
  } rows[] = {
      {reads_a_neighbor, 1, "shared memory is (read and written|written and read|read before)"},
      {reads_a_neighbor_after_a_vote, 1, "shared memory is written and read"},
      {overwrites_what_another_reads, 1, "shared memory is (read and written|written and read)"},
      {all_write_one, 1, "global memory is written twice"},
      {blocks_write_one, 3, "global memory is written twice"},
      {blocks_read_what_one_writes, 3, "global memory is (read and written|written and read)"},
      {reads_the_last_block, 2, "shared memory is read before any thread"},
      {reads_what_atomics_write, 1, "global memory is (read and written|written and read)"},
      {copies_to_one_place, 1, "global memory is written twice"},
      {writes_a_byte_of_a_word, 1, "global memory is written twice"},
      {writes_a_word_of_bytes, 2, "global memory is written twice"},
      {writes_beyond_an_allocation, 1, "global memory that is not allocated"},
      {reads_half_beyond_an_allocation, 1, "global memory that is not allocated"},
      {writes_beyond_shared_memory, 1, "more shared memory"},
      {reads_before_an_allocation, 1, "global memory that is not allocated"},
  };
  for (const auto& row : rows)
    EXPECT_EXIT((run(row.kernel, row.blocks), std::exit(0)), testing::ExitedWithCode(66), row.told);
}

__global__ void reverses(int* out) {
  __shared__ int shared[kThreads];
  shared[threadIdx.x] = 1;
  __syncthreads();
  const int mine = shared[kThreads - 1 - threadIdx.x];
  __syncthreads();
  shared[threadIdx.x] = mine;
  out[blockIdx.x * kThreads + threadIdx.x] = shared[threadIdx.x];
}
__global__ void writes_bytes(int* out) {
  reinterpret_cast<unsigned char*>(out)[blockIdx.x * kThreads + threadIdx.x] = 1;
}
__global__ void meets_by_atomics(int* out) {
  if (*static_cast<volatile int*>(out) != 7) atomicCAS_system(out, 7, 8);
}
__global__ void only_reads(int* in) {
  if (in[0] == 1) __syncthreads();
}

TEST(Watch, FindsNothingWhereNothingIsWrong) {
  const auto rest = [] {
    for (const Kernel kernel : {reverses, writes_bytes, meets_by_atomics, only_reads}) run(kernel, 3);
    std::exit(0);
  };
  EXPECT_EXIT(rest(), testing::ExitedWithCode(0), "");
}

}  // namespace
