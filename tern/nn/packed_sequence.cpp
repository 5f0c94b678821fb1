// Padding and packing: each is one gather or one scatter of rows.
#include "tern/nn/packed_sequence.h"

#include <algorithm>
#include <numeric>

#include "tern/base/check.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/shape.h"

namespace tern::nn {

PackedSequence PackedSequence::to(Device device) const {
  PackedSequence moved = *this;
  moved.data = data.to(device);
  return moved;
}
PackedSequence PackedSequence::to(DType dtype) const {
  PackedSequence converted = *this;
  converted.data = data.to(dtype);
  return converted;
}

void PackedSequence::check(std::string_view op) const {
  TERN_CHECK(data.defined() && data.dim() >= 1, ShapeError,
             "{}: a packed sequence must have data [rows, ...]", op);
  TERN_CHECK(
      !batch_sizes.empty() && batch_sizes.back() >= 1 &&
          std::is_sorted(batch_sizes.rbegin(), batch_sizes.rend()) &&
          std::accumulate(batch_sizes.begin(), batch_sizes.end(), int64_t{0}) == data.size(0),
      ValueError,
      "{}: the batch_sizes of a packed sequence, {}, must not rise, and must add up to its {} rows: make "
      "one with pack_padded_sequence",
      op, to_string(batch_sizes), data.size(0));
  const auto is_order = [&](const std::vector<int64_t>& indices) {
    std::vector<int64_t> sorted = indices;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i)
      if (sorted[i] != static_cast<int64_t>(i)) return false;
    return indices.empty() || static_cast<int64_t>(indices.size()) == batch_sizes[0];
  };
  TERN_CHECK(
      is_order(sorted_indices) && is_order(unsorted_indices) &&
          sorted_indices.size() == unsorted_indices.size(),
      ValueError,
      "{}: the sorted_indices {} and unsorted_indices {} of a packed sequence must be orders of its {} "
      "sequences, or empty",
      op, to_string(sorted_indices), to_string(unsorted_indices), batch_sizes[0]);
}

namespace utils::rnn {
namespace {

Shape row_shape(const Tensor& x, int64_t first_dim) {
  return Shape(x.shape().begin() + first_dim, x.shape().end());
}
Shape join(std::initializer_list<int64_t> sizes, const Shape& rest) {
  Shape shape(sizes);
  for (const int64_t size : rest) shape.push_back(size);
  return shape;
}

/// Calls `f(step, place)` for each packed row in order: the step, and the place of its sequence in the batch.
template <class F>
void for_each_row(const std::vector<int64_t>& batch_sizes, const std::vector<int64_t>& sorted_indices, F f) {
  for (size_t t = 0; t < batch_sizes.size(); ++t)
    for (int64_t row = 0; row < batch_sizes[t]; ++row)
      f(static_cast<int64_t>(t), sorted_indices.empty() ? row : sorted_indices[static_cast<size_t>(row)]);
}

/// Of each packed row its number in a batch of `count` sequences and `length` steps.
Tensor row_numbers(const PackedSequence& packed, int64_t length, bool batch_first, Device device) {
  std::vector<int64_t> numbers;
  const int64_t count = packed.batch_sizes[0];
  for_each_row(packed.batch_sizes, packed.sorted_indices, [&](int64_t step, int64_t place) {
    numbers.push_back(batch_first ? place * length + step : step * count + place);
  });
  return tensor(numbers, {.device = device});
}

std::vector<int64_t> lengths_of(const PackedSequence& packed) {
  std::vector<int64_t> lengths(static_cast<size_t>(packed.batch_sizes[0]));
  for_each_row(packed.batch_sizes, packed.sorted_indices,
               [&](int64_t step, int64_t place) { lengths[static_cast<size_t>(place)] = step + 1; });
  return lengths;
}

void check_batch(const char* op, const Tensor& input) {
  TERN_CHECK(input.dim() >= 2, ShapeError,
             "{}: the input must have a dimension of steps and one of sequences, got {}", op,
             to_string(input.shape()));
}

void check_lengths(const char* op, const std::vector<int64_t>& lengths, int64_t count, int64_t steps,
                   int64_t least) {
  TERN_CHECK(static_cast<int64_t>(lengths.size()) == count, ValueError,
             "{}: Expected `len(lengths)` to be equal to batch_size, but got {} (batch_size={})", op,
             lengths.size(), count);
  for (const int64_t length : lengths) {
    TERN_CHECK(length >= least, ValueError, "{}: Length of all samples has to be greater than {}, but got {}",
               op, least - 1, length);
    TERN_CHECK(length <= steps, ValueError, "{}: a length is {}, but the batch has {} steps", op, length,
               steps);
  }
}

}  // namespace

Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first, double padding_value,
                    std::string_view padding_side) {
  TERN_CHECK(!sequences.empty(), ValueError, "pad_sequence: received an empty list of sequences");
  TERN_CHECK(padding_side == "left" || padding_side == "right", ValueError,
             "pad_sequence: Expected padding_side to be one of left or right, but got {}.", padding_side);
  int64_t longest = 0;
  for (const Tensor& sequence : sequences) {
    TERN_CHECK(sequence.dim() >= 1, ShapeError,
               "pad_sequence: a sequence must be [length, ...], got a number");
    TERN_CHECK(row_shape(sequence, 1) == row_shape(sequences[0], 1), ShapeError,
               "pad_sequence: sequences must have equal sizes but for the length, got {} and {}",
               to_string(sequences[0].shape()), to_string(sequence.shape()));
    longest = std::max(longest, sequence.size(0));
  }
  std::vector<Tensor> padded;
  for (const Tensor& sequence : sequences) {
    const int64_t missing = longest - sequence.size(0);
    if (missing == 0) {
      padded.push_back(sequence);
      continue;
    }
    const Tensor filling = full(join({missing}, row_shape(sequence, 1)), padding_value,
                                {.dtype = sequence.dtype(), .device = sequence.device()});
    padded.push_back(padding_side == "left" ? cat({filling, sequence}) : cat({sequence, filling}));
  }
  return stack(padded, batch_first ? 0 : 1);
}

std::vector<Tensor> unpad_sequence(const Tensor& padded, const std::vector<int64_t>& lengths,
                                   bool batch_first) {
  check_batch("unpad_sequence", padded);
  const int64_t batch_dim = batch_first ? 0 : 1;
  check_lengths("unpad_sequence", lengths, padded.size(batch_dim), padded.size(1 - batch_dim), 0);
  std::vector<Tensor> sequences;
  for (size_t i = 0; i < lengths.size(); ++i)
    sequences.push_back(narrow(select(padded, batch_dim, static_cast<int64_t>(i)), 0, 0, lengths[i]));
  return sequences;
}

PackedSequence pack_padded_sequence(const Tensor& input, const std::vector<int64_t>& lengths,
                                    const PackOptions& options) {
  const char* op = "pack_padded_sequence";
  check_batch(op, input);
  const int64_t count = input.size(options.batch_first ? 0 : 1),
                steps = input.size(options.batch_first ? 1 : 0);
  TERN_CHECK(!lengths.empty(), ValueError, "{}: Expected a batch of at least one sequence", op);
  check_lengths(op, lengths, count, steps, 1);
  PackedSequence packed;
  std::vector<int64_t> sorted = lengths;
  if (options.enforce_sorted) {
    TERN_CHECK(
        std::is_sorted(lengths.rbegin(), lengths.rend()), ValueError,
        "{}: `lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
        "pass .enforce_sorted = false to have the sequences sorted, got {}",
        op, to_string(lengths));
  } else {
    packed.sorted_indices.resize(lengths.size());
    std::iota(packed.sorted_indices.begin(), packed.sorted_indices.end(), int64_t{0});
    const auto length_at = [&](int64_t place) { return lengths[static_cast<size_t>(place)]; };
    std::stable_sort(packed.sorted_indices.begin(), packed.sorted_indices.end(),
                     [&](int64_t a, int64_t b) { return length_at(a) > length_at(b); });
    packed.unsorted_indices.resize(lengths.size());
    for (size_t i = 0; i < lengths.size(); ++i) {
      packed.unsorted_indices[static_cast<size_t>(packed.sorted_indices[i])] = static_cast<int64_t>(i);
      sorted[i] = length_at(packed.sorted_indices[i]);
    }
  }
  packed.batch_sizes.assign(static_cast<size_t>(sorted[0]), 0);
  for (const int64_t length : sorted)
    for (int64_t t = 0; t < length; ++t) ++packed.batch_sizes[static_cast<size_t>(t)];
  const Tensor rows = reshape(input, join({count * steps}, row_shape(input, 2)));
  packed.data = index_select(rows, 0, row_numbers(packed, steps, options.batch_first, input.device()));
  return packed;
}

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, const PackOptions& options) {
  TERN_CHECK(lengths.dim() == 1 && lengths.dtype() == DType::Int64, ValueError,
             "pack_padded_sequence: lengths must be a 1-D tensor of int64, got {} of {}",
             to_string(lengths.shape()), name(lengths.dtype()));
  const Tensor here = contiguous(lengths.to(kCPU));
  const int64_t* numbers = static_cast<const int64_t*>(here.data_ptr());
  return pack_padded_sequence(input, std::vector<int64_t>(numbers, numbers + here.numel()), options);
}

PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted) {
  const Tensor padded = pad_sequence(sequences);
  std::vector<int64_t> lengths;
  for (const Tensor& sequence : sequences) lengths.push_back(sequence.size(0));
  return pack_padded_sequence(padded, lengths, {.enforce_sorted = enforce_sorted});
}

std::pair<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence,
                                              const PadPackedOptions& options) {
  const char* op = "pad_packed_sequence";
  sequence.check(op);
  const int64_t longest = static_cast<int64_t>(sequence.batch_sizes.size()), count = sequence.batch_sizes[0];
  const int64_t length = options.total_length.value_or(longest);
  TERN_CHECK(length >= longest, ValueError,
             "{}: Expected total_length to be at least the length of the longest sequence in input, but got "
             "total_length={} and max sequence length being {}",
             op, length, longest);
  const Tensor& data = sequence.data;
  const Shape row = row_shape(data, 1);
  checked_numel(join({count, length}, row));
  const Tensor empty_batch = full(join({count * length}, row), options.padding_value,
                                  {.dtype = data.dtype(), .device = data.device()});
  const Tensor rows =
      index_copy(empty_batch, 0, row_numbers(sequence, length, options.batch_first, data.device()), data);
  return {reshape(rows, options.batch_first ? join({count, length}, row) : join({length, count}, row)),
          tensor(lengths_of(sequence), {.device = kCPU})};
}

std::vector<Tensor> unpack_sequence(const PackedSequence& sequence) {
  const Tensor padded = pad_packed_sequence(sequence).first;
  return unpad_sequence(padded, lengths_of(sequence));
}

}  // namespace utils::rnn
}  // namespace tern::nn
