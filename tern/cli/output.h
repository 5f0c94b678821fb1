// What the program says: lines on standard error, text that is fit for a terminal, JSON. Numbers and sizes as
// text are in checkpoint_text.h.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace tern::cli {

/// Opens /dev/null in the place of standard input, output and error where they are closed: the next file that
/// is opened would get their number, and with it the program's text. False when that fails.
bool open_standard_streams() noexcept;

/// Makes a write beyond the limit of the file size (ulimit -f) an error with its cause, as Python does; by
/// default the system ends the program.
void survive_file_size_limit() noexcept;

/// Text that may come from a file made fit for a terminal: control characters, invisible ones, those that
/// change the direction of writing, and what is not UTF-8 are escaped.
std::string shown(std::string_view text);
/// `text` as one word of a shell's command line: in quotes where it needs them.
std::string shell_word(const std::string& text);
/// One line; text that is not UTF-8 gets replacement characters.
std::string json_text(const nlohmann::ordered_json& json);

/// Prints "who: text", an error or something worth knowing, as one line on standard error. That it cannot be
/// written changes nothing: there is nowhere left to say so.
void print_error(std::string_view who, std::string_view text) noexcept;

/// From here on print_failure also gives programs that read standard output an object: {"type": "error",
/// "error": text}.
void tell_failures_as_json() noexcept;
/// What ends a command: print_error.
void print_failure(std::string_view who, std::string_view text) noexcept;

/// Standard output for the bytes of a file: what is printed there from then on goes to standard error.
class BinaryOutput {
 public:
  /// Throws IoError for a terminal.
  BinaryOutput();
  BinaryOutput(const BinaryOutput&) = delete;
  BinaryOutput& operator=(const BinaryOutput&) = delete;
  ~BinaryOutput();
  /// Throws IoError.
  void write(std::span<const std::byte> bytes) const;

 private:
  int descriptor_;
};

/// Throws IoError when something that was printed on standard output could not be written.
void check_output();

}  // namespace tern::cli
