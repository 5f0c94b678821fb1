// Descriptors of the emulator's cuDNN: bags of attributes.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "tests/emulator/cudnn_real.h"

namespace emulator {

enum class Engine : int64_t { Careless, Rounding, Slow, Fast };
inline constexpr int64_t kEngines = 4;

struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::vector<char> bytes;
};

inline size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;  // enumerations and floats
  }
}

/// A descriptor. What it names must live until it is finished, as with the real one, whose finishing takes a
/// copy.
struct Bag {
  cudnnBackendDescriptorType_t type;
  bool finished = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes{};
  std::map<cudnnBackendAttributeName_t, std::shared_ptr<const Bag>> parts{};
  std::vector<std::shared_ptr<const Bag>> operations{};  ///< of a graph
  Engine engine = Engine::Fast;
  std::shared_ptr<Twin> twin{};
  std::shared_ptr<bool> planned = std::make_shared<bool>(false);  ///< whether the twin's graph has a plan
  bool loaded = true;  ///< the twin's plan: whether its code is on the GPU that it takes this machine to have

  template <class T>
  T one(cudnnBackendAttributeName_t name) const {
    T value{};
    const auto found = attributes.find(name);
    if (found != attributes.end() && found->second.bytes.size() >= sizeof value)
      std::memcpy(&value, found->second.bytes.data(), sizeof value);
    return value;
  }
  std::vector<int64_t> numbers(cudnnBackendAttributeName_t name) const {
    std::vector<int64_t> values;
    const auto found = attributes.find(name);
    if (found == attributes.end()) return values;
    values.resize(static_cast<size_t>(found->second.count));
    std::memcpy(values.data(), found->second.bytes.data(), found->second.bytes.size());
    return values;
  }
  const Bag* part(cudnnBackendAttributeName_t name) const {
    const auto found = parts.find(name);
    return found == parts.end() ? nullptr : found->second.get();
  }
};

inline Bag& bag(cudnnBackendDescriptor_t descriptor) { return *static_cast<Bag*>(descriptor); }

}  // namespace emulator
