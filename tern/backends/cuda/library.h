// Libraries of the CUDA toolkit that are opened when they are first needed, so that the plugin loads where
// they are missing, and cuBLASLt's functions. cuDNN's are in cudnn.h.
#pragma once

#include <cublasLt.h>

#include <initializer_list>
#include <string>

namespace tern::cuda_backend {

class Library {
 public:
  /// Tries the names in turn. `what` and `used_for` are for errors: "cuBLASLt", "matrix products".
  Library(const char* what, const char* used_for, std::initializer_list<const char*> names);

  /// Throws DeviceError saying why the library or the function is missing.
  void* symbol(const char* name) const;

 private:
  const char* what_;
  const char* used_for_;
  void* handle_ = nullptr;
  std::string error_;
};

#define TERN_CUBLASLT_FUNCTIONS(X)        \
  X(cublasLtCreate)                       \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtGetStatusString)

/// cuBLASLt's functions under their own names.
struct CublasLt {
#define TERN_MEMBER(name) decltype(&::name) name;
  TERN_CUBLASLT_FUNCTIONS(TERN_MEMBER)
#undef TERN_MEMBER
};

/// Opened with the first call. Throws DeviceError where it is missing.
const CublasLt& cublaslt();

}  // namespace tern::cuda_backend
