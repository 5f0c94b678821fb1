// What libraries on top of CUDA ask of the calling thread.
#pragma once

namespace emulator {

/// The thread has called cudaSetDevice. CUDA also binds a context at the first thing that it is given to do;
/// libraries that go by the driver alone do not.
bool thread_has_context();

}  // namespace emulator
