// Arguments of attention in one kernel: the scores are never in memory. Backends that have none are given
// products and softmax instead (ops/attention_blocks.cpp).
#pragma once

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

/// output = softmax(scale * query key^T) value, summed in float32. `heads` of the query share `key_heads` of
/// key and value, of which they are a multiple: neighbours share one. Causal: row i sees columns 0..i.
struct AttentionArgs {
  DType dtype;  ///< Float16 or BFloat16
  bool is_causal;
  double scale;
  int64_t batch, heads, key_heads;
  int64_t rows, columns;       ///< of the scores
  int64_t width, value_width;  ///< of a row of query and key, of value and output
  AttentionOperand query, key, value, output;

  double flops() const {
    const auto scores = static_cast<double>(batch * heads) * static_cast<double>(rows) *
                        static_cast<double>(columns) / (is_causal ? 2 : 1);
    return 2 * scores * static_cast<double>(width + value_width);
  }
};

/// Whether GPUs have the kernel for these arguments: 16-bit floats in groups of 16 bytes, widths up to 128,
/// and enough rows that a plan for this shape is worth making.
inline bool fits_fused_attention(const AttentionArgs& args) {
  constexpr int64_t kFewest = 64, kWidest = 128, kMostMatrices = 65535, kGroup = 8;
  if (args.dtype != DType::Float16 && args.dtype != DType::BFloat16) return false;
  if (args.rows < kFewest || args.columns < kFewest || args.batch < 1 || args.batch > kMostMatrices ||
      args.heads < 1 || args.heads > kMostMatrices)
    return false;
  for (const int64_t width : {args.width, args.value_width})
    if (width < 1 || width > kWidest || width % kGroup != 0) return false;
  for (const AttentionOperand* x : {&args.query, &args.key, &args.value, &args.output})
    if (reinterpret_cast<uintptr_t>(x->data) % 16 != 0 || x->batch_stride % kGroup != 0 ||
        x->head_stride % kGroup != 0 || x->row_stride % kGroup != 0)
      return false;
  return true;
}

#define TERN_ATTENTION_KERNELS(X) X(attention, AttentionArgs)

}  // namespace tern
