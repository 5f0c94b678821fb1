// UTF-8 checks for names and pickled strings.
#pragma once

#include <string>
#include <string_view>

namespace tern::io {

/// True for well-formed UTF-8. With `surrogates` also for lone surrogates (ED A0 80 .. ED BF BF), which
/// Python pickles.
bool is_utf8(std::string_view text, bool surrogates = false) noexcept;

/// Appends one code point (up to 0x10FFFF) as UTF-8.
void append_utf8(std::string& out, char32_t code_point);

/// Text whose characters are the bytes: each byte from 0x80 on becomes two.
std::string latin1_to_utf8(std::string_view bytes);

/// The reverse; false when a character is above 0xFF.
bool utf8_to_latin1(std::string_view text, std::string& bytes);

}  // namespace tern::io
