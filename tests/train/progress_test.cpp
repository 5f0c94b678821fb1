// The text of the progress bar, times and numbers; signals.
#include "tern/train/progress.h"

#include <gtest/gtest.h>

#include <csignal>

#include "tern/base/error.h"
#include "tern/train/interrupt.h"

namespace tern::train {
namespace {

int columns_of(const std::string& text) {
  int count = 0;
  for (char c : text) count += (c & 0xC0) != 0x80;
  return count;
}

TEST(Progress, LineHasEverything) {
  EXPECT_EQ(ProgressBar::line("epoch 2/5", 0.5, 12345, 63, "loss 0.1234", 100, /*unicode=*/false),
            "epoch 2/5  50% [###############...............] 12,345 samples/s  ETA 1:03  loss 0.1234");
  const std::string text =
      ProgressBar::line("epoch 2/5", 0.51, 12345, 63, "loss 0.1234", 100, /*unicode=*/true);
  EXPECT_NE(text.find("▕███████████████▎"), std::string::npos) << text;
}

TEST(Progress, LineFitsTheWidth) {
  for (bool unicode : {false, true})
    for (int columns = 1; columns < 120; ++columns)
      for (double fraction : {0.0, 0.333, 1.0, 2.0})
        EXPECT_LE(columns_of(ProgressBar::line("epoch 2/5", fraction, 1e6, 5, "loss 0.1  acc 99.00 %",
                                               columns, unicode)),
                  columns);
}

TEST(Progress, UnknownSpeedIsLeftOut) {
  EXPECT_EQ(ProgressBar::line("test", 0, 0, -1, "", 40, false), "test   0% [" + std::string(27, '.') + "]");
}

TEST(Progress, SpeedsBeyondIntegersAreShort) {
  EXPECT_EQ(ProgressBar::line("test", 0, 1e300, 0, "", 40, false), "test   0% 1e+300 samples/s  ETA 0:00");
}

TEST(Progress, SpeedIsMeasuredSinceTheWorkBegan) {
  const Terminal terminal{.is_terminal = true, .cursor = true};
  const auto drawn = [&](int64_t first, int64_t done) {
    ProgressBar bar{terminal};
    bar.start("epoch", 4000, first, ProgressBar::Clock::now() - std::chrono::seconds(1000));
    testing::internal::CaptureStderr();
    bar.draw(done, "loss 1");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(drawn(0, 2000).find(" 2 samples/s  ETA 16:"), std::string::npos) << drawn(0, 2000);
  EXPECT_NE(drawn(2000, 3000).find(" 1 samples/s  ETA 16:"), std::string::npos) << drawn(2000, 3000);
  EXPECT_EQ(drawn(2000, 2000).find("samples/s"), std::string::npos) << drawn(2000, 2000);
}

TEST(Progress, WorkOfUnknownLength) {
  EXPECT_EQ(ProgressBar::open_line("epoch 2/5", 12345, 1234, 10, "loss 0.1", 100),
            "epoch 2/5  12,345 samples  0:10  1,234 samples/s  loss 0.1");
  EXPECT_EQ(ProgressBar::open_line("test", 0, 0, 0, "", 12), "test  0 samp");
  ProgressBar bar{Terminal{.is_terminal = true, .cursor = true}};
  bar.start("epoch", std::nullopt, 0, ProgressBar::Clock::now() - std::chrono::seconds(1000));
  testing::internal::CaptureStderr();
  bar.draw(2000, "loss 1");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "\repoch  2,000 samples  16:40  2 samples/s  loss 1\033[K");
}

TEST(Progress, NothingIsDrawnOffATerminal) {
  ProgressBar bar{Terminal{}};
  bar.start("epoch", 10);
  EXPECT_FALSE(bar.is_shown());
  EXPECT_FALSE(bar.is_due());
  testing::internal::CaptureStderr();
  bar.draw(5, "loss");
  bar.clear();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, Durations) {
  EXPECT_EQ(duration_text(7.4), "0:07");
  EXPECT_EQ(duration_text(65), "1:05");
  EXPECT_EQ(duration_text(7389), "2:03:09");
  EXPECT_EQ(duration_text(-1), "?");
}

TEST(Progress, Commas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-123456), "-123,456");
  EXPECT_EQ(with_commas(-999), "-999");
}

TEST(Interrupt, FirstSignalSetsAFlag) {
  std::signal(SIGINT, SIG_DFL);  // tests may run in the background
  struct sigaction before {};
  ::sigaction(SIGINT, nullptr, &before);
  {
    Interrupt interrupt;
    EXPECT_THROW(Interrupt(), ValueError);
    EXPECT_FALSE(interrupt.requested());
    ::raise(SIGINT);
    EXPECT_TRUE(interrupt.requested());
    EXPECT_EQ(interrupt.signal(), SIGINT);
  }
  struct sigaction after {};
  ::sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  Interrupt again;
  EXPECT_FALSE(again.requested());
}

TEST(Interrupt, SecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        std::signal(SIGINT, SIG_DFL);
        Interrupt interrupt;
        ::raise(SIGTERM);
        ::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(Interrupt, AnIgnoredSignalStaysIgnored) {
  for (const auto& [ignored, other] : {std::pair{SIGINT, SIGTERM}, {SIGTERM, SIGINT}}) {
    std::signal(ignored, SIG_IGN);
    std::signal(other, SIG_DFL);
    {
      Interrupt interrupt;
      ::raise(ignored);
      EXPECT_FALSE(interrupt.requested());
      ::raise(other);
      EXPECT_EQ(interrupt.signal(), other);
      ::raise(ignored);
      EXPECT_EQ(interrupt.signal(), other);
    }
    EXPECT_EQ(std::signal(ignored, SIG_DFL), SIG_IGN);
  }
}

}  // namespace
}  // namespace tern::train
