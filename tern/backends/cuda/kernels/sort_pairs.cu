// CUB's radix sort, instantiated once.
#include <cub/device/device_radix_sort.cuh>

#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/sort.cuh"

namespace tern::cuda_backend {

void sort_pairs(const LaunchContext& context, const uint64_t* keys, uint64_t* sorted_keys,
                const int64_t* values, int64_t* sorted_values, int64_t count, int bits) {
  const cudaStream_t stream = stream_of(context.stream).handle();
  size_t nbytes = 0;
  const auto sort = [&](void* scratch) {
    return cub::DeviceRadixSort::SortPairs(scratch, nbytes, keys, sorted_keys, values, sorted_values, count,
                                           0, bits, stream);
  };
  TERN_CUDA_CALL(sort(nullptr));
  const Storage scratch = workspace(context, std::max<size_t>(nbytes, 1));
  TERN_CUDA_CALL(sort(scratch->data()));
}

}  // namespace tern::cuda_backend
