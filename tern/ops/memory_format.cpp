// Memory formats: copies that PyTorch calls channels_last are transposes of contiguous ones.
#include "tern/ops/memory_format.h"

#include "tern/base/check.h"
#include "tern/ops/copy.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// The rank of tensors that lie so; 0 for all.
int64_t rank_of(MemoryFormat format) {
  return format == MemoryFormat::ChannelsLast ? 4 : format == MemoryFormat::ChannelsLast3d ? 5 : 0;
}

}  // namespace

bool is_contiguous(const Tensor& x, MemoryFormat format) {
  const int64_t rank = rank_of(format);
  if (rank == 0) return x.is_contiguous();
  return x.dim() == rank && movedim(x.detach(), 1, -1).is_contiguous();
}

Tensor contiguous(const Tensor& x, MemoryFormat format) {
  TERN_CHECK(format != MemoryFormat::Preserve, ValueError,
             "contiguous: preserve_format keeps what is there: ask for contiguous_format or channels_last");
  const int64_t rank = rank_of(format);
  if (rank == 0) return contiguous(x);
  TERN_CHECK(x.dim() == rank, ShapeError,
             "contiguous: channels_last{} is of tensors of {} dimensions, but this one is {}",
             rank == 5 ? "_3d" : "", rank, to_string(x.shape()));
  if (is_contiguous(x, format)) return x;
  return movedim(contiguous(movedim(x, 1, -1)), -1, 1);
}

}  // namespace tern
