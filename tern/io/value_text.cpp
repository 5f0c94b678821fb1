// The text of a value, as Python's repr would give it.
#include <charconv>
#include <cmath>

#include "tern/base/check.h"
#include "tern/io/value.h"
#include "tern/io/value_nodes.h"

namespace tern {

using namespace detail;

namespace {

constexpr size_t kMaxTextDepth = 50;
/// The time for decimal digits grows with the square of their number.
constexpr size_t kMaxDecimalBytes = 4096;

/// The shortest text that reads back as the same number, in Python's form: 0.1, 1e-05, 1e+16, inf.
std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char digits[64];
  double magnitude = std::fabs(value);
  bool fixed = value == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  auto result = std::to_chars(digits, digits + sizeof(digits), value,
                              fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(digits, result.ptr);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

void quote(std::string& out, std::string_view text, bool is_bytes, size_t limit) {
  char mark =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  if (is_bytes) out += 'b';
  out += mark;
  for (char c : text) {
    if (out.size() > limit) {
      out += "...";
      break;
    }
    auto byte = static_cast<uint8_t>(c);
    if (c == mark || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f || (is_bytes && byte >= 0x80))
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  out += mark;
}

class Printer {
 public:
  explicit Printer(size_t limit) : limit_(limit) {}

  void print(const Value& value, size_t depth) {
    if (out_.size() > limit_) return;
    if (depth > kMaxTextDepth) {
      out_ += "...";
      return;
    }
    switch (value.kind()) {
      case ValueKind::None:
        check_alive(value);
        out_ += "None";
        break;
      case ValueKind::Bool:
        out_ += value.as_bool() ? "True" : "False";
        break;
      case ValueKind::Int:
        out_ += std::to_string(value.as_int());
        break;
      case ValueKind::BigInt:
        print_long_integer(value.node<BigIntNode>()->bytes);
        break;
      case ValueKind::Float:
        out_ += float_text(value.as_float());
        break;
      case ValueKind::Complex: {
        auto number = value.as_complex();
        out_ += fmt::format("({}{}{}j)", float_text(number.real()), std::signbit(number.imag()) ? "" : "+",
                            float_text(number.imag()));
        break;
      }
      case ValueKind::Str:
        quote(out_, value.as_str(), /*is_bytes=*/false, limit_);
        break;
      case ValueKind::Bytes:
        quote(out_, value.as_bytes(), /*is_bytes=*/true, limit_);
        break;
      case ValueKind::ByteArray:
        out_ += "bytearray(";
        quote(out_, value.as_bytes(), /*is_bytes=*/true, limit_);
        out_ += ")";
        break;
      case ValueKind::Tensor:
        print_tensor(value.as_tensor());
        break;
      case ValueKind::RawStorage: {
        const StorageValue& storage = value.as_storage();
        out_ += fmt::format("storage({}, {} elements)", name(storage.dtype), storage.numel);
        break;
      }
      case ValueKind::List:
        print_items("[", value.as_list(), "]", depth);
        break;
      case ValueKind::Tuple:
        print_items("(", value.as_tuple(), value.length() == 1 ? ",)" : ")", depth);
        break;
      case ValueKind::Size:
        print_items("torch.Size([", value.as_sequence(), "])", depth);
        break;
      case ValueKind::Slice:
        print_items("slice(", value.as_slice(), ")", depth);
        break;
      case ValueKind::Range: {
        RangeValue range = value.as_range();
        out_ += fmt::format("range({}, {}{})", range.start, range.stop,
                            range.step == 1 ? "" : fmt::format(", {}", range.step));
        break;
      }
      case ValueKind::Dict:
        print_dict(value.as_dict(), depth);
        break;
      case ValueKind::Set:
      case ValueKind::FrozenSet:
        print_set(value, depth);
        break;
      case ValueKind::DType:
        out_ += fmt::format("torch.{}", name(value.as_dtype()));
        break;
      case ValueKind::Device:
        out_ += fmt::format("device('{}')", value.as_device().str());
        break;
      case ValueKind::Layout:
        out_ += value.as_layout();
        break;
      case ValueKind::Global:
        out_ += fmt::format("<{}>", value.as_global().full());
        break;
      case ValueKind::Object:
        print_object(value.as_object(), depth);
        break;
    }
  }

  std::string take() {
    if (out_.size() > limit_) {
      out_.resize(limit_);
      while (!out_.empty() && (static_cast<uint8_t>(out_.back()) & 0xc0) == 0x80) out_.pop_back();
      if (!out_.empty() && static_cast<uint8_t>(out_.back()) >= 0xc0) out_.pop_back();
      out_ += "...";
    }
    return std::move(out_);
  }

 private:
  void print_long_integer(const std::string& bytes) {
    out_ += bytes.size() <= kMaxDecimalBytes ? decimal_text(bytes)
                                             : fmt::format("<int of {} bytes>", bytes.size());
  }
  void print_tensor(const Tensor& tensor) {
    if (!tensor.defined())
      out_ += "tensor(undefined)";
    else
      out_ += fmt::format("tensor({}, {})", name(tensor.dtype()), to_string(tensor.shape()));
  }
  void print_items(std::string_view open, const std::vector<Value>& items, std::string_view close,
                   size_t depth) {
    out_ += open;
    for (size_t i = 0; i < items.size() && out_.size() <= limit_; ++i) {
      if (i) out_ += ", ";
      print(items[i], depth + 1);
    }
    out_ += close;
  }
  void print_dict(const ValueDict& dict, size_t depth) {
    out_ += dict.is_ordered_dict() ? "OrderedDict({" : "{";
    bool first = true;
    for (const auto& [key, value] : dict) {
      if (out_.size() > limit_) break;
      if (!first) out_ += ", ";
      first = false;
      print(key, depth + 1);
      out_ += ": ";
      print(value, depth + 1);
    }
    out_ += dict.is_ordered_dict() ? "})" : "}";
  }
  void print_set(const Value& value, size_t depth) {
    bool frozen = value.kind() == ValueKind::FrozenSet;
    if (value.length() == 0) {
      out_ += frozen ? "frozenset()" : "set()";
      return;
    }
    out_ += frozen ? "frozenset({" : "{";
    bool first = true;
    for (const auto& entry : value.as_set()) {
      if (out_.size() > limit_) break;
      if (!first) out_ += ", ";
      first = false;
      print(entry.key, depth + 1);
    }
    out_ += frozen ? "})" : "}";
  }
  void print_object(const ValueObject& object, size_t depth) {
    out_ += fmt::format("<{} object", object.class_name());
    if (object.payload.is_tensor()) {
      out_ += ": ";
      print(object.payload, depth + 1);
    } else if (!object.state.is_none()) {
      out_ += ": ";
      print(object.state, depth + 1);
    }
    out_ += ">";
  }

  size_t limit_;
  std::string out_;
};

}  // namespace

namespace detail {

std::string decimal_text(std::string_view twos_complement) {
  std::string magnitude(twos_complement);
  bool negative = !magnitude.empty() && static_cast<uint8_t>(magnitude.back()) >= 0x80;
  if (negative) negate(magnitude);
  std::vector<uint32_t> words((magnitude.size() + 3) / 4);
  for (size_t i = 0; i < magnitude.size(); ++i)
    words[i / 4] |= uint32_t{static_cast<uint8_t>(magnitude[i])} << (8 * (i % 4));
  std::string digits;
  while (true) {
    while (!words.empty() && words.back() == 0) words.pop_back();
    if (words.empty()) break;
    uint64_t rest = 0;
    for (size_t i = words.size(); i-- > 0;) {
      rest = rest << 32 | words[i];
      words[i] = static_cast<uint32_t>(rest / 1'000'000'000);
      rest %= 1'000'000'000;
    }
    for (int i = 0; i < 9; ++i, rest /= 10) digits.push_back(static_cast<char>('0' + rest % 10));
  }
  while (digits.ends_with('0')) digits.pop_back();
  if (digits.empty()) return "0";
  if (negative) digits.push_back('-');
  return std::string(digits.rbegin(), digits.rend());
}

}  // namespace detail

std::string Value::str(size_t max_length) const {
  Printer printer(max_length);
  printer.print(*this, 0);
  return printer.take();
}

}  // namespace tern
