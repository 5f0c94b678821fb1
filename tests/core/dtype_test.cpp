// DTypes: names, sizes, promotion, scalars; devices as values. The tables are PyTorch's.
#include "tern/core/dtype.h"

#include <gtest/gtest.h>

#include "tern/core/device.h"
#include "tern/core/scalar.h"

namespace tern {
namespace {

TEST(DType, NamesSizesAndKinds) {
  struct Row {
    DType dtype;
    const char* name;
    size_t nbytes;
    char kind;  // b: bool, i: integer, f: floating, -: held only
  };
  const Row rows[] = {{bool_, "bool", 1, 'b'},
                      {uint8, "uint8", 1, 'i'},
                      {int8, "int8", 1, 'i'},
                      {int16, "int16", 2, 'i'},
                      {int32, "int32", 4, 'i'},
                      {int64, "int64", 8, 'i'},
                      {float16, "float16", 2, 'f'},
                      {bfloat16, "bfloat16", 2, 'f'},
                      {float32, "float32", 4, 'f'},
                      {float64, "float64", 8, 'f'},
                      {DType::UInt16, "uint16", 2, '-'},
                      {DType::UInt32, "uint32", 4, '-'},
                      {DType::UInt64, "uint64", 8, '-'},
                      {DType::Complex64, "complex64", 8, '-'},
                      {DType::Complex128, "complex128", 16, '-'},
                      {DType::Float8_e4m3fn, "float8_e4m3fn", 1, '-'},
                      {DType::Float8_e5m2, "float8_e5m2", 1, '-'}};
  static_assert(std::size(rows) == kNumDTypes);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(name(row.dtype), row.name);
    EXPECT_EQ(parse_dtype(row.name), row.dtype);
    EXPECT_EQ(parse_dtype("torch." + std::string(row.name)), row.dtype);
    EXPECT_EQ(itemsize(row.dtype), row.nbytes);
    EXPECT_EQ(is_bool(row.dtype), row.kind == 'b');
    EXPECT_EQ(is_integral(row.dtype), row.kind == 'i');
    EXPECT_EQ(is_floating_point(row.dtype), row.kind == 'f');
    EXPECT_EQ(is_computable(row.dtype), row.kind != '-');
  }
}

TEST(DType, ShortNames) {
  const std::pair<const char*, DType> rows[] = {
      {"float", float32}, {"double", float64}, {"half", float16},       {"long", int64},
      {"int", int32},     {"short", int16},    {"torch.float", float32}};
  for (const auto& [text, dtype] : rows) EXPECT_EQ(parse_dtype(text), dtype) << text;
  for (const char* text : {"", "Float32", "torch.", "float32 ", "torch.torch.float32", "float24"})
    EXPECT_THROW(parse_dtype(text), DTypeError) << text;
}

TEST(DType, PromotionAsPyTorchs) {
  // torch.promote_types, in the order of the enum up to Float64.
  const int table[10][10] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3, 4, 5, 6, 7, 8, 9},
                             {2, 3, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3, 3, 3, 4, 5, 6, 7, 8, 9},
                             {4, 4, 4, 4, 4, 5, 6, 7, 8, 9}, {5, 5, 5, 5, 5, 5, 6, 7, 8, 9},
                             {6, 6, 6, 6, 6, 6, 6, 8, 8, 9}, {7, 7, 7, 7, 7, 7, 8, 7, 8, 9},
                             {8, 8, 8, 8, 8, 8, 8, 8, 8, 9}, {9, 9, 9, 9, 9, 9, 9, 9, 9, 9}};
  for (int a = 0; a < 10; ++a)
    for (int b = 0; b < 10; ++b)
      EXPECT_EQ(name(promote_types(static_cast<DType>(a), static_cast<DType>(b))),
                name(static_cast<DType>(table[a][b])))
          << name(static_cast<DType>(a)) << " and " << name(static_cast<DType>(b));
  EXPECT_EQ(promote_types(DType::Complex64, DType::Complex64), DType::Complex64);
  EXPECT_THROW(promote_types(DType::Complex64, float32), DTypeError);
  EXPECT_THROW(promote_types(uint8, DType::UInt16), DTypeError);
}

TEST(DType, PromotionWithNumbersAsPyTorchs) {
  EXPECT_EQ(promote_with_scalar(int64, 0.5), float32);
  EXPECT_EQ(promote_with_scalar(bool_, 1), int64);
  EXPECT_EQ(promote_with_scalar(bool_, true), bool_);
  EXPECT_EQ(promote_with_scalar(uint8, 300), uint8);
  EXPECT_EQ(promote_with_scalar(float16, 3.5), float16);
  EXPECT_EQ(promote_with_scalar(float16, 3), float16);
  EXPECT_EQ(promote_with_scalar(float64, 3.5), float64);
}

TEST(DType, TheDefaultIsUsedForFloats) {
  EXPECT_EQ(get_default_dtype(), float32);
  set_default_dtype(float64);
  EXPECT_EQ(get_default_dtype(), float64);
  EXPECT_EQ(promote_with_scalar(int64, 0.5), float64);
  EXPECT_THROW(set_default_dtype(int64), DTypeError);
  EXPECT_EQ(get_default_dtype(), float64) << "unchanged by the error";
  set_default_dtype(float32);
}

TEST(DType, VisitGivesTheType) {
  auto size = []<class T>() { return sizeof(T); };
  for (int d = 0; d < kNumDTypes; ++d) {
    const DType dtype = static_cast<DType>(d);
    if (is_computable(dtype))
      EXPECT_EQ(visit_dtype(dtype, size), itemsize(dtype));
    else
      EXPECT_THROW(visit_dtype(dtype, size), DTypeError);
    if (is_floating_point(dtype))
      EXPECT_EQ(visit_floating(dtype, size), itemsize(dtype));
    else
      EXPECT_THROW(visit_floating(dtype, size), DTypeError);
  }
  static_assert(dtype_of<long>() == int64 && dtype_of<long long>() == int64 && dtype_of<bool>() == bool_);
}

TEST(Scalar, KeepsItsKind) {
  EXPECT_EQ(Scalar(true).kind(), bool_);
  EXPECT_EQ(Scalar(3).kind(), int64);
  EXPECT_EQ(Scalar(3.9f).kind(), float64);
  EXPECT_EQ(Scalar(3.9).to_int(), 3);
  EXPECT_EQ(Scalar(-3.9).to_int(), -3);
  EXPECT_EQ(Scalar(int64_t{1} << 62).to_int(), int64_t{1} << 62);
  EXPECT_TRUE(Scalar(0.5).to_bool());
  EXPECT_FALSE(Scalar(0).to_bool());
  EXPECT_EQ(Scalar(true).to_double(), 1.0);
}

TEST(Device, ParsesAndPrints) {
  EXPECT_EQ(Device("cpu"), kCPU);
  EXPECT_EQ(Device("cpu:0"), kCPU);
  EXPECT_EQ(Device("cuda:1"), Device(DeviceType::CUDA, 1));
  EXPECT_EQ(Device("cuda"), Device(DeviceType::CUDA, -1));
  EXPECT_EQ(Device(2), Device(DeviceType::CUDA, 2));
  EXPECT_EQ(Device("cuda:32767").index, 32767);
  for (const char* text : {"cpu", "cuda", "cuda:0", "cuda:17"}) EXPECT_EQ(Device(text).str(), text);
  for (const char* text :
       {"", "gpu", "CPU", "cuda:-1", "cuda:", "cuda:1x", "cuda1", "cpu:1", ":0", "cuda:32768"})
    EXPECT_THROW(Device{text}, DeviceError) << text;
  EXPECT_TRUE(kCPU.is_cpu());
  EXPECT_TRUE(Device("cuda").is_cuda());
  EXPECT_NE(Device("cuda:0"), Device("cuda:1"));
}

}  // namespace
}  // namespace tern
