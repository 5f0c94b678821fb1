// Variance and mean. Each piece of the data is passed over three times while it is in the cache: its mean,
// what the mean lost in rounding, its squared deviations. A piece whose squares leave the range of float is
// passed over again in double.
#include "tern/backends/cpu/kernels/moments.h"
#include "tern/backends/cpu/kernels/reduce_ops.h"
#include "tern/device/backend.h"
#include "tern/kernels/reduce.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

using wide::Block;
using wide::kLanes;
using wide::kTileBlocks;

/// values[j] = moments of all chunks of column j, merged pairwise.
void merge_chunks(Moments* values, int64_t chunks, int64_t width) {
  for (int64_t step = 1; step < chunks; step *= 2)
    for (int64_t i = 0; i + step < chunks; i += 2 * step)
      for (int64_t j = 0; j < width; ++j) values[i * width + j].merge(values[(i + step) * width + j]);
}

/// Whether squares summed in float may have overflowed, or lost digits below the smallest normal number.
template <class C>
bool left_range(double squares) {
  if constexpr (std::is_same_v<C, double>) return false;
  constexpr double kSmallest = 0x1p-100, kLargest = std::numeric_limits<float>::max();
  return !(squares >= kSmallest && squares <= kLargest);
}

template <class T>
class MomentsReduction {
 public:
  using C = Compute<T>;

  explicit MomentsReduction(const MomentsArgs& args)
      : args_(args),
        in_(static_cast<const T*>(args.in)),
        limit_(wide::reach(in_, args.kept, args.reduced)),
        plan_(wide::make_plan<C>(args.kept, args.reduced)) {}

  void run() const {
    const int64_t n = args_.reduced.numel;
    const int64_t width = plan_.tile;
    auto work = [&](int64_t task, Moments* values) {
      const int64_t begin = task % plan_.chunks * plan_.chunk;
      const int64_t end = std::min(n, begin + plan_.chunk);
      if (plan_.columns)
        columns(task / plan_.chunks, begin, end, values);
      else
        values[0] = row(task / plan_.chunks, begin, end);
    };
    if (plan_.chunks == 1) {
      parallel_for(plan_.tasks(), plan_.grain(), [&](int64_t begin, int64_t end) {
        Moments values[kTileBlocks * kLanes<C>];
        for (int64_t task = begin; task < end; ++task) {
          work(task, values);
          put(task, values);
        }
      });
      return;
    }
    Scratch<Moments> partial(plan_.tasks() * width);
    parallel_for(plan_.tasks(), plan_.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) work(task, partial.get() + task * width);
    });
    for (int64_t group = 0; group < plan_.outer * plan_.tiles; ++group) {
      Moments* values = partial.get() + group * plan_.chunks * width;
      merge_chunks(values, plan_.chunks, width);
      put(group, values);
    }
  }

 private:
  Moments row(int64_t k, int64_t begin, int64_t end) const {
    const T* x = in_ + wide::offset_of(args_.kept, k);
    const C sum = wide::reduce_row(wide::Sum<T>{}, x, args_.reduced, begin, end);
    const C shift = sum / static_cast<C>(end - begin);
    Block<C> shifts;
    wide::splat(shifts, shift);
    const Moments fast =
        corrected(shift, wide::reduce_row(wide::SumDeviations<T>(shifts.part), x, args_.reduced, begin, end),
                  wide::reduce_row(wide::SumSquaredDeviations<T>(shifts.part), x, args_.reduced, begin, end),
                  end - begin);
    return left_range<C>(fast.squares) ? in_double(x, begin, end) : fast;
  }

  /// The moments of the elements [begin, end) of the walk from x, all steps in double.
  Moments in_double(const T* x, int64_t begin, int64_t end) const {
    auto sum_over = [&](auto term) {
      double sum = 0;
      walk_rows(args_.reduced, begin, end, [&](const int64_t(&offset)[1], int64_t count) {
        const int64_t step = args_.reduced.strides[0][args_.reduced.ndim - 1];
        for (int64_t i = 0; i < count; ++i)
          sum += term(static_cast<double>(static_cast<C>(x[offset[0] + i * step])));
      });
      return sum;
    };
    const double count = static_cast<double>(end - begin);
    const double mean = sum_over([](double value) { return value; }) / count;
    if (!std::isfinite(mean)) return {count, std::nan(""), std::nan("")};
    return {count, mean, sum_over([&](double value) { return (value - mean) * (value - mean); })};
  }

  void columns(int64_t group, int64_t begin, int64_t end, Moments* values) const {
    const int64_t first = group % plan_.tiles * plan_.tile;
    const int64_t width = std::min(plan_.tile, plan_.width - first);
    const T* x = in_ + wide::offset_of(plan_.kept, group / plan_.tiles) + first;
    Block<C> means[kTileBlocks], deviations[kTileBlocks], squares[kTileBlocks];
    const C scale = static_cast<C>(end - begin);
    wide::reduce_columns(wide::Sum<T>{}, x, limit_, width, args_.reduced, begin, end, means);
    for (int64_t j = 0; j < (width + kLanes<C> - 1) / kLanes<C>; ++j)
      for (auto& part : means[j].part) part /= scale;
    const wide::Register<C>* shifts = means[0].part;
    wide::reduce_columns(wide::SumDeviations<T>(shifts), x, limit_, width, args_.reduced, begin, end,
                         deviations);
    wide::reduce_columns(wide::SumSquaredDeviations<T>(shifts), x, limit_, width, args_.reduced, begin, end,
                         squares);
    C mean[kLanes<C>], rest[kLanes<C>], square[kLanes<C>];
    for (int64_t j = 0; j < width; ++j) {
      const int64_t lane = j % kLanes<C>;
      if (lane == 0) {
        std::memcpy(mean, &means[j / kLanes<C>], sizeof mean);
        std::memcpy(rest, &deviations[j / kLanes<C>], sizeof rest);
        std::memcpy(square, &squares[j / kLanes<C>], sizeof square);
      }
      values[j] = corrected(mean[lane], rest[lane], square[lane], end - begin);
      if (left_range<C>(values[j].squares)) values[j] = in_double(x + j, begin, end);
    }
  }

  void put(int64_t group, const Moments* values) const {
    const int64_t first = group % plan_.tiles * plan_.tile;
    const int64_t width = std::min(plan_.tile, plan_.width - first);
    const int64_t k = group / plan_.tiles * plan_.width + first;
    const double divisor = std::max(0.0, static_cast<double>(args_.reduced.numel) - args_.correction);
    for (int64_t j = 0; j < width; ++j) {
      const double variance = values[j].squares / divisor;
      static_cast<T*>(args_.out)[k + j] =
          static_cast<T>(static_cast<C>(args_.sqrt ? std::sqrt(variance) : variance));
      if (args_.mean) static_cast<T*>(args_.mean)[k + j] = static_cast<T>(static_cast<C>(values[j].mean));
    }
  }

  const MomentsArgs& args_;
  const T* in_;
  const T* limit_;
  wide::Plan plan_;
};

}  // namespace

void moments(const LaunchContext&, const MomentsArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    if (args.reduced.numel == 0) {
      const T nan = static_cast<T>(std::numeric_limits<Compute<T>>::quiet_NaN());
      std::fill_n(static_cast<T*>(args.out), args.kept.numel, nan);
      if (args.mean) std::fill_n(static_cast<T*>(args.mean), args.kept.numel, nan);
    } else if (args.kept.numel != 0) {
      MomentsReduction<T>(args).run();
    }
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
