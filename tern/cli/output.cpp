// Escaping, quoting, and the standard streams.
#include "tern/cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <system_error>
#include <utility>

#include "tern/base/check.h"
#include "tern/io/utf8.h"

namespace tern::cli {
namespace {

bool failures_as_json = false;

/// What a terminal obeys or shows nothing of: control characters, separators of lines and annotations, and
/// what Unicode calls Default_Ignorable_Code_Point (blanks without width, directions of writing, tags).
constexpr std::pair<char32_t, char32_t> kInvisible[] = {
    {0x0, 0x1f},      {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},    {0x61c, 0x61c},
    {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},  {0x2028, 0x202e},
    {0x2060, 0x206f}, {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},  {0xffa0, 0xffa0},
    {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

/// The code point of one whole character of UTF-8.
char32_t code_point(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first;
  char32_t code = first & (0x7f >> character.size());
  for (char c : character.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3f);
  return code;
}

/// Bytes of the character with which `text` begins; 0 for an invisible one and for what is not UTF-8.
size_t printable_bytes(std::string_view text) {
  for (size_t count = 1; count <= std::min<size_t>(text.size(), 4); ++count) {
    if (!io::is_utf8(text.substr(0, count))) continue;
    const char32_t code = code_point(text.substr(0, count));
    const bool invisible = std::any_of(std::begin(kInvisible), std::end(kInvisible), [&](const auto& range) {
      return range.first <= code && code <= range.second;
    });
    return invisible ? 0 : count;
  }
  return 0;
}

}  // namespace

bool open_standard_streams() noexcept {
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != descriptor) return false;
  return true;
}

void survive_file_size_limit() noexcept { std::signal(SIGXFSZ, SIG_IGN); }

std::string shown(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t count = printable_bytes(text);
    if (count > 0)
      result += text.substr(0, count);
    else
      result += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    text.remove_prefix(std::max<size_t>(count, 1));
  }
  return result;
}

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 0x80 || std::isalnum(c) ||
           std::string_view("/._-+=:,@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return text;
  std::string word = "'";
  for (char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void print_error(std::string_view who, std::string_view text) noexcept {
  try {
    std::string line(text.substr(0, text.find_last_not_of('\n') + 1));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
    line = fmt::format("{}: {}\n", who, shown(line));
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (const std::exception&) {
    // No memory for the line.
  }
}

void tell_failures_as_json() noexcept { failures_as_json = true; }

void print_failure(std::string_view who, std::string_view text) noexcept {
  print_error(who, text);
  if (!failures_as_json) return;
  try {
    fmt::print("{}", json_text({{"type", "error"}, {"error", text}}));
    std::fflush(stdout);
  } catch (const std::exception&) {
    // No memory for the object, or nobody to read it.
  }
}

BinaryOutput::BinaryOutput() {
  TERN_CHECK(!::isatty(STDOUT_FILENO), IoError,
             "standard output is a terminal: send the bytes to a file or another program");
  std::fflush(stdout);
  descriptor_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  TERN_CHECK(descriptor_ >= 0 && ::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0, IoError,
             "standard output cannot be written: {}", std::generic_category().message(errno));
}

BinaryOutput::~BinaryOutput() { ::close(descriptor_); }

void BinaryOutput::write(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    TERN_CHECK(done >= 0, IoError, "standard output cannot be written: {}",
               std::generic_category().message(errno));
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
}

void check_output() {
  TERN_CHECK(std::fflush(stdout) == 0 && !std::ferror(stdout), IoError, "standard output cannot be written");
}

}  // namespace tern::cli
