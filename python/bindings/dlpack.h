// The structs by which libraries hand tensors to each other, as DLPack (version 0.8) lays them out in memory.
// The names in C are DLTensor, DLManagedTensor and so on.
#pragma once

#include <cstdint>

namespace tern::python::dlpack {

enum DeviceType : int32_t { kCPU = 1, kCUDA = 2, kPinned = 3 };
struct Device {
  int32_t type;
  int32_t id;
};

enum TypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBFloat = 4, kComplex = 5, kBool = 6 };
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
  bool operator==(const DataType&) const = default;
};

struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  ///< in elements; null for row-major
  uint64_t byte_offset;
};

struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor* self);  ///< called once by who took the tensor; may be null
};

}  // namespace tern::python::dlpack
