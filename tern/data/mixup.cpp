// MixUp and CutMix, as torchvision's transforms/v2/_augment.py.
#include "tern/data/mixup.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tern/base/check.h"
#include "tern/core/generator.h"
#include "tern/data/dirichlet.h"
#include "tern/data/samplers.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern::data {
namespace {

void check_mix_options(const MixOptions& options, const char* transform) {
  TERN_CHECK(options.alpha > 0 && std::isfinite(options.alpha), ValueError,
             "{}: alpha must be positive and finite, got {}", transform, options.alpha);
  TERN_CHECK(!options.num_classes || *options.num_classes > 0, ValueError,
             "{}: num_classes must be positive, got {}", transform, options.num_classes.value_or(0));
}

void check_batch(const Tensor& images, const Tensor& labels, const MixOptions& options,
                 const char* transform) {
  TERN_CHECK(images.dim() == 4, ShapeError, "{}: expects pictures [n, channels, height, width], got {}",
             transform, to_string(images.shape()));
  TERN_CHECK((labels.dim() == 1 || labels.dim() == 2) && labels.size(0) == images.size(0), ShapeError,
             "{}: labels of {} pictures must be [{}] or [{}, classes], got {}", transform, images.size(0),
             images.size(0), images.size(0), to_string(labels.shape()));
  if (labels.dim() == 2) {
    TERN_CHECK(!options.num_classes || *options.num_classes == labels.size(1), ValueError,
               "{}: the labels are probabilities of {} classes, num_classes is {}; leave it out", transform,
               labels.size(1), *options.num_classes);
    return;
  }
  TERN_CHECK(options.num_classes, ValueError, "{}: class numbers as labels need num_classes", transform);
  TERN_CHECK(labels.dtype() == DType::Int64, DTypeError, "{}: class numbers must be int64, got {}", transform,
             name(labels.dtype()));
}

/// lam times each row and 1 - lam times the one before it.
Tensor mixed_rows(const Tensor& rows, double lam) { return roll(rows, {1}, {0}) * (1 - lam) + rows * lam; }

Tensor mixed_labels(const Tensor& labels, double lam, const MixOptions& options) {
  const Tensor parts = labels.dim() == 1 ? one_hot(labels, *options.num_classes) : labels;
  return mixed_rows(is_floating_point(parts.dtype()) ? parts : parts.to(DType::Float32), lam);
}

template <class Mix>
Batch mixed_batch(const Mix& mix, Batch batch, const char* transform) {
  TERN_CHECK(batch.size() >= 2, ValueError, "{}: the batch has {} tensor{}, not pictures and labels",
             transform, batch.size(), batch.size() == 1 ? "" : "s");
  Random random(draw_seed({}), 0, 0);
  const Batch mixed = mix(batch.data, batch.target, random);
  batch.data = mixed.data;
  batch.target = mixed.target;
  return batch;
}

}  // namespace

MixUp::MixUp(const MixOptions& options) : options_(options) { check_mix_options(options, "MixUp"); }

Batch MixUp::operator()(const Tensor& images, const Tensor& labels, Random& random) const {
  check_batch(images, labels, options_, "MixUp");
  TERN_CHECK(is_floating_point(images.dtype()), DTypeError,
             "MixUp: expects pictures of floats, got {}; put ToFloat among the transforms",
             name(images.dtype()));
  const double lam = detail::random_dirichlet(2, options_.alpha, random)[0];
  return {mixed_rows(images, lam), mixed_labels(labels, lam, options_)};
}

Batch MixUp::operator()(Batch batch) const { return mixed_batch(*this, std::move(batch), "MixUp"); }

CutMix::CutMix(const MixOptions& options) : options_(options) { check_mix_options(options, "CutMix"); }

Batch CutMix::operator()(const Tensor& images, const Tensor& labels, Random& random) const {
  check_batch(images, labels, options_, "CutMix");
  const int64_t height = images.size(2), width = images.size(3);
  TERN_CHECK(height > 0 && width > 0, ShapeError, "CutMix: the pictures are empty: {}",
             to_string(images.shape()));
  const double lam = detail::random_dirichlet(2, options_.alpha, random)[0];
  const int64_t x = random.below(width), y = random.below(height);
  const double half = std::sqrt(1 - lam) / 2;
  const auto half_x = static_cast<int64_t>(half * static_cast<double>(width)),
             half_y = static_cast<int64_t>(half * static_cast<double>(height));
  const int64_t left = std::max<int64_t>(x - half_x, 0), right = std::min(x + half_x, width),
                top = std::max<int64_t>(y - half_y, 0), bottom = std::min(y + half_y, height);
  Tensor out = images.clone();
  const auto piece = [&](const Tensor& of) {
    return of.narrow(2, top, bottom - top).narrow(3, left, right - left);
  };
  piece(out).copy_(roll(piece(images), {1}, {0}));
  const double area = static_cast<double>((right - left) * (bottom - top));
  return {out, mixed_labels(labels, 1 - area / static_cast<double>(width * height), options_)};
}

Batch CutMix::operator()(Batch batch) const { return mixed_batch(*this, std::move(batch), "CutMix"); }

}  // namespace tern::data
