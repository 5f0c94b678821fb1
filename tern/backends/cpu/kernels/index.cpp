// Reading and writing elements named by index tensors, finding non-zero
// elements, searching sorted rows. The order in which writes meet is explained
// at IndexPutArgs (kernels/index.h).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/kernels/functors.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kIndexGrain = kPointwiseGrain / 4;

[[gnu::always_inline]] inline int64_t checked(const IndexedDims& dims, int which, int64_t index) {
  const int64_t size = dims.size[which];
  const int64_t wrapped = dims.wrap && index < 0 ? index + size : index;
  if (static_cast<uint64_t>(wrapped) >= static_cast<uint64_t>(size)) [[unlikely]]
    throw_index_out_of_bounds(dims, which, index);
  return wrapped;
}

/// The operands of a kernel with N index tensors. One is by far the most common number, and is compiled
/// apart.
template <int N>
Geometry<2 + N> operands(const IndexGeometry& all) {
  Geometry<2 + N> g;
  g.ndim = all.ndim;
  g.numel = all.numel;
  std::copy_n(all.sizes, kMaxDims, g.sizes);
  for (int i = 0; i < 2 + N; ++i) std::copy_n(all.strides[i], kMaxDims, g.strides[i]);
  return g;
}
template <class F>
void visit_count(const IndexedDims& dims, F&& f) {
  if (dims.count == 1)
    f.template operator()<1>();
  else
    f.template operator()<kMaxIndexTensors>();
}
template <int N>
int count_of(const IndexedDims& dims) {
  return N == 1 ? 1 : dims.count;
}

/// Where the index tensors point when read at `offsets`, in elements of the addressed tensor.
template <int N>
[[gnu::always_inline]] inline int64_t address(const IndexedDims& dims, const int64_t* offsets) {
  int64_t at = 0;
  for (int j = 0; j < count_of<N>(dims); ++j)
    at += checked(dims, j, dims.index[j][offsets[j]]) * dims.stride[j];
  return at;
}

/// True when one address serves a whole row of the geometry.
template <int N>
bool fixed_address(const IndexedDims& dims, const Geometry<2 + N>& g) {
  for (int j = 0; j < count_of<N>(dims); ++j)
    if (g.strides[2 + j][g.ndim - 1] != 0) return false;
  return true;
}

/// One index tensor's checks with everything in registers.
class Checker {
 public:
  explicit Checker(const IndexedDims& dims)
      : dims_(dims), size_(dims.size[0]), stride_(dims.stride[0]), wrap_(dims.wrap ? size_ : 0) {}
  [[gnu::always_inline]] int64_t operator()(int64_t index) const {
    const int64_t wrapped = index < 0 ? index + wrap_ : index;
    if (static_cast<uint64_t>(wrapped) >= static_cast<uint64_t>(size_)) [[unlikely]]
      throw_index_out_of_bounds(dims_, 0, index);
    return wrapped * stride_;
  }

 private:
  const IndexedDims& dims_;
  int64_t size_, stride_, wrap_;
};

/// out[i] = x[i + index[i] * stride], each with its own step.
template <class T>
void get_row(const IndexedDims& dims, T* out, int64_t out_step, const T* x, int64_t x_step,
             const int64_t* index, int64_t index_step, int64_t n) {
  const Checker at(dims);
  for (int64_t i = 0; i < n; ++i) out[i * out_step] = x[i * x_step + at(index[i * index_step])];
}

template <class T, int N>
void get(const IndexGetArgs& args) {
  const Geometry<2 + N> g = operands<N>(args.geometry);
  const IndexedDims& dims = args.dims;
  const int inner = g.ndim - 1;
  const int64_t so = g.strides[0][inner], si = g.strides[1][inner];
  const bool fixed = fixed_address<N>(dims, g);
  T* out = static_cast<T*>(args.out);
  const T* in = static_cast<const T*>(args.in);
  parallel_for(g.numel, kIndexGrain, [&](int64_t begin, int64_t end) {
    walk_rows(g, begin, end, [&](const int64_t(&offsets)[2 + N], int64_t n) {
      T* o = out + offsets[0];
      const T* x = in + offsets[1];
      if (fixed) {
        x += address<N>(dims, offsets + 2);
        if (so == 1 && si == 1)
          std::memcpy(o, x, static_cast<size_t>(n) * sizeof(T));
        else
          for (int64_t i = 0; i < n; ++i) o[i * so] = x[i * si];
      } else if constexpr (N == 1) {
        get_row(dims, o, so, x, si, dims.index[0] + offsets[2], g.strides[2][inner], n);
      } else {
        int64_t at[N];
        std::copy_n(offsets + 2, N, at);
        for (int64_t i = 0; i < n; ++i) {
          o[i * so] = x[i * si + address<N>(dims, at)];
          for (int j = 0; j < dims.count; ++j) at[j] += g.strides[2 + j][inner];
        }
      }
    });
  });
}

struct SetElement {
  template <class T>
  [[gnu::always_inline]] static T apply(T, T value) {
    return value;
  }
};
struct AddElement {
  template <class T>
  [[gnu::always_inline]] static T apply(T old, T value) {
    using C = Compute<T>;
    return static_cast<T>(functors::wrap_add(static_cast<C>(old), static_cast<C>(value)));
  }
};

/// out[i] = source[i], or +=.
template <class Mode, class T>
void put_row(T* out, int64_t out_step, const T* source, int64_t source_step, int64_t n) {
  if (out_step == 1 && source_step == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = Mode::apply(out[i], source[i]);
  } else {
    for (int64_t i = 0; i < n; ++i)
      out[i * out_step] = Mode::apply(out[i * out_step], source[i * source_step]);
  }
}

/// The same with an address for each element.
template <class Mode, int N, class T>
void put_points(const IndexedDims& dims, T* out, int64_t out_step, const T* source, int64_t source_step,
                const int64_t* start, const int64_t* steps, int64_t n) {
  if constexpr (N == 1) {
    const Checker at(dims);
    const int64_t* index = dims.index[0] + start[0];
    const int64_t index_step = steps[0];
    for (int64_t i = 0; i < n; ++i) {
      T& o = out[i * out_step + at(index[i * index_step])];
      o = Mode::apply(o, source[i * source_step]);
    }
  } else {
    int64_t at[N];
    std::copy_n(start, N, at);
    for (int64_t i = 0; i < n; ++i) {
      T& o = out[i * out_step + address<N>(dims, at)];
      o = Mode::apply(o, source[i * source_step]);
      for (int j = 0; j < dims.count; ++j) at[j] += steps[j];
    }
  }
}

template <class Mode, class T, int N>
void put(const IndexPutArgs& args) {
  const IndexedDims& dims = args.dims;
  Geometry<2 + N> free = operands<N>(args.free), addressed = operands<N>(args.addressed);
  T value{};
  const T* source = static_cast<const T*>(args.source);
  if (!source) {
    if constexpr (std::is_same_v<Compute<T>, float>)
      value = T(static_cast<float>(args.value.floating));
    else
      value = functors::from_param<T>(args.value);
    source = &value;
    std::fill_n(free.strides[1], kMaxDims, 0);
    std::fill_n(addressed.strides[1], kMaxDims, 0);
  }
  T* out = static_cast<T*>(args.out);
  const int fi = free.ndim - 1, ai = addressed.ndim - 1;
  const int64_t so = free.strides[0][fi], ss = free.strides[1][fi], step = addressed.strides[1][ai];
  const bool fixed = fixed_address<N>(dims, free);
  // One address for a row of elements, or one element for a row of addresses: whichever walks memory in
  // order.
  const bool by_row = fixed || free.strides[2][fi] <= addressed.strides[2][ai];
  int64_t free_steps[N], addressed_steps[N];
  for (int j = 0; j < N; ++j) {
    free_steps[j] = free.strides[2 + j][fi];
    addressed_steps[j] = addressed.strides[2 + j][ai];
  }

  // All addressed elements for a row of n free ones that start at `base`.
  auto piece = [&](const int64_t* base, int64_t n) {
    walk_rows(addressed, 0, addressed.numel, [&](const int64_t(&offsets)[2 + N], int64_t count) {
      int64_t at[N];
      for (int j = 0; j < N; ++j) at[j] = base[2 + j] + offsets[2 + j];
      const T* s = source + base[1] + offsets[1];
      if (n == 1) return put_points<Mode, N>(dims, out + base[0], 0, s, step, at, addressed_steps, count);
      for (int64_t k = 0; k < count; ++k, s += step) {
        if (fixed)
          put_row<Mode>(out + base[0] + address<N>(dims, at), so, s, ss, n);
        else
          put_points<Mode, N>(dims, out + base[0], so, s, ss, at, free_steps, n);
        for (int j = 0; j < N; ++j) at[j] += addressed_steps[j];
      }
    });
  };

  const int64_t grain = std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(1, addressed.numel));
  parallel_for(free.numel, grain, [&](int64_t begin, int64_t end) {
    walk_rows(free, begin, end, [&](const int64_t(&offsets)[2 + N], int64_t n) {
      if (by_row) return piece(offsets, n);
      int64_t base[2 + N];
      std::copy_n(offsets, 2 + N, base);
      for (int64_t i = 0; i < n; ++i) {
        piece(base, 1);
        for (int j = 0; j < 2 + N; ++j) base[j] += free.strides[j][fi];
      }
    });
  });
}

template <class T>
[[gnu::always_inline]] inline bool is_nonzero(T x) {
  if constexpr (std::is_same_v<T, Compute<T>>)
    return x != T(0);
  else
    return static_cast<float>(x) != 0.0f;
}

constexpr int64_t kNonzeroBlock = 65536;

/// Non-zero elements of each block of kNonzeroBlock elements.
template <class T>
std::vector<int64_t> count_blocks(const Geometry<1>& g, const T* in) {
  std::vector<int64_t> counts(static_cast<size_t>((g.numel + kNonzeroBlock - 1) / kNonzeroBlock));
  const int64_t step = g.strides[0][g.ndim - 1];
  parallel_for(static_cast<int64_t>(counts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      int64_t total = 0;
      walk_rows(g, block * kNonzeroBlock, std::min(g.numel, (block + 1) * kNonzeroBlock),
                [&](const int64_t(&offset)[1], int64_t n) {
                  const T* x = in + offset[0];
                  int32_t row = 0;  // a row is at most one block
                  if (step == 1)
                    for (int64_t i = 0; i < n; ++i) row += is_nonzero(x[i]);
                  else
                    for (int64_t i = 0; i < n; ++i) row += is_nonzero(x[i * step]);
                  total += row;
                });
      counts[static_cast<size_t>(block)] = total;
    }
  });
  return counts;
}

template <class T>
void list_nonzero(const NonzeroArgs& args) {
  const Geometry<1>& g = args.geometry;
  const T* in = static_cast<const T*>(args.in);
  std::vector<int64_t> first = count_blocks(g, in);
  int64_t total = 0;
  for (int64_t& count : first) total += std::exchange(count, total);
  const int64_t step = g.strides[0][g.ndim - 1];
  parallel_for(static_cast<int64_t>(first.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      int64_t n = first[static_cast<size_t>(block)];
      int64_t position = block * kNonzeroBlock;
      walk_rows(g, position, std::min(g.numel, position + kNonzeroBlock),
                [&](const int64_t(&offset)[1], int64_t count) {
                  const T* x = in + offset[0];
                  for (int64_t i = 0; i < count; ++i, ++position) {
                    if (!is_nonzero(x[i * step]) || n >= args.count) continue;
                    int64_t* row = args.out + n++ * args.row_stride;
                    int64_t rest = position;
                    for (int d = args.rank - 1; d > 0; --d) {
                      row[d * args.column_stride] = rest % args.sizes[d];
                      rest /= args.sizes[d];
                    }
                    row[0] = rest;
                  }
                });
    }
  });
}

/// The order of torch.sort: NaN above everything.
template <class C>
bool below(C a, C b) {
  if constexpr (std::is_floating_point_v<C>)
    return a < b || (b != b && a == a);
  else
    return a < b;
}

}  // namespace

void index_get(const LaunchContext&, const IndexGetArgs& args) {
  visit_count(args.dims, [&]<int N>() {
    switch (itemsize(args.dtype)) {
      case 1:
        return get<uint8_t, N>(args);
      case 2:
        return get<uint16_t, N>(args);
      case 4:
        return get<uint32_t, N>(args);
      case 8:
        return get<uint64_t, N>(args);
      default:
        throw_not_computable(args.dtype);
    }
  });
}

void index_put(const LaunchContext&, const IndexPutArgs& args) {
  visit_dtype(args.dtype, [&]<class T>() {
    visit_count(args.dims, [&]<int N>() {
      if (args.mode == IndexPutMode::Add)
        put<AddElement, T, N>(args);
      else
        put<SetElement, T, N>(args);
    });
  });
}

void nonzero_count(const LaunchContext&, const NonzeroCountArgs& args) {
  visit_dtype(args.dtype, [&]<class T>() {
    *args.count = 0;
    for (int64_t count : count_blocks(args.geometry, static_cast<const T*>(args.in))) *args.count += count;
  });
}

void nonzero(const LaunchContext&, const NonzeroArgs& args) {
  visit_dtype(args.dtype, [&]<class T>() { list_nonzero<T>(args); });
}

void searchsorted(const LaunchContext&, const SearchSortedArgs& args) {
  visit_dtype(args.dtype, [&]<class T>() {
    using C = Compute<T>;
    parallel_for(args.rows * args.row_values, 2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = static_cast<const T*>(args.sorted) + i / args.row_values * args.sorted_row_stride;
        const C value = static_cast<C>(static_cast<const T*>(args.values)[i]);
        const T* place = args.right ? std::upper_bound(row, row + args.length, value,
                                                       [](C v, T x) { return below(v, static_cast<C>(x)); })
                                    : std::lower_bound(row, row + args.length, value,
                                                       [](T x, C v) { return below(static_cast<C>(x), v); });
        args.out[i] = place - row;
      }
    });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
