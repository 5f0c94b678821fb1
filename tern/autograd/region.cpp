// Regions of contiguous gradients: taking one out, clearing it, and putting one into zeros; each is linear,
// and their gradients are each other.
#include "tern/autograd/region.h"

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/record.h"
#include "tern/base/check.h"

namespace tern {
namespace {

/// Which elements of a contiguous tensor of `base_shape` a view shows.
struct Region {
  Shape base_shape;
  Shape shape;
  Strides strides;
  int64_t offset = 0;

  Tensor of(const Tensor& contiguous) const {
    return Tensor::view_of(contiguous.storage(), contiguous.dtype(), shape, strides,
                           contiguous.storage_offset() + offset);
  }
};

Tensor take(const Tensor& x, const Region& region);

Tensor embed(const Tensor& x, const Region& region) {
  Tensor y = filled(region.base_shape, x.dtype(), x.device(), 0);
  copy_elements(region.of(y), x);
  if (tracks_grad(x))
    record("embed_region", y, {x}, [region](GradContext&, const Tensor& g) { return take(g, region); });
  return y;
}

Tensor take(const Tensor& x, const Region& region) {
  Tensor y = compact_copy(region.of(compact(x)));
  if (tracks_grad(x))
    record("take_region", y, {x}, [region](GradContext&, const Tensor& g) { return embed(g, region); });
  return y;
}

Tensor clear(const Tensor& x, const Region& region) {
  Tensor y = compact_copy(x);
  fill_elements(region.of(y), 0);
  if (tracks_grad(x))
    record("clear_region", y, {x}, [region](GradContext&, const Tensor& g) { return clear(g, region); });
  return y;
}

Region region_of(const char* op, const Tensor& view, const Tensor& base) {
  TERN_CHECK(base.is_contiguous(), AutogradError,
             "{}: a view of a tensor that is not contiguous (shape {}, strides {}) is changed in place where "
             "gradients are recorded: "
             "make the base contiguous() before taking the view",
             op, to_string(base.shape()), to_string(base.strides()));
  return {base.shape(), view.shape(), view.strides(), view.storage_offset() - base.storage_offset()};
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
