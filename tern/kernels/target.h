// How functions that every backend compiles are declared.
#pragma once

#if defined(__CUDACC__)
#define TERN_FN __host__ __device__ __forceinline__
#else
#define TERN_FN [[gnu::always_inline]] inline
#endif
