// The library's fingerprint of the list of kernels.
#include "tern/kernels/fingerprint.h"

namespace tern::detail {

uint64_t kernel_list_fingerprint() noexcept { return kernels::fingerprint(); }

}  // namespace tern::detail
