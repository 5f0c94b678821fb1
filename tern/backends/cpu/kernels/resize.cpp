// Resizing of images: the two axes one after the other, through rows that stay in the cache. Argument struct
// and rules are in tern/kernels/resize.h.
#include "tern/kernels/resize.h"

#include <algorithm>
#include <cstring>

#include "tern/backends/cpu/kernels/resize_bands.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/base/parallel.h"
#include "tern/device/launch.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Multiply-adds of a piece of an image below which it is not divided.
constexpr int64_t kPieceWork = 65536;

template <class T>
class Resizer {
 public:
  using C = Compute<T>;

  explicit Resizer(const ResizeArgs& args)
      : rows_(band(args.h, args.transposed)),
        band_(band(args.w, args.transposed)),
        from_h_(args.transposed ? args.h.out : args.h.in),
        from_w_(args.transposed ? args.w.out : args.w.in),
        columns_(band_, args.inner, from_w_),
        from_n_(from_w_ * args.inner),
        to_n_(band_.rows * args.inner),
        keeps_rows_(ResizeRule<C>(args.h).keeps()),
        keeps_columns_(ResizeRule<C>(args.w).keeps()),
        input_(static_cast<const T*>(args.input)),
        output_(static_cast<T*>(args.output)) {
    // A step along a row costs more than one from row to row.
    const int64_t along = args.inner * (args.inner < kLanes<C> ? 4 : 1) * band_.terms();
    columns_first_ = from_h_ * along + rows_.terms() * to_n_ < rows_.rows * along + rows_.terms() * from_n_;
    row_work_ = (rows_.terms() * std::max(from_n_, to_n_) + rows_.rows * along) / rows_.rows + 1;
  }

  void run(int64_t images) const {
    const int64_t height = rows_.rows;
    const int64_t piece = std::clamp<int64_t>(kPieceWork / row_work_, 1, height);
    const int64_t pieces = (height + piece - 1) / piece;
    parallel_for(images * pieces, std::max<int64_t>(1, kPieceWork / (piece * row_work_)),
                 [&](int64_t begin, int64_t end) {
                   Buffers buffers(*this);
                   // Neighbouring pieces of one image are done at once.
                   while (begin < end) {
                     const int64_t image = begin / pieces, last = std::min(end, (image + 1) * pieces);
                     rows(image, (begin - image * pieces) * piece,
                          std::min(height, (last - image * pieces) * piece), buffers);
                     begin = last;
                   }
                 });
  }

 private:
  static Band<C> band(const ResizeAxis& axis, bool transposed) {
    Band<C> band = Band<C>::of(axis);
    return transposed ? band.transposed(axis.in) : band;
  }

  const C* weights(int64_t i) const { return rows_.weights.data() + i * rows_.most; }

  struct Buffers {
    explicit Buffers(const Resizer& r)
        : wide(kWidened<T> ? r.from_n_ : 0),
          rows(r.columns_first_ ? r.rows_.most * r.to_n_ : r.from_n_),
          taken(static_cast<size_t>(r.rows_.most)),
          summed(taken.size()) {}
    Scratch<C> wide;  ///< a row of the 16-bit floats as floats
    Scratch<C> rows;  ///< of which one axis is done
    std::vector<const T*> taken;
    std::vector<const C*> summed;
  };

  /// One row along itself.
  template <class Out>
  void along(Out* to, const T* from, Buffers& buffers) const {
    if (columns_.by_pixel())
      columns_.run_pixels(to, from);
    else
      columns_.run(to, to_compute(from, from_n_, buffers.wide.get()));
  }

  /// Rows [begin, end) of an image's result.
  void rows(int64_t image, int64_t begin, int64_t end, Buffers& buffers) const {
    const T* from = input_ + image * from_h_ * from_n_;
    T* to = output_ + image * rows_.rows * to_n_;
    C* done = buffers.rows.get();
    int64_t next = 0;  // with columns first: rows before it are done or no longer used
    for (int64_t i = begin; i < end; ++i) {
      if (keeps_rows_) {
        along(to + i * to_n_, from + i * from_n_, buffers);
      } else if (keeps_columns_) {
        across(to + i * to_n_, from, i, buffers);
      } else if (columns_first_) {
        const int64_t first = rows_.first[i], last = first + rows_.count[i];
        for (next = std::max(next, first); next < last; ++next)
          along(done + next % rows_.most * to_n_, from + next * from_n_, buffers);
        for (int64_t y = first; y < last; ++y) buffers.summed[y - first] = done + y % rows_.most * to_n_;
        sum_rows(to + i * to_n_, buffers.summed.data(), weights(i), last - first, to_n_);
      } else {
        across(done, from, i, buffers);
        columns_.run(to + i * to_n_, done);
      }
    }
  }

  /// Row i of the result of the axis of rows alone.
  template <class Out>
  void across(Out* to, const T* from, int64_t i, Buffers& buffers) const {
    for (int64_t k = 0; k < rows_.count[i]; ++k) buffers.taken[k] = from + (rows_.first[i] + k) * from_n_;
    sum_rows(to, buffers.taken.data(), weights(i), rows_.count[i], from_n_);
  }

  Band<C> rows_, band_;
  int64_t from_h_, from_w_;
  Columns<C> columns_;
  int64_t from_n_, to_n_;
  bool keeps_rows_, keeps_columns_, columns_first_;
  int64_t row_work_;
  const T* input_;
  T* output_;
};

/// The nearest modes: elements as they are. Rows that are taken twice are copied from the first result.
template <class T>
void pick(const ResizeArgs& args) {
  const Band<float> rows = Band<float>::of(args.h), columns = Band<float>::of(args.w);
  const int64_t inner = args.inner, from_n = args.w.in * inner, to_n = args.w.out * inner;
  const int64_t grain = std::max<int64_t>(1, kPieceWork / to_n);
  parallel_for(args.outer * rows.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t image = r / rows.rows, i = r - image * rows.rows;
      const T* from = static_cast<const T*>(args.input) + (image * args.h.in + rows.first[i]) * from_n;
      T* to = static_cast<T*>(args.output) + r * to_n;
      if (r > begin && i > 0 && rows.first[i] == rows.first[i - 1])
        std::memcpy(static_cast<void*>(to), to - to_n, static_cast<size_t>(to_n) * sizeof(T));
      else if (inner == 1)
        for (int64_t j = 0; j < args.w.out; ++j) to[j] = from[columns.first[j]];
      else
        for (int64_t j = 0; j < args.w.out; ++j)
          std::copy_n(from + columns.first[j] * inner, inner, to + j * inner);
    }
  });
}

}  // namespace

void resize(const LaunchContext&, const ResizeArgs& args) {
  if (args.dtype == DType::UInt8) return pick<uint8_t>(args);
  visit_floating(args.dtype, [&]<class T>() { Resizer<T>(args).run(args.outer); });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
