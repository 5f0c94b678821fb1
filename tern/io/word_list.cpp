// The texts of lists.
#include "tern/io/word_list.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace tern::io {

std::string some_words(const std::vector<std::string>& words, size_t most) {
  const size_t count = std::min(words.size(), most);
  const std::string text =
      fmt::format("{}", fmt::join(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count), ", "));
  return words.size() > count ? fmt::format("{} and {} more", text, words.size() - count) : text;
}

}  // namespace tern::io
