// Programs that are started as several processes.
#include "tern/parallel/launch.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/support/expect_error.h"

namespace tern::dist {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

LaunchResult shell(const std::string& text, LaunchOptions options = {}) {
  return launch({"sh", "-c", text}, options);
}

TEST(Launch, ProcessesAreToldWhoTheyAre) {
  ::testing::internal::CaptureStdout();
  const auto result = shell(
      "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT; printf end",
      {.nproc_per_node = 2, .nnodes = 3, .node_rank = 1, .master_addr = "10.0.0.1", .tag_output = true});
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.failed_rank, -1);
  for (const char* line :
       {"[2] 2 0 6 2 10.0.0.1 29500\n", "[3] 3 1 6 2 10.0.0.1 29500\n", "[2] end\n", "[3] end\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST(Launch, OneThatFailsEndsTheOthers) {
  const struct {
    const char* program;
    int exit_code;
    const char* reason;
  } rows[] = {
      {"[ $RANK != 1 ] || exit 7; exec sleep 100", 7, "rank 1 ended with exit code 7"},
      {"[ $RANK != 1 ] || kill -9 $$; exec sleep 100", 137, "rank 1 was ended by signal 9 (Killed)"},
      {"trap '' TERM; [ $RANK != 2 ] || exit 3; while :; do sleep 0.1; done", 3,
       "rank 2 ended with exit code 3"},
      {"[ $RANK != 0 ] || exit 1; sleep 0.05", 1, "rank 0 ended with exit code 1"},
  };
  for (const auto& row : rows) {
    const auto start = std::chrono::steady_clock::now();
    const auto result = shell(row.program, {.nproc_per_node = 3, .grace = milliseconds(100)});
    EXPECT_EQ(result.exit_code, row.exit_code);
    EXPECT_EQ(result.reason, row.reason);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  }
}

TEST(Launch, SignalsGoOn) {
  std::thread later([] {
    std::this_thread::sleep_for(milliseconds(300));
    ::kill(::getpid(), SIGTERM);
  });
  const auto result = shell("exec sleep 100", {.nproc_per_node = 2, .grace = milliseconds(200)});
  later.join();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_EQ(result.reason, "ended by signal 15");
}

TEST(Launch, MistakesAreTold) {
  const struct {
    std::vector<std::string> command;
    LaunchOptions options;
    const char* text;
  } rows[] = {
      {{}, {}, "launch: there is no program to start"},
      {{"true"}, {.nproc_per_node = 0}, "launch: 0 processes: at least one"},
      {{"true"}, {.nnodes = 2, .node_rank = 2}, "launch: there is no node 2 among 2"},
      {{"true"}, {.nnodes = 2}, "master_addr is 'localhost', which every machine calls itself"},
      {{"/nowhere/program"}, {}, "launch: '/nowhere/program' cannot be started: No such file or directory"},
  };
  for (const auto& row : rows) expect_error<Error>([&] { launch(row.command, row.options); }, row.text);
}

}  // namespace
}  // namespace tern::dist
