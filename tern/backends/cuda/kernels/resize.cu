// Resizing of images, a thread for each element of the result. The windows and weights of both axes are
// written to tables first, since neighbours and images share them. Gradients are gathered: every element of
// the input's gradient looks at the outputs that it was used for, so that nothing is added by several threads
// at once.
#include "tern/kernels/resize.h"

#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/resize_window.h"

namespace tern::cuda_backend {
namespace {

/// uint8 is only picked, never summed.
template <class T>
using Weight = std::conditional_t<std::is_same_v<T, uint8_t>, float, Compute<T>>;

/// The windows of an axis: of outputs, in inputs.
template <class C>
struct Table {
  int *first, *count;
  C* weights;
  int most;
};
/// For each input the outputs that have it.
struct Users {
  int *first, *end;
};

template <class C>
struct Axis {
  ResizeRule<C> rule;
  int in, out;
  Table<C> table;
  Users users;
};

template <class C>
__device__ void write_window(const Axis<C>& axis, int o) {
  const ResizeWindow window = axis.rule.window(o, axis.table.weights + int64_t{o} * axis.table.most);
  axis.table.first[o] = static_cast<int>(window.first);
  axis.table.count[o] = static_cast<int>(window.count);
}
template <class C>
__global__ void write_windows(Axis<C> h, Axis<C> w) {
  const int i = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
  if (i < h.out)
    write_window(h, i);
  else if (i - h.out < w.out)
    write_window(w, i - h.out);
}

template <class C>
__device__ void write_user(const Axis<C>& axis, int i) {
  const Table<C>& t = axis.table;
  axis.users.first[i] = first_place(axis.out, [&](int o) { return t.first[o] + t.count[o] > i; });
  axis.users.end[i] = first_place(axis.out, [&](int o) { return t.first[o] > i; });
}
template <class C>
__global__ void write_users(Axis<C> h, Axis<C> w) {
  const int i = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
  if (i < h.in)
    write_user(h, i);
  else if (i - h.in < w.in)
    write_user(w, i - h.in);
}

/// The elements along an axis that result `i` is made of, and their weights.
template <class C, bool transposed>
struct Terms {
  const Table<C>& table;
  int i, first, end;

  __device__ __forceinline__ Terms(const Axis<C>& axis, int i_) : table(axis.table), i(i_) {
    first = transposed ? axis.users.first[i] : table.first[i];
    end = transposed ? axis.users.end[i] : first + table.count[i];
  }
  __device__ __forceinline__ C weight(int at) const {
    return transposed ? table.weights[int64_t{at} * table.most + i - table.first[at]]
                      : table.weights[int64_t{i} * table.most + at - first];
  }
};

/// [images, height, width, channels] of the result, less than 2^31 elements together.
struct Results {
  uint32_t count;
  Divider width, height, channels;
};

template <class T, bool transposed>
__global__ void resize_elements(Results results, Axis<Weight<T>> h, Axis<Weight<T>> w, const T* in, T* out) {
  using C = Weight<T>;
  const uint32_t e = blockIdx.x * kBlock + threadIdx.x;
  if (e >= results.count) return;
  const uint32_t pixel = results.channels.divide(e), row = results.width.divide(pixel),
                 image = results.height.divide(row);
  const uint32_t inner = results.channels.divisor, channel = e - pixel * inner;
  const Terms<C, transposed> rows(h, static_cast<int>(row - image * results.height.divisor));
  const Terms<C, transposed> columns(w, static_cast<int>(pixel - row * results.width.divisor));
  const int from_h = transposed ? h.out : h.in, from_w = transposed ? w.out : w.in;
  C sum = C(0);
  for (int y = rows.first; y < rows.end; ++y) {
    const T* from = in + ((int64_t{image} * from_h + y) * from_w) * inner + channel;
    C part = C(0);
    for (int x = columns.first; x < columns.end; ++x) {
      const C term = columns.weight(x) * static_cast<C>(widen(from[int64_t{x} * inner]));
      part = x == columns.first ? term : part + term;  // a sum with 0 would lose the sign of -0
    }
    const C term = rows.weight(y) * part;
    sum = y == rows.first ? term : sum + term;
  }
  if constexpr (std::is_same_v<T, uint8_t>)
    out[e] = static_cast<uint8_t>(sum);
  else
    out[e] = narrow<T>(sum);
}

template <class C>
Axis<C> axis_of(const ResizeAxis& axis) {
  const ResizeRule<C> rule(axis);
  return {rule,
          static_cast<int>(axis.in),
          static_cast<int>(axis.out),
          {nullptr, nullptr, nullptr, static_cast<int>(rule.most())},
          {}};
}

/// Gives parts of `memory` to the tables; their size in bytes, also without memory.
template <class C>
int64_t place_tables(char* memory, std::initializer_list<Axis<C>*> axes) {
  int64_t at = 0;
  const auto take = [&](int64_t nbytes) {
    char* part = memory == nullptr ? nullptr : memory + at;
    at += nbytes;
    return part;
  };
  for (Axis<C>* axis : axes)
    axis->table.weights =
        reinterpret_cast<C*>(take(int64_t{axis->out} * axis->table.most * static_cast<int64_t>(sizeof(C))));
  for (Axis<C>* axis : axes) {
    const int64_t outputs = axis->out * static_cast<int64_t>(sizeof(int));
    const int64_t inputs = axis->in * static_cast<int64_t>(sizeof(int));
    axis->table.first = reinterpret_cast<int*>(take(outputs));
    axis->table.count = reinterpret_cast<int*>(take(outputs));
    axis->users.first = reinterpret_cast<int*>(take(inputs));
    axis->users.end = reinterpret_cast<int*>(take(inputs));
  }
  return at;
}

template <class T, bool transposed>
void run_resize(const LaunchContext& context, const ResizeArgs& args) {
  using C = Weight<T>;
  const auto size = [&](const ResizeAxis& axis, bool of_result) {
    return of_result != transposed ? axis.out : axis.in;
  };
  const int64_t from = size(args.h, false) * size(args.w, false) * args.inner;
  const int64_t to = size(args.h, true) * size(args.w, true) * args.inner;
  if (std::max({from, to, args.h.in + args.w.in, args.h.out + args.w.out}) > kMostElements - kBlock)
    throw_not_on_gpus("resizing of images of 2^31 elements");
  Axis<C> h = axis_of<C>(args.h), w = axis_of<C>(args.w);
  const Storage tables = workspace(context, static_cast<size_t>(place_tables<C>(nullptr, {&h, &w})));
  place_tables<C>(static_cast<char*>(tables->data()), {&h, &w});
  const auto along = [](int64_t count) { return blocks(ceil_div(count, kBlock)); };
  start(context, along(args.h.out + args.w.out), kBlock, 0, write_windows<C>, h, w);
  if (transposed) start(context, along(args.h.in + args.w.in), kBlock, 0, write_users<C>, h, w);
  const int64_t at_once = kMostElements / to;
  for (int64_t first = 0; first < args.outer; first += at_once) {
    const int64_t images = std::min(at_once, args.outer - first);
    const Results results{static_cast<uint32_t>(images * to), Divider(size(args.w, true)),
                          Divider(size(args.h, true)), Divider(args.inner)};
    start(context, along(images * to), kBlock, 0, resize_elements<T, transposed>, results, h, w,
          static_cast<const T*>(args.input) + first * from, static_cast<T*>(args.output) + first * to);
  }
}

}  // namespace

void resize(const LaunchContext& context, const ResizeArgs& args) {
  if (args.dtype == DType::UInt8) return run_resize<uint8_t, false>(context, args);
  visit_floating(args.dtype, [&]<class T>() {
    if (args.transposed)
      run_resize<T, true>(context, args);
    else
      run_resize<T, false>(context, args);
  });
}

}  // namespace tern::cuda_backend
