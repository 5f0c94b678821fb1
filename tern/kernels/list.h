// Every kernel that a backend must give: the number, name and argument struct of each. A backend's table has
// one entry for each line; the lines themselves stand beside the argument structs of their family.
#pragma once

#include "tern/device/launch.h"
#include "tern/kernels/attention.h"
#include "tern/kernels/complex.h"
#include "tern/kernels/conv.h"
#include "tern/kernels/creation.h"
#include "tern/kernels/distance.h"
#include "tern/kernels/fft.h"
#include "tern/kernels/grid_sample.h"
#include "tern/kernels/index.h"
#include "tern/kernels/linalg.h"
#include "tern/kernels/linear.h"
#include "tern/kernels/loss.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/norm.h"
#include "tern/kernels/optim.h"
#include "tern/kernels/pointwise.h"
#include "tern/kernels/pool.h"
#include "tern/kernels/random.h"
#include "tern/kernels/recurrent.h"
#include "tern/kernels/reduce.h"
#include "tern/kernels/resize.h"
#include "tern/kernels/scan.h"
#include "tern/kernels/softmax.h"
#include "tern/kernels/sort.h"

#define TERN_KERNELS(X)     \
  TERN_CREATION_KERNELS(X)  \
  TERN_RANDOM_KERNELS(X)    \
  TERN_POINTWISE_KERNELS(X) \
  TERN_COMPLEX_KERNELS(X)   \
  TERN_OPTIM_KERNELS(X)     \
  TERN_INDEX_KERNELS(X)     \
  TERN_LOSS_KERNELS(X)      \
  TERN_MATMUL_KERNELS(X)    \
  TERN_LINEAR_KERNELS(X)    \
  TERN_CONV_KERNELS(X)      \
  TERN_POOL_KERNELS(X)      \
  TERN_RESIZE_KERNELS(X)    \
  TERN_DISTANCE_KERNELS(X)  \
  TERN_GRID_KERNELS(X)      \
  TERN_NORM_KERNELS(X)      \
  TERN_RECURRENT_KERNELS(X) \
  TERN_REDUCE_KERNELS(X)    \
  TERN_SOFTMAX_KERNELS(X)   \
  TERN_ATTENTION_KERNELS(X) \
  TERN_SCAN_KERNELS(X)      \
  TERN_SORT_KERNELS(X)      \
  TERN_LINALG_KERNELS(X)    \
  TERN_FFT_KERNELS(X)

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
