// The check for races: missing waits are found whatever the threads happen to do; what is ordered passes.
#include "sim_testing.h"

namespace tern {
namespace {

struct Work {
  Stream main = current_stream(kGpu0), side = new_stream(kGpu0);
  Tensor x = ones({1000}, {.device = kGpu0});

  template <class F>
  void on_side(F&& f) {
    const StreamGuard guard(side);
    f();
  }
};

TEST(Races, AMissingWaitIsFound) {
  const SimulatedGpus gpus;
  Work w;
  w.on_side([&] {
    expect_error<DeviceError>(
        [&] { w.x + 1; }, " reads memory that fill on cuda:0 stream 0 writes, and nothing orders the two");
  });
}

TEST(Races, EveryKindOfWaitOrders) {
  const SimulatedGpus gpus;
  const std::pair<const char*, std::function<void(Work&)>> waits[] = {
      {"wait_stream", [](Work& w) { w.side.wait_stream(w.main); }},
      {"event",
       [](Work& w) {
         Event event;
         event.record(w.main);
         w.side.wait_event(event);
       }},
      {"synchronize stream", [](Work& w) { w.main.synchronize(); }},
      {"synchronize device", [](Work&) { cuda::synchronize(0); }},
      {"event synchronize",
       [](Work& w) {
         Event event;
         event.record(w.main);
         event.synchronize();
       }},
      {"item", [](Work& w) { w.x.sum().item(); }},
  };
  for (const auto& [name, wait] : waits) {
    Work w;
    wait(w);
    w.on_side([&, &waited = name] {
      EXPECT_NO_THROW({
        const Tensor y = w.x + 1;
        y.sum().item();
      }) << waited;
    });
    w.side.synchronize();
  }
}

TEST(Races, WriteAfterRead) {
  const SimulatedGpus gpus;
  Work w;
  w.side.wait_stream(w.main);
  Tensor y;
  w.on_side([&] { y = w.x + 1; });
  expect_error<DeviceError>([&] { w.x.add_(1); }, "writes memory that binary on cuda:0 stream");
  w.main.wait_stream(w.side);
  EXPECT_NO_THROW(w.x.add_(1));
}

TEST(Races, PartsOfOneTensor) {
  const SimulatedGpus gpus;
  Work w;
  w.side.wait_stream(w.main);
  const Tensor first = w.x.slice(0, 0, 500), second = w.x.slice(0, 500, 1000);
  Tensor a = first, b = second;
  w.on_side([&] { EXPECT_NO_THROW(a.add_(1)) << "halves that do not touch"; });
  EXPECT_NO_THROW(b.mul_(2));
  expect_error<DeviceError>([&] { w.x.slice(0, 499, 501).add_(1); }, "race: ");
}

TEST(Races, AMissingRecordStreamIsFound) {
  const SimulatedGpus gpus;
  for (const bool recorded : {true, false}) {
    Work w;
    w.side.wait_stream(w.main);
    Tensor y;
    w.on_side([&] { y = w.x + 1; });
    if (recorded) w.x.record_stream(w.side);
    w.x = {};
    const auto reuse = [] { ones({1000}, {.device = kGpu0}); };
    if (recorded)
      EXPECT_NO_THROW(reuse());
    else
      expect_error<DeviceError>(reuse, "or name the stream with record_stream() before the tensor is freed");
    cuda::synchronize(0);
  }
}

TEST(Races, CopiesBetweenDevicesOrderThemselves) {
  const SimulatedGpus gpus;
  Tensor x = ones({1000}, {.device = kGpu0});
  for (int i = 0; i < 10; ++i) {
    Tensor y = x.to(kGpu1);
    y.add_(1);
    x.copy_(y);
    x.mul_(2);
  }
  EXPECT_EQ(x.mean().item<float>(), 3070);
}

TEST(Races, MemoryThatWentBackHasNoPast) {
  const SimulatedGpus gpus;
  for (int i = 0; i < 2; ++i) {
    {
      const StreamGuard guard(new_stream(kGpu0));
      const Tensor x = zeros({1 << 20}, {.device = kGpu0});
    }
    cuda::empty_cache();
  }
}

TEST(Races, ACopyOnAnotherStreamIsFound) {
  const SimulatedGpus gpus;
  Work w;
  const Tensor pinned = zeros({1000}, {.device = kCPU}).pin_memory();
  const Tensor y = w.x + 1;
  w.on_side([&] { expect_error<DeviceError>([&] { w.x.copy_(pinned); }, "race: "); });
}

TEST(Races, TheDataLoaderHasNone) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const SimulatedGpus gpus({.gpus = 2, .jitter = seed, .check_races = true});
    const Tensor rows = arange(400, {.dtype = float32, .device = kCPU}).view({100, 4});
    for (const bool collate : {false, true}) {
      data::DataLoaderOptions options;
      options.batch_size = 30;
      options.num_workers = 2;
      if (collate)
        options.collate_fn = [](const std::vector<data::Example>& examples) {
          data::Batch batch = data::default_collate(examples);
          batch.data = batch.data.to(kGpu1, {.non_blocking = true}) * 1;
          return batch;
        };
      else
        options.device = kGpu1;
      data::DataLoader loader(data::TensorDataset(rows), std::move(options));
      double sum = 0;
      std::vector<int64_t> sizes;
      for (auto& batch : loader) {
        EXPECT_EQ(batch.data.device(), kGpu1);
        sizes.push_back(batch.data.size(0));
        batch.data.mul_(2);
        sum += batch.data.sum().item<double>();
      }
      EXPECT_EQ(sum, 159600);
      EXPECT_THAT(sizes, ::testing::ElementsAre(30, 30, 30, 10));
    }
  }
}

}  // namespace
}  // namespace tern
