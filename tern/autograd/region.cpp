// Regions of gradients: taking one out, clearing it, and putting one into zeros; each is linear, and their
// gradients are each other.
#include "tern/autograd/region.h"

#include <algorithm>
#include <vector>

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/record.h"
#include "tern/base/check.h"

namespace tern {
namespace {

/// Which elements of a tensor without gaps a view shows. Dimensions are counted in the order in which the
/// tensor lies in memory.
struct Region {
  std::vector<size_t> order;  ///< the dimensions, from the one with the largest steps on
  Shape base_shape;           ///< in this order
  Shape shape;
  Strides strides;
  int64_t offset = 0;

  /// The elements in a dense row in memory order.
  Tensor of(const Tensor& dense) const {
    return Tensor::view_of(dense.storage(), dense.dtype(), shape, strides, dense.storage_offset() + offset);
  }
  /// A gradient of the tensor with its dimensions in memory order, and the other way round.
  Tensor in_order(const Tensor& x) const {
    Strides of_x;
    for (const size_t d : order) of_x.push_back(x.strides()[d]);
    return Tensor::view_of(x.storage(), x.dtype(), base_shape, of_x, x.storage_offset());
  }
  Tensor out_of_order(const Tensor& dense) const {
    Shape sizes(order.size());
    Strides steps(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      sizes[order[i]] = base_shape[i];
      steps[order[i]] = dense.strides()[i];
    }
    return Tensor::view_of(dense.storage(), dense.dtype(), sizes, steps, dense.storage_offset());
  }
};

Tensor take(const Tensor& x, const Region& region);

Tensor embed(const Tensor& x, const Region& region) {
  Tensor y = filled(region.base_shape, x.dtype(), x.device(), 0);
  copy_elements(region.of(y), x);
  y = region.out_of_order(y);
  if (tracks_grad(x))
    record("embed_region", y, {x}, [region](GradContext&, const Tensor& g) { return take(g, region); });
  return y;
}

Tensor take(const Tensor& x, const Region& region) {
  Tensor y = compact_copy(region.of(compact(region.in_order(x))));
  if (tracks_grad(x))
    record("take_region", y, {x}, [region](GradContext&, const Tensor& g) { return embed(g, region); });
  return y;
}

Tensor clear(const Tensor& x, const Region& region) {
  Tensor y = compact_copy(region.in_order(x));
  fill_elements(region.of(y), 0);
  y = region.out_of_order(y);
  if (tracks_grad(x))
    record("clear_region", y, {x}, [region](GradContext&, const Tensor& g) { return clear(g, region); });
  return y;
}

Region region_of(const char* op, const Tensor& view, const Tensor& base) {
  Region region;
  for (size_t d = 0; d < base.shape().size(); ++d) region.order.push_back(d);
  std::stable_sort(region.order.begin(), region.order.end(),
                   [&](size_t a, size_t b) { return base.strides()[a] > base.strides()[b]; });
  for (const size_t d : region.order) region.base_shape.push_back(base.shape()[d]);
  TERN_CHECK(
      region.in_order(base).is_contiguous(), AutogradError,
      "{}: a view of a tensor with gaps between its elements (shape {}, strides {}) is changed in place "
      "where gradients are recorded: make the base contiguous() before taking the view",
      op, to_string(base.shape()), to_string(base.strides()));
  region.shape = view.shape();
  region.strides = view.strides();
  region.offset = view.storage_offset() - base.storage_offset();
  return region;
}

}  // namespace

void refresh_view_history(const Tensor& view, GradMeta& meta) {
  GradMeta* base = find_meta(meta.base);
  if (base == nullptr || base->rewrites == meta.base_rewrites) return;
  Region region = region_of("as_strided", view, meta.base);
  meta.base_rewrites = base->rewrites;
  meta.requires_grad = base->requires_grad;
  meta.replace_grad_fn(detail::make_node(
      "as_strided", &meta.base, 1, [region](GradContext&, const Tensor& g) { return embed(g, region); }));
}

void rewrite_base_history(const Tensor& view, GradMeta& meta, IntrusivePtr<Node> node) {
  Region region = region_of(node->name(), view, meta.base);
  IntrusivePtr<Node> replaced =
      detail::make_node("copy_slices", &meta.base, 1, [region](GradContext& c, const Tensor& g) {
        return std::array<Tensor, 2>{c.needs(0) ? clear(g, region) : Tensor(),
                                     c.needs(1) ? take(g, region) : Tensor()};
      });
  std::vector<Edge> edges = replaced->inputs();
  edges.push_back(Edge{std::move(node), {}});
  replaced->set_inputs(std::move(edges));
  GradMeta& base = meta_of(meta.base);
  base.requires_grad = true;
  base.replace_grad_fn(std::move(replaced));
  ++base.rewrites;
  refresh_view_history(view, meta);
}

}  // namespace tern
