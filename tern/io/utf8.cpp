// UTF-8 checks for names and pickled strings.
#include "tern/io/utf8.h"

#include <cstdint>
#include <cstring>

namespace tern::io {

bool is_utf8(std::string_view text, bool surrogates) noexcept {
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* end = p + text.size();
  while (p < end) {
    if (end - p >= 8) {  // eight ASCII characters at once
      uint64_t word;
      std::memcpy(&word, p, 8);
      if ((word & 0x8080808080808080u) == 0) {
        p += 8;
        continue;
      }
    }
    uint8_t first = *p++;
    if (first < 0x80) continue;
    int more = first >= 0xc2 && first <= 0xdf   ? 1
               : (first & 0xf0) == 0xe0         ? 2
               : first >= 0xf0 && first <= 0xf4 ? 3
                                                : 0;
    if (more == 0 || end - p < more) return false;
    uint8_t low = 0x80, high = 0xbf;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed && !surrogates) high = 0x9f;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
    if (*p < low || *p > high) return false;
    ++p;
    for (int i = 1; i < more; ++i)
      if ((*p++ & 0xc0) != 0x80) return false;
  }
  return true;
}

void append_utf8(std::string& out, char32_t code_point) {
  auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
    put(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  } else {
    put(0xf0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3f));
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  }
}

std::string latin1_to_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (char c : bytes) append_utf8(text, static_cast<uint8_t>(c));
  return text;
}

bool utf8_to_latin1(std::string_view text, std::string& bytes) {
  bytes.clear();
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    auto first = static_cast<uint8_t>(text[i]);
    if (first < 0x80) {
      bytes.push_back(text[i]);
    } else if ((first == 0xc2 || first == 0xc3) && i + 1 < text.size()) {
      bytes.push_back(static_cast<char>((first & 3) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3f)));
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace tern::io
