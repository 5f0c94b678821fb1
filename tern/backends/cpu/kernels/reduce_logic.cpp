// Any, all and the count of elements that are not zero. An element is looked at as an unsigned integer of its
// width.
#include "tern/backends/cpu/kernels/reduce.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

template <class U>
void run(const ReduceArgs& args) {
  const U* in = static_cast<const U*>(args.in);
  const U bits = wide::value_bits<U>(is_floating_point(args.dtype));
  bool* flags = static_cast<bool*>(args.out);
  if (args.op == ReduceOp::Any)
    wide::reduce_with(wide::AnyBits<U>{bits}, in, flags, args.kept, args.reduced,
                      [](U found) { return found != 0; });
  else if (args.op == ReduceOp::All)
    wide::reduce_with(wide::AnyWithoutBits<U>{bits}, in, flags, args.kept, args.reduced,
                      [](U found) { return found == 0; });
  else
    wide::reduce_with(wide::CountBits<U>{bits}, in, static_cast<int64_t*>(args.out), args.kept, args.reduced,
                      [](uint64_t count) { return static_cast<int64_t>(count); });
}

}  // namespace

void reduce_logic(const ReduceArgs& args) {
  if (!is_computable(args.dtype)) throw_not_computable(args.dtype);
  switch (itemsize(args.dtype)) {
    case 1:
      return run<uint8_t>(args);
    case 2:
      return run<uint16_t>(args);
    case 4:
      return run<uint32_t>(args);
    default:
      return run<uint64_t>(args);
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
