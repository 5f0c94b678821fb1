// PyTorch's second names of operators: `multiply` is `mul`, as a function (ops/names.h), as a method of
// Tensor and as one in place. Arguments, results and errors are those of the first name.
#pragma once

// X(second, first): functions of one tensor.
#define TERN_SECOND_NAMES_OF_ONE(X) \
  X(absolute, abs)                  \
  X(negative, neg)                  \
  X(fix, trunc)                     \
  X(sgn, sign)                      \
  X(arcsin, asin)                   \
  X(arccos, acos)                   \
  X(arctan, atan)                   \
  X(arcsinh, asinh)                 \
  X(arccosh, acosh)                 \
  X(arctanh, atanh)

// X(second, first): functions of a tensor, a tensor or number, and what else the first one takes.
#define TERN_SECOND_NAMES_OF_TWO(X) \
  X(subtract, sub)                  \
  X(multiply, mul)                  \
  X(divide, div)                    \
  X(true_divide, div)               \
  X(arctan2, atan2)                 \
  X(greater, gt)                    \
  X(greater_equal, ge)              \
  X(less, lt)                       \
  X(less_equal, le)                 \
  X(not_equal, ne)
