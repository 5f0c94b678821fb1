// Opcodes and their arguments, after CPython's Lib/pickletools.py.
#include "tern/io/pickle_listing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <vector>

#include "tern/base/check.h"
#include "tern/io/byte_order.h"
#include "tern/io/format.h"
#include "tern/io/value.h"
#include "tern/io/zip_reader.h"

namespace tern::io {

namespace {

constexpr size_t kShownArgument = 60;
constexpr uint64_t kMaxPickleBytes = uint64_t{256} << 20;

/// How the bytes after an opcode are read.
enum class Argument : uint8_t {
  None,
  Byte,    ///< unsigned
  Short,   ///< unsigned
  Int,     ///< signed
  Word,    ///< unsigned, four bytes
  Long,    ///< unsigned, eight bytes
  Double,  ///< big-endian
  Line,    ///< to the end of the line
  TwoLines,
  Text1,
  Text4,
  Text8,  ///< UTF-8 after its length
  Bytes1,
  Bytes4,
  Bytes8,  ///< the same with bytes
  Integer1,
  Integer4,  ///< two's complement after its length
};

struct Opcode {
  std::string_view name;
  Argument argument = Argument::None;
};

std::array<Opcode, 256> make_opcodes() {
  std::array<Opcode, 256> table{};
  auto set = [&](int code, std::string_view name, Argument argument = Argument::None) {
    table[static_cast<size_t>(code)] = {name, argument};
  };
  set('(', "MARK");
  set('.', "STOP");
  set('0', "POP");
  set('1', "POP_MARK");
  set('2', "DUP");
  set('F', "FLOAT", Argument::Line);
  set('I', "INT", Argument::Line);
  set('J', "BININT", Argument::Int);
  set('K', "BININT1", Argument::Byte);
  set('L', "LONG", Argument::Line);
  set('M', "BININT2", Argument::Short);
  set('N', "NONE");
  set('P', "PERSID", Argument::Line);
  set('Q', "BINPERSID");
  set('R', "REDUCE");
  set('S', "STRING", Argument::Line);
  set('T', "BINSTRING", Argument::Bytes4);
  set('U', "SHORT_BINSTRING", Argument::Bytes1);
  set('V', "UNICODE", Argument::Line);
  set('X', "BINUNICODE", Argument::Text4);
  set('B', "BINBYTES", Argument::Bytes4);
  set('C', "SHORT_BINBYTES", Argument::Bytes1);
  set('G', "BINFLOAT", Argument::Double);
  set('a', "APPEND");
  set('b', "BUILD");
  set('c', "GLOBAL", Argument::TwoLines);
  set('d', "DICT");
  set('}', "EMPTY_DICT");
  set('e', "APPENDS");
  set('g', "GET", Argument::Line);
  set('h', "BINGET", Argument::Byte);
  set('i', "INST", Argument::TwoLines);
  set('j', "LONG_BINGET", Argument::Word);
  set('l', "LIST");
  set(']', "EMPTY_LIST");
  set('o', "OBJ");
  set('p', "PUT", Argument::Line);
  set('q', "BINPUT", Argument::Byte);
  set('r', "LONG_BINPUT", Argument::Word);
  set('s', "SETITEM");
  set('t', "TUPLE");
  set(')', "EMPTY_TUPLE");
  set('u', "SETITEMS");
  set(0x80, "PROTO", Argument::Byte);
  set(0x81, "NEWOBJ");
  set(0x82, "EXT1", Argument::Byte);
  set(0x83, "EXT2", Argument::Short);
  set(0x84, "EXT4", Argument::Int);
  set(0x85, "TUPLE1");
  set(0x86, "TUPLE2");
  set(0x87, "TUPLE3");
  set(0x88, "NEWTRUE");
  set(0x89, "NEWFALSE");
  set(0x8a, "LONG1", Argument::Integer1);
  set(0x8b, "LONG4", Argument::Integer4);
  set(0x8c, "SHORT_BINUNICODE", Argument::Text1);
  set(0x8d, "BINUNICODE8", Argument::Text8);
  set(0x8e, "BINBYTES8", Argument::Bytes8);
  set(0x8f, "EMPTY_SET");
  set(0x90, "ADDITEMS");
  set(0x91, "FROZENSET");
  set(0x92, "NEWOBJ_EX");
  set(0x93, "STACK_GLOBAL");
  set(0x94, "MEMOIZE");
  set(0x95, "FRAME", Argument::Long);
  set(0x96, "BYTEARRAY8", Argument::Bytes8);
  set(0x97, "NEXT_BUFFER");
  set(0x98, "READONLY_BUFFER");
  return table;
}

class Lister {
 public:
  explicit Lister(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t run(const std::function<bool(const PickleLine&)>& show) {
    static const std::array<Opcode, 256> kOpcodes = make_opcodes();
    while (true) {
      PickleLine line;
      line.byte = at_;
      const auto code = static_cast<uint8_t>(take(1)[0]);
      const Opcode& opcode = kOpcodes[code];
      TERN_CHECK(!opcode.name.empty(), CheckpointError, "pickle, byte {}: 0x{:02x} is no pickle opcode",
                 line.byte, code);
      line.opcode = opcode.name;
      read_argument(opcode.argument, line);
      const bool closes =
          std::string_view("tdleuo1").find(static_cast<char>(code)) != std::string_view::npos ||
          code == 0x90 || code == 0x91 || code == 'i';
      if (closes && depth_ > 0) --depth_;
      line.depth = depth_;
      if (code == '(') ++depth_;
      if (code == 0x93) name_stack_global(line);
      track_texts(code, opcode.argument);
      if (!show(line) || code == '.') return at_;
    }
  }

 private:
  std::string_view take(uint64_t count) {
    TERN_CHECK(count <= bytes_.size() - at_, CheckpointError,
               "pickle, byte {}: {} bytes are announced, but only {} are left", at_, count,
               bytes_.size() - at_);
    std::string_view view(reinterpret_cast<const char*>(bytes_.data()) + at_, count);
    at_ += count;
    return view;
  }
  template <class T>
  T number() {
    return load_le<T>(take(sizeof(T)).data());
  }
  std::string_view text_line() {
    std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, bytes_.size() - at_);
    const size_t length = rest.find('\n');
    TERN_CHECK(length != std::string_view::npos, CheckpointError, "pickle, byte {}: a line has no end", at_);
    at_ += length + 1;
    return rest.substr(0, length);
  }
  static std::string quoted(std::string_view text, bool is_bytes) {
    const std::string_view part = text.substr(0, kShownArgument + 4);
    const Value value = is_bytes ? Value::bytes(std::string(part)) : Value(part);
    return value.str(kShownArgument) +
           (text.size() > part.size() ? fmt::format(" ({} bytes)", text.size()) : "");
  }
  void set_text(std::string_view text, bool is_bytes, PickleLine& line) {
    line.argument = quoted(text, is_bytes);
    text_ = text.substr(0, 1000);
  }

  void read_argument(Argument kind, PickleLine& line) {
    text_.reset();
    switch (kind) {
      case Argument::None:
        return;
      case Argument::Byte:
        line.argument = std::to_string(number<uint8_t>());
        return;
      case Argument::Short:
        line.argument = std::to_string(number<uint16_t>());
        return;
      case Argument::Int:
        line.argument = std::to_string(number<int32_t>());
        return;
      case Argument::Word:
        line.argument = std::to_string(number<uint32_t>());
        return;
      case Argument::Long:
        line.argument = std::to_string(number<uint64_t>());
        return;
      case Argument::Double: {
        uint64_t bits = 0;
        for (char c : take(8)) bits = bits << 8 | static_cast<uint8_t>(c);
        line.argument = Value(std::bit_cast<double>(bits)).str();
        return;
      }
      case Argument::Line:
        set_text(text_line(), /*is_bytes=*/false, line);
        return;
      case Argument::TwoLines:
        line.module = text_line();
        line.name = text_line();
        line.names_global = true;
        line.argument = quoted(line.module + " " + line.name, /*is_bytes=*/false);
        return;
      case Argument::Text1:
        set_text(take(number<uint8_t>()), /*is_bytes=*/false, line);
        return;
      case Argument::Text4:
        set_text(take(number<uint32_t>()), /*is_bytes=*/false, line);
        return;
      case Argument::Text8:
        set_text(take(number<uint64_t>()), /*is_bytes=*/false, line);
        return;
      case Argument::Bytes1:
        set_text(take(number<uint8_t>()), /*is_bytes=*/true, line);
        return;
      case Argument::Bytes4:
        set_text(take(number<uint32_t>()), /*is_bytes=*/true, line);
        return;
      case Argument::Bytes8:
        set_text(take(number<uint64_t>()), /*is_bytes=*/true, line);
        return;
      case Argument::Integer1:
        line.argument = integer(take(number<uint8_t>()));
        return;
      case Argument::Integer4:
        line.argument = integer(take(number<uint32_t>()));
        return;
    }
  }
  static std::string integer(std::string_view twos_complement) {
    if (twos_complement.size() > 64) return fmt::format("({} bytes)", twos_complement.size());
    return Value::integer(twos_complement).str();
  }

  /// Remembers the last two texts; what comes between them and STACK_GLOBAL makes them unknown.
  void track_texts(uint8_t code, Argument kind) {
    const bool keeps = code == 0x94 || code == 'q' || code == 'r' || code == 'p' || code == 0x95;
    if (keeps) return;
    const bool is_text = kind == Argument::Text1 || kind == Argument::Text4 || kind == Argument::Text8;
    before_ = is_text ? last_ : std::nullopt;
    last_ = is_text ? text_ : std::nullopt;
  }
  void name_stack_global(PickleLine& line) {
    if (!before_ || !last_) return;
    line.names_global = true;
    line.module = *before_;
    line.name = *last_;
    line.argument = quoted(line.module + " " + line.name, /*is_bytes=*/false);
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  int depth_ = 0;
  std::optional<std::string> text_, last_, before_;
};

}  // namespace

size_t list_pickle(std::span<const std::byte> bytes, const std::function<bool(const PickleLine&)>& show) {
  return Lister(bytes).run(show);
}

void list_pickles_of(const std::shared_ptr<const ByteSource>& source,
                     const std::function<void(const std::string&)>& begin,
                     const std::function<bool(const PickleLine&)>& show) {
  const FileFormat format = sniff_format(*source);
  if (format == FileFormat::Zip) {
    const ZipReader zip(source);
    bool any = false;
    for (const ZipEntry& entry : zip.entries()) {
      if (!entry.name.ends_with(".pkl")) continue;
      any = true;
      begin(std::string(entry.name));
      list_pickle(zip.read(entry, kMaxPickleBytes), show);
    }
    TERN_CHECK(any, CheckpointError, "the zip archive has no pickle");
    return;
  }
  TERN_CHECK(format == FileFormat::Legacy || format == FileFormat::Pickle || format == FileFormat::Unknown,
             CheckpointError, "there is no pickle to list: the file is {}", describe(format));
  const std::vector<std::byte> bytes = source->read(0, std::min(source->size(), kMaxPickleBytes));
  constexpr std::string_view kTitles[] = {"magic number", "protocol version", "system information",
                                          "the tree", "keys of storages"};
  size_t at = 0;
  for (size_t i = 0; i < (format == FileFormat::Legacy ? std::size(kTitles) : 1); ++i) {
    begin(format == FileFormat::Legacy ? fmt::format("{} (byte {})", kTitles[i], at) : source->name());
    at += list_pickle(std::span(bytes).subspan(at), show);
  }
}

}  // namespace tern::io
