// What the commands on checkpoint files share: errors as one line, numbers as JSON, sizes as text and tables.
// What all commands print with is in output.h.
#pragma once

#include <fmt/format.h>

#include <complex>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tern/io/tensor_numbers.h"
#include "tern/io/value.h"

namespace tern::cli {

/// Runs a command; an error is told by print_failure, "tern inspect: ...", and gives exit code 1 (2 for
/// `tern diff`, where 1 says that files differ). UsageError passes through.
int with_errors(std::string_view command, const std::function<int()>& body, int failure = 1);

/// `text` in at most `width` characters; what is too long loses its middle.
std::string shortened(const std::string& text, size_t width);
/// "1.2 MiB", "345 bytes".
std::string size_text(uint64_t bytes);
/// "1 tensor", "3,000 tensors".
std::string count_text(uint64_t count, std::string_view word);
/// "2GiB", "500MB", "1048576": bytes; units in small letters or capitals. Throws UsageError naming `what`.
uint64_t parse_size(std::string_view text, std::string_view what);

/// A number, or "nan", "inf", "-inf"; complex numbers as [re, im].
nlohmann::ordered_json number_json(double value);
nlohmann::ordered_json number_json(std::complex<double> value, bool is_complex);
nlohmann::ordered_json number_json(const io::Number& number);
/// In short: "0.1234", "nan", "1+2j".
std::string number_text(std::complex<double> value, bool is_complex);

/// "'a', 'b' and 7 more": the first `most` names in quotes.
std::string some_names(const std::vector<std::string>& names, size_t most = 3);

/// What a tensor is called in lists: its name fit for a terminal, in quotes where it is empty or has blanks
/// at its ends. The root of a file is "(the file itself)".
std::string tensor_label(const std::string& name, const Value& root);

/// The rows of a table, each with its line ends; two blanks stand between columns, and `right` says which are
/// aligned to the right. Where a row is wider than `width`, its last column, or else all but the first, go on
/// in lines below; cells are never shortened.
std::vector<std::string> table_rows(const std::vector<std::vector<std::string>>& rows,
                                    const std::vector<bool>& right, size_t width);

/// The width of tables on standard output: the terminal's; in files and pipes a row mostly is one line.
size_t table_width();

}  // namespace tern::cli
