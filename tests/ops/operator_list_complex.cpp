// Complex numbers and Fourier transforms, for operator_list.cpp: one line for each. What real numbers have
// too stands in the other lists.
#include "tern/ops/complex.h"
#include "tern/ops/fft.h"
#include "tern/ops/stft.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {
namespace {

using Along = Tensor (*)(const Tensor&, std::optional<int64_t>, int64_t, std::string_view);
Operator along(Along f) {
  return [f](A a) { return f(a.tensor(0), a.optional_integer(1), a.integer(2, -1), a.text(3, "backward")); };
}

std::optional<Shape> shape_of(A a, size_t i) {
  if (!a.has(i)) return std::nullopt;
  return IntArrayRef(a.integers(i)).to_shape();
}
using Several = Tensor (*)(const Tensor&, std::optional<Shape>, std::optional<Shape>, std::string_view);
Operator several(Several f) {
  return [f](A a) { return f(a.tensor(0), shape_of(a, 1), shape_of(a, 2), a.text(3, "backward")); };
}
using Two = Tensor (*)(const Tensor&, std::optional<Shape>, Shape, std::string_view);
Operator two_dims(Two f) {
  return [f](A a) {
    return f(a.tensor(0), shape_of(a, 1), shape_of(a, 2).value_or(Shape{-2, -1}), a.text(3, "backward"));
  };
}

/// x, n_fft, hop_length, win_length, window, center, pad_mode or length, normalized, onesided,
/// return_complex.
StftOptions settings(A a) {
  StftOptions options{.hop_length = a.optional_integer(2),
                      .win_length = a.optional_integer(3),
                      .window = a.tensor(4),
                      .center = a.flag(5, true),
                      .normalized = a.flag(7)};
  if (a.has(8)) options.onesided = a.flag(8);
  if (a.has(9)) options.return_complex = a.flag(9);
  return options;
}

}  // namespace

const Table kComplex = {
    {"view_as_real", one(view_as_real)},
    {"view_as_complex", one(view_as_complex)},
    {"complex", two(complex)},
    {"polar", two(polar)},
    {"real", one(real)},
    {"imag", one(imag)},
    {"conj", one(conj)},
    {"conj_physical", one(conj_physical)},
    {"resolve_conj", one(resolve_conj)},
    {"adjoint", one(adjoint)},
    {"angle", one(angle)},
    {"isreal", one(isreal)},
    {"Tensor.real", [](A a) { return a.tensor(0).real(); }},
    {"Tensor.imag", [](A a) { return a.tensor(0).imag(); }},
    {"Tensor.conj", [](A a) { return a.tensor(0).conj(); }},
    {"Tensor.angle", [](A a) { return a.tensor(0).angle(); }},
    {"Tensor.mH", [](A a) { return a.tensor(0).mH(); }},
    {"Tensor.adjoint", [](A a) { return a.tensor(0).adjoint(); }},
    {"fft.fft", along(fft::fft)},
    {"fft.ifft", along(fft::ifft)},
    {"fft.rfft", along(fft::rfft)},
    {"fft.irfft", along(fft::irfft)},
    {"fft.hfft", along(fft::hfft)},
    {"fft.ihfft", along(fft::ihfft)},
    {"fft.fftn", several(fft::fftn)},
    {"fft.ifftn", several(fft::ifftn)},
    {"fft.rfftn", several(fft::rfftn)},
    {"fft.irfftn", several(fft::irfftn)},
    {"fft.hfftn", several(fft::hfftn)},
    {"fft.ihfftn", several(fft::ihfftn)},
    {"fft.fft2", two_dims(fft::fft2)},
    {"fft.ifft2", two_dims(fft::ifft2)},
    {"fft.rfft2", two_dims(fft::rfft2)},
    {"fft.irfft2", two_dims(fft::irfft2)},
    {"fft.hfft2", two_dims(fft::hfft2)},
    {"fft.ihfft2", two_dims(fft::ihfft2)},
    {"fft.fftfreq", [](A a) { return fft::fftfreq(a.integer(0), a.real(1, 1)); }},
    {"fft.rfftfreq", [](A a) { return fft::rfftfreq(a.integer(0), a.real(1, 1)); }},
    {"fft.fftshift", [](A a) { return fft::fftshift(a.tensor(0), shape_of(a, 1)); }},
    {"fft.ifftshift", [](A a) { return fft::ifftshift(a.tensor(0), shape_of(a, 1)); }},
    {"stft",
     [](A a) {
       StftOptions options = settings(a);
       const std::string pad_mode = a.text(6, "reflect");
       options.pad_mode = pad_mode;
       return stft(a.tensor(0), a.integer(1), options);
     }},
    {"istft",
     [](A a) {
       StftOptions options = settings(a);
       options.length = a.optional_integer(6);
       return istft(a.tensor(0), a.integer(1), options);
     }},
};

}  // namespace tern::testing
