// Padding by copies: x goes to the middle of the result, and each border is copied from there. One dimension
// comes after the other, over the whole length of those that are done, so that corners need no copies of
// their own. The gradient goes back in the opposite order.
#include "tern/ops/pad.h"

#include <algorithm>
#include <vector>

#include "tern/autograd/arithmetic.h"
#include "tern/base/parallel.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

enum class Mode { Constant, Reflect, Replicate, Circular };

Mode parse_mode(std::string_view word) {
  if (word == "constant") return Mode::Constant;
  if (word == "reflect") return Mode::Reflect;
  if (word == "replicate") return Mode::Replicate;
  TERN_CHECK(word == "circular", ValueError,
             "pad: Unrecognised padding mode {}: give constant, reflect, replicate or circular", word);
  return Mode::Circular;
}

/// What is added to one dimension, or taken away where it is negative.
struct Border {
  size_t dim;
  int64_t before;
  int64_t after;

  int64_t added_before() const { return std::max<int64_t>(before, 0); }
  int64_t added_after() const { return std::max<int64_t>(after, 0); }
  int64_t cut_before() const { return added_before() - before; }
  int64_t cut_after() const { return added_after() - after; }
};
/// From the last dimension on.
using Borders = std::vector<Border>;

/// Elements start, start + step, ... of a dimension; no history. Steps of 0 and -1 live only here: the
/// kernels walk them, no tensor with them is given out.
Tensor part_of(const Tensor& x, size_t d, int64_t start, int64_t length, int64_t step = 1) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  const int64_t offset = x.storage_offset() + start * strides[d];
  shape[d] = length;
  strides[d] *= step;
  return Tensor::view_of(x.storage(), x.dtype(), std::move(shape), std::move(strides), offset);
}

/// One of the two ends of a padded dimension, and the elements that it repeats.
struct End {
  int64_t start, length;
  int64_t source, step;  ///< element i is a copy of element source + step * i
};

std::array<End, 2> ends_of(Mode mode, const Border& b, int64_t size) {
  const int64_t last = b.before + size - 1;
  End front{0, b.before, b.before, 0}, back{last + 1, b.after, last, 0};
  if (mode == Mode::Reflect) {
    front = {0, b.before, 2 * b.before, -1};
    back = {last + 1, b.after, last - 1, -1};
  } else if (mode == Mode::Circular) {
    front = {0, b.before, size, 1};
    back = {last + 1, b.after, b.before, 1};
  }
  return {front, back};
}

/// Writes y, a padded x.
void write_padded(Mode mode, const Borders& borders, const Tensor& x, Tensor y, const Scalar& value) {
  // What is left of y when the borders from the k-th on are taken away.
  const auto without = [&](size_t k) {
    Tensor rest = y;
    for (; k < borders.size(); ++k) {
      const Border& b = borders[k];
      rest = part_of(rest, b.dim, b.before, x.shape()[b.dim]);
    }
    return rest;
  };
  if (mode == Mode::Constant) y.fill_(value);
  if (x.numel() != 0) copy_elements(without(0), x);
  if (mode == Mode::Constant || y.numel() == 0) return;
  for (size_t k = 0; k < borders.size(); ++k) {
    const size_t d = borders[k].dim;
    const Tensor area = without(k + 1);
    for (const End& end : ends_of(mode, borders[k], x.shape()[d]))
      if (end.length != 0)
        copy_elements(part_of(area, d, end.start, end.length),
                      part_of(area, d, end.source, end.length, end.step));
  }
}

/// A contiguous tensor with its first `count` dimensions as one; no history.
Tensor merged(const Tensor& x, size_t count, int64_t parts) {
  Shape shape(x.shape().begin() + count - 1, x.shape().end());
  shape[0] = parts;
  Strides strides(x.strides().begin() + count - 1, x.strides().end());
  strides[0] = x.numel() / parts;
  return Tensor::view_of(x.storage(), x.dtype(), std::move(shape), std::move(strides), x.storage_offset());
}

/// The same for what is large: on the CPU some images after the others, so that a cache still holds those
/// whose borders are copied.
void write_in_blocks(Mode mode, Borders borders, const Tensor& x, const Tensor& y, const Scalar& value) {
  constexpr int64_t kCached = int64_t{512} << 10;
  const size_t batch = borders.back().dim;  // dimensions without borders, before all others
  const int64_t bytes = static_cast<int64_t>(y.nbytes());
  if (batch == 0 || bytes < 4 * kCached || x.numel() == 0 || !y.device().is_cpu() || !x.is_contiguous())
    return write_padded(mode, borders, x, y, value);
  const int64_t parts = checked_numel(IntArrayRef(x.shape().data(), batch));
  for (Border& b : borders) b.dim -= batch - 1;
  const Tensor from = merged(x, batch, parts), into = merged(y, batch, parts);
  const int64_t at_once = std::max<int64_t>(1, kCached * num_threads() / (bytes / parts));
  for (int64_t i = 0; i < parts; i += at_once) {
    const int64_t count = std::min(at_once, parts - i);
    write_padded(mode, borders, part_of(from, 0, i, count), part_of(into, 0, i, count), value);
  }
}

Tensor folded(Mode mode, const Borders& borders, const Tensor& g);

/// No border is negative.
Tensor padded(Mode mode, const Borders& borders, const Tensor& x, const Scalar& value) {
  Shape shape = x.shape();
  for (const Border& b : borders)
    TERN_CHECK(!__builtin_add_overflow(shape[b.dim], b.before, &shape[b.dim]) &&
                   !__builtin_add_overflow(shape[b.dim], b.after, &shape[b.dim]),
               ShapeError, "pad: padding {} and {} of size {} are more than a size can be", b.before, b.after,
               x.shape()[b.dim]);
  const int64_t numel = with_context("pad", [&] { return checked_numel(shape); });
  Tensor y = empty_contiguous(std::move(shape), numel, x.dtype(), x.device());
  write_in_blocks(mode, borders, x, y, value);
  if (tracks_grad(x))
    record("pad", y, {x},
           [mode, borders](GradContext&, const Tensor& g) { return folded(mode, borders, g); });
  return y;
}

/// Adds the ends of a padded dimension, in y, to the elements of `middle` that they repeat.
void add_ends(Mode mode, const Border& b, const Tensor& y, const Tensor& middle) {
  const size_t d = b.dim;
  for (const End& end : ends_of(mode, b, middle.shape()[d])) {
    if (end.length == 0) continue;
    const Tensor repeats = part_of(y, d, end.start, end.length);
    const int64_t source = end.source - b.before;
    if (end.step == 0)
      accumulate_into(part_of(middle, d, source, 1), sum(repeats, static_cast<int64_t>(d), /*keepdim=*/true));
    else
      accumulate_into(part_of(middle, d, source, end.length, end.step), repeats);
  }
}

/// The transpose of `padded`: the sum of all that comes from one element.
Tensor folded(Mode mode, const Borders& borders, const Tensor& g) {
  Tensor y = g;
  if (mode == Mode::Constant) {
    for (const Border& b : borders)
      y = narrow(y, static_cast<int64_t>(b.dim), b.before, y.shape()[b.dim] - b.before - b.after);
    return y;
  }
  for (size_t k = borders.size(); k-- > 0;) {
    const Border& b = borders[k];
    const NoGradGuard no_grad;
    Tensor middle = part_of(y, b.dim, b.before, y.shape()[b.dim] - b.before - b.after);
    if (y.is_same(g)) middle = compact_copy(middle);
    if (g.numel() != 0) add_ends(mode, b, y, middle);
    y = middle;
  }
  if (tracks_grad(g))
    record("pad_backward", y, {g},
           [mode, borders](GradContext&, const Tensor& gg) { return padded(mode, borders, gg, 0); });
  return y;
}

/// x without what negative borders take away.
Tensor cut(const Borders& borders, const Tensor& x) {
  Tensor y = x;
  for (const Border& b : borders) {
    const int64_t size = y.shape()[b.dim] - b.cut_before() - b.cut_after();
    if (b.cut_before() + b.cut_after() != 0) y = narrow(y, static_cast<int64_t>(b.dim), b.cut_before(), size);
  }
  return y;
}

// ---- checks
// ----------------------------------------------------------------------------------------------------------

Borders borders_of(const Tensor& x, IntArrayRef padding) {
  const size_t rank = x.shape().size(), count = padding.size() / 2;
  TERN_CHECK(padding.size() % 2 == 0, ShapeError, "pad: Padding length must be divisible by 2, got {}",
             to_string(padding));
  TERN_CHECK(count <= rank, ShapeError,
             "pad: Padding length should be less than or equal to two times the input dimension but got "
             "padding length {} and input of dimension {}",
             padding.size(), rank);
  Borders borders;
  for (size_t i = 0; i < count; ++i)
    if (padding[2 * i] != 0 || padding[2 * i + 1] != 0)
      borders.push_back({rank - 1 - i, padding[2 * i], padding[2 * i + 1]});
  constexpr int64_t kLimit = int64_t{1} << 61;
  for (const Border& b : borders)
    TERN_CHECK(std::max(b.before, b.after) < kLimit && std::min(b.before, b.after) > -kLimit, ShapeError,
               "pad: padding {} and {} are more than a size can be", b.before, b.after);
  return borders;
}

/// Cutting comes first.
void check_cut(const Borders& borders, const Tensor& x) {
  for (const Border& b : borders)
    TERN_CHECK(x.shape()[b.dim] >= b.cut_before() + b.cut_after(), ShapeError,
               "pad: The input size {}, plus negative padding {} and {}, resulted in a negative output size, "
               "which is invalid. Check dimension {} of your input.",
               x.shape()[b.dim], b.before, b.after, b.dim);
}

/// Modes that repeat x know how many of its dimensions are channels and batches.
void check_rank(const Tensor& x, IntArrayRef padding) {
  const size_t rank = x.shape().size(), count = padding.size() / 2;
  TERN_CHECK(count >= 1 && count <= 3 && (rank == count + 1 || rank == count + 2), ShapeError,
             "pad: Padding size {} is not supported for {}D input tensor: modes other than constant take the "
             "last 1, 2 or 3 dimensions of an input of one or two more",
             padding.size(), rank);
}

/// Cutting comes last: what is repeated may be cut away itself.
void check_edges(Mode mode, const Borders& borders, const Tensor& x, bool batched) {
  const Shape& shape = x.shape();
  for (size_t d = batched ? 1 : 0; d < shape.size(); ++d)
    TERN_CHECK(shape[d] != 0, ShapeError,
               "pad: Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero "
               "dimensions for input, but got: {}",
               shape.size() - batched, shape.size() - batched + 1, to_string(shape));
  for (const Border& b : borders) {
    const int64_t size = shape[b.dim];
    TERN_CHECK(mode != Mode::Reflect || std::max(b.before, b.after) < size, ShapeError,
               "pad: Padding size should be less than the corresponding input dimension, but got: padding "
               "({}, {}) at dimension {} of input {}",
               b.before, b.after, b.dim, to_string(shape));
    TERN_CHECK(size + b.before + b.after >= 1, ShapeError,
               "pad: input of size {} is too small at dimension {}. Calculated output size: {}", size, b.dim,
               size + b.before + b.after);
  }
}

void check_wrap(const Borders& borders, const Tensor& x) {
  for (const Border& b : borders)
    TERN_CHECK(std::max(b.before, b.after) <= x.shape()[b.dim] - b.cut_before() - b.cut_after(), ShapeError,
               "pad: Padding value causes wrapping around more than once: padding ({}, {}) at dimension {} "
               "of input {}",
               b.before, b.after, b.dim, to_string(x.shape()));
}

}  // namespace

Tensor pad(const Tensor& x, IntArrayRef padding, std::string_view mode_word, const Scalar& value) {
  const Mode mode = parse_mode(mode_word);
  const Borders borders = borders_of(x, padding);
  const bool cuts_first = mode == Mode::Constant || mode == Mode::Circular;
  const bool is_listed = mode == Mode::Replicate || (mode == Mode::Reflect && padding.size() < 6);
  if (is_listed && autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32(pad, x, padding, mode_word, value);
  if (mode != Mode::Constant) {
    TERN_CHECK(value.to_double() == 0, ValueError, "pad: Padding mode \"{}\" doesn't take in value argument",
               mode_word);
    check_rank(x, padding);
  }
  if (cuts_first) check_cut(borders, x);
  if (mode == Mode::Circular) check_wrap(borders, x);
  if (!cuts_first) check_edges(mode, borders, x, x.shape().size() == padding.size() / 2 + 2);
  Borders added;
  for (const Border& b : borders)
    if (b.before > 0 || b.after > 0) added.push_back({b.dim, b.added_before(), b.added_after()});
  Tensor y = cuts_first ? cut(borders, x) : x;
  if (!added.empty()) y = padded(mode, added, y, value);
  if (!cuts_first) y = cut(borders, y);
  return added.empty() ? clone(y) : contiguous(y);
}

}  // namespace tern
