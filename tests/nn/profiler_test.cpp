// The profiler on whole networks: what it records, with which operator, module, bytes and operations.
#include "tern/kernels/profiler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tern/tern.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

struct Perceptron : nn::Module {
  nn::Linear hidden{20, 256};
  nn::Linear output{256, 10};
  TERN_MODULE(hidden, output)
  Tensor forward(const Tensor& x) { return output(relu(hidden(x))); }
};

/// One step, recorded, on the default device.
void record_step(Profiler& profiler) {
  Perceptron net;
  net.to(get_default_device());
  const Tensor x = randn({8, 20});
  profiler.start();
  net(x).sum().backward();
  profiler.stop();
}

TEST(Profiler, KernelsWithOperatorModuleBytesAndOperations) {
  Profiler profiler;
  record_step(profiler);
  std::vector<std::pair<std::string, std::string>> seen;
  double last = 0;
  for (const ProfileEvent& event : profiler.events()) {
    if (event.kind != Activity::Kind::Kernel) continue;
    seen.emplace_back(event.name, event.module);
    EXPECT_GE(event.begin, last - 1e-9) << "kernels of one stream follow each other";
    EXPECT_GT(event.duration, 0);
    EXPECT_EQ(event.stream, current_stream(get_default_device()));
    last = event.begin + event.duration;
  }
  using Pair = std::pair<std::string, std::string>;
  ASSERT_GE(seen.size(), 6u);
  EXPECT_EQ(seen[0], Pair("addmm", "Perceptron.hidden"));
  EXPECT_THAT(seen, ::testing::Contains(Pair("addmm", "Perceptron.output")));
  EXPECT_THAT(seen, ::testing::Contains(Pair("sum", "")));
  EXPECT_THAT(seen, ::testing::Contains(Pair("backward of linear", "Perceptron.hidden")));
  const ProfileEvent& hidden = profiler.events()[0];
  EXPECT_EQ(hidden.kernel, "matmul");
  EXPECT_EQ(hidden.flops, 2.0 * 8 * 20 * 256);
  EXPECT_EQ(hidden.bytes, 4.0 * (8 * 20 + 20 * 256 + 256 + 8 * 256));
}

TEST(Profiler, AveragesAndTable) {
  Profiler profiler;
  profiler.start();
  const Tensor a = ones({64, 64}), b = ones({64, 64});
  for (int i = 0; i < 3; ++i) matmul(a, b);
  profiler.stop();
  matmul(a, b);
  const auto rows = profiler.averages();
  const auto product = std::ranges::find(rows, "matmul", &ProfileRow::name);
  ASSERT_NE(product, rows.end());
  EXPECT_EQ(product->calls, 3u);
  EXPECT_EQ(product->flops, 3 * 2.0 * 64 * 64 * 64);
  EXPECT_TRUE(std::ranges::is_sorted(rows, std::ranges::greater(), &ProfileRow::seconds));
  EXPECT_THAT(profiler.table(),
              ::testing::AllOf(::testing::HasSubstr("matmul"), ::testing::HasSubstr("FLOP/s"),
                               ::testing::HasSubstr("5 events")));
  EXPECT_THAT(profiler.table(1), ::testing::HasSubstr("... and 1 more"));
  EXPECT_EQ(profiler.averages(ProfileOrder::Calls).front().name, "matmul");
  EXPECT_EQ(profiler.averages(ProfileOrder::Bytes).front().bytes,
            std::ranges::max(rows, {}, &ProfileRow::bytes).bytes);
}

TEST(Profiler, StreamsCopiesAndWaitsOfSimulatedGpus) {
  if (cuda::is_available()) GTEST_SKIP() << "this process has GPUs of its own";
  simulate_gpus({.gpus = 2, .latency = 1e-3});
  Profiler profiler;
  {
    const Tensor x = ones({1000}, {.device = "cuda:0"});
    profiler.start();
    const Stream side = new_stream("cuda:0");
    side.wait_stream(current_stream("cuda:0"));
    {
      const StreamGuard guard(side);
      x + 1;
    }
    const Tensor y = x.to("cuda:1");
    y.cpu();
    side.synchronize();
    profiler.stop();
    using ::testing::Contains;
    using ::testing::Field;
    std::vector<std::string> lines;
    for (const ProfileEvent& event : profiler.events())
      lines.push_back(fmt::format("{} {} {} {}", event.stream.device.str(), event.name,
                                  event.stream == side ? "side" : "main", event.bytes));
    EXPECT_THAT(lines, ::testing::IsSupersetOf({"cuda:0 add side 8000", "cuda:0 wait for event side 0",
                                                "cuda:0 copy device to device main 4000",
                                                "cuda:1 copy device to host main 4000"}));
    EXPECT_THAT(profiler.events(), Contains(Field(&ProfileEvent::kind, Activity::Kind::Wait)));
    for (const ProfileEvent& event : profiler.events())
      EXPECT_TRUE(event.kind == Activity::Kind::Wait || event.duration >= 1e-3) << event.name;
  }
  simulate_gpus({.gpus = 0});
}

TEST(Profiler, ChromeTrace) {
  const TemporaryFolder folder;
  Profiler profiler;
  record_step(profiler);
  const std::string path = (folder.path() / "trace.json").string();
  profiler.export_chrome_trace(path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), profiler.chrome_trace());
  EXPECT_THAT(text.str(),
              ::testing::AllOf(::testing::StartsWith("{\"displayTimeUnit\": \"ns\", \"traceEvents\": ["),
                               ::testing::HasSubstr("\"cat\": \"kernel\", \"name\": \"addmm\", \"pid\": "),
                               ::testing::HasSubstr("\"module\": \"Perceptron.hidden\"")));
  expect_error<IoError>([&] { profiler.export_chrome_trace("/nowhere/trace.json"); },
                        "cannot write the trace '/nowhere/trace.json': No such file or directory");
}

TEST(Profiler, OneAtATimeAndALimit) {
  Profiler profiler({.max_events = 2});
  profiler.start();
  expect_error<ValueError>([] { Profiler().start(); }, "another one is recording already");
  const Tensor x = ones({3});
  x + x;
  x* x;
  profiler.stop();
  EXPECT_EQ(profiler.events().size(), 2u);
  EXPECT_EQ(profiler.dropped(), 1u);
  EXPECT_THAT(profiler.table(), ::testing::HasSubstr("1 later events were not recorded"));
  profiler.start();
  profiler.stop();
  EXPECT_TRUE(profiler.events().empty());
}

}  // namespace
}  // namespace tern
