// How a process finds the others that it was started with.
#include "tern/parallel/transport.h"

#include <dlfcn.h>

#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/device/machine.h"
#include "tern/parallel/tcp_transport.h"

namespace tern::dist {
namespace {

/// Whether the starters of MPI's processes say, in variables that they set, that there are several. A shell
/// that Slurm opened is a process of its own kind, and alone.
bool is_one_of_several() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const auto size = env_text(name)) return *size != "1";
  return env_text("PMIX_RANK") && env_text("SLURM_STEP_NUM_TASKS") != "1";
}

const TransportPlugin& mpi_plugin() {
  const std::string path = env_text("TERN_MPI_PLUGIN").value_or(own_library_folder() + "/libtern_mpi.so");
  // Global: MPI opens parts of its own, which look for it.
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    const char* text = ::dlerror();
    TERN_THROW(
        DistributedError,
        "this process was started by MPI, and the plugin that speaks it cannot be opened ({}): build Tern "
        "where MPI is installed (libopenmpi-dev)",
        printable(text ? text : "no reason was given", 400));
  }
  const auto find = reinterpret_cast<TransportPluginFn>(::dlsym(handle, "tern_transport_plugin"));
  TERN_CHECK(find != nullptr, DistributedError, "'{}' is no transport of Tern", printable(path));
  const TransportPlugin& plugin = *find();
  TERN_CHECK(
      plugin.interface_number == kTransportInterface && std::string_view(plugin.version) == TERN_VERSION,
      DistributedError, "'{}' is of another version than the library ({}): build both from one source",
      printable(path), TERN_VERSION);
  return plugin;
}

}  // namespace

bool is_mpi_available() {
  try {
    mpi_plugin();
    return true;
  } catch (const DistributedError&) {
    return false;
  }
}

std::unique_ptr<Transport> open_transport(const ProcessGroupOptions& options) {
  // Who says where the others are means those.
  if (!is_one_of_several() || !options.init_method.empty()) {
    const auto rendezvous = find_rendezvous(options);
    if (!rendezvous || rendezvous->size == 1) return nullptr;
    return open_tcp_transport(*rendezvous, options.timeout);
  }
  std::string reason;
  auto transport = mpi_plugin().open(options.timeout, reason);
  TERN_CHECK(transport != nullptr, DistributedError, "{}", reason);
  return transport;
}

}  // namespace tern::dist
