// Matrices as operands of the product on tiles: bfloat16, and float as one or two numbers of bfloat16.
#pragma once

#include "tern/backends/cpu/kernels/gemm_tiles.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// A matrix of any strides, of BFloat16 or float. Floats are rounded to one bfloat16, or to two, of which the
/// second is next to what the first leaves: 16 bits in all.
template <class T>
class TileMatrix final : public TilePacker {
 public:
  TileMatrix(const T* from, int64_t index_stride, int64_t k_stride, int64_t parts = 1)
      : TilePacker(k_stride == 1 ? TileOrder::ByK : TileOrder::ByIndex, parts),
        from_(from),
        index_stride_(index_stride),
        k_stride_(k_stride) {}
  void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, BFloat16* to) const override;
  Rows rows() const override;

 private:
  template <int Parts>
  void pack_rows(const T* from, int64_t width, int64_t k_count, BFloat16* to) const;
  template <int Parts>
  void pack_pairs(const T* from, int64_t width, int64_t k_count, BFloat16* to) const;

  const T* from_;
  int64_t index_stride_, k_stride_;
};

}  // namespace tern::cpu::TERN_CPU_VARIANT
