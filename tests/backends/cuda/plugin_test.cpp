// The CUDA plugin as a file: what it has, and what it answers on a machine without a GPU.
#include "tern/device/plugin.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tern/device/cuda.h"
#include "tern/device/registry.h"
#include "tern/kernels/list.h"
#include "tern/ops/creation.h"

namespace tern {
namespace {

#if defined(TERN_CUDA_PLUGIN_FILE)

TEST(CudaPlugin, HasEveryKernel) {
  void* handle = ::dlopen(TERN_CUDA_PLUGIN_FILE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  const auto list = reinterpret_cast<const char* const* (*)()>(::dlsym(handle, "tern_plugin_kernels"));
  ASSERT_NE(list, nullptr);
  std::set<std::string> there;
  for (const char* const* name = list(); *name != nullptr; ++name) there.insert(*name);
  std::string missing;
#define TERN_ASK(kernel, Args) \
  if (there.count(#kernel) == 0) missing += std::string(" ") + #kernel;
  TERN_KERNELS(TERN_ASK)
#undef TERN_ASK
  EXPECT_EQ(missing, "") << "kernels that the plugin lacks";
  EXPECT_EQ(there.size(), static_cast<size_t>(kernels::kCount));
}

TEST(CudaPlugin, CarriesItsVersion) {
  std::ifstream file(TERN_CUDA_PLUGIN_FILE, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  EXPECT_NE(bytes.view().find("TERN_PLUGIN_VERSION=" TERN_VERSION), std::string_view::npos);
}

TEST(CudaPlugin, OpensNothingOfTheDriverByItself) {
  void* handle = ::dlopen(TERN_CUDA_PLUGIN_FILE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  for (const char* name :
       {"libnvidia-ml.so.1", "libcublasLt.so.13", "libcufft.so.12", "libcusolver.so.12", "libcudnn.so.9"})
    EXPECT_EQ(::dlopen(name, RTLD_NOW | RTLD_NOLOAD), nullptr) << name;
}

TEST(CudaPlugin, AnswersWithoutAGpu) {
  const PluginAnswer answer = open_plugin(TERN_CUDA_PLUGIN_FILE);
  if (answer.backend != nullptr) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(answer.reason,
              ::testing::AnyOf(::testing::HasSubstr("no NVIDIA driver"), ::testing::HasSubstr("too old"),
                               ::testing::HasSubstr("gives no GPU")));
  // Asked again, it answers the same.
  EXPECT_EQ(open_plugin(TERN_CUDA_PLUGIN_FILE).reason, answer.reason);
}

TEST(CudaPlugin, TheReasonIsInErrors) {
  if (cuda::is_available()) GTEST_SKIP() << "there is a GPU";
  if (!plugin_status().tried) GTEST_SKIP() << "the plugin was not looked for: " << plugin_status().reason;
  EXPECT_EQ(cuda::device_count(), 0);
  EXPECT_EQ(try_gpu(), kCPU);
  try {
    zeros({2}, {.device = "cuda"});
    ADD_FAILURE() << "no error was thrown";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(plugin_status().reason));
  }
}

#else

TEST(CudaPlugin, IsBuilt) { GTEST_SKIP() << "the CUDA backend is not built (TERN_CUDA)"; }

#endif

}  // namespace
}  // namespace tern
