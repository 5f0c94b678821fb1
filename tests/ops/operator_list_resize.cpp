// Resizing and sliding blocks of images, for operator_list.cpp: one line for each.
#include "tern/ops/fold.h"
#include "tern/ops/grid.h"
#include "tern/ops/interpolate.h"
#include "tern/ops/pixel.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {

static FoldOptions fold_options(A a, size_t i) {
  return {size2(a, i, 1), size2(a, i + 1, 0), size2(a, i + 2, 1)};
}

const Table kResize = {
    {"interpolate",
     [](A a) {
       return interpolate(a.tensor(0), {.size = a.integers(1),
                                        .scale_factor = a.reals(2),
                                        .mode = a.text(3, "nearest"),
                                        .align_corners = a.has(4) ? std::optional(a.flag(4)) : std::nullopt,
                                        .recompute_scale_factor = a.flag(5),
                                        .antialias = a.flag(6)});
     }},
    {"unfold_blocks", [](A a) { return unfold(a.tensor(0), size2(a, 1, 1), fold_options(a, 2)); }},
    {"fold", [](A a) { return fold(a.tensor(0), size2(a, 1, 1), size2(a, 2, 1), fold_options(a, 3)); }},
    {"affine_grid", [](A a) { return affine_grid(a.tensor(0), a.integers(1), a.flag(2)); }},
    {"grid_sample",
     [](A a) {
       return grid_sample(
           a.tensor(0), a.tensor(1),
           {.mode = a.text(2, "bilinear"), .padding_mode = a.text(3, "zeros"), .align_corners = a.flag(4)});
     }},
    {"channel_shuffle", [](A a) { return channel_shuffle(a.tensor(0), a.integer(1)); }},
};

}  // namespace tern::testing
