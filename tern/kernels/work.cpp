// The description of any launch: a table with one entry for each line of kernels/list.h. A kernel whose
// argument struct has no describe() does not compile.
#include "tern/kernels/work.h"

#include "tern/kernels/work_describe.h"

namespace tern {
namespace {

using Describe = void (*)(const void* args, Work& work);

#define TERN_ENTRY(kernel, Args)                              \
  [](const void* args, Work& work) {                          \
    work.op = #kernel;                                        \
    kernels::describe(*static_cast<const Args*>(args), work); \
  },
constexpr Describe kDescribe[kernels::kCount] = {TERN_KERNELS(TERN_ENTRY)};
#undef TERN_ENTRY

}  // namespace

Work work_of(uint16_t id, const void* args) {
  Work work;
  kDescribe[id](args, work);
  return work;
}

}  // namespace tern
