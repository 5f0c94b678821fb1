// The options of simulated GPUs: their text, and which GPUs there are after simulate_gpus().
#include "sim_testing.h"
#include "tern/base/env.h"

namespace tern {
namespace {

TEST(ParseSimulation, EveryOption) {
  const SimulationOptions o = parse_simulation(
      "gpus=4,memory=2GiB,h2d=12GB/s,d2h=500MB/s,d2d=1GiB/"
      "s,latency=5us,jitter=7,delay=1.5ms,closed=1,races=1,"
      "fail=launch:1000+lost:50@1+copy:2+alloc");
  EXPECT_EQ(o.gpus, 4);
  EXPECT_EQ(o.memory, uint64_t{2} << 30);
  EXPECT_DOUBLE_EQ(o.h2d, 12e9);
  EXPECT_DOUBLE_EQ(o.d2h, 500e6);
  EXPECT_DOUBLE_EQ(o.d2d, 0x1p30);
  EXPECT_DOUBLE_EQ(o.latency, 5e-6);
  EXPECT_EQ(o.jitter, 7u);
  EXPECT_DOUBLE_EQ(o.delay, 1.5e-3);
  EXPECT_EQ(o.closed_pages, true);
  EXPECT_TRUE(o.check_races);
  ASSERT_EQ(o.faults.size(), 4u);
  EXPECT_EQ(o.faults[0].kind, SimulatedFault::Kind::Launch);
  EXPECT_EQ(o.faults[0].number, 1000u);
  EXPECT_FALSE(o.faults[0].device.has_value());
  EXPECT_EQ(o.faults[1].kind, SimulatedFault::Kind::Lost);
  EXPECT_EQ(o.faults[1].device, 1);
  EXPECT_EQ(o.faults[2].kind, SimulatedFault::Kind::Copy);
  EXPECT_EQ(o.faults[3].kind, SimulatedFault::Kind::Allocation);
  EXPECT_EQ(o.faults[3].number, 1u);
  EXPECT_EQ(parse_simulation("").gpus, 1);
}

TEST(ParseSimulation, SaysWhichPartIsWrong) {
  const std::pair<const char*, const char*> rows[] = {
      {"gpu=2", "'gpu=2': expected gpus=N, memory=SIZE"},
      {"gpus=65", "'gpus=65': expected 0 to 64 GPUs"},
      {"gpus=-1", "'gpus=-1': expected 0 to 64"},
      {"gpus=", "'gpus=': expected 0 to 64"},
      {"memory=2gb", "'memory=2gb': expected a size such as 2GiB"},
      {"memory=1", "'memory=1': expected 4MiB to 4TiB"},
      {"memory=nan", "'memory=nan': expected a size"},
      {"h2d=12", "'h2d=12': expected a rate such as 12GB/s"},
      {"latency=-5us", "'latency=-5us': expected a time such as 5us"},
      {"jitter=x", "'jitter=x': expected a seed"},
      {"closed=2", "'closed=2': expected 0 or 1"},
      {"fail=fire:1", "'fail=fire:1': expected launch:N, copy:N"},
      {"fail=launch:0", "'fail=launch:0': expected launch:N"},
      {"fail=launch:1@64", "expected launch:N"},
      {"gpus=2;memory=1GiB", "'gpus=2;memory=1GiB': expected 0 to 64"},
  };
  for (const auto& [text, message] : rows)
    expect_error<ValueError>([&, t = text] { parse_simulation(t); }, message);
}

TEST(SimulateGpus, AreListedAndMarked) {
  {
    const SimulatedGpus gpus({.gpus = 3, .memory = uint64_t{64} << 20});
    EXPECT_TRUE(cuda::is_available());
    EXPECT_EQ(cuda::device_count(), 3);
    EXPECT_EQ(available_devices(), (std::vector<Device>{kCPU, kGpu0, kGpu1, Device("cuda:2")}));
    EXPECT_EQ(try_gpu(1), kGpu1);
    EXPECT_EQ(try_gpu(3), kCPU);
    EXPECT_EQ(try_all_gpus().size(), 3u);
    EXPECT_EQ(cuda::get_device_name(2), "Simulated GPU");
    const DeviceProperties p = cuda::get_device_properties("cuda:1");
    EXPECT_TRUE(p.simulated);
    EXPECT_EQ(p.total_memory, uint64_t{64} << 20);
    EXPECT_EQ(p.uuid, "GPU-simulated-1");
    expect_error<DeviceError>([] { cuda::get_device_name(3); }, "the program sees 3 GPU(s), numbered from 0");
    expect_error<DeviceError>([] { zeros({2}, {.device = "cuda:3"}); }, "device cuda:3 is not available");
  }
  EXPECT_FALSE(cuda::is_available());
  EXPECT_EQ(try_gpu(), kCPU);
  EXPECT_EQ(try_all_gpus(), std::vector<Device>{kCPU});
  expect_error<DeviceError>([] { zeros({2}, {.device = "cuda"}); }, "no backend for it is loaded");
}

TEST(SimulateGpus, NotWhileTensorsLiveThere) {
  const SimulatedGpus gpus;
  const Tensor x = ones({2}, {.device = kGpu1});
  expect_error<DeviceError>([] { simulate_gpus({.gpus = 1}); }, "tensors still live on the simulated GPUs");
  EXPECT_EQ(cuda::device_count(), 2);
  expect_error<ValueError>([] { simulate_gpus({.gpus = 65}); }, "expected 0 to 64 GPUs, got 65");
}

TEST(CurrentDevice, OfEachThread) {
  const SimulatedGpus gpus;
  EXPECT_EQ(cuda::current_device(), 0);
  EXPECT_EQ(zeros({1}, {.device = "cuda"}).device(), kGpu0);
  {
    const DeviceGuard guard(kGpu1);
    EXPECT_EQ(cuda::current_device(), 1);
    EXPECT_EQ(zeros({1}, {.device = "cuda"}).device(), kGpu1);
    EXPECT_EQ(ones({1}).cuda().device(), kGpu1);
    std::thread([] { EXPECT_EQ(cuda::current_device(), 0); }).join();
    const DeviceGuard of_the_cpu(kCPU);
    EXPECT_EQ(cuda::current_device(), 1);
  }
  cuda::set_device(1);
  EXPECT_EQ(cuda::current_device(), 1);
  cuda::set_device("cuda:0");
  EXPECT_EQ(cuda::current_device(), 0);
  expect_error<DeviceError>([] { cuda::set_device(2); }, "device cuda:2 is not available");
  expect_error<DeviceError>([] { cuda::set_device("cpu"); }, "expected a GPU, got cpu");
  expect_error<DeviceError>([] { DeviceGuard guard(Device(5)); }, "device cuda:5 is not available");
  cuda::set_device(1);
  simulate_gpus({.gpus = 1});
  EXPECT_EQ(zeros({1}, {.device = "cuda"}).device(), kGpu0);
}

TEST(Streams, OfNumbersThatAreNone) {
  const SimulatedGpus gpus;
  const Stream none{kGpu0, 5000};
  expect_error<DeviceError>([&] { none.query(); }, "stream 5000 of cuda:0 does not exist");
  expect_error<DeviceError>([&] { none.synchronize(); }, "stream 5000 of cuda:0 does not exist");
}

TEST(SimulatedMemory, MoreThanTheMachineCanReserve) {
  const std::string before = env_text("TERN_SIM").value_or("");
  setenv("TERN_SIM", "gpus=64,memory=4TiB", 1);
  detail::register_sim_backend_from_environment();
  expect_error<ValueError>([] { cuda::device_count(); }, "the system gives no");
  before.empty() ? unsetenv("TERN_SIM") : setenv("TERN_SIM", before.c_str(), 1);
  simulate_gpus({.gpus = 0});
}

TEST(DefaultDevice, OfFactories) {
  const SimulatedGpus gpus;
  const Device before = get_default_device();
  set_default_device("cuda:1");
  EXPECT_EQ(zeros({2}).device(), kGpu1);
  EXPECT_EQ(tensor({1.0, 2.0}).device(), kGpu1);
  EXPECT_EQ(nn::Linear(2, 3).weight.device(), kGpu1);
  EXPECT_EQ(zeros({2}, {.device = kCPU}).device(), kCPU);
  std::thread([] { EXPECT_EQ(zeros({2}).device(), kCPU) << "as in PyTorch, of one thread alone"; }).join();
  set_default_device(before.is_cpu() ? before : kCPU);
  expect_error<DeviceError>([] { set_default_device("cuda:2"); }, "set_default_device: device cuda:2");
}

}  // namespace
}  // namespace tern
