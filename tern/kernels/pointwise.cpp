// Names and result kinds of the pointwise operators.
#include "tern/kernels/pointwise.h"

namespace tern {
namespace {

struct Entry {
  const char* name;
  ResultKind kind;
};
#define TERN_ENTRY(op, text, kind) {text, ResultKind::kind},
constexpr Entry kUnary[] = {TERN_UNARY_OPS(TERN_ENTRY)};
constexpr Entry kBinary[] = {TERN_BINARY_OPS(TERN_ENTRY)};
constexpr Entry kTernary[] = {TERN_TERNARY_OPS(TERN_ENTRY)};
#undef TERN_ENTRY

}  // namespace

const char* name(UnaryOp op) noexcept { return kUnary[static_cast<int>(op)].name; }
const char* name(BinaryOp op) noexcept { return kBinary[static_cast<int>(op)].name; }
const char* name(TernaryOp op) noexcept { return kTernary[static_cast<int>(op)].name; }
ResultKind result_kind(UnaryOp op) noexcept { return kUnary[static_cast<int>(op)].kind; }
ResultKind result_kind(BinaryOp op) noexcept { return kBinary[static_cast<int>(op)].kind; }
ResultKind result_kind(TernaryOp op) noexcept { return kTernary[static_cast<int>(op)].kind; }

}  // namespace tern
