// Tensors from nothing, and random numbers, for operator_list.cpp: one line for each.
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/random.h"
#include "tern/ops/window.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {

const Table kCreation = {
    {"empty", [](A a) { return empty(a.integers(0), a.options(1)); }},
    {"zeros", [](A a) { return zeros(a.integers(0), a.options(1)); }},
    {"ones", [](A a) { return ones(a.integers(0), a.options(1)); }},
    {"full", [](A a) { return full(a.integers(0), a.number(1), a.options(2)); }},
    {"empty_like", [](A a) { return empty_like(a.tensor(0), a.options(1)); }},
    {"zeros_like", [](A a) { return zeros_like(a.tensor(0), a.options(1)); }},
    {"ones_like", [](A a) { return ones_like(a.tensor(0), a.options(1)); }},
    {"full_like", [](A a) { return full_like(a.tensor(0), a.number(1), a.options(2)); }},
    {"tensor", [](A a) { return tensor(a.tensor(0).to_vector<double>(), a.options(1)); }},
    {"from_blob",
     [](A a) {
       const Tensor x = contiguous(a.tensor(0).cpu());
       return clone(from_blob(x.data_ptr(), x.shape(), x.dtype(), [x] {}));
     }},
    {"arange", [](A a) { return arange(a.number(0), a.number(1), a.number(2, 1), a.options(3)); }},
    {"linspace", [](A a) { return linspace(a.number(0), a.number(1), a.integer(2), a.options(3)); }},
    {"logspace",
     [](A a) { return logspace(a.number(0), a.number(1), a.integer(2), a.real(3, 10), a.options(4)); }},
    {"hann_window", [](A a) { return hann_window(a.integer(0), a.flag(1, true), a.options(2)); }},
    {"hamming_window",
     [](A a) {
       return hamming_window(a.integer(0), a.flag(1, true), a.real(2, 0.54), a.real(3, 0.46), a.options(4));
     }},
    {"blackman_window", [](A a) { return blackman_window(a.integer(0), a.flag(1, true), a.options(2)); }},
    {"bartlett_window", [](A a) { return bartlett_window(a.integer(0), a.flag(1, true), a.options(2)); }},
    {"eye",
     [](A a) {
       return a.has(1) ? eye(a.integer(0), a.integer(1), a.options(2)) : eye(a.integer(0), a.options(2));
     }},
    {"tril", [](A a) { return tril(a.tensor(0), a.integer(1)); }},
    {"triu", [](A a) { return triu(a.tensor(0), a.integer(1)); }},
    {"one_hot", [](A a) { return one_hot(a.tensor(0), a.integer(1, -1)); }},
    {"rand", [](A a) { return rand(a.integers(0), a.options(1)); }},
    {"randn", [](A a) { return randn(a.integers(0), a.options(1)); }},
    {"randint", [](A a) { return randint(a.integer(0), a.integer(1), a.integers(2), a.options(3)); }},
    {"randperm", [](A a) { return randperm(a.integer(0), a.options(1)); }},
    {"normal", [](A a) { return normal(a.real(0), a.real(1, 1), a.integers(2), a.options(3)); }},
    {"normal_each", [](A a) { return normal(a.tensor(0), a.tensor(1)); }},
    {"normal_with_number",
     [](A a) { return a.is_tensor(0) ? normal(a.tensor(0), a.real(1, 1)) : normal(a.real(0), a.tensor(1)); }},
    {"poisson", one([](const Tensor& x) { return poisson(x); })},
    {"standard_gamma", one([](const Tensor& x) { return standard_gamma(x); })},
    {"binomial", [](A a) { return binomial(a.tensor(0), a.tensor(1)); }},
    {"rand_like", [](A a) { return rand_like(a.tensor(0), a.options(1)); }},
    {"randn_like", [](A a) { return randn_like(a.tensor(0), a.options(1)); }},
    {"randint_like", [](A a) { return randint_like(a.tensor(0), a.integer(1), a.integer(2), a.options(3)); }},
    {"bernoulli", [](A a) { return bernoulli(a.tensor(0)); }},
    {"multinomial", [](A a) { return multinomial(a.tensor(0), a.integer(1), a.flag(2)); }},
    {"dropout", [](A a) { return dropout(a.tensor(0), a.real(1, 0.5), a.flag(2, true)); }},
    {"dropout1d", [](A a) { return dropout1d(a.tensor(0), a.real(1, 0.5), a.flag(2, true)); }},
    {"dropout2d", [](A a) { return dropout2d(a.tensor(0), a.real(1, 0.5), a.flag(2, true)); }},
    {"dropout3d", [](A a) { return dropout3d(a.tensor(0), a.real(1, 0.5), a.flag(2, true)); }},
    {"alpha_dropout", [](A a) { return alpha_dropout(a.tensor(0), a.real(1, 0.5), a.flag(2, true)); }},
    {"feature_alpha_dropout",
     [](A a) { return feature_alpha_dropout(a.tensor(0), a.real(1, 0.5), a.flag(2, true)); }},
};

}  // namespace tern::testing
