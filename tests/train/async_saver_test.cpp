// Saving in the background: what is written is the state at the time of the call, whatever happens to it
// afterwards.
#include "tern/train/async_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>

#include "tern/tern.h"
#include "tests/support/temporary_folder.h"

namespace tern::train {
namespace {

using testing::HasSubstr;

std::string bytes_in(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(AsyncSaver, WritesTheStateOfTheCall) {
  TemporaryFolder folder;
  Tensor weight = zeros({1000, 100}), view = weight.narrow(0, 10, 5);
  AsyncSaver saver;
  for (int step = 0; step < 5; ++step) {
    saver.save({{"step", step}, {"w", weight}, {"view", view}},
               folder / ("step" + std::to_string(step) + ".pt"));
    weight.add_(1);  // while it is written
  }
  saver.wait();
  EXPECT_FALSE(saver.busy());
  for (int step = 0; step < 5; ++step) {
    Value file = load(folder / ("step" + std::to_string(step) + ".pt"));
    EXPECT_EQ(file["step"].as_int(), step);
    EXPECT_EQ(file["w"].as_tensor().sum().item<float>(), 100000.f * static_cast<float>(step));
    EXPECT_EQ(file["view"].as_tensor().storage(), file["w"].as_tensor().storage());
  }
}

TEST(AsyncSaver, SeesWhatIsWrittenThroughPointers) {
  TemporaryFolder folder;
  Tensor frozen = zeros({4}, {.device = kCPU}), learned = zeros({4});
  AsyncSaver saver;
  saver.save({{"frozen", frozen}, {"learned", learned}}, folder / "a.pt");
  saver.wait();
  frozen.data<float>()[0] = 5;  // no version counts it
  learned.add_(1);
  saver.save({{"frozen", frozen}, {"learned", learned}}, folder / "b.pt");
  saver.forget();
  saver.save({{"learned", learned}}, folder / "c.pt");
  saver.wait();
  EXPECT_EQ(load(folder / "b.pt")["frozen"].as_tensor().sum().item<float>(), 5);
  for (const char* name : {"b.pt", "c.pt"})
    EXPECT_EQ(load(folder / name)["learned"].as_tensor().sum().item<float>(), 4) << name;
}

TEST(AsyncSaver, ACopyThatFailedIsMadeAgain) {
  if (get_default_device().is_cpu() || !cuda::get_device_properties(get_default_device()).simulated)
    GTEST_SKIP() << "a real GPU does not go on after such an error";
  TemporaryFolder folder;
  Tensor x = full({1000}, 1);
  AsyncSaver saver;
  saver.save({{"x", x}}, folder / "a.pt");
  saver.wait();
  x.fill_(2);
  const Tensor wrong = index_select(x, 0, full({1}, 1000, {.dtype = int64}));
  EXPECT_THROW(saver.save({{"x", x}}, folder / "b.pt"), IndexError);
  saver.save({{"x", x}}, folder / "b.pt");
  saver.wait();
  EXPECT_EQ(load(folder / "b.pt")["x"].as_tensor().sum().item<float>(), 2000);
}

TEST(AsyncSaver, StatesOfOptimizersAreThoseOfTheCall) {
  TemporaryFolder folder;
  for (const char* name : {"now", "later"}) std::filesystem::create_directory(folder / name);
  nn::Linear net(3, 2);
  const Tensor x = ones({4, 3});
  const auto check = [&](optim::Optimizer& optimizer, const std::string& name) {
    AsyncSaver saver;
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      net(x).square().sum().backward();
      optimizer.step();
      const Value state{{"net", net.state_dict()}, {"optimizer", to_value(optimizer.state_dict())}};
      save(state, folder / "now/state.pt");
      saver.save(state, folder / "later/state.pt");
      saver.wait();
      EXPECT_TRUE(bytes_in(folder / "now/state.pt") == bytes_in(folder / "later/state.pt"))
          << name << " after step " << step;
    }
  };
  optim::Adam adam(net.parameters(), {.lr = 0.1, .amsgrad = true});
  check(adam, "Adam");
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  check(sgd, "SGD");
  optim::RMSprop rmsprop(net.parameters(), {.lr = 0.1, .momentum = 0.9, .centered = true});
  check(rmsprop, "RMSprop");
  optim::Adagrad adagrad(net.parameters(), {.lr = 0.1});
  check(adagrad, "Adagrad");
}

TEST(AsyncSaver, TensorsOfAGpuKeepTheirDevice) {
  Memory* gpus = find_memory(DeviceType::CUDA);
  if (!gpus || gpus->device_count() == 0) GTEST_SKIP() << "there is no GPU here";
  TemporaryFolder folder;
  Tensor x = ones({3}).to(Device("cuda:0"));
  AsyncSaver saver;
  saver.save({{"x", x}}, folder / "a.pt");
  x.add_(1);
  saver.wait();
  Tensor back = load(folder / "a.pt")["x"].as_tensor();
  EXPECT_EQ(back.device(), Device("cuda:0"));
  EXPECT_EQ(back.sum().item<float>(), 3);
}

TEST(AsyncSaver, KeepsTheLastAndTheBest) {
  TemporaryFolder folder;
  AsyncSaver saver({.keep_last = 2});
  const double losses[] = {3, 1, 2, NAN, 4};
  for (int i = 0; i < 5; ++i) saver.save({{"i", i}}, folder / (std::to_string(i) + ".pt"), losses[i]);
  saver.wait();
  EXPECT_EQ(saver.best_path(), folder / "1.pt");
  EXPECT_EQ(saver.best_metric(), 1);
  EXPECT_EQ(folder.entries(), 3u);
  for (int i : {1, 3, 4}) EXPECT_EQ(load(folder / (std::to_string(i) + ".pt"))["i"].as_int(), i);
}

TEST(AsyncSaver, NamesTheLatestAndTheBest) {
  TemporaryFolder folder;
  const auto latest = folder / "latest.pt", best = folder / "best.pt";
  {
    AsyncSaver saver({.keep_last = 1, .latest = latest, .best_copy = best});
    const double losses[] = {3, 1, 2, 4};
    for (int i = 0; i < 4; ++i) {
      saver.save({{"i", i}}, folder / (std::to_string(i) + ".pt"), losses[i]);
      saver.wait();
      EXPECT_EQ(load(latest)["i"].as_int(), i);
      EXPECT_EQ(load(best)["i"].as_int(), std::min(i, 1));
    }
  }
  EXPECT_TRUE(std::filesystem::equivalent(latest, folder / "3.pt"));  // one file by two names
  EXPECT_EQ(folder.entries(), 4u);                                    // 1, 3 and the two names

  AsyncSaver saver({.keep_last = 2, .latest = latest, .best_copy = best});
  saver.adopt(folder / "1.pt", 1);
  saver.adopt(folder / "3.pt");
  saver.adopt(folder / "absent.pt", 0);
  EXPECT_EQ(saver.best_path(), folder / "1.pt");
  saver.save({{"i", 5}}, folder / "5.pt", 5);
  saver.save({{"i", 6}}, folder / "6.pt", 0.5);
  saver.wait();
  EXPECT_EQ(saver.best_path(), folder / "6.pt");
  EXPECT_EQ(load(best)["i"].as_int(), 6);
  for (const char* name : {"5.pt", "6.pt"}) EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  EXPECT_FALSE(std::filesystem::exists(folder / "3.pt"));
  saver.save({{"i", 6.5}}, folder / "6.pt", 0.25);  // the same name again
  saver.wait();
  EXPECT_EQ(load(best)["i"].as_float(), 6.5);
  EXPECT_EQ(load(latest)["i"].as_float(), 6.5);
}

TEST(AsyncSaver, ErrorsComeAtTheNextCall) {
  TemporaryFolder folder;
  AsyncSaver saver;
  saver.save(1, folder / "absent/a.pt");
  try {
    saver.save(2, folder / "b.pt");
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("absent"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "b.pt"));
  saver.save(2, folder / "b.pt");
  saver.wait();
  EXPECT_EQ(load(folder / "b.pt").as_int(), 2);
  saver.save({{"bad", Tensor()}}, folder / "c.pt");
  EXPECT_THROW(saver.wait(), ValueError);
  saver.wait();  // it is told once
  testing::internal::CaptureStderr();
  { AsyncSaver(AsyncSaverOptions{}).save(1, folder / "absent/a.pt"); }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("AsyncSaver: a checkpoint is not there: saving"));
  testing::internal::CaptureStderr();
  {
    AsyncSaver({.progress = [](uint64_t, uint64_t) { throw 1; }}).save(1, folder / "d.pt");
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("AsyncSaver: a checkpoint is not there: an unknown error"));
}

TEST(AsyncSaver, RefusesNamesOfSafetensors) {
  TemporaryFolder folder;
  AsyncSaver saver;
  EXPECT_THROW(saver.save({{"w", ones({2})}}, folder / "a.safetensors"), ValueError);
  saver.wait();
  EXPECT_EQ(folder.entries(), 0u);
  EXPECT_THROW(AsyncSaver({.latest = folder / "latest.safetensors"}), ValueError);
  EXPECT_THROW(AsyncSaver({.best_copy = folder / "best.safetensors"}), ValueError);
}

TEST(AsyncSaver, TellsItsProgress) {
  TemporaryFolder folder;
  std::atomic<uint64_t> calls{0}, last{0}, whole{0};
  AsyncSaver saver({.progress = [&](uint64_t written, uint64_t total) {
    EXPECT_GE(written, last);
    EXPECT_LE(written, total);
    last = written;
    whole = total;
    ++calls;
  }});
  saver.save({{"a", zeros({12 << 20})}}, folder / "a.pt");
  saver.wait();
  EXPECT_GE(calls, 3u);
  EXPECT_EQ(last, whole);
  EXPECT_EQ(whole, std::filesystem::file_size(folder / "a.pt"));
}

}  // namespace
}  // namespace tern::train
