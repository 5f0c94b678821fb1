// The text of shapes, dtypes and devices in streams. That of tensors is in print_test.cpp.
#include <gtest/gtest.h>

#include <sstream>

#include "tern/ops/creation.h"
#include "tern/ops/print.h"

namespace tern {
namespace {

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(PrintParts, AsInPyTorch) {
  EXPECT_EQ(printed(Shape{15, 5}), "torch.Size([15, 5])");
  EXPECT_EQ(printed(Shape{}), "torch.Size([])");
  EXPECT_EQ(printed(zeros({30, 2}, {.device = kCPU}).sizes()), "torch.Size([30, 2])");
  EXPECT_EQ(printed(float32), "torch.float32");
  EXPECT_EQ(printed(DType::Bool), "torch.bool");
  EXPECT_EQ(printed(kCPU), "cpu");
  EXPECT_EQ(printed(Device("cuda")), "cuda");
  EXPECT_EQ(printed(Device(1)), "cuda:1");
}

TEST(PrintParts, TextsAndNumbersStayWhatTheyAre) {
  EXPECT_EQ(printed("cuda:1"), "cuda:1");
  EXPECT_EQ(printed("anything"), "anything");
  EXPECT_EQ(printed(1), "1");
}

}  // namespace
}  // namespace tern
