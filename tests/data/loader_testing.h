// What the tests of loaders share: the numbers that a loader gives.
#pragma once

#include <cstdint>
#include <vector>

#include "tern/data/data_loader.h"

namespace tern::data::testing {

using Ints = std::vector<int64_t>;

/// The numbers of all batches of one epoch, with -1 after each batch.
inline Ints one_epoch(DataLoader& loader) {
  Ints all;
  for (auto& [x, y] : loader) {
    for (const Tensor& tensor : {x, y}) {
      const Ints values = tensor.to_vector<int64_t>();
      all.insert(all.end(), values.begin(), values.end());
    }
    all.push_back(-1);
  }
  return all;
}

/// The first numbers of the samples of one epoch.
inline Ints visited(DataLoader& loader) {
  Ints all;
  for (auto& batch : loader) {
    const Ints values = batch.data.to_vector<int64_t>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace tern::data::testing
