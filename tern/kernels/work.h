// Work: what one launch does, in operations and bytes, and which memory it touches. Profilers count with it,
// and the check for races of simulated GPUs compares its operands. How each argument struct is read is in
// work_<group of families>.cpp, declared in work_describe.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tern/base/small_vector.h"

namespace tern {

/// A piece of memory that a launch touches: from `data`, `nbytes` up to the end of the last element touched.
/// Of a strided operand this is the whole span, with the gaps. An operand written in place of one read
/// appears twice, or once with both flags where the kernel has one pointer for it.
struct Operand {
  const void* data;
  size_t nbytes;
  bool written;
  bool read;
};

/// What one launch does.
///
/// `flops` counts floating-point operations (integer ones too) by the usual convention:
///
///   fill, copy, index, sort, nonzero, search, randperm, tril   0
///   pointwise, range, random numbers, dropout                  1 per element written
///   multinomial                                                1 per weight
///   index_put that adds and the like                           1 per element of the source
///   matmul                                                     2 m n k per product of the batch
///   linear_backward                                            2 rows in out for each product that is wanted
///   conv2d; each of its two gradients                          2 N C_out OH OW (C_in / groups) KH KW
///   max and mean pooling; gradient of mean pooling             KH KW per element of the small image
///   adaptive pooling; gradient of adaptive mean pooling        1 per element of the large image
///   gradient of max pooling                                    1 per element of the small image
///   reductions; norm; var and std                              1; 2; 4 per element read
///   cumsum, cumprod, cummax; logcumsumexp, gradients of products  1; 4 per element
///   softmax, log_softmax; logsumexp; their gradients           5; 4; 4 per element
///   cross_entropy; its gradient                                5; 4 per element of the input
///   nll_loss; its gradient                                     2; 1 per target
///   losses of two tensors; their gradients                     3; 3 per element
///   ctc_loss; its gradient                                     10; 12 per step and state of the longest
///   target multilabel_margin_loss; its gradient                       3; 3 per pair of classes, as if all
///   were targets batch_norm in training; in evaluation                      8; 4 per element layer and group
///   norm; RMS norm                             8; 4 per element gradient of batch_norm 4 (sums) and 5
///   (input) per element gradients of the other norms                               4 (parameters) and 9
///   (input) per element sgd; adam; rmsprop; adagrad                                2; 13; 9; 7 per element
///     with weight decay, momentum, amsgrad, centered           2, 3, 1, 5 more
///   clip_grad_norm_; clip_grad_value_                          2 for the norm, 1 for the factor; 1
///
/// Activations and biases inside a product or a convolution are not counted.
struct Work {
  /// PyTorch's name of the operator where the arguments tell it ("add", "sum", "conv2d"); else the kernel's.
  std::string_view op;
  double flops = 0;
  /// Bytes that must move at least: elements read (those of broadcast operands once) and elements written.
  double bytes = 0;
  SmallVector<Operand, 8> operands;
};

/// Of the launch of kernel number `id` (kernels/list.h) with these args, which are read during the call only.
/// An operand of no elements, or whose pointer is null, is left out.
Work work_of(uint16_t id, const void* args);

}  // namespace tern
