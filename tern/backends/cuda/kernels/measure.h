// Measuring several ways of a library to do the same, so that the fastest is kept.
#pragma once

#include <cstddef>
#include <functional>

namespace tern::cuda_backend {

class CudaStream;

/// Nothing can be measured while a stream is recorded.
bool is_recorded(const CudaStream& stream);

/// Which of `count` ways takes the least time on the stream, a few runs each after a first one. The host
/// waits. `run(i)` gives way i to the stream; one that has no memory for it or throws NotImplementedError is
/// out of the question, and where all are, 0 is the answer.
size_t fastest_of(size_t count, CudaStream& stream, const std::function<void(size_t)>& run);

}  // namespace tern::cuda_backend
