// What kind of file something is, decided by its first bytes.
#include "tern/io/format.h"

#include <algorithm>

#include "tern/io/byte_order.h"

namespace tern::io {

namespace {

constexpr uint64_t kHeadBytes = 512;
constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;
/// LONG1 of the magic number that opens PyTorch's stream format.
constexpr std::string_view kLegacyMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e";

std::string_view without_space(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
}

bool is_legacy(std::string_view head) {
  if (head.starts_with("L119547037146038801333356L\n.")) return true;
  if (head.size() < 2 || head[0] != '\x80') return false;
  size_t first = 2;
  if (head[1] >= 4 && head.size() > 11 && head[2] == '\x95') first = 11;
  return head.substr(first).starts_with(kLegacyMagic);
}

}  // namespace

FileFormat sniff_format(const ByteSource& source) {
  uint64_t size = source.size();
  if (size == 0) return FileFormat::Empty;
  std::vector<std::byte> bytes = source.read(0, std::min(size, kHeadBytes));
  std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto starts = [&](std::string_view magic) { return head.starts_with(magic); };
  // First, since the length of the header may look like the beginning of any other format: 640 as that of a
  // pickle.
  if (head.size() > 8) {
    auto length = load_le<uint64_t>(head.data());
    if (length <= kMaxSafetensorsHeader && length <= size - 8 &&
        without_space(head.substr(8)).starts_with('{'))
      return FileFormat::Safetensors;
  }
  if (starts("PK\3\4") || starts("PK\5\6")) return FileFormat::Zip;
  if (is_legacy(head)) return FileFormat::Legacy;
  if (starts("\x93NUMPY")) return FileFormat::Npy;
  if (starts("PYTORCH1")) return FileFormat::Preview;
  if (starts("version https://git-lfs")) return FileFormat::GitLfsPointer;
  if (starts("\x89HDF\r\n\x1a\n")) return FileFormat::Hdf5;
  if (starts("GGUF")) return FileFormat::Gguf;
  if (starts("\x1f\x8b")) return FileFormat::Gzip;
  if (starts("7z\xbc\xaf\x27\x1c")) return FileFormat::SevenZip;
  if (head.size() > 262 && head.substr(257, 5) == "ustar") return FileFormat::Tar;
  for (std::string_view member : {"sys_info", "pickle", "storages", "tensors"})
    if (size >= 512 && head.starts_with(member) && head.size() > member.size() && head[member.size()] == '\0')
      return FileFormat::Tar;
  std::string_view text = without_space(head);
  if (starts_with_ignoring_case(text, "<!doctype html") || starts_with_ignoring_case(text, "<html"))
    return FileFormat::Html;
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return FileFormat::Pickle;
  if (starts(std::string_view("\4\0\0\0", 4)) || starts(std::string_view("\3\0\0\0", 4)))
    return FileFormat::LuaTorch;
  return FileFormat::Unknown;
}

std::string_view describe(FileFormat format) noexcept {
  switch (format) {
    case FileFormat::Zip:
      return "a zip archive";
    case FileFormat::Legacy:
      return "a checkpoint in PyTorch's stream format (before 1.6)";
    case FileFormat::Tar:
      return "a checkpoint in the tar format of PyTorch 0.1";
    case FileFormat::Safetensors:
      return "a safetensors file";
    case FileFormat::Npy:
      return "a NumPy array (.npy)";
    case FileFormat::Pickle:
      return "a plain pickle";
    case FileFormat::Preview:
      return "a container of PyTorch's 1.0 preview, which no released version reads";
    case FileFormat::GitLfsPointer:
      return "a Git LFS pointer instead of the file itself: run `git lfs pull`";
    case FileFormat::Html:
      return "an HTML page instead of the file itself: the download went to an error or login page";
    case FileFormat::Hdf5:
      return "an HDF5 file (Keras or TensorFlow)";
    case FileFormat::Gguf:
      return "a GGUF file (llama.cpp)";
    case FileFormat::Gzip:
      return "gzip-compressed: unpack it first";
    case FileFormat::SevenZip:
      return "a 7z archive: unpack it first";
    case FileFormat::LuaTorch:
      return "a file of Lua Torch7 (.t7)";
    case FileFormat::Empty:
      return "empty";
    case FileFormat::Unknown:
      break;
  }
  return "of an unknown kind";
}

}  // namespace tern::io
