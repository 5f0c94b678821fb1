// What kind of file something is, decided by its first bytes.
#include "tern/io/format.h"

#include <algorithm>

#include "tern/io/byte_order.h"
#include "tern/io/utf8.h"

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

bool ends_with(const ByteSource& source, std::string_view end) {
  if (source.size() < end.size()) return false;
  std::vector<std::byte> tail = source.read(source.size() - end.size(), end.size());
  return std::string_view(reinterpret_cast<const char*>(tail.data()), tail.size()) == end;
}

/// Protocols 0 and 1 of pickle have no mark of their own: they begin with an opcode that makes a container or
/// names a class, and end with STOP.
bool may_be_old_pickle(const ByteSource& source, std::string_view head) {
  return head.size() > 2 && std::string_view("(]}c").find(head[0]) != std::string_view::npos &&
         ends_with(source, ".");
}

/// UTF-8 without control characters; the last character may be cut off when the file goes on.
bool is_text(std::string_view head, bool whole) {
  for (char c : head)
    if (static_cast<uint8_t>(c) < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f') return false;
  for (size_t cut = 0; cut < (whole ? 1 : 4) && cut < head.size(); ++cut)
    if (is_utf8(head.substr(0, head.size() - cut))) return true;
  return false;
}

/// One field of a protocol buffer: its number, and the bytes of a field with a length.
struct ProtoField {
  uint64_t number = 0;
  int wire_type = 0;
  uint64_t value = 0;  ///< of a varint, or the length
};

/// Reads a varint and moves behind it; false when there is none.
bool read_varint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    auto byte = static_cast<uint8_t>(bytes[0]);
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool read_field(std::string_view& bytes, ProtoField& field) {
  uint64_t tag = 0;
  if (!read_varint(bytes, tag) || (tag & 7) > 5 || tag >> 3 == 0) return false;
  field.number = tag >> 3;
  field.wire_type = static_cast<int>(tag & 7);
  return (field.wire_type == 0 || field.wire_type == 2) && read_varint(bytes, field.value);
}

/// Files of ONNX and TensorFlow are protocol buffers without a mark: told by their first fields. ONNX's
/// ModelProto: ir_version, then texts about the producer (2 to 4, 6), a version (5), graph (7) or opset (8).
/// SavedModel: version 1, then a MetaGraphDef (2) that begins with its meta_info_def (1) or graph_def (2).
/// GraphDef: a NodeDef (1) with name (1) and operator (2).
FileFormat protobuf_format(std::string_view head, uint64_t size) {
  std::string_view rest = head;
  ProtoField first, second;
  if (!read_field(rest, first)) return FileFormat::Unknown;
  if (first.number == 1 && first.wire_type == 0 && first.value >= 1 && first.value < 100) {
    std::string_view behind = rest;
    if (!read_field(rest, second) || second.value > size) return FileFormat::Unknown;
    ProtoField inner;
    std::string_view inside = rest;
    bool text = second.wire_type == 2 && second.value > 0 && second.value <= rest.size() &&
                is_text(rest.substr(0, second.value), /*whole=*/true);
    if (first.value == 1 && second.number == 2 && second.wire_type == 2 && !text &&
        read_field(inside, inner) && inner.number <= 2 && inner.wire_type == 2)
      return FileFormat::SavedModel;
    // Every top-level field that is seen whole must be one of ModelProto's.
    bool any = false;
    for (int fields = 0; fields < 8 && read_field(behind, second); ++fields) {
      bool length = second.wire_type == 2, of_model = false;
      if (length)
        of_model = (second.number >= 2 && second.number <= 4) || (second.number >= 6 && second.number <= 8) ||
                   second.number == 14 || second.number == 20 || second.number == 25;
      else
        of_model = second.number == 5;
      if (!of_model) return FileFormat::Unknown;
      any = true;
      if (!length) continue;
      if (second.value >= behind.size()) break;
      behind.remove_prefix(second.value);
    }
    return any ? FileFormat::Onnx : FileFormat::Unknown;
  }
  if (first.number == 1 && first.wire_type == 2 && first.value <= size && first.value < head.size()) {
    ProtoField name, op;
    if (!read_field(rest, name) || name.number != 1 || name.wire_type != 2 || name.value > rest.size())
      return FileFormat::Unknown;
    std::string_view node = rest.substr(0, name.value);
    rest.remove_prefix(name.value);
    if (!read_field(rest, op) || op.number != 2 || op.wire_type != 2 || op.value == 0 ||
        op.value > rest.size())
      return FileFormat::Unknown;
    if (is_text(node, true) && is_text(rest.substr(0, op.value), true)) return FileFormat::TensorFlowGraph;
  }
  return FileFormat::Unknown;
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
  if (starts("BZh") && head.size() > 3 && head[3] >= '1' && head[3] <= '9') return FileFormat::Bzip2;
  if (starts("\3757zXZ")) return FileFormat::Xz;
  if (starts("\x28\xb5\x2f\xfd")) return FileFormat::Zstd;
  if (starts("Rar!\x1a\7")) return FileFormat::Rar;
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
  if (head.size() > 8 && head.substr(4, 4) == "TFL3") return FileFormat::TensorFlowLite;
  if (ends_with(source, "\x57\xfb\x80\x8b\x24\x75\x47\xdb")) return FileFormat::TensorFlowCheckpoint;
  if (FileFormat format = protobuf_format(head, size); format != FileFormat::Unknown) return format;
  if (is_text(head, head.size() == size)) {
    if (text.starts_with('{') || text.starts_with('[')) return FileFormat::Json;
    if (text.starts_with("model_checkpoint_path:")) return FileFormat::TensorFlowCheckpoint;
    if (!may_be_old_pickle(source, head)) return FileFormat::Text;
  }
  if (may_be_old_pickle(source, head)) return FileFormat::Pickle;
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
    case FileFormat::Bzip2:
      return "bzip2-compressed: unpack it first";
    case FileFormat::Xz:
      return "xz-compressed: unpack it first";
    case FileFormat::Zstd:
      return "zstd-compressed: unpack it first";
    case FileFormat::Rar:
      return "a RAR archive: unpack it first";
    case FileFormat::SevenZip:
      return "a 7z archive: unpack it first";
    case FileFormat::LuaTorch:
      return "a file of Lua Torch7 (.t7)";
    case FileFormat::Onnx:
      return "an ONNX model, which is not read";
    case FileFormat::SavedModel:
      return "a TensorFlow SavedModel (.pb), which is not read";
    case FileFormat::TensorFlowGraph:
      return "a TensorFlow graph (.pb), which is not read";
    case FileFormat::TensorFlowCheckpoint:
      return "a part of a TensorFlow checkpoint, which is not read";
    case FileFormat::TensorFlowLite:
      return "a TensorFlow Lite model, which is not read";
    case FileFormat::Json:
      return "JSON text (a configuration or an index?)";
    case FileFormat::Text:
      return "plain text";
    case FileFormat::Empty:
      return "empty";
    case FileFormat::Unknown:
      break;
  }
  return "of an unknown kind";
}

}  // namespace tern::io
