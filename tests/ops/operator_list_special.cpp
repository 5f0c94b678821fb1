// Special functions and those of integers, for operator_list.cpp: one line for each.
#include "tern/ops/pointwise.h"
#include "tern/ops/special.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {

const Table kSpecial = {
    {"lgamma", one(lgamma)},
    {"digamma", one(digamma)},
    {"polygamma", [](A a) { return polygamma(a.integer(0), a.tensor(1)); }},
    {"erfinv", one(erfinv)},
    {"mvlgamma", [](A a) { return mvlgamma(a.tensor(0), a.integer(1)); }},
    {"igamma", two(igamma)},
    {"igammac", two(igammac)},
    {"gcd", two(gcd)},
    {"lcm", two(lcm)},
    {"bitwise_left_shift", two(bitwise_left_shift, bitwise_left_shift)},
    {"number_bitwise_left_shift", [](A a) { return bitwise_left_shift(a.number(0), a.tensor(1)); }},
    {"bitwise_right_shift", two(bitwise_right_shift, bitwise_right_shift)},
    {"number_bitwise_right_shift", [](A a) { return bitwise_right_shift(a.number(0), a.tensor(1)); }},
    {"special.gammaln", one(special::gammaln)},
    {"special.psi", one(special::psi)},
    {"special.digamma", one(special::digamma)},
    {"special.polygamma", [](A a) { return special::polygamma(a.integer(0), a.tensor(1)); }},
    {"special.multigammaln", [](A a) { return special::multigammaln(a.tensor(0), a.integer(1)); }},
    {"special.gammainc", two(special::gammainc)},
    {"special.gammaincc", two(special::gammaincc)},
    {"special.zeta", two(special::zeta, special::zeta)},
    {"special.number_zeta", [](A a) { return special::zeta(a.number(0), a.tensor(1)); }},
    {"special.erfinv", one(special::erfinv)},
    {"special.ndtr", one(special::ndtr)},
    {"special.entr", one(special::entr)},
};

}  // namespace tern::testing
