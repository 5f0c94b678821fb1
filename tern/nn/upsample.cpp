// Layers that give signals, images and volumes another size.
#include "tern/nn/upsample.h"

#include <fmt/format.h>

#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"

namespace tern::nn {
namespace {

/// A number for all dimensions, or a tuple.
std::string numbers_text(const std::vector<double>& values) {
  if (values.size() == 1) return python_text(values[0]);
  std::string text;
  for (const double value : values) text += (text.empty() ? "(" : ", ") + python_text(value);
  return text + ")";
}
std::string numbers_text(const std::vector<int64_t>& values) {
  return values.size() == 1 ? std::to_string(values[0]) : python_tuple(values);
}

}  // namespace

Upsample::Upsample(const UpsampleOptions& options) : Upsample("Upsample", options) {}

Upsample::Upsample(const char* layer, const UpsampleOptions& o)
    : options_{.size = o.size,
               .scale_factor = o.scale_factor,
               .mode = o.mode,
               .align_corners = o.align_corners,
               .recompute_scale_factor = o.recompute_scale_factor} {
  TERN_CHECK(o.size.empty() != o.scale_factor.empty(), ValueError,
             "{}: give one of size and scale_factor, got {}", layer, o.size.empty() ? "none" : "both");
  for (const int64_t size : o.size) at_least(layer, "size", size, 1);
  for (const double factor : o.scale_factor)
    TERN_CHECK(factor > 0, ValueError, "{}: scale_factor must be above 0, got {}", layer, factor);
}

std::string Upsample::extra_repr() const {
  const auto& o = options_;
  const std::string size = o.scale_factor.empty() ? "size=" + numbers_text(o.size)
                                                  : "scale_factor=" + numbers_text(o.scale_factor);
  return fmt::format("{}, mode='{}'", size, o.mode);
}

UpsamplingNearest2d::UpsamplingNearest2d(const Upsample2dOptions& o)
    : Upsample("UpsamplingNearest2d", {.size = o.size, .scale_factor = o.scale_factor}) {}

UpsamplingBilinear2d::UpsamplingBilinear2d(const Upsample2dOptions& o)
    : Upsample("UpsamplingBilinear2d",
               {.size = o.size, .scale_factor = o.scale_factor, .mode = "bilinear", .align_corners = true}) {}

}  // namespace tern::nn
