// CUB's radix sort, instantiated for the few types that sort.cuh promises.
#include <cub/device/device_radix_sort.cuh>

#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/sort.cuh"

namespace tern::cuda_backend {

template <class Key, class Value>
void sort_pairs(const LaunchContext& context, const Key* keys, Key* sorted_keys, const Value* values,
                Value* sorted_values, int64_t count, int bits) {
  const cudaStream_t stream = stream_of(context.stream).handle();
  size_t nbytes = 0;
  const auto number = static_cast<std::make_unsigned_t<Value>>(count);
  const auto sort = [&](void* scratch) {
    return cub::DeviceRadixSort::SortPairs(scratch, nbytes, keys, sorted_keys, values, sorted_values, number,
                                           0, bits, stream);
  };
  TERN_CUDA_CALL(sort(nullptr));
  const Storage scratch = workspace(context, std::max<size_t>(nbytes, 1));
  TERN_CUDA_CALL(sort(scratch->data()));
}

template void sort_pairs(const LaunchContext&, const uint32_t*, uint32_t*, const uint32_t*, uint32_t*,
                         int64_t, int);
template void sort_pairs(const LaunchContext&, const uint64_t*, uint64_t*, const uint32_t*, uint32_t*,
                         int64_t, int);
template void sort_pairs(const LaunchContext&, const uint64_t*, uint64_t*, const int64_t*, int64_t*, int64_t,
                         int);

}  // namespace tern::cuda_backend
