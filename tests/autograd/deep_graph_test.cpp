// Graphs of 100,000 nodes are recorded, walked and freed without recursion. The tests run on a thread with a
// small stack, where a recursion of one frame per node would not survive.
#include <pthread.h>

#include <functional>

#include "autograd_testing.h"

namespace tern {
namespace {

constexpr int kDepth = 100'000;

/// Runs `body` on a thread with 1 MiB of stack.
void on_small_stack(std::function<void()> body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 1024 * 1024), 0);
  pthread_t thread;
  auto run = [](void* context) -> void* {
    (*static_cast<std::function<void()>*>(context))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

/// x + 1 + 1 + ...
Tensor chain(const Tensor& x) {
  Tensor y = x + 1;
  for (int i = 1; i < kDepth; ++i) y = y + 1;
  return y;
}

TEST(DeepGraph, ForwardBackwardAndFree) {
  on_small_stack([] {
    const Tensor x = leaf({1, 2});
    chain(x).sum().backward();
    EXPECT_EQ(grad_of(x), (Floats{1, 1}));
  });
}

TEST(DeepGraph, FreedWithoutBackward) {
  on_small_stack([] {
    const Tensor x = leaf({1, 2});
    EXPECT_EQ(values(chain(x)), (Floats{kDepth + 1, kDepth + 2}));
  });
}

TEST(DeepGraph, WithSavedTensors) {
  on_small_stack([] {
    const Tensor x = leaf({1});
    Tensor y = x;
    for (int i = 0; i < kDepth; ++i) y = sigmoid(y);
    const Tensor half = leaf({2});
    Tensor z = half;
    for (int i = 0; i < kDepth; ++i) z = z * half * 0.5;
    (y.sum() + z.sum()).backward();
    EXPECT_EQ(grad_of(x), (Floats{0}));
    EXPECT_EQ(grad_of(half), (Floats{kDepth + 1}));
  });
}

TEST(DeepGraph, RetainedThenFreed) {
  on_small_stack([] {
    const Tensor x = leaf({1, 2});
    Tensor y = chain(x).sum();
    y.backward({}, /*retain_graph=*/true);
    y.backward({}, /*retain_graph=*/true);
    EXPECT_EQ(grad_of(x), (Floats{2, 2}));
    y = Tensor();
  });
}

TEST(DeepGraph, WithRecordedGradients) {
  on_small_stack([] {
    const Tensor x = leaf({3});
    Tensor y = x * x;
    for (int i = 0; i < kDepth; ++i) y = y * 1;
    const Tensor first = grad({y.sum()}, {x}, {}, {.create_graph = true})[0];
    EXPECT_EQ(values(first), (Floats{6}));
    EXPECT_EQ(values(grad({first.sum()}, {x})[0]), (Floats{2}));
  });
}

TEST(DeepGraph, ChainOfViews) {
  on_small_stack([] {
    const Tensor x = leaf({1, 2, 3, 4});
    Tensor y = x * 1;
    for (int i = 0; i < kDepth / 2; ++i) y = y.unsqueeze(0).squeeze(0);
    (y * y).sum().backward();
    EXPECT_EQ(grad_of(x), (Floats{2, 4, 6, 8}));
  });
}

TEST(DeepGraph, ChainOfViewsOfAPlainTensor) {
  on_small_stack([] {
    Tensor y = ones({4});
    for (int i = 0; i < kDepth; ++i) y = y.view({4});
    EXPECT_EQ(values(y), (Floats{1, 1, 1, 1}));
  });
}

TEST(DeepGraph, ChainOfChangesInPlace) {
  on_small_stack([] {
    const Tensor x = leaf({1, 2});
    Tensor y = x * 1;
    for (int i = 0; i < kDepth; ++i) y.add_(1);
    y.sum().backward();
    EXPECT_EQ(values(y), (Floats{kDepth + 1, kDepth + 2}));
    EXPECT_EQ(grad_of(x), (Floats{1, 1}));
  });
}

/// Each change through a view adds two nodes to the history of the base.
TEST(DeepGraph, ChainOfChangesThroughAView) {
  on_small_stack([] {
    const Tensor x = leaf({1, 2});
    Tensor y = x * 1;
    Tensor first = y[0];
    for (int i = 0; i < kDepth / 4; ++i) first.add_(1);
    y.sum().backward();
    EXPECT_EQ(values(y), (Floats{kDepth / 4 + 1, 2}));
    EXPECT_EQ(grad_of(x), (Floats{1, 1}));
  });
}

TEST(DeepGraph, WideGraph) {
  on_small_stack([] {
    const Tensor x = leaf({1});
    std::vector<Tensor> parts;
    for (int i = 0; i < kDepth; ++i) parts.push_back(x * 2);
    cat(parts).sum().backward();
    EXPECT_EQ(grad_of(x), (Floats{2 * kDepth}));
  });
}

/// Every node is reached along 2^60 paths, but visited once.
TEST(DeepGraph, SharedNodesAreVisitedOnce) {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 60; ++i) y = y + y;
  y.sum().backward();
  EXPECT_EQ(grad_of(x), (Floats{0x1p60f}));
}

}  // namespace
}  // namespace tern
