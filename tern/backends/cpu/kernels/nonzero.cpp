// Counting and listing of non-zero elements. Rows become masks of bytes; positions are then written whether
// they count or not, and only the place of the next one depends on the mask, so that nothing branches on it.
#include <algorithm>
#include <utility>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int64_t kSections = 16;  // that one thread takes at a time
constexpr int64_t kTile = 2048;    // and those that it has a mask of

using MaskRow = void (*)(uint8_t* mask, const void* in, int64_t first, int64_t step, int64_t n);

template <class T>
void mask_row(uint8_t* mask, const void* in, int64_t first, int64_t step, int64_t n) {
  const T* x = static_cast<const T*>(in) + first;
  auto is_nonzero = [](T value) {
    if constexpr (std::is_same_v<T, Compute<T>>)
      return value != T(0);
    else
      return static_cast<float>(value) != 0.0f;
  };
  if (step == 1)
    for (int64_t i = 0; i < n; ++i) mask[i] = is_nonzero(x[i]);
  else
    for (int64_t i = 0; i < n; ++i) mask[i] = is_nonzero(x[i * step]);
}

/// Calls `tile(mask, n)` for all elements from `begin` to `end`, in order.
template <class Tile>
void walk_masks(DType dtype, const void* in, const Geometry<1>& g, int64_t begin, int64_t end, Tile&& tile) {
  const MaskRow row = visit_dtype(dtype, []<class T>() -> MaskRow { return &mask_row<T>; });
  const int64_t step = g.strides[0][g.ndim - 1];
  walk_rows(g, begin, end, [&](const int64_t(&offset)[1], int64_t count) {
    uint8_t mask[kTile];
    for (int64_t i = 0; i < count; i += kTile) {
      const int64_t n = std::min(kTile, count - i);
      row(mask, in, offset[0] + i * step, step, n);
      tile(mask, n);
    }
  });
}

/// Writes coordinates of found elements, from one position on.
class Lister {
 public:
  Lister(const NonzeroArgs& args, int64_t position, int64_t found) : args_(args), found_(found) {
    for (int d = args.rank - 1; d >= 0; --d) {
      coordinates_[d] = position % args.sizes[d];
      position /= args.sizes[d];
    }
  }

  void take(const uint8_t* mask, int64_t n) {
    const int last = args_.rank - 1;
    while (n > 0) {
      const int64_t count = std::min(n, args_.sizes[last] - coordinates_[last]);
      take_row(mask, count);
      mask += count;
      n -= count;
      coordinates_[last] += count;
      for (int d = last; d > 0 && coordinates_[d] == args_.sizes[d]; --d) {
        coordinates_[d] = 0;
        ++coordinates_[d - 1];
      }
    }
  }

 private:
  /// Elements that differ in the last coordinate alone.
  void take_row(const uint8_t* mask, int64_t n) {
    const int last = args_.rank - 1;
    int32_t places[kTile];
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      places[count] = static_cast<int32_t>(i);
      count += mask[i];
    }
    count = std::min(count, args_.count - found_);
    int64_t* out = args_.out + found_ * args_.row_stride;
    for (int d = 0; d < last; ++d)
      for (int64_t k = 0; k < count; ++k)
        out[k * args_.row_stride + d * args_.column_stride] = coordinates_[d];
    out += last * args_.column_stride;
    for (int64_t k = 0; k < count; ++k) out[k * args_.row_stride] = coordinates_[last] + places[k];
    found_ += count;
  }

  const NonzeroArgs& args_;
  int64_t found_;
  int64_t coordinates_[kMaxDims];
};

}  // namespace

void nonzero_count(const LaunchContext&, const NonzeroCountArgs& args) {
  const Geometry<1>& g = args.geometry;
  const int64_t sections = nonzero_sections(g.numel);
  parallel_for(sections, kSections, [&](int64_t begin, int64_t end) {
    for (int64_t section = begin; section < end; ++section) {
      int64_t total = 0;
      walk_masks(args.dtype, args.in, g, section * kNonzeroSection,
                 std::min(g.numel, (section + 1) * kNonzeroSection), [&](const uint8_t* mask, int64_t n) {
                   int32_t set = 0;
                   for (int64_t i = 0; i < n; ++i) set += mask[i];
                   total += set;
                 });
      args.starts[section] = total;
    }
  });
  int64_t before = 0;
  for (int64_t section = 0; section < sections; ++section)
    before += std::exchange(args.starts[section], before);
  args.starts[sections] = before;
}

void nonzero(const LaunchContext&, const NonzeroArgs& args) {
  const int64_t numel = args.geometry.numel;
  parallel_for(nonzero_sections(numel), kSections, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kNonzeroSection;
    Lister list(args, first, args.starts[begin]);
    walk_masks(args.dtype, args.in, args.geometry, first, std::min(numel, end * kNonzeroSection),
               [&](const uint8_t* mask, int64_t n) { list.take(mask, n); });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
