// The text of shapes, dtypes and devices in streams. That of tensors is in print_test.cpp.
#include <gtest/gtest.h>

#include <sstream>

#include "tern/ops/creation.h"
#include "tern/ops/print.h"

namespace tern {
namespace {

template <class T>
std::string streamed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(PrintParts, AsInPyTorch) {
  EXPECT_EQ(streamed(Shape{15, 5}), "torch.Size([15, 5])");
  EXPECT_EQ(streamed(Shape{}), "torch.Size([])");
  EXPECT_EQ(streamed(zeros({30, 2}, {.device = kCPU}).sizes()), "torch.Size([30, 2])");
  EXPECT_EQ(streamed(float32), "torch.float32");
  EXPECT_EQ(streamed(DType::Bool), "torch.bool");
  EXPECT_EQ(streamed(kCPU), "cpu");
  EXPECT_EQ(streamed(Device("cuda")), "cuda");
  EXPECT_EQ(streamed(Device(1)), "cuda:1");
}

TEST(PrintParts, TextsAndNumbersStayWhatTheyAre) {
  EXPECT_EQ(streamed("cuda:1"), "cuda:1");
  EXPECT_EQ(streamed("anything"), "anything");
  EXPECT_EQ(streamed(1), "1");
}

}  // namespace
}  // namespace tern
