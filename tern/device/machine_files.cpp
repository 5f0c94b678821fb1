// Reading below a root folder. Every size is bounded, no read waits, and no link leads out of the root.
#include "tern/device/machine_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>

namespace tern::detail {
namespace {

constexpr int kMaxLinks = 40;
constexpr size_t kMaxNames = 8192;
constexpr size_t kMaxComplaints = 20;
constexpr size_t kMaxSearched = size_t{512} << 20;

struct FileHandle {
  explicit FileHandle(int number) : fd(number) {}
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  ~FileHandle() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

/// The text of a link; nothing where it is none.
std::optional<std::string> link_text(const std::string& path) {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::readlink(path.c_str(), buffer.data(), buffer.size());
  if (count <= 0) return std::nullopt;
  return std::string(buffer.data(), static_cast<size_t>(count));
}

/// Up to `count` bytes; less at the end of the file, nothing on an error.
std::optional<size_t> read_fully(int fd, char* to, size_t count) {
  size_t done = 0;
  while (done < count) {
    const ssize_t got = ::read(fd, to + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace

std::string join(std::string_view folder, std::string_view name) {
  while (!folder.empty() && folder.back() == '/') folder.remove_suffix(1);
  while (!name.empty() && name.front() == '/') name.remove_prefix(1);
  return fmt::format("{}/{}", folder, name);
}

std::string_view trimmed(std::string_view text) {
  auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split_text(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

void MachineFiles::complain(std::string text) const {
  text = printable(text, 400);
  if (complaints_.size() >= kMaxComplaints) return;
  if (std::find(complaints_.begin(), complaints_.end(), text) != complaints_.end()) return;
  complaints_.push_back(complaints_.size() + 1 == kMaxComplaints ? "and more that could not be read"
                                                                 : std::move(text));
}

std::string MachineFiles::real(std::string_view path) const { return join(root_, path); }

std::optional<std::string> MachineFiles::resolve(std::string_view path) const {
  std::vector<std::string> todo;  // the next name last
  auto add = [&todo](std::string_view text) {
    auto names = split_text(text, '/');
    for (auto name = names.rbegin(); name != names.rend(); ++name) todo.emplace_back(*name);
  };
  add(path);
  std::vector<std::string> done;
  auto text_of = [](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += "/" + name;
    return text;
  };
  int links = 0;
  while (!todo.empty()) {
    const std::string name = std::move(todo.back());
    todo.pop_back();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    done.push_back(name);
    const std::string here = real(text_of(done));
    struct stat status {};
    if (::lstat(here.c_str(), &status) != 0) {
      if (errno != ENOENT && errno != ENOTDIR)
        complain(fmt::format("{}: {}", text_of(done), std::strerror(errno)));
      return std::nullopt;
    }
    if (!S_ISLNK(status.st_mode)) continue;
    done.pop_back();
    const auto target = link_text(here);
    if (!target || ++links > kMaxLinks) {
      complain(fmt::format("{}: links that lead nowhere", path));
      return std::nullopt;
    }
    if (target->front() == '/') done.clear();
    add(*target);
  }
  return done.empty() ? "/" : text_of(done);
}

bool MachineFiles::is_named(std::string_view path) const {
  const size_t slash = path.rfind('/');
  const auto folder = resolve(path.substr(0, slash));
  if (!folder) return false;
  struct stat status {};
  return ::lstat(real(join(*folder, path.substr(slash + 1))).c_str(), &status) == 0;
}

std::string MachineFiles::link_name(std::string_view path) const {
  const size_t slash = path.rfind('/');
  const auto folder = resolve(path.substr(0, slash));
  const auto text = folder ? link_text(real(join(*folder, path.substr(slash + 1)))) : std::nullopt;
  return text ? printable(text->substr(text->rfind('/') + 1)) : std::string();
}

int MachineFiles::open_plain(std::string_view path) const {
  const auto resolved = resolve(path);
  if (!resolved) return -1;
  const std::string file = real(*resolved);
  // Asked before it is opened: opening a pipe or a device node may do something.
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    complain(fmt::format("{}: not a plain file", path));
    return -1;
  }
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (fd < 0) complain(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  return fd;
}

std::optional<std::string> MachineFiles::read(std::string_view path, size_t limit) const {
  const FileHandle file(open_plain(path));
  if (file.fd < 0) return std::nullopt;
  std::string text;
  std::array<char, 16 * 1024> buffer{};
  while (text.size() < limit) {
    const auto count = read_fully(file.fd, buffer.data(), std::min(buffer.size(), limit - text.size()));
    if (!count) {
      complain(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
      return std::nullopt;
    }
    text.append(buffer.data(), *count);
    if (*count < buffer.size()) break;
  }
  return text;
}

std::optional<std::string> MachineFiles::read_trimmed(std::string_view path) const {
  auto text = read(path);
  if (text) text = std::string(trimmed(*text));
  return text;
}

std::optional<std::string> MachineFiles::read_end(std::string_view path, size_t count) const {
  const FileHandle file(open_plain(path));
  if (file.fd < 0) return std::nullopt;
  const off_t size = ::lseek(file.fd, 0, SEEK_END);
  if (size < 0) return std::nullopt;
  const auto wanted = std::min<off_t>(size, static_cast<off_t>(count));
  if (::lseek(file.fd, size - wanted, SEEK_SET) < 0) return std::nullopt;
  std::string text(static_cast<size_t>(wanted), '\0');
  const auto got = read_fully(file.fd, text.data(), text.size());
  if (!got) return std::nullopt;
  text.resize(*got);
  return text;
}

std::optional<std::string> MachineFiles::find_after(std::string_view path, std::string_view marker) const {
  constexpr size_t kChunk = 1 << 20, kLongest = 64;
  const FileHandle file(open_plain(path));
  if (file.fd < 0) return std::nullopt;
  const std::boyer_moore_horspool_searcher searcher(marker.begin(), marker.end());
  const size_t overlap = marker.size() + kLongest;
  std::string window;
  for (size_t seen = 0; seen < kMaxSearched; seen += kChunk) {
    const size_t kept = window.size();
    window.resize(kept + kChunk);
    const auto got = read_fully(file.fd, window.data() + kept, kChunk);
    if (!got) {
      complain(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
      return std::nullopt;
    }
    window.resize(kept + *got);
    const bool last = *got < kChunk;
    const auto found = std::search(window.begin(), window.end(), searcher);
    if (found != window.end() && (last || window.end() - found >= static_cast<std::ptrdiff_t>(overlap))) {
      auto end = found + static_cast<std::ptrdiff_t>(marker.size());
      const auto begin = end;
      auto graphic = [](char c) { return c > ' ' && c < '\x7f'; };
      while (end != window.end() && end - begin < static_cast<std::ptrdiff_t>(kLongest) && graphic(*end))
        ++end;
      return std::string(begin, end);
    }
    if (last) return std::nullopt;
    window.erase(0, window.size() - overlap);
  }
  return std::nullopt;
}

std::vector<std::string> MachineFiles::list(std::string_view folder) const {
  std::vector<std::string> names;
  const auto resolved = resolve(folder);
  if (!resolved) return names;
  std::error_code error;
  std::filesystem::directory_iterator entries(real(*resolved), error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    if (names.size() == kMaxNames) {
      complain(fmt::format("{}: more than {} names, the others are left out", folder, kMaxNames));
      break;
    }
    names.push_back(entries->path().filename().string());
  }
  if (error) complain(fmt::format("{}: cannot be listed: {}", folder, error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

DeviceNode MachineFiles::access(std::string_view path) const {
  DeviceNode node{std::string(path), false, false};
  if (const auto resolved = resolve(path)) {
    const std::string file = real(*resolved);
    node.readable = ::faccessat(AT_FDCWD, file.c_str(), R_OK, AT_EACCESS) == 0;
    node.writable = ::faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) == 0;
  }
  return node;
}

}  // namespace tern::detail
