// What a compiler calls for every access of code that it compiles with -fsanitize=thread, where
// ThreadSanitizer itself is not linked: a part of each library and program with such kernels.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/emulator/watch.h"

using emulator::watch::Access;
using emulator::watch::touch;

extern "C" {

extern char __bss_start __attribute__((visibility("hidden")));
extern char _end __attribute__((visibility("hidden")));

void __tsan_init() {
  static const bool once = [] {
    const char* first = &__bss_start - reinterpret_cast<uintptr_t>(&__bss_start) % 4;
    emulator::watch::add_shared(first, static_cast<size_t>(&_end - first));
    return true;
  }();
  static_cast<void>(once);
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define TERN_ACCESS(kind, nbytes, access) \
  void __tsan_##kind##nbytes(void* address) { touch(address, nbytes, access, __builtin_return_address(0)); }
#define TERN_ACCESSES(kind, access) \
  TERN_ACCESS(kind, 1, access)      \
  TERN_ACCESS(kind, 2, access)      \
  TERN_ACCESS(kind, 4, access)      \
  TERN_ACCESS(kind, 8, access)      \
  TERN_ACCESS(kind, 16, access)
TERN_ACCESSES(read, Access::Read)
TERN_ACCESSES(write, Access::Write)
TERN_ACCESSES(unaligned_read, Access::Read)
TERN_ACCESSES(unaligned_write, Access::Write)
TERN_ACCESSES(volatile_read, Access::Atomic)
TERN_ACCESSES(volatile_write, Access::Atomic)

void __tsan_read_range(void* address, size_t nbytes) {
  touch(address, nbytes, Access::Read, __builtin_return_address(0));
}
void __tsan_write_range(void* address, size_t nbytes) {
  touch(address, nbytes, Access::Write, __builtin_return_address(0));
}

// Reference counts of the host's code between the kernels.
#define TERN_COUNT(bits, T, operation)                                     \
  T __tsan_atomic##bits##_##operation(volatile T* address, T value, int) { \
    return __atomic_##operation(address, value, __ATOMIC_SEQ_CST);         \
  }
TERN_COUNT(32, int, fetch_add)
TERN_COUNT(32, int, fetch_sub)
TERN_COUNT(64, long, fetch_add)
TERN_COUNT(64, long, fetch_sub)

// By the linker's --wrap: the copies that a compiler makes of loops.
void* __real_memcpy(void* to, const void* from, size_t nbytes);
void* __real_memmove(void* to, const void* from, size_t nbytes);
void* __real_memset(void* to, int value, size_t nbytes);
void* __wrap_memcpy(void* to, const void* from, size_t nbytes) {
  touch(from, nbytes, Access::Read, __builtin_return_address(0));
  touch(to, nbytes, Access::Write, __builtin_return_address(0));
  return __real_memcpy(to, from, nbytes);
}
void* __wrap_memmove(void* to, const void* from, size_t nbytes) {
  touch(from, nbytes, Access::Read, __builtin_return_address(0));
  touch(to, nbytes, Access::Write, __builtin_return_address(0));
  return __real_memmove(to, from, nbytes);
}
void* __wrap_memset(void* to, int value, size_t nbytes) {
  touch(to, nbytes, Access::Write, __builtin_return_address(0));
  return __real_memset(to, value, nbytes);
}

}  // extern "C"
