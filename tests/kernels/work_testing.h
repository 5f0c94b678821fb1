// What tests of descriptions of launches share: operands at made-up addresses, and the comparison.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tern/kernels/list.h"
#include "tern/kernels/work.h"

namespace tern::work_testing {

/// Addresses that descriptions do nothing with but count from.
inline char* at(uintptr_t address) { return reinterpret_cast<char*>(address); }
inline char* const kOut = at(0x10000);
inline char* const kA = at(0x20000);
inline char* const kB = at(0x30000);
inline char* const kC = at(0x40000);
inline char* const kD = at(0x50000);
inline int64_t* longs(char* address) { return reinterpret_cast<int64_t*>(address); }

struct Touched {
  const char* data;
  size_t nbytes;
  std::string how;  ///< "r", "w" or "rw"
  bool operator==(const Touched&) const = default;
};
inline void PrintTo(const Touched& t, std::ostream* out) {
  *out << "{" << static_cast<const void*>(t.data) << ", " << t.nbytes << ", " << t.how << "}";
}

template <class Args>
void expect_work(Kernel<Args> kernel, const std::type_identity_t<Args>& args, std::string_view op,
                 double flops, double bytes, const std::vector<Touched>& operands) {
  SCOPED_TRACE(std::string(kernel.name) + " as " + std::string(op));
  const Work work = work_of(kernel.id, &args);
  EXPECT_EQ(work.op, op);
  EXPECT_EQ(work.flops, flops);
  EXPECT_EQ(work.bytes, bytes);
  std::vector<Touched> got;
  for (const Operand& o : work.operands)
    got.push_back({static_cast<const char*>(o.data), o.nbytes,
                   std::string(o.read ? "r" : "") + std::string(o.written ? "w" : "")});
  EXPECT_THAT(got, ::testing::UnorderedElementsAreArray(operands));
}

template <int N>
Geometry<N> geometry(const std::vector<int64_t>& sizes, const std::vector<std::vector<int64_t>>& strides) {
  Geometry<N> g{};
  g.ndim = static_cast<int>(sizes.size());
  g.numel = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    g.numel *= g.sizes[d] = sizes[d];
    for (size_t i = 0; i < strides.size(); ++i) g.strides[i][d] = strides[i][d];
  }
  return g;
}
template <int N>
Geometry<N> flat(int64_t numel) {
  Geometry<N> g{};
  set_flat(g, numel);
  return g;
}

}  // namespace tern::work_testing
