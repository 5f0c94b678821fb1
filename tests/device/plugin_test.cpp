// Which plugins are refused, and in which words. The real one is in tests/backends/cuda.
#include "tern/device/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tern/device/cuda.h"

namespace tern {
namespace {

using testing::AllOf;
using testing::HasSubstr;

#if defined(TERN_FAKE_PLUGIN_FILE)
std::string reason_of(const char* wrong) {
  ::setenv("TERN_FAKE_PLUGIN", wrong, 1);
  const PluginAnswer answer = open_plugin(TERN_FAKE_PLUGIN_FILE);
  ::unsetenv("TERN_FAKE_PLUGIN");
  EXPECT_EQ(answer.backend, nullptr);
  return answer.reason;
}

TEST(Plugin, MustFitTheLibrary) {
  EXPECT_THAT(reason_of("version"),
              AllOf(HasSubstr("fake_plugin"), HasSubstr("of version 0.0.9"), HasSubstr("one source")));
  EXPECT_THAT(reason_of("interface"), HasSubstr("speaks interface"));
  EXPECT_THAT(reason_of("layouts"), HasSubstr("built from other sources"));
  EXPECT_THAT(reason_of("kernels"), HasSubstr("built from other sources"));
  EXPECT_THAT(reason_of("library"), HasSubstr("another copy of the library"));
}

TEST(Plugin, SaysWhyItHasNoGpu) {
  EXPECT_EQ(reason_of(""), "the fake plugin has no GPU");
  EXPECT_THAT(reason_of("silent"), HasSubstr("no backend and no reason"));
}
#endif

TEST(Plugin, MustBeALibrary) {
  const auto path = std::filesystem::temp_directory_path() / "tern_no_plugin.so";
  std::ofstream(path) << "this is no library";
  EXPECT_THAT(open_plugin(path.string()).reason, HasSubstr("cannot be opened"));
  std::ofstream(path) << "nor this, though it has a stamp: TERN_PLUGIN_VERSION=9.8.7";
  EXPECT_THAT(open_plugin(path.string()).reason, HasSubstr("it is of version 9.8.7"));
  std::filesystem::remove(path);
  EXPECT_THAT(open_plugin(path.string()).reason, HasSubstr("cannot be opened"));
}

TEST(Plugin, OfAnotherKindIsRefused) {
  EXPECT_THAT(open_plugin("libc.so.6").reason, HasSubstr("it is no plugin of Tern"));
}

TEST(Plugin, TheReasonIsKept) {
  if (cuda::is_available()) GTEST_SKIP() << "there is a GPU";
  EXPECT_FALSE(cuda::unavailable_reason().empty());
  EXPECT_EQ(cuda::unavailable_reason(), plugin_status().reason);
  EXPECT_EQ(&plugin_status(), &plugin_status());
}

}  // namespace
}  // namespace tern
