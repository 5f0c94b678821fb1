// torch.fft: discrete Fourier transforms, with gradients of any order. Those of pieces of a signal (stft) are
// in ops/stft.h.
#pragma once

#include <optional>
#include <string_view>

#include "tern/core/tensor.h"

namespace tern::fft {

// X[k] = sum over j of x[j] exp(-2 pi i j k / n) along `dim`, and back with the other sign. `n`: the length
// of the transform, to which x is cut or filled with zeros; x's own size where it is not given. `norm` says
// which direction divides: "backward" the way back by n, "forward" the way there by n, "ortho" both by
// sqrt(n). Integers become the default dtype, real numbers complex ones. Throw DTypeError for 16-bit floats,
// ValueError for n below 1 or another norm, IndexError for a dimension that x does not have.

/// Complex to complex.
Tensor fft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
           std::string_view norm = "backward");
Tensor ifft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
            std::string_view norm = "backward");
/// Real numbers to the first n / 2 + 1 of their spectrum; the others are their conjugates. Throws DTypeError
/// for complex numbers.
Tensor rfft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
            std::string_view norm = "backward");
/// Back to n real numbers, 2 (size - 1) unless given.
Tensor irfft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
             std::string_view norm = "backward");
/// The spectrum of a signal that is Hermitian in time, of which x is the first half, and so real; and the way
/// back to that half.
Tensor hfft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
            std::string_view norm = "backward");
Tensor ihfft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
             std::string_view norm = "backward");

// The same along several dimensions: `dims`, or the last ones where only the sizes `s` are given, or all of
// them. -1 in `s` is x's own size. Halves are those of the last of the dimensions. Throw ValueError for lists
// of two lengths or a dimension named twice.

Tensor fftn(const Tensor& x, std::optional<Shape> s = {}, std::optional<Shape> dims = {},
            std::string_view norm = "backward");
Tensor ifftn(const Tensor& x, std::optional<Shape> s = {}, std::optional<Shape> dims = {},
             std::string_view norm = "backward");
Tensor rfftn(const Tensor& x, std::optional<Shape> s = {}, std::optional<Shape> dims = {},
             std::string_view norm = "backward");
Tensor irfftn(const Tensor& x, std::optional<Shape> s = {}, std::optional<Shape> dims = {},
              std::string_view norm = "backward");
Tensor hfftn(const Tensor& x, std::optional<Shape> s = {}, std::optional<Shape> dims = {},
             std::string_view norm = "backward");
Tensor ihfftn(const Tensor& x, std::optional<Shape> s = {}, std::optional<Shape> dims = {},
              std::string_view norm = "backward");
Tensor fft2(const Tensor& x, std::optional<Shape> s = {}, Shape dims = {-2, -1},
            std::string_view norm = "backward");
Tensor ifft2(const Tensor& x, std::optional<Shape> s = {}, Shape dims = {-2, -1},
             std::string_view norm = "backward");
Tensor rfft2(const Tensor& x, std::optional<Shape> s = {}, Shape dims = {-2, -1},
             std::string_view norm = "backward");
Tensor irfft2(const Tensor& x, std::optional<Shape> s = {}, Shape dims = {-2, -1},
              std::string_view norm = "backward");
Tensor hfft2(const Tensor& x, std::optional<Shape> s = {}, Shape dims = {-2, -1},
             std::string_view norm = "backward");
Tensor ihfft2(const Tensor& x, std::optional<Shape> s = {}, Shape dims = {-2, -1},
              std::string_view norm = "backward");

/// The frequencies of n places `d` apart: [0, 1, ..., -2, -1] / (n d), and of the first half [0, ..., n / 2]
/// / (n d). Throw ValueError for n below 1.
Tensor fftfreq(int64_t n, double d = 1, const TensorOptions& options = {});
Tensor rfftfreq(int64_t n, double d = 1, const TensorOptions& options = {});
/// The frequency 0 to the middle, and back, along `dims` or all dimensions.
Tensor fftshift(const Tensor& x, std::optional<Shape> dims = {});
Tensor ifftshift(const Tensor& x, std::optional<Shape> dims = {});

}  // namespace tern::fft
