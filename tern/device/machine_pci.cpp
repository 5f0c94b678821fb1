// PCI devices that show pictures or compute, from /sys/bus/pci/devices.
#include <fmt/format.h>

#include <charconv>

#include "tern/device/machine_files.h"

namespace tern {
namespace {

/// "0x10de" as a number of at most `digits` hexadecimal digits.
std::optional<uint32_t> read_hex(const detail::MachineFiles& files, const std::string& path, size_t digits) {
  const auto text = files.read_trimmed(path);
  if (!text) {
    if (!files.is_named(path)) files.complain(path + ": not there");
    return std::nullopt;
  }
  uint32_t number = 0;
  const char* const begin = text->data() + 2;
  const char* const end = text->data() + text->size();
  if (text->size() > 2 && text->size() <= digits + 2 && text->starts_with("0x")) {
    const auto [stop, error] = std::from_chars(begin, end, number, 16);
    if (error == std::errc() && stop == end) return number;
  }
  files.complain(fmt::format("{}: expected a number such as {}, got '{}'", path,
                             digits == 4 ? "0x10de" : "0x030000", printable(*text, 40)));
  return std::nullopt;
}

/// "0000:01:00.0".
bool is_pci_address(std::string_view name) {
  size_t colons = 0, dots = 0;
  for (char c : name) {
    if (c == ':')
      ++colons;
    else if (c == '.')
      ++dots;
    else if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
      return false;
  }
  return colons == 2 && dots == 1 && name.size() >= 12 && name.size() <= 16;
}

bool is_display_class(uint32_t class_code) {
  const uint32_t kind = class_code >> 8;
  return kind == 0x0300 || kind == 0x0302 || kind == 0x0380 || (class_code >> 16) == 0x12;
}

}  // namespace

std::string PciDisplay::vendor_name() const {
  switch (vendor) {
    case 0x10de:
      return "NVIDIA";
    case 0x8086:
      return "Intel";
    case 0x1002:
      return "AMD";
    case 0x1a03:
      return "ASPEED";
    case 0x102b:
      return "Matrox";
    case 0x1013:
      return "Cirrus";
    case 0x1234:
      return "QEMU";
    case 0x1af4:
      return "virtio";
    case 0x1b36:
      return "Red Hat";
    case 0x15ad:
      return "VMware";
    case 0x80ee:
      return "VirtualBox";
    case 0x1414:
      return "Microsoft";
    default:
      return fmt::format("vendor {:04x}", vendor);
  }
}

void detail::read_displays(const MachineFiles& files, Machine& machine) {
  const std::string folder = "/sys/bus/pci/devices";
  for (const std::string& name : files.list(folder)) {
    const std::string here = join(folder, name);
    if (!is_pci_address(name)) {
      files.complain(fmt::format("{}: not the address of a PCI device", here));
      continue;
    }
    const auto class_code = read_hex(files, here + "/class", 6);
    if (!class_code || !is_display_class(*class_code)) continue;
    PciDisplay display;
    display.address = name;
    display.class_code = *class_code;
    display.vendor = static_cast<uint16_t>(read_hex(files, here + "/vendor", 4).value_or(0));
    display.device = static_cast<uint16_t>(read_hex(files, here + "/device", 4).value_or(0));
    display.driver = files.link_name(here + "/driver");
    machine.displays.push_back(std::move(display));
  }
}

}  // namespace tern
