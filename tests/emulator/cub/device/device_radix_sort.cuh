// CUB's radix sort as the backend calls it.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

namespace cub {

struct DeviceRadixSort {
  template <class K, class V>
  static cudaError_t SortPairs(void* scratch, size_t& nbytes, const K* keys, K* sorted_keys, const V* values,
                               V* sorted_values, int64_t count, int begin_bit, int end_bit,
                               cudaStream_t stream) {
    if (scratch == nullptr) {
      nbytes = 1;
      return cudaSuccess;
    }
    return emulator::enqueue(stream, [=] {
      const bool all = end_bit >= static_cast<int>(sizeof(K)) * 8;
      const K mask = (all ? ~K(0) : (K(1) << end_bit) - 1) >> begin_bit << begin_bit;
      std::vector<int64_t> order(static_cast<size_t>(count));
      std::iota(order.begin(), order.end(), int64_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return (keys[a] & mask) < (keys[b] & mask); });
      for (size_t i = 0; i < order.size(); ++i) {
        sorted_keys[i] = keys[order[i]];
        sorted_values[i] = values[order[i]];
      }
    });
  }
};

}  // namespace cub
