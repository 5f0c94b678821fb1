// How descriptions of launches are made: spans of strided operands, and one describe() for each argument
// struct of kernels/list.h. Only work*.cpp includes this; work.h has the result.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/core/dtype.h"
#include "tern/kernels/list.h"
#include "tern/kernels/work.h"

namespace tern::kernels {

/// The elements that an operand's pointer leads to, dimension by dimension. Offsets are in elements.
class Span {
 public:
  Span() = default;
  /// `count` neighbours.
  explicit Span(int64_t count) { walk(count, 1); }

  /// `size` steps of `stride`, from every element so far. Stride 0 means the same elements again.
  Span& walk(int64_t size, int64_t stride) {
    if (size <= 0) {
      empty_ = true;
    } else if (stride != 0) {
      (stride > 0 ? last_ : first_) += (size - 1) * stride;
      elements_ *= static_cast<double>(size);
    }
    return *this;
  }
  template <int N>
  Span& walk(const Geometry<N>& g, int operand) {
    if (g.numel == 0) empty_ = true;
    for (int d = 0; d < g.ndim; ++d) walk(g.sizes[d], g.strides[operand][d]);
    return *this;
  }
  /// From every element so far to anywhere in a dimension, `count` times altogether.
  Span& address(int64_t size, int64_t stride) {
    const double before = elements_;
    walk(size, stride);
    elements_ = before;
    return *this;
  }
  /// So many elements are touched, which the strides do not tell. They are never more than there are.
  Span& touched(double elements) {
    elements_ = elements;
    return *this;
  }

  bool empty() const { return empty_; }
  int64_t first() const { return first_; }
  int64_t length() const { return last_ - first_ + 1; }
  /// Elements touched, each counted once.
  double elements() const { return empty_ ? 0 : std::min(elements_, static_cast<double>(length())); }

 private:
  bool empty_ = false;
  int64_t first_ = 0, last_ = 0;
  double elements_ = 1;
};

enum class Access { Read, Write, ReadWrite };

inline void add_operand(Work& work, Access access, const void* data, size_t item, const Span& span) {
  if (data == nullptr || span.empty()) return;
  const bool read = access != Access::Write, written = access != Access::Read;
  work.operands.push_back({static_cast<const char*>(data) + span.first() * static_cast<int64_t>(item),
                           static_cast<size_t>(span.length()) * item, written, read});
  work.bytes += span.elements() * static_cast<double>(item) * (read && written ? 2 : 1);
}
inline void reads(Work& work, const void* data, size_t item, const Span& span) {
  add_operand(work, Access::Read, data, item, span);
}
inline void reads(Work& work, const void* data, size_t item, int64_t count) {
  reads(work, data, item, Span(count));
}
inline void writes(Work& work, const void* data, size_t item, const Span& span) {
  add_operand(work, Access::Write, data, item, span);
}
inline void writes(Work& work, const void* data, size_t item, int64_t count) {
  writes(work, data, item, Span(count));
}
inline void updates(Work& work, const void* data, size_t item, int64_t count) {
  add_operand(work, Access::ReadWrite, data, item, Span(count));
}

/// Bytes of one element of the type that an element is computed in: float for the 16-bit floats.
inline size_t compute_size(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 ? sizeof(float) : itemsize(dtype);
}

// Each fills in flops, bytes and operands; `work.op` is the kernel's name and may be replaced by a better
// one.
void describe(const RangeArgs& args, Work& work);
void describe(const TriangleArgs& args, Work& work);
void describe(const RandomArgs& args, Work& work);
void describe(const DropoutArgs& args, Work& work);
void describe(const PermutationArgs& args, Work& work);
void describe(const MultinomialArgs& args, Work& work);
void describe(const VariatesArgs& args, Work& work);
void describe(const FillArgs& args, Work& work);
void describe(const CopyArgs& args, Work& work);
void describe(const UnaryArgs& args, Work& work);
void describe(const BinaryArgs& args, Work& work);
void describe(const TernaryArgs& args, Work& work);
void describe(const WhereArgs& args, Work& work);
void describe(const ComplexUnaryArgs& args, Work& work);
void describe(const ComplexBinaryArgs& args, Work& work);

void describe(const SgdStepArgs& args, Work& work);
void describe(const AdamStepArgs& args, Work& work);
void describe(const RmspropStepArgs& args, Work& work);
void describe(const AdagradStepArgs& args, Work& work);
void describe(const NadamStepArgs& args, Work& work);
void describe(const RadamStepArgs& args, Work& work);
void describe(const AdamaxStepArgs& args, Work& work);
void describe(const AdadeltaStepArgs& args, Work& work);
void describe(const AsgdStepArgs& args, Work& work);
void describe(const RpropStepArgs& args, Work& work);
void describe(const OptimNormArgs& args, Work& work);
void describe(const OptimClipNormArgs& args, Work& work);
void describe(const OptimClipValueArgs& args, Work& work);
void describe(const OptimUnscaleArgs& args, Work& work);

void describe(const IndexGetArgs& args, Work& work);
void describe(const IndexPutArgs& args, Work& work);
void describe(const EmbeddingBagArgs& args, Work& work);
void describe(const NonzeroCountArgs& args, Work& work);
void describe(const NonzeroArgs& args, Work& work);
void describe(const SearchSortedArgs& args, Work& work);
void describe(const SortArgs& args, Work& work);

void describe(const CrossEntropyArgs& args, Work& work);
void describe(const CrossEntropyBackwardArgs& args, Work& work);
void describe(const PairLossArgs& args, Work& work);
void describe(const PairLossBackwardArgs& args, Work& work);
void describe(const CtcLossArgs& args, Work& work);
void describe(const CtcLossBackwardArgs& args, Work& work);
void describe(const MultilabelMarginArgs& args, Work& work);
void describe(const MultilabelMarginBackwardArgs& args, Work& work);
void describe(const BatchNormArgs& args, Work& work);
void describe(const BatchNormBackwardArgs& args, Work& work);
void describe(const AttentionArgs& args, Work& work);
void describe(const AttentionBackwardArgs& args, Work& work);
void describe(const RowNormArgs& args, Work& work);
void describe(const RowNormBackwardArgs& args, Work& work);
void describe(const LstmCellArgs& args, Work& work);
void describe(const LstmCellBackwardArgs& args, Work& work);
void describe(const GruCellArgs& args, Work& work);
void describe(const GruCellBackwardArgs& args, Work& work);

void describe(const MatmulArgs& args, Work& work);
void describe(const LinearBackwardArgs& args, Work& work);
void describe(const Conv2dArgs& args, Work& work);
void describe(const Conv2dBackwardArgs& args, Work& work);
void describe(const MaxPool2dArgs& args, Work& work);
void describe(const MaxPool2dBackwardArgs& args, Work& work);
void describe(const AvgPool2dArgs& args, Work& work);
void describe(const AvgPool2dBackwardArgs& args, Work& work);
void describe(const AdaptiveAvgPool2dArgs& args, Work& work);
void describe(const AdaptiveAvgPool2dBackwardArgs& args, Work& work);
void describe(const AdaptiveMaxPool2dArgs& args, Work& work);
void describe(const ResizeArgs& args, Work& work);
void describe(const DistanceArgs& args, Work& work);
void describe(const DistanceBackwardArgs& args, Work& work);
void describe(const GridSampleArgs& args, Work& work);
void describe(const GridSampleBackwardArgs& args, Work& work);

void describe(const ReduceArgs& args, Work& work);
void describe(const ReduceIndexArgs& args, Work& work);
void describe(const MomentsArgs& args, Work& work);
void describe(const SoftmaxArgs& args, Work& work);
void describe(const SoftmaxBackwardArgs& args, Work& work);
void describe(const ScanArgs& args, Work& work);
void describe(const ScanExtremeArgs& args, Work& work);
void describe(const ProdBackwardArgs& args, Work& work);

void describe(const CholeskyArgs& args, Work& work);
void describe(const LuFactorArgs& args, Work& work);
void describe(const LuPermutationArgs& args, Work& work);
void describe(const TriangularSolveArgs& args, Work& work);
void describe(const QrArgs& args, Work& work);
void describe(const HouseholderProductArgs& args, Work& work);
void describe(const EighArgs& args, Work& work);
void describe(const SvdArgs& args, Work& work);
void describe(const FftArgs& args, Work& work);

}  // namespace tern::kernels
