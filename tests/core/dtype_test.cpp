// DTypes: names, sizes, promotion, scalars; devices as values. The tables are PyTorch's.
#include "tern/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>

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
                      {DType::Float8_e5m2, "float8_e5m2", 1, '-'},
                      {DType::Float8_e4m3fnuz, "float8_e4m3fnuz", 1, '-'},
                      {DType::Float8_e5m2fnuz, "float8_e5m2fnuz", 1, '-'},
                      {DType::Float8_e8m0fnu, "float8_e8m0fnu", 1, '-'},
                      {DType::Complex32, "complex32", 4, '-'},
                      {DType::BComplex32, "bcomplex32", 4, '-'},
                      {DType::QUInt8, "quint8", 1, '-'},
                      {DType::QInt8, "qint8", 1, '-'},
                      {DType::QInt32, "qint32", 4, '-'},
                      {DType::QUInt4x2, "quint4x2", 1, '-'},
                      {DType::QUInt2x4, "quint2x4", 1, '-'},
                      {DType::UInt1, "uint1", 1, '-'},
                      {DType::UInt2, "uint2", 1, '-'},
                      {DType::UInt3, "uint3", 1, '-'},
                      {DType::UInt4, "uint4", 1, '-'},
                      {DType::UInt5, "uint5", 1, '-'},
                      {DType::UInt6, "uint6", 1, '-'},
                      {DType::UInt7, "uint7", 1, '-'},
                      {DType::Int1, "int1", 1, '-'},
                      {DType::Int2, "int2", 1, '-'},
                      {DType::Int3, "int3", 1, '-'},
                      {DType::Int4, "int4", 1, '-'},
                      {DType::Int5, "int5", 1, '-'},
                      {DType::Int6, "int6", 1, '-'},
                      {DType::Int7, "int7", 1, '-'},
                      {DType::Float4_e2m1fn_x2, "float4_e2m1fn_x2", 1, '-'},
                      {DType::Float6_e2m3fn_x4, "float6_e2m3fn_x4", 3, '-'},
                      {DType::Float6_e3m2fn_x4, "float6_e3m2fn_x4", 3, '-'},
                      {DType::Bits8, "bits8", 1, '-'},
                      {DType::Bits16, "bits16", 2, '-'},
                      {DType::Bits1x8, "bits1x8", 1, '-'},
                      {DType::Bits2x4, "bits2x4", 1, '-'},
                      {DType::Bits4x2, "bits4x2", 1, '-'}};
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

TEST(DType, BytesOfEightBitFloats) {
  // torch.tensor([...], dtype=torch.uint8).view(torch.float8_...).double()
  EXPECT_EQ(float8_value(DType::Float8_e4m3fn, 0x7e), 448);
  EXPECT_EQ(float8_value(DType::Float8_e4m3fn, 0x01), 0x1p-9);
  EXPECT_TRUE(std::isnan(float8_value(DType::Float8_e4m3fn, 0xff)));
  EXPECT_EQ(float8_value(DType::Float8_e5m2, 0x7b), 57344);
  EXPECT_EQ(float8_value(DType::Float8_e5m2, 0xfc), -INFINITY);
  EXPECT_EQ(float8_value(DType::Float8_e4m3fnuz, 0x7f), 240);
  EXPECT_EQ(float8_value(DType::Float8_e4m3fnuz, 0x01), 0x1p-10);
  EXPECT_TRUE(std::isnan(float8_value(DType::Float8_e4m3fnuz, 0x80)));
  EXPECT_EQ(float8_value(DType::Float8_e5m2fnuz, 0x7f), 57344);
  EXPECT_EQ(float8_value(DType::Float8_e8m0fnu, 0x00), 0x1p-127);
  EXPECT_EQ(float8_value(DType::Float8_e8m0fnu, 0x7f), 1);
  EXPECT_TRUE(std::isnan(float8_value(DType::Float8_e8m0fnu, 0xff)));
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
  EXPECT_EQ(promote_types(complex64, float32), complex64);
  EXPECT_EQ(promote_types(int64, complex64), complex64);
  EXPECT_EQ(promote_types(float64, complex64), complex128);
  EXPECT_EQ(promote_types(complex64, complex128), complex128);
  EXPECT_THROW(promote_types(DType::Complex32, float32), DTypeError);
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
