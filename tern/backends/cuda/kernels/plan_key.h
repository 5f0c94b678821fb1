// What plans of libraries are kept by: structs of int64 alone, hashed by their bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tern/device/plugin.h"

namespace tern::cuda_backend {

/// For unordered maps whose key is a struct of int64 without padding.
template <class Key>
struct PlanHash {
  size_t operator()(const Key& key) const {
    static_assert(sizeof(Key) % sizeof(int64_t) == 0 && std::is_trivially_copyable_v<Key>);
    int64_t words[sizeof(Key) / sizeof(int64_t)];
    std::memcpy(words, &key, sizeof key);
    uint64_t hash = kEmptyFingerprint;
    for (int64_t word : words) hash = (hash ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15u;
    return static_cast<size_t>(hash ^ hash >> 32);
  }
};

/// The largest power of two up to `most`, itself one, that divides an address, in bytes.
inline int64_t alignment(const void* data, int64_t most) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  while (address % static_cast<uintptr_t>(most) != 0) most /= 2;
  return most;
}

}  // namespace tern::cuda_backend
