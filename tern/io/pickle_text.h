// The text forms of numbers and strings in pickles of protocol 0.
#pragma once

#include <string>
#include <string_view>

namespace tern::io {

/// "0.1", "1e+16", "inf". Throws CheckpointError.
double parse_text_float(std::string_view text);

/// The bytes of a str of Python 2 in quotes, with its escapes. Throws CheckpointError.
std::string unquote_string(std::string_view text);

/// UTF-8 of Python's raw-unicode-escape, in which only `\u` and `\U` are escapes and other characters are
/// latin-1. Throws CheckpointError.
std::string decode_raw_unicode(std::string_view text);

}  // namespace tern::io
