// Reading below a root folder: small files, folders, links, as machine*.cpp needs them. Links are followed
// inside the root, as a program that lived there would see them. Internal to the device room.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/device/machine.h"

namespace tern::detail {

/// Paths begin with '/' and are seen from the root.
class MachineFiles {
 public:
  /// Both must outlive this object.
  MachineFiles(const std::string& root, std::vector<std::string>& complaints)
      : root_(root), complaints_(complaints) {}

  /// The path seen from the root with all links followed; nothing when it leads to no file.
  std::optional<std::string> resolve(std::string_view path) const;
  bool exists(std::string_view path) const { return resolve(path).has_value(); }
  /// Whether the name is there, though it may be a link that leads nowhere.
  bool is_named(std::string_view path) const;
  /// The last name in a link's text; empty where it is no link.
  std::string link_name(std::string_view path) const;

  /// The beginning of a plain file. Nothing where it is not there; a file that cannot be read is complained
  /// of.
  std::optional<std::string> read(std::string_view path, size_t limit = 64 * 1024) const;
  /// read(), the white space at both ends removed.
  std::optional<std::string> read_trimmed(std::string_view path) const;
  /// The last `count` bytes of a plain file.
  std::optional<std::string> read_end(std::string_view path, size_t count) const;
  /// What follows `marker` in a file, up to the first byte that is not printable, at most 64 bytes.
  std::optional<std::string> find_after(std::string_view path, std::string_view marker) const;
  /// The names in a folder, sorted; none where it is not there.
  std::vector<std::string> list(std::string_view folder) const;
  /// With the rights that the process has now.
  DeviceNode access(std::string_view path) const;

  void complain(std::string text) const;

 private:
  std::string real(std::string_view path) const;
  /// An open plain file, or -1.
  int open_plain(std::string_view path) const;

  const std::string& root_;
  std::vector<std::string>& complaints_;
};

/// "a/b" from "a" and "b", with one slash between.
std::string join(std::string_view folder, std::string_view name);
std::string_view trimmed(std::string_view text);
std::vector<std::string_view> split_text(std::string_view text, char separator);

// The parts of read_machine().
void read_displays(const MachineFiles& files, Machine& machine);
void read_driver(const MachineFiles& files, Machine& machine);
void read_libraries(const MachineFiles& files, Machine& machine);
void read_plugin(const MachineFiles& files, Machine& machine);

}  // namespace tern::detail
