// Gathers the variants' tables and asks the processor what it can run.
#include "tern/backends/cpu/tables.h"

#include "tern/kernels/list.h"

namespace tern::cpu {

#define TERN_DECLARE_TABLE(variant)                    \
  namespace variant {                                  \
  extern const KernelFn kernel_table[kernels::kCount]; \
  extern const KernelFn* const tiles_table;            \
  bool has_tiles();                                    \
  bool has_pairs();                                    \
  }
TERN_CPU_FOR_EACH_VARIANT(TERN_DECLARE_TABLE)
#undef TERN_DECLARE_TABLE

namespace {

[[maybe_unused]] bool generic_supported() { return true; }
#if defined(__x86_64__)
[[maybe_unused]] bool v3_supported() {
  // Every processor with AVX2 has F16C too; older clang does not know the name.
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
[[maybe_unused]] bool v4_supported() {
  return v3_supported() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");
}
#endif

}  // namespace

std::vector<const KernelTable*> kernel_tables() {
#define TERN_TABLE(variant) {#variant, variant::kernel_table, &variant##_supported},
#define TERN_TILES(variant)                                                                    \
  {"amx", variant::tiles_table, [] { return variant##_supported() && variant::has_tiles(); }}, \
      {"bf16", variant::tiles_table,                                                           \
       [] { return variant##_supported() && !variant::has_tiles() && variant::has_pairs(); }},
  static const KernelTable tables[] = {TERN_CPU_FOR_EACH_VARIANT(TERN_TABLE)
                                           TERN_CPU_FOR_EACH_VARIANT(TERN_TILES)};
#undef TERN_TILES
#undef TERN_TABLE
  std::vector<const KernelTable*> list;
  for (const KernelTable& table : tables)
    if (table.kernels != nullptr) list.push_back(&table);
  return list;
}

}  // namespace tern::cpu
