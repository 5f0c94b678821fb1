// What the tables of operators share: how arguments become a call, and the tables' names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tern/core/scalar.h"
#include "tern/core/tensor.h"
#include "tern/ops/conv.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/loss.h"
#include "tern/ops/shape.h"
#include "tern/ops/size3.h"
#include "tests/ops/operator_arguments.h"

namespace tern::testing {

extern const Table kPointwise, kCompare, kInPlace;  // operator_list_pointwise.cpp
extern const Table kReduce;                         // operator_list_reduce.cpp
extern const Table kShape, kIndex;                  // operator_list_shape.cpp
extern const Table kOrder;                          // operator_list_order.cpp
extern const Table kNetwork;                        // operator_list_network.cpp
extern const Table kResize;                         // operator_list_resize.cpp
extern const Table kLoss;                           // operator_list_loss.cpp
extern const Table kCreation;                       // operator_list_creation.cpp
extern const Table kLinalg;                         // operator_list_linalg.cpp
extern const Table kSpecial;                        // operator_list_special.cpp
extern const Table kComplex;                        // operator_list_complex.cpp

using A = const Arguments&;
using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);
using BinaryNumber = Tensor (*)(const Tensor&, const Scalar&);

/// f(x).
inline Operator one(Unary f) {
  return [f](A a) { return f(a.tensor(0)); };
}
/// f(a, b) of two tensors.
inline Operator two(Binary f) {
  return [f](A a) { return f(a.tensor(0), a.tensor(1)); };
}
/// f(a, b), where b may be a number.
inline Operator two(Binary f, BinaryNumber g) {
  return [f, g](A a) { return a.is_tensor(1) ? f(a.tensor(0), a.tensor(1)) : g(a.tensor(0), a.number(1)); };
}
/// A method that changes a copy of x in place; of a strided x, a strided view.
template <class Change>
Operator in_place(Change change) {
  return [change](A a) {
    const Tensor source = a.tensor(0);
    Tensor x = source.is_contiguous() || source.dim() < 2 ? clone(source)
                                                          : transpose(clone(transpose(source, 0, -1)), 0, -1);
    change(x, a);
    return x;
  };
}

using Change = Tensor& (Tensor::*)();
using ChangeBy = Tensor& (Tensor::*)(const Tensor&);
using ChangeByNumber = Tensor& (Tensor::*)(const Scalar&);
inline Operator changed(Change f) {
  return in_place([f](Tensor& x, A) { (x.*f)(); });
}
inline Operator changed(ChangeBy f) {
  return in_place([f](Tensor& x, A a) { (x.*f)(a.tensor(1)); });
}
/// By a tensor or a number.
inline Operator changed(ChangeBy f, ChangeByNumber g) {
  return in_place([f, g](Tensor& x, A a) { a.is_tensor(1) ? (x.*f)(a.tensor(1)) : (x.*g)(a.number(1)); });
}

inline Tensor truth(bool value) { return full({}, value); }
inline Size2 size2(A a, size_t i, int64_t otherwise) {
  const std::vector<int64_t> sizes = a.integers(i);
  if (sizes.empty()) return otherwise;
  return sizes.size() == 1 ? Size2(sizes[0]) : Size2(sizes[0], sizes.at(1));
}
inline std::optional<Size2> optional_size2(A a, size_t i) {
  return a.has(i) ? std::optional(size2(a, i, 0)) : std::nullopt;
}
inline Size3 size3(A a, size_t i, int64_t otherwise) {
  const std::vector<int64_t> sizes = a.integers(i);
  if (sizes.empty()) return otherwise;
  return sizes.size() == 1 ? Size3(sizes[0]) : Size3(sizes[0], sizes.at(1), sizes.at(2));
}
inline std::optional<Size3> optional_size3(A a, size_t i) {
  return a.has(i) ? std::optional(size3(a, i, 0)) : std::nullopt;
}
inline ConvPadding padding(A a, size_t i, bool is_text) {
  return is_text ? ConvPadding(a.text(i)) : ConvPadding(size2(a, i, 0));
}
inline Reduction reduction(A a, size_t i) { return parse_reduction(a.text(i, "mean")); }

}  // namespace tern::testing
