// Arguments of attention in one kernel, and of its gradients in another: scores are not kept from one to the
// other. Backends that have none are given products and softmax instead (ops/attention_blocks.cpp).
#pragma once

#include <array>
#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

/// [batch, heads, rows, columns] with adjacent last elements; strides in elements.
struct AttentionOperand {
  void* data;
  int64_t batch_stride, head_stride, row_stride;

  template <class T>
  T* row(int64_t batch, int64_t head, int64_t i) const {
    return static_cast<T*>(data) + batch * batch_stride + head * head_stride + i * row_stride;
  }
};

/// `heads` of the query share `key_heads` of key and value, of which they are a multiple: neighbours share
/// one. Causal: row i sees columns 0..i.
struct AttentionShape {
  int64_t is_causal;
  int64_t batch, heads, key_heads;
  int64_t rows, columns;       ///< of the scores
  int64_t width, value_width;  ///< of a row of query and key, of value and output

  int64_t columns_of_row(int64_t i) const { return is_causal && i + 1 < columns ? i + 1 : columns; }
  /// Of `products` products of all scores with rows of the mean of both widths.
  double flops(int products) const {
    const auto scores = static_cast<double>(batch * heads) * static_cast<double>(rows) *
                        static_cast<double>(columns) / (is_causal ? 2 : 1);
    return scores * static_cast<double>(products) * static_cast<double>(width + value_width);
  }
};

/// output = softmax(scale * query key^T) value, summed in float32.
struct AttentionArgs {
  DType dtype;  ///< Float16 or BFloat16, on the CPU Float32 too
  AttentionShape shape;
  double scale;
  AttentionOperand query, key, value, output;
  float* log_sums;  ///< [batch, heads, rows]: logarithms of the sums of e^score; may be null
};

/// The gradients of all three, from what the forward pass was given and gave. Every head has keys of its own.
struct AttentionBackwardArgs {
  DType dtype;
  AttentionShape shape;
  double scale;
  AttentionOperand query, key, value, output, grad_output, grad_query, grad_key, grad_value;
  const float* log_sums;
};

/// All operands of a launch, in the order of the fields.
template <class Args>
auto operands_of(Args& a) {
  if constexpr (requires { a.grad_output; })
    return std::array{&a.query,       &a.key,        &a.value,    &a.output,
                      &a.grad_output, &a.grad_query, &a.grad_key, &a.grad_value};
  else
    return std::array{&a.query, &a.key, &a.value, &a.output};
}

namespace detail {
/// 16-bit floats in groups of 16 bytes, widths up to 128, and enough rows that a plan for a shape is worth
/// making.
template <class Args>
bool fits_fused_attention(const Args& args) {
  constexpr int64_t kFewest = 64, kWidest = 128, kMostMatrices = 65535, kGroup = 8;
  const AttentionShape& shape = args.shape;
  if (args.dtype != DType::Float16 && args.dtype != DType::BFloat16) return false;
  if (shape.rows < kFewest || shape.columns < kFewest || shape.batch < 1 || shape.batch > kMostMatrices ||
      shape.heads < 1 || shape.heads > kMostMatrices)
    return false;
  for (const int64_t width : {shape.width, shape.value_width})
    if (width < 1 || width > kWidest || width % kGroup != 0) return false;
  for (const AttentionOperand* x : operands_of(args))
    if (reinterpret_cast<uintptr_t>(x->data) % 16 != 0 || x->batch_stride % kGroup != 0 ||
        x->head_stride % kGroup != 0 || x->row_stride % kGroup != 0)
      return false;
  return true;
}
}  // namespace detail

/// Whether GPUs have the kernel for these arguments.
inline bool fits_fused_attention(const AttentionArgs& args) { return detail::fits_fused_attention(args); }
inline bool fits_fused_attention(const AttentionBackwardArgs& args) {
  return args.shape.key_heads == args.shape.heads && detail::fits_fused_attention(args);
}

#define TERN_ATTENTION_KERNELS(X) \
  X(attention, AttentionArgs)     \
  X(attention_backward, AttentionBackwardArgs)

}  // namespace tern
