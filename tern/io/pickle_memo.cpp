// Which places of its memo a pickle reads. The lengths of opcodes' arguments as in CPython's
// Lib/pickletools.py.
#include "tern/io/pickle_memo.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "tern/io/byte_order.h"

namespace tern::io {

namespace {

/// How the argument of an opcode is laid out: so many bytes, or one of these.
enum Layout : int8_t { Unknown = -1, Line = -2, Lines = -3, Counted1 = -4, Counted4 = -5, Counted8 = -6 };

constexpr std::array<int8_t, 256> argument_layouts() {
  std::array<int8_t, 256> table{};
  table.fill(Unknown);
  for (char c : {'.',    '(',    '0',    '1',    '2',    'N',    ']',    '}',    ')',    'l',    't',
                 'd',    'a',    'e',    's',    'u',    'R',    'o',    'b',    'Q',    '\x88', '\x89',
                 '\x8f', '\x85', '\x86', '\x87', '\x90', '\x91', '\x93', '\x81', '\x92', '\x94'})
    table[static_cast<uint8_t>(c)] = 0;
  for (char c : {'K', 'q', 'h', '\x80'}) table[static_cast<uint8_t>(c)] = 1;
  table['M'] = 2;
  for (char c : {'J', 'r', 'j'}) table[static_cast<uint8_t>(c)] = 4;
  for (char c : {'G', '\x95'}) table[static_cast<uint8_t>(c)] = 8;
  for (char c : {'I', 'L', 'F', 'S', 'V', 'p', 'g', 'P'}) table[static_cast<uint8_t>(c)] = Line;
  for (char c : {'c', 'i'}) table[static_cast<uint8_t>(c)] = Lines;
  for (char c : {'U', 'C', '\x8a', '\x8c'}) table[static_cast<uint8_t>(c)] = Counted1;
  for (char c : {'T', 'X', 'B', '\x8b'}) table[static_cast<uint8_t>(c)] = Counted4;
  for (char c : {'\x8d', '\x8e', '\x96'}) table[static_cast<uint8_t>(c)] = Counted8;
  return table;
}

constexpr std::array<int8_t, 256> kLayouts = argument_layouts();

}  // namespace

void MemoReads::add(uint64_t index) {
  if (index >= limit_) {
    sparse_.insert(index);
    return;
  }
  if (index >= dense_.size()) dense_.resize(std::min<size_t>(limit_, 2 * index + 64));
  dense_[index] = true;
}

// What is broken ends the walk: the machine stops there too.
MemoReads::MemoReads(std::string_view pickle) : limit_(pickle.size()) {
  const char* at = pickle.data();
  const char* end = at + pickle.size();
  bool puts = false, memoizes = false;
  auto left = [&] { return static_cast<uint64_t>(end - at); };
  while (at != end) {
    const auto opcode = static_cast<uint8_t>(*at++);
    const int8_t layout = kLayouts[opcode];
    if (opcode == '.' || layout == Unknown) return;
    uint64_t length = layout >= 0 ? static_cast<uint64_t>(layout) : 0;
    const char* argument = at;
    if (layout == Line || layout == Lines) {
      for (int lines = layout == Line ? 1 : 2; lines > 0; --lines) {
        size_t line = std::string_view(argument, static_cast<size_t>(end - argument)).find('\n');
        if (line == std::string_view::npos) return;
        argument += line + 1;
      }
      length = static_cast<uint64_t>(argument - at);
      argument = at;
    } else if (layout < 0) {
      const uint64_t width = layout == Counted1 ? 1 : layout == Counted4 ? 4 : 8;
      if (left() < width) return;
      length = layout == Counted1   ? load_le<uint8_t>(at)
               : layout == Counted4 ? load_le<uint32_t>(at)
                                    : load_le<uint64_t>(at);
      at += width;
    }
    if (left() < length) return;
    at += length;
    if (opcode == '2') {
      all_ = true;
    } else if (opcode == 'q' || opcode == 'r' || opcode == 'p' || opcode == 0x94) {
      (opcode == 0x94 ? memoizes : puts) = true;
      all_ = all_ || (puts && memoizes);
    } else if (opcode == 'h') {
      add(load_le<uint8_t>(argument));
    } else if (opcode == 'j') {
      add(load_le<uint32_t>(argument));
    } else if (opcode == 'g') {
      uint64_t index = 0;
      std::from_chars(argument, at - 1, index);
      add(index);
    }
  }
}

}  // namespace tern::io
