// A plugin that is wrong in the way that the environment variable TERN_FAKE_PLUGIN names. For
// plugin_test.cpp.
#include <cstdlib>
#include <string>

#include "tern/device/plugin.h"

extern "C" const tern::PluginStamp* tern_plugin_stamp() {
  static tern::PluginStamp stamp;
  stamp = {tern::kPluginInterface,
           sizeof(tern::PluginStamp),
           TERN_VERSION,
           tern::layout_fingerprint(),
           tern::detail::kernel_list_fingerprint(),
           &tern::detail::load_plugin_when_asked};
  const char* text = std::getenv("TERN_FAKE_PLUGIN");
  const std::string wrong = text ? text : "";
  if (wrong == "interface") ++stamp.interface_number;
  if (wrong == "version") stamp.version = "0.0.9";
  if (wrong == "layouts") ++stamp.layouts;
  if (wrong == "kernels") ++stamp.kernels;
  if (wrong == "library") stamp.library = nullptr;
  return &stamp;
}

extern "C" void tern_plugin_start(tern::PluginAnswer* answer) {
  const char* text = std::getenv("TERN_FAKE_PLUGIN");
  if (text && std::string(text) == "silent") return;
  answer->reason = "the fake plugin has no GPU";
}
