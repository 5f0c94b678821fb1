// Options that layers and functions of pooling share.
#pragma once

#include "option_casters.h"
#include "rows.h"

namespace tern::python {

/// Those of an average beside the size of its windows; a divisor of one's own is for images and volumes.
template <int N, class Options>
auto avg_pool_rows() {
  const auto sizes =
      rows(option_as<OptionalSize<N>>("stride", &Options::stride),
           option_as<GivenSize<N>>("padding", &Options::padding), option("ceil_mode", &Options::ceil_mode),
           option("count_include_pad", &Options::count_include_pad));
  if constexpr (N == 1)
    return sizes;
  else
    return std::tuple_cat(sizes, rows(option("divisor_override", &Options::divisor_override)));
}

}  // namespace tern::python
