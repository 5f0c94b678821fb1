// Special functions against values of 50 digits (mpmath 1.3), and their floats against their doubles.
#include "tern/kernels/special.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tern {
namespace {

using Function = double (*)(double, double);
using FloatFunction = float (*)(float, float);
struct Both {
  Function in_double;
  FloatFunction in_float;
};

double polygamma(double n, double x) {
  return math::polygamma(n, (std::fmod(n, 2) == 0 ? -1 : 1) * std::tgamma(n + 1), x);
}

const std::map<std::string, Both> kFunctions = {
    {"lgamma",
     {[](double, double x) { return math::lgamma(x); }, [](float, float x) { return math::lgamma(x); }}},
    {"lgamma_near", {[](double, double x) { return math::lgamma_near(x); }, nullptr}},
    {"digamma",
     {[](double, double x) { return math::digamma(x); }, [](float, float x) { return math::digamma(x); }}},
    {"polygamma", {polygamma, nullptr}},
    {"zeta", {math::zeta, math::zeta}},
    {"gammainc", {math::gammainc, math::gammainc}},
    {"gammaincc", {math::gammaincc, math::gammaincc}},
    {"standard_gamma_grad", {math::standard_gamma_grad, math::standard_gamma_grad}},
    {"erfinv",
     {[](double, double x) { return math::erfinv(x); }, [](float, float x) { return math::erfinv(x); }}},
};

struct Value {
  const char* function;
  double a, x, exact;
};

TEST(Special, Values) {
  const Value rows[] = {
      {"lgamma", 0, 1e-10, 23.0258509298827352},
      {"lgamma", 0, 0.3, 1.09579799481807556},
      {"lgamma", 0, 1.0000001, -5.7721558299185071e-8},
      {"lgamma", 0, 2.5, 0.28468287047291916},
      {"lgamma", 0, 7.9999, 8.52495979758330723},
      {"lgamma", 0, 8, 8.5251613610654143},
      {"lgamma", 0, 1e3, 5905.22042320918121},
      {"lgamma", 0, -0.5, 1.2655121234846454},
      {"lgamma", 0, -2.457, 0.0000374963059580997885},
      {"lgamma", 0, -7.25, -7.54188344347575002},
      {"digamma", 0, 1e-10, -10000000000.5772153},
      {"digamma", 0, 0.3, -3.50252422220013312},
      {"digamma", 0, 1.4616321449683622, -9.24126552172942752e-17},
      {"digamma", 0, 8, 2.01564147795561},
      {"digamma", 0, 1e5, 11.5129204649618951},
      {"digamma", 0, -0.5, 0.0364899739785765206},
      {"digamma", 0, -2.3, 3.31732315756182274},
      {"polygamma", 1, 0.3, 12.2453645461077313},
      {"polygamma", 1, -2.3, 14.7259121609612915},
      {"polygamma", 2, 4.5, -0.0615568213210276945},
      {"polygamma", 5, 0.7, 1025.32835414347191},
      {"zeta", 1.01, 3, 99.0813970907782657},
      {"zeta", 2, 0.25, 17.1973291545071107},
      {"zeta", 7.5, 40, 6.4363641808835296e-12},
      {"zeta", 3, -1.5, 0.118102025820863702},
      {"gammainc", 0.01, 1e-8, 0.836510254685233353},
      {"gammaincc", 0.01, 1e-8, 0.163489745314766647},
      {"standard_gamma_grad", 0.01, 1e-8, 0.0000178597954727163087},
      {"gammainc", 0.5, 3, 0.98569412156457036},
      {"gammaincc", 0.5, 3, 0.0143058784354296395},
      {"standard_gamma_grad", 0.5, 3, 2.91294241644036457},
      {"gammainc", 5, 2, 0.0526530173437111567},
      {"gammaincc", 5, 2, 0.947346982656288843},
      {"standard_gamma_grad", 5, 2, 0.630802802677854662},
      {"gammainc", 5, 20, 0.999983055256069933},
      {"gammaincc", 5, 20, 0.0000169447439300673839},
      {"standard_gamma_grad", 5, 20, 1.90798790808825363},
      {"gammainc", 300, 310, 0.722488754171861109},
      {"gammaincc", 300, 310, 0.277511245828138891},
      {"standard_gamma_grad", 300, 310, 1.0170493918351245},
      {"gammainc", 5000, 4800, 0.00210279548073047338},
      {"gammaincc", 5000, 4800, 0.997897204519269527},
      {"standard_gamma_grad", 5000, 4800, 0.979760524907404745},
      {"erfinv", 0, 1e-30, 8.86226925452758088e-31},
      {"erfinv", 0, 0.3, 0.272462714726754345},
      {"erfinv", 0, -0.7, -0.732869077959216785},
      {"erfinv", 0, 0.98, 1.64497635713318681},
      {"erfinv", 0, 0.9999999, 3.76656258163847089},
      {"erfinv", 0, 0.99999999999999989, 5.86358474875516793},
  };
  for (const Value& row : rows) {
    const auto& [in_double, in_float] = kFunctions.at(row.function);
    // The digamma function crosses 0, where digits cancel.
    const double digits = 3e-14 * std::fmax(std::fabs(row.exact), 0.03);
    EXPECT_NEAR(in_double(row.a, row.x), row.exact, digits) << row.function << " " << row.a << " " << row.x;
    if (std::string(row.function) == "lgamma") {
      EXPECT_NEAR(math::lgamma_near(row.x), row.exact, std::fmax(digits, 1e-14)) << "lgamma_near " << row.x;
    }
    if (in_float == nullptr) continue;
    const auto a = static_cast<float>(row.a), x = static_cast<float>(row.x);
    const double exact = in_double(a, x);
    if (std::isinf(exact)) continue;  // 1 as a float
    EXPECT_NEAR(in_float(a, x), exact, 4e-7 * std::fabs(exact))
        << row.function << " " << row.a << " " << row.x;
  }
}

TEST(Special, EndsOfTheirRanges) {
  constexpr double kInf = math::kInfinity;
  const Value rows[] = {
      {"lgamma", 0, 0, kInf},         {"lgamma", 0, -3, kInf},
      {"lgamma", 0, kInf, kInf},      {"lgamma", 0, -kInf, kInf},
      {"lgamma_near", 0, 0, kInf},    {"lgamma_near", 0, -3, kInf},
      {"lgamma_near", 0, kInf, kInf}, {"lgamma_near", 0, -kInf, kInf},
      {"digamma", 0, 0, -kInf},       {"digamma", 0, -0.0, kInf},
      {"digamma", 0, -2, NAN},        {"digamma", 0, kInf, kInf},
      {"polygamma", 1, 0, kInf},      {"polygamma", 1, -2, kInf},
      {"zeta", 1, 2, kInf},           {"zeta", 0.5, 2, NAN},
      {"zeta", 3, 0, kInf},           {"zeta", 2.5, -1.5, NAN},
      {"gammainc", 0, 0, NAN},        {"gammainc", 0, 1, 1},
      {"gammainc", 1, 0, 0},          {"gammainc", 2, kInf, 1},
      {"gammainc", kInf, 2, 0},       {"gammainc", -1, 2, NAN},
      {"gammaincc", 1, -1, NAN},      {"gammaincc", 2, kInf, 0},
      {"erfinv", 0, 1, kInf},         {"erfinv", 0, -1, -kInf},
      {"erfinv", 0, 1.5, NAN},        {"standard_gamma_grad", 2, 0, 0},
  };
  for (const Value& row : rows) {
    const auto& [in_double, in_float] = kFunctions.at(row.function);
    const double found = in_double(row.a, row.x);
    EXPECT_TRUE(found == row.exact || (std::isnan(found) && std::isnan(row.exact)))
        << row.function << " " << row.a << " " << row.x << ": " << found;
    if (in_float == nullptr) continue;
    const float as_float = in_float(static_cast<float>(row.a), static_cast<float>(row.x));
    EXPECT_TRUE(as_float == static_cast<float>(row.exact) || (std::isnan(as_float) && std::isnan(row.exact)))
        << row.function << " of floats " << row.a << " " << row.x << ": " << as_float;
  }
}

TEST(Special, LargeShapesGoOnWhereTheSeriesEnds) {
  for (double z : {-4.0, -1.0, 0.0, 0.5, 3.0}) {
    const double below = math::kLargestShape, above = std::nextafter(below, 1e9),
                 x = below + z * std::sqrt(below);
    EXPECT_NEAR(math::gammainc(above, x), math::gammainc(below, x), 1e-6) << z;
    EXPECT_NEAR(math::standard_gamma_grad(above, x), math::standard_gamma_grad(below, x), 1e-6) << z;
  }
}

}  // namespace
}  // namespace tern
