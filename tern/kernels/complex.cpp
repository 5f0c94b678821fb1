// Names of the operators on complex numbers.
#include "tern/kernels/complex.h"

namespace tern {
namespace {

#define TERN_NAME(op, text) text,
constexpr const char* kUnaryNames[] = {TERN_COMPLEX_REAL_OPS(TERN_NAME) TERN_COMPLEX_UNARY_OPS(TERN_NAME)};
constexpr const char* kBinaryNames[] = {TERN_COMPLEX_BINARY_OPS(TERN_NAME)};
#undef TERN_NAME

}  // namespace

const char* name(ComplexUnary op) noexcept { return kUnaryNames[static_cast<int>(op)]; }
const char* name(ComplexBinary op) noexcept { return kBinaryNames[static_cast<int>(op)]; }

}  // namespace tern
