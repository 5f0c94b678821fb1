// Lazy layers: those whose input sizes are taken from their first input. What they share is here; each stands
// beside the layer that it becomes (LazyLinear in nn/linear.h).
#pragma once

#include <initializer_list>
#include <limits>
#include <string_view>

#include "tern/core/tensor.h"

namespace tern::nn {

/// True for a parameter or buffer of a lazy layer that has not seen an input yet
/// (torch.nn.parameter.is_lazy). Its unknown sizes are 0; dtype, device and requires_grad are there. It can
/// be moved, converted, and given to an optimizer; computing with it or changing it throws ValueError.
inline bool is_lazy(const Tensor& tensor) { return tensor.defined() && tensor.storage()->is_uninitialized(); }

namespace detail {

/// True while a layer waits for its first input; a state dict may have had one of the two.
inline bool any_lazy(const Tensor& weight, const Tensor& bias) { return is_lazy(weight) || is_lazy(bias); }

/// Chooses the constructor of a layer whose input size is not known.
struct Lazy {};

/// Marks the tensors of a lazy layer; undefined ones stay absent.
void defer(std::initializer_list<const Tensor*> tensors);

/// Whether the tensor has this shape, or is lazy and can take it.
bool can_have_shape(const Tensor& tensor, const Shape& shape);

/// A tensor of a lazy layer with its shape now that it is known.
struct Sized {
  const Tensor& tensor;
  Shape shape;
};
/// Makes those that are lazy ordinary tensors of these shapes, with the dtype and device that each has by
/// now; the numbers are still to be drawn. The tensors stay the same tensors. When memory runs out nothing
/// has been changed.
void materialize(std::initializer_list<Sized> tensors);

/// How many dimensions a layer's input may have.
struct DimRange {
  int64_t min_dim;
  int64_t max_dim = std::numeric_limits<int64_t>::max();
};
/// The size of dimension `dim` of the first input x of `layer`. Throws ShapeError unless x has as many
/// dimensions as the layer takes, CaptureError while a step is being recorded.
int64_t size_of_first_input(std::string_view layer, const Tensor& x, int64_t dim, DimRange range);

/// Gives a tensor other numbers, maybe elsewhere, of another dtype or shape; all handles to it see them.
void set_data(const Tensor& tensor, const Tensor& data);

}  // namespace detail
}  // namespace tern::nn
