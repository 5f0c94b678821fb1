// Opening of libraries.
#include "tern/backends/cuda/library.h"

#include <dlfcn.h>

#include "tern/base/check.h"

namespace tern::cuda_backend {

Library::Library(const char* what, const char* used_for, std::initializer_list<const char*> names)
    : what_(what), used_for_(used_for) {
  for (const char* name : names) {
    handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    const char* text = ::dlerror();
    if (error_.empty()) error_ = text ? text : name;
  }
}

void* Library::symbol(const char* name) const {
  TERN_CHECK(
      handle_ != nullptr, DeviceError,
      "{} on a GPU need {}, which cannot be opened: {}: install it (it comes with the CUDA toolkit or with "
      "packages of its own), or add its folder to LD_LIBRARY_PATH",
      used_for_, what_, error_);
  void* found = ::dlsym(handle_, name);
  TERN_CHECK(found != nullptr, DeviceError, "{} on a GPU need {} of another version: it has no {}", used_for_,
             what_, name);
  return found;
}

const CublasLt& cublaslt() {
  static const CublasLt functions = [] {
    static const Library library("cuBLASLt", "matrix products",
                                 {TERN_SONAME("libcublasLt", CUBLAS_VER_MAJOR), "libcublasLt.so"});
    CublasLt found{};
    TERN_CUBLASLT_FUNCTIONS(TERN_LIBRARY_FIND)
    return found;
  }();
  return functions;
}

}  // namespace tern::cuda_backend
