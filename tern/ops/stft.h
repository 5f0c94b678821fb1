// The short-time Fourier transform: spectra of overlapping pieces of a signal, and the signal back from them.
#pragma once

#include <optional>
#include <string_view>

#include "tern/core/tensor.h"

namespace tern {

/// Settings of stft() and istft(), with PyTorch's names and defaults.
struct StftOptions {
  std::optional<int64_t> hop_length = {};  ///< from one piece to the next; n_fft / 4
  std::optional<int64_t> win_length = {};  ///< n_fft
  Tensor window = {};                      ///< [win_length], in the middle of each piece; ones
  bool center = true;  ///< pieces lie around their places, so that the signal is padded by n_fft / 2
  std::string_view pad_mode = "reflect";
  bool normalized = false;            ///< divided by sqrt(n_fft)
  std::optional<bool> onesided = {};  ///< the first half of the spectra; true for real signals
  std::optional<bool> return_complex =
      {};                              ///< stft: true, else [..., 2]; istft: false, else a complex signal
  std::optional<int64_t> length = {};  ///< istft: of the signal
};

/// x [L] or [B, L] to [n_fft / 2 + 1, pieces] or [B, n_fft / 2 + 1, pieces] (n_fft instead of the half where
/// it is not onesided). Throws ShapeError for another rank or a signal that is shorter than a piece,
/// ValueError for settings that fit nothing, DTypeError for 16-bit floats.
Tensor stft(const Tensor& x, int64_t n_fft, const StftOptions& options = {});

/// The signal of which x are the spectra: pieces are added where they overlap, and divided by the sum of
/// their windows' squares (Griffin and Lim, 1984). Halves are told from whole spectra by their size unless
/// `onesided` is given. Throws as stft(), and ValueError where windows leave gaps.
Tensor istft(const Tensor& x, int64_t n_fft, const StftOptions& options = {});

}  // namespace tern
