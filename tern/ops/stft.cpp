// The short-time Fourier transform, made of views, products and transforms along a dimension.
#include "tern/ops/stft.h"

#include <algorithm>

#include "tern/ops/common.h"
#include "tern/ops/complex.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/fft.h"
#include "tern/ops/fold.h"
#include "tern/ops/pad.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// The settings with what was left to defaults, and the window as long as a piece.
struct Pieces {
  int64_t hop;
  Tensor window;
};

Pieces pieces_of(const char* op, int64_t n_fft, const StftOptions& options, const Tensor& x) {
  Pieces pieces{options.hop_length.value_or(n_fft / 4), options.window};
  const int64_t win_length = options.win_length.value_or(n_fft);
  TERN_CHECK(n_fft > 0, ValueError, "{}: expected 0 < n_fft, but got {}", op, n_fft);
  TERN_CHECK(pieces.hop > 0, ValueError, "{}: expected hop_length > 0, but got {}", op, pieces.hop);
  TERN_CHECK(win_length > 0 && win_length <= n_fft, ValueError,
             "{}: expected 0 < win_length <= n_fft, but got {}", op, win_length);
  if (!pieces.window.defined()) {
    if (win_length == n_fft) return pieces;
    pieces.window = ones({win_length}, {.dtype = real_dtype(x.dtype()), .device = x.device()});
  }
  check_same_device(op, {{"x", x}, {"window", pieces.window}});
  TERN_CHECK(pieces.window.dim() == 1 && pieces.window.size(0) == win_length, ShapeError,
             "{}: expected a 1D window tensor of size equal to win_length={}, but got window with size {}",
             op, win_length, to_string(pieces.window.shape()));
  const int64_t left = (n_fft - win_length) / 2;
  if (win_length != n_fft) pieces.window = pad(pieces.window, {left, n_fft - win_length - left});
  return pieces;
}

}  // namespace

Tensor stft(const Tensor& given, int64_t n_fft, const StftOptions& options) {
  const char* op = "stft";
  TERN_CHECK(given.dim() == 1 || given.dim() == 2, ShapeError, "{}: expected a 1D or 2D tensor, got shape {}",
             op, to_string(given.shape()));
  TERN_CHECK(is_floating_point(given.dtype()) || is_complex_computable(given.dtype()), DTypeError,
             "{}: expected a tensor of floating point or complex values, got {}", op, name(given.dtype()));
  const Pieces pieces = pieces_of(op, n_fft, options, given);
  Tensor x = given.dim() == 1 ? unsqueeze(given, 0) : given;
  if (options.center) {
    const int64_t side = n_fft / 2;
    x = with_context(op, [&] { return squeeze(pad(unsqueeze(x, 1), {side, side}, options.pad_mode), 1); });
  }
  TERN_CHECK(n_fft <= x.size(1), ShapeError, "{}: expected 0 < n_fft <= {}, but got {}", op, x.size(1),
             n_fft);
  Tensor parts = unfold(x, 1, n_fft, pieces.hop);
  if (pieces.window.defined()) parts = mul(parts, pieces.window);
  const bool complex = is_complex(parts.dtype()), onesided = options.onesided.value_or(!complex);
  TERN_CHECK(!onesided || !complex, ValueError,
             "{}: Cannot have onesided output if window or input is complex: set onesided to false", op);
  const std::string_view norm = options.normalized ? "ortho" : "backward";
  Tensor y = transpose(onesided ? fft::rfft(parts, {}, -1, norm) : fft::fft(parts, {}, -1, norm), 1, 2);
  if (given.dim() == 1) y = squeeze(y, 0);
  return options.return_complex.value_or(true) ? y : view_as_real(y);
}

namespace {

/// The sum of pieces [B, pieces, length], each `hop` after the one before: [B, L].
Tensor overlapped(const Tensor& parts, int64_t hop) {
  if (is_complex(parts.dtype()))
    return tern::complex(overlapped(real(parts), hop), overlapped(imag(parts), hop));
  const int64_t length = parts.size(2), total = length + hop * (parts.size(1) - 1);
  const Tensor image =
      fold(transpose(parts, 1, 2), Size2{1, total}, Size2{1, length}, {.stride = Size2{1, hop}});
  return reshape(image, {parts.size(0), total});
}

}  // namespace

Tensor istft(const Tensor& given, int64_t n_fft, const StftOptions& options) {
  const char* op = "istft";
  TERN_CHECK(
      is_complex_computable(given.dtype()), DTypeError,
      "{}: requires a complex-valued input tensor matching the output from stft with return_complex=True, "
      "got {}",
      op, name(given.dtype()));
  TERN_CHECK(given.dim() == 2 || given.dim() == 3, ShapeError,
             "{}: expected a tensor with 2 or 3 dimensions, but got {}", op, to_string(given.shape()));
  TERN_CHECK(given.numel() != 0, ShapeError, "{}: input tensor cannot be empty, got shape {}", op,
             to_string(given.shape()));
  const bool onesided = options.onesided.value_or(given.size(-2) != n_fft);
  TERN_CHECK(
      given.size(-2) == (onesided ? n_fft / 2 + 1 : n_fft), ShapeError,
      "{}: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft{} when "
      "onesided={}, but got {}",
      op, onesided ? " / 2 + 1" : "", onesided, given.size(-2));
  const bool complex = options.return_complex.value_or(false);
  TERN_CHECK(!onesided || !complex, ValueError, "{}: cannot have onesided input and return_complex output",
             op);
  const Pieces pieces = pieces_of(op, n_fft, options, given);
  const Tensor x = transpose(given.dim() == 2 ? unsqueeze(given, 0) : given, 1, 2);
  const std::string_view norm = options.normalized ? "ortho" : "backward";
  // Of a real signal the first half says all.
  const Tensor parts =
      complex ? fft::ifft(x, {}, -1, norm) : fft::irfft(narrow(x, -1, 0, n_fft / 2 + 1), n_fft, -1, norm);
  const Tensor window = pieces.window.defined()
                            ? pieces.window
                            : ones({n_fft}, {.dtype = real_dtype(parts.dtype()), .device = parts.device()});
  Tensor signal = overlapped(mul(parts, window), pieces.hop);
  const Tensor power = reshape(mul(window, conj(window)), {1, 1, n_fft});
  Tensor envelope = overlapped(expand(real(power), {1, x.size(1), n_fft}), pieces.hop);
  const int64_t start = options.center ? n_fft / 2 : 0;
  const int64_t end = options.length ? start + *options.length : signal.size(1) - start;
  TERN_CHECK(end > start, ValueError, "{}: the signal would have no element (length {})", op, end - start);
  const int64_t kept = std::min(end, signal.size(1)) - start;
  signal = narrow(signal, 1, start, kept);
  envelope = narrow(envelope, 1, start, kept);
  const double least = item(amin(abs(envelope.detach()))).to_double();
  TERN_CHECK(
      least > 1e-11, ValueError,
      "{}: window overlap add min: {}: windows leave gaps: choose a smaller hop_length, or another window",
      op, least);
  signal = div(signal, envelope);
  if (start + kept < end) signal = pad(signal, {0, end - start - kept});
  return given.dim() == 2 ? squeeze(signal, 0) : signal;
}

}  // namespace tern
