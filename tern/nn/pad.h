// Padding layers. The operator is in ops/pad.h.
#pragma once

#include <string>
#include <vector>

#include "tern/nn/module.h"
#include "tern/ops/pad.h"

namespace tern::nn {

/// Elements before and after a sequence; made from one number for both, or from {left, right}.
struct Sides1d {
  constexpr Sides1d(int all) : Sides1d(static_cast<int64_t>(all)) {}
  constexpr Sides1d(int64_t all) : left(all), right(all) {}
  constexpr Sides1d(int64_t left_, int64_t right_) : left(left_), right(right_) {}
  int64_t left, right;
};

/// Elements around an image; made from one number for all sides, or from {left, right, top, bottom}.
struct Sides2d {
  constexpr Sides2d(int all) : Sides2d(static_cast<int64_t>(all)) {}
  constexpr Sides2d(int64_t all) : left(all), right(all), top(all), bottom(all) {}
  constexpr Sides2d(int64_t left_, int64_t right_, int64_t top_, int64_t bottom_)
      : left(left_), right(right_), top(top_), bottom(bottom_) {}
  int64_t left, right, top, bottom;
};

/// Elements around a volume; made from one number for all sides, or from {left, right, top, bottom, front,
/// back}.
struct Sides3d {
  constexpr Sides3d(int all) : Sides3d(static_cast<int64_t>(all)) {}
  constexpr Sides3d(int64_t all) : Sides3d(all, all, all, all, all, all) {}
  constexpr Sides3d(int64_t left_, int64_t right_, int64_t top_, int64_t bottom_, int64_t front_,
                    int64_t back_)
      : left(left_), right(right_), top(top_), bottom(bottom_), front(front_), back(back_) {}
  int64_t left, right, top, bottom, front, back;
};

/// What the padding layers share. Negative numbers take elements away.
class Padding : public Module {
 public:
  TERN_MODULE()
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
  /// As tern::pad takes it.
  const std::vector<int64_t>& padding() const noexcept { return padding_; }
  const Scalar& value() const noexcept { return value_; }

 protected:
  Padding(const char* mode, Sides1d sides, const Scalar& value = 0, bool prints_value = false);
  Padding(const char* mode, Sides2d sides, const Scalar& value = 0, bool prints_value = false);
  Padding(const char* mode, Sides3d sides, const Scalar& value = 0, bool prints_value = false);

 private:
  std::vector<int64_t> padding_;
  const char* mode_;
  Scalar value_;
  bool prints_value_;
};

// Padding of [N, C, L] or [C, L].

/// With `value`.
struct ConstantPad1d final : Padding {
  ConstantPad1d(Sides1d padding, const Scalar& value)
      : Padding("constant", padding, value, /*prints_value=*/true) {}
};
struct ZeroPad1d final : Padding {
  explicit ZeroPad1d(Sides1d padding) : Padding("constant", padding, 0.0) {}
};
/// With the sequence mirrored at its ends, which are not repeated.
struct ReflectionPad1d final : Padding {
  explicit ReflectionPad1d(Sides1d padding) : Padding("reflect", padding) {}
};
/// With the first and the last element.
struct ReplicationPad1d final : Padding {
  explicit ReplicationPad1d(Sides1d padding) : Padding("replicate", padding) {}
};
/// With the sequence from its other end.
struct CircularPad1d final : Padding {
  explicit CircularPad1d(Sides1d padding) : Padding("circular", padding) {}
};

// Padding of [N, C, H, W] or [C, H, W].

/// With `value`.
struct ConstantPad2d final : Padding {
  ConstantPad2d(Sides2d padding, const Scalar& value)
      : Padding("constant", padding, value, /*prints_value=*/true) {}
};
struct ZeroPad2d final : Padding {
  explicit ZeroPad2d(Sides2d padding) : Padding("constant", padding, 0.0) {}
};
/// With the image mirrored at its edges, which are not repeated.
struct ReflectionPad2d final : Padding {
  explicit ReflectionPad2d(Sides2d padding) : Padding("reflect", padding) {}
};
/// With the edges.
struct ReplicationPad2d final : Padding {
  explicit ReplicationPad2d(Sides2d padding) : Padding("replicate", padding) {}
};
/// With the image from its other side.
struct CircularPad2d final : Padding {
  explicit CircularPad2d(Sides2d padding) : Padding("circular", padding) {}
};

// Padding of [N, C, D, H, W] or [C, D, H, W].

/// With `value`.
struct ConstantPad3d final : Padding {
  ConstantPad3d(Sides3d padding, const Scalar& value)
      : Padding("constant", padding, value, /*prints_value=*/true) {}
};
struct ZeroPad3d final : Padding {
  explicit ZeroPad3d(Sides3d padding) : Padding("constant", padding, 0.0) {}
};
/// With the volume mirrored at its faces, which are not repeated.
struct ReflectionPad3d final : Padding {
  explicit ReflectionPad3d(Sides3d padding) : Padding("reflect", padding) {}
};
/// With the faces.
struct ReplicationPad3d final : Padding {
  explicit ReplicationPad3d(Sides3d padding) : Padding("replicate", padding) {}
};
/// With the volume from its other side.
struct CircularPad3d final : Padding {
  explicit CircularPad3d(Sides3d padding) : Padding("circular", padding) {}
};

}  // namespace tern::nn
