// Every kernel that a backend must give: the number, name and argument struct of each. A backend's table has one entry
// for each line; the lines themselves stand beside the argument structs of their family.
#pragma once

#include "tern/device/launch.h"
#include "tern/kernels/optim.h"
#include "tern/kernels/pointwise.h"

#define TERN_KERNELS(X) \
  TERN_POINTWISE_KERNELS(X) \
  TERN_OPTIM_KERNELS(X)

namespace tern::kernels {

namespace detail {
#define TERN_NUMBER(kernel, Args) kernel##_id,
enum : uint16_t { TERN_KERNELS(TERN_NUMBER) count };
#undef TERN_NUMBER
}  // namespace detail

inline constexpr int kCount = detail::count;

#define TERN_HANDLE(kernel, Args) inline constexpr Kernel<Args> kernel{detail::kernel##_id, #kernel};
TERN_KERNELS(TERN_HANDLE)
#undef TERN_HANDLE

}  // namespace tern::kernels
