// Elements of one tensor or another, chosen by a condition; bits are moved by the size of an element.
#include "tern/backends/cuda/kernels/bits.cuh"
#include "tern/backends/cuda/kernels/pointwise.cuh"

namespace tern::cuda_backend {
namespace {

template <class T>
__global__ void select(T* out, const uint8_t* condition, const T* a, const T* b, T a_scalar, T b_scalar,
                       uint32_t n, Offsets<4> offsets) {
  struct Element {
    int64_t to;
    uint8_t condition;
    T x, y;
  };
  const auto read = [&](uint32_t i) {
    int64_t at[4];
    offsets.at(i, at);
    return Element{at[0], condition[at[1]], a ? a[at[2]] : a_scalar, b ? b[at[3]] : b_scalar};
  };
  each_of_thread<kPerThread>(n, read,
                             [&](uint32_t, const Element& e) { out[e.to] = e.condition != 0 ? e.x : e.y; });
}

template <class T>
void run(const LaunchContext& context, const WhereArgs& args) {
  const T a_scalar = static_cast<T>(args.a ? 0 : bits_of(args.dtype, args.a_scalar));
  const T b_scalar = static_cast<T>(args.b ? 0 : bits_of(args.dtype, args.b_scalar));
  for_pieces(args.geometry, [&](const Geometry<4>& g, const int64_t(&by)[4]) {
    start(context, blocks(ceil_div(g.numel, kBlock * kPerThread)), kBlock, 0, select<T>,
          static_cast<T*>(args.out) + by[0], static_cast<const uint8_t*>(args.condition) + by[1],
          moved(static_cast<const T*>(args.a), by[2]), moved(static_cast<const T*>(args.b), by[3]), a_scalar,
          b_scalar, static_cast<uint32_t>(g.numel), Offsets<4>(g));
  });
}

}  // namespace

void where(const LaunchContext& context, const WhereArgs& args) {
  switch (itemsize(args.dtype)) {
    case 1:
      return run<uint8_t>(context, args);
    case 2:
      return run<uint16_t>(context, args);
    case 4:
      return run<uint32_t>(context, args);
    case 8:
      return run<uint64_t>(context, args);
    default:
      throw_not_computable(args.dtype);
  }
}

}  // namespace tern::cuda_backend
