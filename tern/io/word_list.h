// Lists in messages, which may be long.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tern::io {

/// "a, b and 7 more": the first `most` words.
std::string some_words(const std::vector<std::string>& words, size_t most = 5);

}  // namespace tern::io
