// The limits of LoadOptions, counted down.
#include "tern/io/load_budget.h"

#include <algorithm>

#include "tern/base/check.h"

namespace tern::io {

namespace {
/// Small files may grow by this in any case.
constexpr uint64_t kFreeExpansion = uint64_t{64} << 20;
}  // namespace

LoadBudget::LoadBudget(const LoadLimits& limits, uint64_t file_size)
    : tensor_limit_(limits.tensor_bytes), file_size_(file_size) {
  if (__builtin_mul_overflow(limits.expansion, file_size, &unpacked_limit_) ||
      __builtin_add_overflow(unpacked_limit_, kFreeExpansion, &unpacked_limit_))
    unpacked_limit_ = UINT64_MAX;
}

void LoadBudget::take_tensor(uint64_t nbytes) {
  TERN_CHECK(nbytes <= tensor_limit_ - tensor_bytes_, CheckpointError,
             "the tensors have more than {} bytes, which is the limit (limits.tensor_bytes)", tensor_limit_);
  tensor_bytes_ += nbytes;
}

void LoadBudget::take_unpacked(std::string_view entry, uint64_t nbytes) {
  TERN_CHECK(nbytes <= unpacked_limit_ - unpacked_, CheckpointError,
             "entry '{}' unpacks to {} bytes; a file of {} bytes may unpack to {} in all (limits.expansion)",
             entry.substr(0, 200), nbytes, file_size_, unpacked_limit_);
  unpacked_ += nbytes;
}

}  // namespace tern::io
