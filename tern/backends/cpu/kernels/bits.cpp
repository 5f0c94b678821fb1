// Numbers as the bits of an element.
#include "tern/backends/cpu/kernels/bits.h"

#include "tern/backends/cpu/kernels/widen.h"
#include "tern/kernels/functors.h"

namespace tern::cpu::TERN_CPU_VARIANT {

uint64_t bits_of(DType dtype, const Param& number) {
  uint64_t bits = 0;
  visit_dtype(dtype, [&]<class T>() {
    T value;
    if constexpr (std::is_same_v<Compute<T>, float>)
      value = T(static_cast<float>(number.floating));
    else
      value = functors::from_param<T>(number);
    std::memcpy(&bits, &value, sizeof(T));
  });
  return bits;
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
