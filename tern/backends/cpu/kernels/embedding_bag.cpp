// Sums and means of the rows of a table that bags of numbers name.
#include <algorithm>
#include <cstring>

#include "tern/backends/cpu/kernels/gemm_vec.h"
#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/widen.h"
#include "tern/kernels/index.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kBagBytes = 256;                       // of sums that registers hold
constexpr int64_t kColumnsAhead = 256, kRowsAhead = 16;  // that are asked for before they are needed

template <class T>
struct Bags {
  using C = Compute<T>;
  static constexpr int64_t kBagColumns = kBagBytes / static_cast<int64_t>(sizeof(C));  // added at a time
  static constexpr int64_t kBagLanes = kWidened<T> ? kWideLanes : kLanes<C>;
  static constexpr int kBagVectors = static_cast<int>(kBagColumns / kBagLanes);
  const EmbeddingBagArgs& args;

  const T* row(int64_t place) const {
    const int64_t number = args.dims.index[0][place];
    if (static_cast<uint64_t>(number) >= static_cast<uint64_t>(args.dims.size[0])) [[unlikely]]
      throw_index_out_of_bounds(args.dims, 0, number);
    return static_cast<const T*>(args.table) + number * args.dims.stride[0];
  }

  /// Calls add(row, factor) for the rows of a bag from column `first` on, and returns their number.
  template <class Add>
  [[gnu::always_inline]] int64_t add_rows(int64_t begin, int64_t end, int64_t first, const Add& add) const {
    constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
    const int64_t stride = args.column_stride, padding = args.padding;
    const int64_t columns_ahead = stride == 1 && first == 0 ? std::min(args.width, kColumnsAhead) : 0;
    const int64_t last_ahead = columns_ahead > 0 ? args.length - kRowsAhead : 0;
    const auto* factors = static_cast<const T*>(args.factors);
    const int64_t* index = args.dims.index[0];
    int64_t count = 0;
    for (int64_t place = begin; place < end; ++place) {
      if (place < last_ahead) {
        const T* ahead = row(place + kRowsAhead);
        for (int64_t j = 0; j < columns_ahead; j += kLine) __builtin_prefetch(ahead + j);
      }
      const T* from = row(place) + first * stride;
      if (index[place] == padding) continue;
      ++count;
      add(from, factors ? static_cast<C>(factors[place]) : C(1));
    }
    return count;
  }

  void run(int64_t bag) const {
    typedef C Wide __attribute__((vector_size(kBagLanes * sizeof(C))));
    if (!args.is_in_order(bag)) throw_bag_out_of_order(args.dims.op, bag, args.begins[bag], args.length);
    const int64_t begin = args.bag_begin(bag), end = args.bag_begin(bag + 1), stride = args.column_stride;
    T* out = static_cast<T*>(args.out) + bag * args.width;
    for (int64_t first = 0; first < args.width; first += kBagColumns) {
      const int64_t columns = std::min(kBagColumns, args.width - first);
      alignas(64) C sums[kBagColumns] = {};
      int64_t count = 0;
      if (stride == 1 && columns == kBagColumns) {
        Wide total[kBagVectors] = {};
        count = add_rows(
            begin, end, first, [&](const T* from, C factor) __attribute__((always_inline)) {
              TERN_UNROLL for (int v = 0; v < kBagVectors; ++v) {
                Wide x;
                if constexpr (kWidened<T>)
                  widen_lanes(reinterpret_cast<C*>(&x), from + v * kBagLanes);
                else
                  std::memcpy(&x, from + v * kBagLanes, sizeof x);
                total[v] += factor * x;
              }
            });
        std::memcpy(sums, total, sizeof sums);
      } else {
        count = add_rows(begin, end, first, [&](const T* from, C factor) {
          for (int64_t j = 0; j < columns; ++j) sums[j] += factor * static_cast<C>(from[j * stride]);
        });
      }
      if (args.means && count > 1)
        for (int64_t j = 0; j < columns; ++j) sums[j] /= static_cast<C>(count);
      for (int64_t j = 0; j < columns; ++j) out[first + j] = static_cast<T>(sums[j]);
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
