// What goes wrong on a simulated GPU comes back at the next wait, and leaves everything else usable.
#include "sim_testing.h"

namespace tern {
namespace {

using Kind = SimulatedFault::Kind;

SimulationOptions with_fault(Kind kind, uint64_t number, std::optional<int> device = 0) {
  return {.gpus = 2, .check_races = true, .faults = {{kind, number, device}}};
}

TEST(SimFailure, AnErrorOfAKernelComesAtTheNextWaitWithItsType) {
  const SimulatedGpus gpus;
  const Tensor x = ones({4}, {.device = kGpu0});
  const Tensor wrong = index_select(x, 0, tensor({int64_t{7}}, {.device = kGpu0}));
  const Tensor after = wrong + 1;
  expect_error<IndexError>([&] { after.cpu(); },
                           "index 7 is out of bounds for dimension 0 with size 4 [raised by index_get on "
                           "cuda:0, stream 0, and reported at the first wait after it]");
  EXPECT_EQ((x + 1).sum().item<float>(), 8) << "told once, then the stream goes on";
  EXPECT_NO_THROW(cuda::synchronize());
}

TEST(SimFailure, TravelsWithEvents) {
  const SimulatedGpus gpus;
  const Tensor x = ones({4}, {.device = kGpu0});
  const Tensor wrong = index_select(x, 0, tensor({int64_t{7}}, {.device = kGpu0}));
  const Tensor there = wrong.to(kGpu1) + 1;
  expect_error<IndexError>([&] { there.cpu(); }, "raised by index_get on cuda:0");
  EXPECT_NO_THROW(cuda::synchronize(0)) << "one error, one report";
  EXPECT_EQ(x.to(kGpu1).sum().item<float>(), 4);
}

TEST(SimFailure, ALaunch) {
  const SimulatedGpus gpus(with_fault(Kind::Launch, 3));
  Tensor x = zeros({4}, {.device = kGpu0});
  for (int i = 0; i < 5; ++i) x.add_(1);
  expect_error<DeviceError>([&] { x.cpu(); },
                            "binary failed: the simulated GPU cuda:0 was told to fail here [raised by");
  EXPECT_EQ((zeros({4}, {.device = kGpu0}) + 1).sum().item<float>(), 4);
  EXPECT_EQ(ones({3}, {.device = kGpu1}).sum().item<float>(), 3);
}

TEST(SimFailure, ACopy) {
  const SimulatedGpus gpus(with_fault(Kind::Copy, 1, 1));
  const Tensor host = ones({3}, {.device = kCPU});
  const Tensor there = host.to(kGpu1);
  expect_error<DeviceError>([&] { synchronize(kGpu1); }, "copy host to device failed");
  EXPECT_EQ(host.to(kGpu1).sum().item<float>(), 3);
}

TEST(SimFailure, AnAllocation) {
  const SimulatedGpus gpus(with_fault(Kind::Allocation, 2));
  const Tensor x = ones({3}, {.device = kGpu0});
  expect_error<OutOfMemoryError>([&] { x.clone(); }, "the simulated GPU was told to refuse allocation 2");
  EXPECT_EQ(x.clone().sum().item<float>(), 3);
}

TEST(SimFailure, ADeviceFallsOffTheBus) {
  const SimulatedGpus gpus(with_fault(Kind::Lost, 2));
  Tensor x = ones({3}, {.device = kGpu0});
  const Tensor other = ones({3}, {.device = kGpu1});
  x.add_(1);
  const char* const message = "cuda:0 has fallen off the bus (simulated)";
  expect_error<DeviceError>([&] { x.cpu(); }, message);
  expect_error<DeviceError>([&] { x.cpu(); }, message);
  expect_error<DeviceError>([&] { zeros({3}, {.device = kGpu0}); }, message);
  expect_error<DeviceError>([&] { x.to(kGpu1).cpu(); }, message);
  EXPECT_EQ((other + 1).sum().item<float>(), 6);
}

TEST(SimFailure, EveryFaultInATrainingStep) {
  // Whatever fails, wherever: one typed error, and the same step succeeds afterwards.
  const auto step = [] {
    nn::Linear net(8, 2);
    net.to(kGpu0);
    optim::SGD optimizer(net.parameters(), {.lr = 0.1});
    const Tensor x = ones({4, 8}, {.device = kCPU}).to(kGpu0);
    net(x).sum().backward();
    optimizer.step();
    return net.weight.cpu().numel();
  };
  for (const Kind kind : {Kind::Launch, Kind::Copy, Kind::Allocation})
    for (uint64_t number = 1;; ++number) {
      const SimulatedGpus gpus(with_fault(kind, number));
      bool failed = false;
      try {
        step();
        cuda::synchronize();
      } catch (const DeviceError&) {
        failed = true;
      } catch (const OutOfMemoryError&) {
        failed = true;
      }
      try {
        cuda::synchronize();
      } catch (const DeviceError&) {
        failed = true;
      }
      if (!failed) {
        EXPECT_GT(number, 4u) << "a step has more than that to fail at";
        break;
      }
      EXPECT_EQ(step(), 16) << number;
    }
}

}  // namespace
}  // namespace tern
