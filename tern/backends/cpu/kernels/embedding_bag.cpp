// Sums and means of the rows of a table that bags of numbers name.
#include <algorithm>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/kernels/index.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kBagColumns = 256;  // that are added at a time
constexpr int64_t kRowsAhead = 8;     // that are asked for before they are needed

template <class T>
struct Bags {
  using C = Compute<T>;
  const EmbeddingBagArgs& args;

  const T* row(int64_t place) const {
    const int64_t number = args.dims.index[0][place];
    if (static_cast<uint64_t>(number) >= static_cast<uint64_t>(args.dims.size[0])) [[unlikely]]
      throw_index_out_of_bounds(args.dims, 0, number);
    return static_cast<const T*>(args.table) + number * args.dims.stride[0];
  }

  void prefetch(int64_t place) const {
    constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
    const T* from = row(place);
    if (args.column_stride == 1)
      for (int64_t j = 0; j < std::min(args.width, kBagColumns); j += kLine) __builtin_prefetch(from + j);
  }

  void run(int64_t bag) const {
    if (!args.is_in_order(bag)) throw_bag_out_of_order(args.dims.op, bag, args.begins[bag], args.length);
    const int64_t begin = args.bag_begin(bag), end = args.bag_begin(bag + 1), stride = args.column_stride;
    T* out = static_cast<T*>(args.out) + bag * args.width;
    for (int64_t first = 0; first < args.width; first += kBagColumns) {
      const int64_t columns = std::min(kBagColumns, args.width - first);
      alignas(64) C sums[kBagColumns] = {};
      int64_t count = 0;
      for (int64_t place = begin; place < end; ++place) {
        if (first == 0 && place + kRowsAhead < args.length) prefetch(place + kRowsAhead);
        const T* from = row(place) + first * stride;
        if (args.dims.index[0][place] == args.padding) continue;
        ++count;
        const C factor = args.factors ? static_cast<C>(static_cast<const T*>(args.factors)[place]) : C(1);
        if (stride == 1)
          for (int64_t j = 0; j < columns; ++j) sums[j] += factor * static_cast<C>(from[j]);
        else
          for (int64_t j = 0; j < columns; ++j) sums[j] += factor * static_cast<C>(from[j * stride]);
      }
      const C divisor = args.means ? static_cast<C>(std::max<int64_t>(count, 1)) : C(1);
      for (int64_t j = 0; j < columns; ++j) out[first + j] = static_cast<T>(sums[j] / divisor);
    }
  }
};

}  // namespace

void embedding_bag(const LaunchContext&, const EmbeddingBagArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    const int64_t elements = std::max<int64_t>(1, args.length * args.width / std::max<int64_t>(1, args.bags));
    parallel_for(args.bags, std::max<int64_t>(1, kPointwiseGrain / elements),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t bag = begin; bag < end; ++bag) Bags<T>{args}.run(bag);
                 });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
