// Reductions, scans and sorts, for operator_list.cpp: one line for each.
#include "tern/ops/names.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/softmax.h"
#include "tern/ops/sort.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {
namespace {

using OverPlaces = Tensor (*)(const Tensor&, const Tensor&, int64_t);
using OverSteps = Tensor (*)(const Tensor&, double, int64_t);

/// (y, x, dx, dim), where x or dx is missing.
Operator integral(OverPlaces places, OverSteps steps) {
  return [places, steps](A a) {
    return a.has(1) ? places(a.tensor(0), a.tensor(1), a.integer(3, -1))
                    : steps(a.tensor(0), a.real(2, 1), a.integer(3, -1));
  };
}

}  // namespace

const Table kReduce = {
    {"sum",
     [](A a) {
       return a.has(1) ? sum(a.tensor(0), a.integers(1), a.flag(2), a.dtype(3))
                       : sum(a.tensor(0), a.dtype(3));
     }},
    {"mean",
     [](A a) {
       return a.has(1) ? mean(a.tensor(0), a.integers(1), a.flag(2), a.dtype(3))
                       : mean(a.tensor(0), a.dtype(3));
     }},
    {"prod",
     [](A a) {
       return a.has(1) ? prod(a.tensor(0), a.integer(1), a.flag(2), a.dtype(3))
                       : prod(a.tensor(0), a.dtype(3));
     }},
    {"max",
     [](A a) {
       return a.has(1) ? Results(max(a.tensor(0), a.integer(1), a.flag(2))) : Results(max(a.tensor(0)));
     }},
    {"min",
     [](A a) {
       return a.has(1) ? Results(min(a.tensor(0), a.integer(1), a.flag(2))) : Results(min(a.tensor(0)));
     }},
    {"amax", [](A a) { return amax(a.tensor(0), a.integers(1), a.flag(2)); }},
    {"amin", [](A a) { return amin(a.tensor(0), a.integers(1), a.flag(2)); }},
    {"aminmax",
     [](A a) { return a.has(1) ? aminmax(a.tensor(0), a.integer(1), a.flag(2)) : aminmax(a.tensor(0)); }},
    {"argmax",
     [](A a) { return a.has(1) ? argmax(a.tensor(0), a.integer(1), a.flag(2)) : argmax(a.tensor(0)); }},
    {"argmin",
     [](A a) { return a.has(1) ? argmin(a.tensor(0), a.integer(1), a.flag(2)) : argmin(a.tensor(0)); }},
    {"any", [](A a) { return a.has(1) ? any(a.tensor(0), a.integers(1), a.flag(2)) : any(a.tensor(0)); }},
    {"all", [](A a) { return a.has(1) ? all(a.tensor(0), a.integers(1), a.flag(2)) : all(a.tensor(0)); }},
    {"count_nonzero", [](A a) { return count_nonzero(a.tensor(0), a.integers(1)); }},
    {"var", [](A a) { return var(a.tensor(0), a.integers(1), a.real(2, 1), a.flag(3)); }},
    {"std", [](A a) { return std(a.tensor(0), a.integers(1), a.real(2, 1), a.flag(3)); }},
    {"var_mean", [](A a) { return var_mean(a.tensor(0), a.integers(1), a.real(2, 1), a.flag(3)); }},
    {"std_mean", [](A a) { return std_mean(a.tensor(0), a.integers(1), a.real(2, 1), a.flag(3)); }},
    {"norm",
     [](A a) {
       return a.has(2) ? norm(a.tensor(0), a.real(1, 2), a.integers(2), a.flag(3), a.dtype(4))
                       : norm(a.tensor(0), a.real(1, 2));
     }},
    {"cov", [](A a) { return cov(a.tensor(0), a.integer(1, 1), a.tensor(2), a.tensor(3)); }},
    {"corrcoef", one(corrcoef)},
    {"msort", one(msort)},
    {"trapezoid", integral(trapezoid, trapezoid)},
    {"trapz", integral(trapz, trapz)},
    {"cumulative_trapezoid", integral(cumulative_trapezoid, cumulative_trapezoid)},
    {"cumsum", [](A a) { return cumsum(a.tensor(0), a.integer(1), a.dtype(2)); }},
    {"cumprod", [](A a) { return cumprod(a.tensor(0), a.integer(1), a.dtype(2)); }},
    {"softmin", [](A a) { return softmin(a.tensor(0), a.integer(1), a.dtype(2)); }},
    {"softmax", [](A a) { return softmax(a.tensor(0), a.integer(1), a.dtype(2)); }},
    {"log_softmax", [](A a) { return log_softmax(a.tensor(0), a.integer(1), a.dtype(2)); }},
    {"logsumexp", [](A a) { return logsumexp(a.tensor(0), a.integers(1), a.flag(2)); }},
    {"sort", [](A a) { return sort(a.tensor(0), a.integer(1, -1), a.flag(2)); }},
    {"argsort", [](A a) { return argsort(a.tensor(0), a.integer(1, -1), a.flag(2)); }},
    {"topk",
     [](A a) { return topk(a.tensor(0), a.integer(1), a.integer(2, -1), a.flag(3, true), a.flag(4, true)); }},
    {"median",
     [](A a) {
       return a.has(1) ? Results(median(a.tensor(0), a.integer(1), a.flag(2))) : Results(median(a.tensor(0)));
     }},
};

}  // namespace tern::testing
