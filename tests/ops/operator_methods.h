// The methods of Tensor and C++'s operators, for operator_list.cpp: one line for each. They forward to the
// functions of the same name, whose lines are there.
#pragma once

#include "tern/ops/compare.h"
#include "tern/ops/pointwise.h"
#include "tests/ops/operator_arguments.h"

namespace tern::testing {

/// `a + b` of two tensors, or of a tensor and a number.
template <class Apply>
Operator infix(Apply apply) {
  return [apply](const Arguments& a) {
    return a.is_tensor(1) ? apply(a.tensor(0), a.tensor(1)) : apply(a.tensor(0), a.number(1));
  };
}

inline Operator method(Tensor (Tensor::*f)() const) {
  return [f](const Arguments& a) { return (a.tensor(0).*f)(); };
}

/// x.f(dims, keepdim), or x.f() of all.
template <class Whole, class Along>
Operator reduction_method(Whole whole, Along along) {
  return [whole, along](const Arguments& a) {
    return a.has(1) ? Results(along(a.tensor(0), a)) : Results(whole(a.tensor(0)));
  };
}

inline const Table kMethods = {
    {"a + b", infix([](const auto& a, const auto& b) { return a + b; })},
    {"a - b", infix([](const auto& a, const auto& b) { return a - b; })},
    {"a * b", infix([](const auto& a, const auto& b) { return a * b; })},
    {"a / b", infix([](const auto& a, const auto& b) { return a / b; })},
    {"number + b", [](const Arguments& a) { return a.number(0) + a.tensor(1); }},
    {"number - b", [](const Arguments& a) { return a.number(0) - a.tensor(1); }},
    {"number * b", [](const Arguments& a) { return a.number(0) * a.tensor(1); }},
    {"a == b", infix([](const auto& a, const auto& b) { return a == b; })},
    {"a != b", infix([](const auto& a, const auto& b) { return a != b; })},
    {"a < b", infix([](const auto& a, const auto& b) { return a < b; })},
    {"a <= b", infix([](const auto& a, const auto& b) { return a <= b; })},
    {"a > b", infix([](const auto& a, const auto& b) { return a > b; })},
    {"a >= b", infix([](const auto& a, const auto& b) { return a >= b; })},
    {"a % b", infix([](const auto& a, const auto& b) { return a % b; })},
    {"number % b", [](const Arguments& a) { return a.number(0) % a.tensor(1); }},
    {"a & b", infix([](const auto& a, const auto& b) { return a & b; })},
    {"a | b", infix([](const auto& a, const auto& b) { return a | b; })},
    {"a ^ b", infix([](const auto& a, const auto& b) { return a ^ b; })},
    {"!a", [](const Arguments& a) { return !a.tensor(0); }},
    {"~a", [](const Arguments& a) { return ~a.tensor(0); }},
    {"-a", [](const Arguments& a) { return -a.tensor(0); }},
    {"a[i]", [](const Arguments& a) { return a.tensor(0)[a.integer(1)]; }},
    {"a[b]", [](const Arguments& a) { return a.tensor(0)[a.tensor(1)]; }},
    {"Tensor.to", [](const Arguments& a) { return a.tensor(0).to(kCPU, *a.dtype(1)); }},
    {"Tensor.cpu", method(&Tensor::cpu)},
    {"Tensor.contiguous", method(&Tensor::contiguous)},
    {"Tensor.clone", method(&Tensor::clone)},
    {"Tensor.view", [](const Arguments& a) { return a.tensor(0).view(a.integers(1)); }},
    {"Tensor.reshape", [](const Arguments& a) { return a.tensor(0).reshape(a.integers(1)); }},
    {"Tensor.permute", [](const Arguments& a) { return a.tensor(0).permute(a.integers(1)); }},
    {"Tensor.transpose",
     [](const Arguments& a) { return a.tensor(0).transpose(a.integer(1), a.integer(2)); }},
    {"Tensor.t", method(&Tensor::t)},
    {"Tensor.expand", [](const Arguments& a) { return a.tensor(0).expand(a.integers(1)); }},
    {"Tensor.narrow",
     [](const Arguments& a) { return a.tensor(0).narrow(a.integer(1), a.integer(2), a.integer(3)); }},
    {"Tensor.slice",
     [](const Arguments& a) {
       return a.tensor(0).slice(a.integer(1), a.optional_integer(2), a.optional_integer(3), a.integer(4, 1));
     }},
    {"Tensor.select", [](const Arguments& a) { return a.tensor(0).select(a.integer(1), a.integer(2)); }},
    {"Tensor.squeeze",
     [](const Arguments& a) { return a.has(1) ? a.tensor(0).squeeze(a.integer(1)) : a.tensor(0).squeeze(); }},
    {"Tensor.unsqueeze", [](const Arguments& a) { return a.tensor(0).unsqueeze(a.integer(1)); }},
    {"Tensor.flatten",
     [](const Arguments& a) { return a.tensor(0).flatten(a.integer(1, 0), a.integer(2, -1)); }},
    {"Tensor.chunk", [](const Arguments& a) { return a.tensor(0).chunk(a.integer(1), a.integer(2)); }},
    {"Tensor.split", [](const Arguments& a) { return a.tensor(0).split(a.integer(1), a.integer(2)); }},
    {"Tensor.abs", method(&Tensor::abs)},
    {"Tensor.exp", method(&Tensor::exp)},
    {"Tensor.log", method(&Tensor::log)},
    {"Tensor.sqrt", method(&Tensor::sqrt)},
    {"Tensor.square", method(&Tensor::square)},
    {"Tensor.sigmoid", method(&Tensor::sigmoid)},
    {"Tensor.tanh", method(&Tensor::tanh)},
    {"Tensor.relu", method(&Tensor::relu)},
    {"Tensor.pow", [](const Arguments& a) { return a.tensor(0).pow(a.number(1)); }},
    {"Tensor.clamp",
     [](const Arguments& a) {
       return a.is_tensor(1) || a.is_tensor(2)
                  ? a.tensor(0).clamp(a.tensor(1), a.tensor(2))
                  : a.tensor(0).clamp(a.optional_number(1), a.optional_number(2));
     }},
    {"Tensor.eq", [](const Arguments& a) { return a.tensor(0).eq(a.tensor(1)); }},
    {"Tensor.matmul", [](const Arguments& a) { return a.tensor(0).matmul(a.tensor(1)); }},
    {"Tensor.mm", [](const Arguments& a) { return a.tensor(0).mm(a.tensor(1)); }},
    {"Tensor.softmax", [](const Arguments& a) { return a.tensor(0).softmax(a.integer(1)); }},
    {"Tensor.log_softmax", [](const Arguments& a) { return a.tensor(0).log_softmax(a.integer(1)); }},
    {"Tensor.sum",
     reduction_method([](const Tensor& x) { return x.sum(); },
                      [](const Tensor& x, const Arguments& a) { return x.sum(a.integers(1), a.flag(2)); })},
    {"Tensor.mean",
     reduction_method([](const Tensor& x) { return x.mean(); },
                      [](const Tensor& x, const Arguments& a) { return x.mean(a.integers(1), a.flag(2)); })},
    {"Tensor.max",
     reduction_method([](const Tensor& x) { return x.max(); },
                      [](const Tensor& x, const Arguments& a) { return x.max(a.integer(1), a.flag(2)); })},
    {"Tensor.min",
     reduction_method([](const Tensor& x) { return x.min(); },
                      [](const Tensor& x, const Arguments& a) { return x.min(a.integer(1), a.flag(2)); })},
    {"Tensor.argmax",
     reduction_method([](const Tensor& x) { return x.argmax(); },
                      [](const Tensor& x, const Arguments& a) { return x.argmax(a.integer(1), a.flag(2)); })},
    {"Tensor.argmin",
     reduction_method([](const Tensor& x) { return x.argmin(); },
                      [](const Tensor& x, const Arguments& a) { return x.argmin(a.integer(1), a.flag(2)); })},
    {"Tensor.all", method(&Tensor::all)},
    {"Tensor.any", method(&Tensor::any)},
    {"Tensor.norm", [](const Arguments& a) { return a.tensor(0).norm(); }},
    {"Tensor.var", [](const Arguments& a) { return a.tensor(0).var(a.real(2) == 1); }},
    {"Tensor.std", [](const Arguments& a) { return a.tensor(0).std(a.real(2) == 1); }},
};

}  // namespace tern::testing
