// Sequences of several lengths in one batch, as torch.nn.utils.rnn: padded to the longest, or packed without
// padding, which LSTM, GRU and RNN take (nn/rnn.h).
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::nn {

/// Sequences, the longest first, step by step: the first rows of `data` are the first steps of all sequences,
/// then come the second steps of those that have one, and so on.
struct PackedSequence {
  Tensor data;                       ///< [sum of the lengths, ...]
  std::vector<int64_t> batch_sizes;  ///< how many sequences have each step; never rises
  /// The place in the batch that each sequence was taken from, and the reverse; empty where the batch was
  /// sorted.
  std::vector<int64_t> sorted_indices;
  std::vector<int64_t> unsorted_indices;

  /// The same elsewhere, or of another dtype.
  PackedSequence to(Device device) const;
  PackedSequence to(DType dtype) const;
  /// Throws ValueError, naming `op`, unless the parts fit each other.
  void check(std::string_view op) const;
};

namespace utils::rnn {

/// Sequences [length, ...] of any lengths, as [longest, N, ...], or [N, longest, ...] with batch_first,
/// filled up with `padding_value` at the end, or at the start (padding_side "left"). Throws ValueError for no
/// sequence and another side, ShapeError unless the other sizes are equal.
Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = false, double padding_value = 0,
                    std::string_view padding_side = "right");
/// The sequences that pad_sequence took, as views, from their lengths.
std::vector<Tensor> unpad_sequence(const Tensor& padded, const std::vector<int64_t>& lengths,
                                   bool batch_first = false);

struct PackOptions {
  bool batch_first = false;
  /// The lengths must not rise then; else the sequences are sorted, and what comes out of a recurrent layer
  /// is put back in their order.
  bool enforce_sorted = true;
};
/// A batch [T, N, ...] ([N, T, ...] with batch_first) without what lies beyond the lengths. Throws ValueError
/// for lengths that are below 1, longer than T, not N, or not sorted.
PackedSequence pack_padded_sequence(const Tensor& input, const std::vector<int64_t>& lengths,
                                    const PackOptions& options = {});
/// Lengths as a tensor of int64, which is read (from a GPU that blocks the host).
PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths,
                                    const PackOptions& options = {});
/// pack_padded_sequence of sequences [length, ...].
PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted = true);

struct PadPackedOptions {
  bool batch_first = false;
  double padding_value = 0;
  std::optional<int64_t> total_length =
      std::nullopt;  ///< of the result; at least that of the longest sequence
};
/// The batch again, in the order that it had before packing, and the lengths (int64, on the CPU).
std::pair<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence,
                                              const PadPackedOptions& options = {});
/// The sequences again.
std::vector<Tensor> unpack_sequence(const PackedSequence& sequence);

}  // namespace utils::rnn
}  // namespace tern::nn
