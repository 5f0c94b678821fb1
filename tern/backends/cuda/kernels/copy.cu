// The kernels that move elements: fill, and copy with conversion.
#include "tern/backends/cuda/kernels/bits.cuh"
#include "tern/backends/cuda/kernels/pointwise.cuh"

namespace tern::cuda_backend {
namespace {

struct alignas(16) Bytes16 {
  uint64_t half[2];
};
struct Bytes3 {
  uint8_t byte[3];
};

/// Calls `f.template operator()<T>()` with a type of that many bytes.
template <class F>
void visit_size(DType dtype, F&& f) {
  switch (itemsize(dtype)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 3:
      return f.template operator()<Bytes3>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Bytes16>();
  }
}

template <class T>
__global__ void fill_flat(T* out, T value, int64_t n) {
  constexpr int kN = 16 / sizeof(T);
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kN;
  if (i + kN <= n) {
    Pack<T, kN> pack;
#pragma unroll
    for (int k = 0; k < kN; ++k) pack.at[k] = value;
    *reinterpret_cast<Pack<T, kN>*>(out + i) = pack;
  } else {
    for (int64_t k = i; k < n; ++k) out[k] = value;
  }
}

template <class T>
__global__ void fill_any(T* out, T value, uint32_t n, Offsets<1> offsets) {
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n) return;
  int64_t at[1];
  offsets.at(i, at);
  out[at[0]] = value;
}

template <class T>
__global__ void copy_any(T* out, const T* in, uint32_t n, Offsets<2> offsets) {
  struct Element {
    int64_t to;
    T value;
  };
  const auto read = [&](uint32_t i) {
    int64_t at[2];
    offsets.at(i, at);
    return Element{at[0], in[at[1]]};
  };
  each_of_thread<kPerThread>(n, read, [&](uint32_t, const Element& e) { out[e.to] = e.value; });
}

/// A thread for each pack; `in` is dense, or has one element for all of a row.
template <class T>
__global__ void copy_rows(T* out, const T* in, bool dense, uint32_t packs, Offsets<2> offsets) {
  constexpr int kN = 16 / sizeof(T);
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= packs) return;
  int64_t at[2];
  offsets.at(i, at);
  *reinterpret_cast<Pack<T, kN>*>(out + at[0]) = pack_at<T, kN>(in + at[1], dense);
}

/// Tiles through shared memory, so that both sides move whole lines: out[b][i][j] = in[b][j][i].
inline constexpr int kTile = 32, kTileRows = 8;
template <class T>
__global__ void transpose(T* out, const T* in, int64_t rows, int64_t cols, int64_t out_batch, int64_t out_row,
                          int64_t in_batch, int64_t in_col) {
  __shared__ T tile[kTile][kTile + 1];
  out += blockIdx.z * out_batch;
  in += blockIdx.z * in_batch;
  const int64_t i0 = int64_t{blockIdx.y} * kTile, j0 = int64_t{blockIdx.x} * kTile;
  for (int y = threadIdx.y; y < kTile; y += kTileRows) {
    const int64_t i = i0 + threadIdx.x, j = j0 + y;
    if (i < rows && j < cols) tile[y][threadIdx.x] = in[j * in_col + i];
  }
  __syncthreads();
  for (int y = threadIdx.y; y < kTile; y += kTileRows) {
    const int64_t i = i0 + y, j = j0 + threadIdx.x;
    if (i < rows && j < cols) out[i * out_row + j] = tile[threadIdx.x][y];
  }
}

bool is_transposition(const Geometry<2>& g) {
  if (g.ndim != 2 && g.ndim != 3) return false;
  const int r = g.ndim - 2, c = g.ndim - 1;
  return g.strides[0][c] == 1 && g.strides[1][r] == 1 && g.strides[1][c] > 1 && g.sizes[c] > 16 &&
         g.sizes[r] >= 8 && (g.ndim == 2 || g.sizes[0] <= 65535) && ceil_div(g.sizes[r], kTile) <= 65535;
}

void move(const LaunchContext& context, const CopyArgs& args) {
  const Geometry<2>& geometry = args.geometry;
  if (args.out == args.in) return;  // the same elements
  if (is_flat<2>(geometry, {args.out, args.in})) {
    TERN_CUDA_CALL(cudaMemcpyAsync(args.out, args.in,
                                   static_cast<size_t>(geometry.numel) * itemsize(args.out_dtype),
                                   cudaMemcpyDeviceToDevice, stream_of(context.stream).handle()));
    return;
  }
  visit_size(args.out_dtype, [&]<class T>() {
    auto* out = static_cast<T*>(args.out);
    const auto* in = static_cast<const T*>(args.in);
    if (is_transposition(geometry)) {
      const int r = geometry.ndim - 2, c = geometry.ndim - 1;
      const bool batched = geometry.ndim == 3;
      const dim3 grid(blocks(ceil_div(geometry.sizes[c], kTile)), blocks(ceil_div(geometry.sizes[r], kTile)),
                      batched ? static_cast<unsigned>(geometry.sizes[0]) : 1);
      return start(context, grid, dim3(kTile, kTileRows), 0, transpose<T>, out, in, geometry.sizes[r],
                   geometry.sizes[c], batched ? geometry.strides[0][0] : 0, geometry.strides[0][r],
                   batched ? geometry.strides[1][0] : 0, geometry.strides[1][c]);
    }
    if constexpr (16 % sizeof(T) == 0 && sizeof(T) < 16) {
      Geometry<2> packs;
      bool dense[2];
      if (geometry.numel > 0 && pack_rows(geometry, 16 / sizeof(T), packs, dense) && is_aligned(out, 16) &&
          (!dense[1] || is_aligned(in, 16)))
        return for_pieces(packs, [&](const Geometry<2>& g, const int64_t(&by)[2]) {
          start(context, blocks(ceil_div(g.numel, kBlock)), kBlock, 0, copy_rows<T>, out + by[0], in + by[1],
                dense[1], static_cast<uint32_t>(g.numel), Offsets<2>(g));
        });
    }
    for_pieces(geometry, [&](const Geometry<2>& g, const int64_t(&by)[2]) {
      start(context, blocks(ceil_div(g.numel, kBlock * kPerThread)), kBlock, 0, copy_any<T>, out + by[0],
            in + by[1], static_cast<uint32_t>(g.numel), Offsets<2>(g));
    });
  });
}

/// Through int64 or double, which hold every element exactly.
template <class Wide>
__global__ void convert_any(DType out_dtype, DType in_dtype, void* out, const void* in, uint32_t n,
                            Offsets<2> offsets) {
  const bool to_float = is_floating_point(out_dtype);
  struct Element {
    int64_t to;
    Wide x;
  };
  const auto read = [&](uint32_t i) {
    int64_t at[2];
    offsets.at(i, at);
    return Element{at[0], load<Wide>(in_dtype, in, at[1])};
  };
  each_of_thread<kAtOnce<Wide>>(n, read, [&](uint32_t, const Element& e) {
    if constexpr (std::is_same_v<Wide, double>) {
      if (to_float)
        store<double>(out_dtype, out, e.to, e.x);
      else
        store<int64_t>(out_dtype, out, e.to, out_dtype == DType::Bool ? e.x != 0.0 : to_integer(e.x));
    } else if (to_float) {
      // int64 goes to float at once: by way of double it would be rounded twice.
      if (out_dtype == DType::Float64)
        static_cast<double*>(out)[e.to] = static_cast<double>(e.x);
      else
        store<float>(out_dtype, out, e.to, static_cast<float>(e.x));
    } else {
      store<int64_t>(out_dtype, out, e.to, e.x);
    }
  });
}

template <class Out, class In>
__global__ void convert_flat(Out* out, const In* in, int64_t n) {
  constexpr int kN = 4;
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kN;
  if (i + kN <= n) {
    const auto x = *reinterpret_cast<const Pack<In, kN>*>(in + i);
    Pack<Out, kN> y;
#pragma unroll
    for (int k = 0; k < kN; ++k) y.at[k] = narrow<Out>(static_cast<Compute<Out>>(widen(x.at[k])));
    *reinterpret_cast<Pack<Out, kN>*>(out + i) = y;
  } else {
    for (int64_t k = i; k < n; ++k) out[k] = narrow<Out>(static_cast<Compute<Out>>(widen(in[k])));
  }
}

template <class Out, class In>
bool convert_dense(const LaunchContext& context, const CopyArgs& args) {
  if (args.out_dtype != dtype_of<Out>() || args.in_dtype != dtype_of<In>() ||
      !is_flat<2>(args.geometry, {args.out, args.in}) || !is_aligned(args.out, sizeof(Pack<Out, 4>)) ||
      !is_aligned(args.in, sizeof(Pack<In, 4>)))
    return false;
  start(context, blocks(ceil_div(args.geometry.numel, kBlock * 4)), kBlock, 0, convert_flat<Out, In>,
        static_cast<Out*>(args.out), static_cast<const In*>(args.in), args.geometry.numel);
  return true;
}

}  // namespace

void fill(const LaunchContext& context, const FillArgs& args) {
  const uint64_t bits = bits_of(args.dtype, args.value);
  const auto run = [&]<class T>() {
    const T value = static_cast<T>(bits);
    auto* out = static_cast<T*>(args.out);
    if (is_flat<1>(args.geometry, {out}) && is_aligned(out, 16)) {
      constexpr int kN = 16 / sizeof(T);
      return start(context, blocks(ceil_div(args.geometry.numel, kBlock * kN)), kBlock, 0, fill_flat<T>, out,
                   value, args.geometry.numel);
    }
    for_pieces(args.geometry, [&](const Geometry<1>& g, const int64_t(&by)[1]) {
      start(context, blocks(ceil_div(g.numel, kBlock)), kBlock, 0, fill_any<T>, out + by[0], value,
            static_cast<uint32_t>(g.numel), Offsets<1>(g));
    });
  };
  switch (itemsize(args.dtype)) {
    case 1:
      return run.template operator()<uint8_t>();
    case 2:
      return run.template operator()<uint16_t>();
    case 4:
      return run.template operator()<uint32_t>();
    default:
      return run.template operator()<uint64_t>();
  }
}

void copy(const LaunchContext& context, const CopyArgs& args) {
  if (args.out_dtype == args.in_dtype) return move(context, args);
  if (convert_dense<float, Half>(context, args) || convert_dense<float, BFloat16>(context, args) ||
      convert_dense<Half, float>(context, args) || convert_dense<BFloat16, float>(context, args) ||
      convert_dense<float, uint8_t>(context, args) || convert_dense<float, int64_t>(context, args))
    return;
  if (!is_computable(args.out_dtype)) throw_not_computable(args.out_dtype);
  if (!is_computable(args.in_dtype)) throw_not_computable(args.in_dtype);
  for_pieces(args.geometry, [&](const Geometry<2>& g, const int64_t(&by)[2]) {
    start(context, blocks(ceil_div(g.numel, kBlock * kPerThread)), kBlock, 0,
          is_floating_point(args.in_dtype) ? convert_any<double> : convert_any<int64_t>, args.out_dtype,
          args.in_dtype, moved(args.out, by[0], args.out_dtype), moved(args.in, by[1], args.in_dtype),
          static_cast<uint32_t>(g.numel), Offsets<2>(g));
  });
}

}  // namespace tern::cuda_backend
