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

/// The file of a library of a major version, which is a macro: TERN_SONAME("libnccl", NCCL_MAJOR).
#define TERN_SONAME(name, major) TERN_SONAME_OF(name, major)
#define TERN_SONAME_OF(name, major) name ".so." #major

/// For structs of a library's functions under their own names: a member, and its finding in a `library`.
#define TERN_LIBRARY_MEMBER(name) decltype(&::name) name;
#define TERN_LIBRARY_FIND(name) found.name = reinterpret_cast<decltype(found.name)>(library.symbol(#name));

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
  TERN_CUBLASLT_FUNCTIONS(TERN_LIBRARY_MEMBER)
};

/// Opened with the first call. Throws DeviceError where it is missing.
const CublasLt& cublaslt();

}  // namespace tern::cuda_backend
