// Reading .npy and .npz (numpy/lib/format.py). The header is the text of a Python dict; it is parsed by its
// fixed form and never evaluated.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/io/byte_order.h"
#include "tern/io/load_budget.h"
#include "tern/io/npy.h"
#include "tern/io/numpy_types.h"
#include "tern/io/utf8.h"
#include "tern/io/zip_reader.h"

namespace tern::io {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
/// NumPy's own limit is 10,000 characters.
constexpr uint64_t kMaxHeader = 1 << 16;

struct Header {
  std::optional<DType> dtype;  ///< none for elements that are no numbers here
  std::string code;            ///< as it is there, "<f4"; of a structured dtype empty
  Value structure;             ///< what numpy.dtype() takes for a structured dtype, else None
  bool objects = false;        ///< the data are a pickle
  uint64_t width = 0;          ///< bytes of an element
  bool big_endian = false;
  bool column_major = false;
  Shape shape;
  uint64_t data_begin = 0;
};

/// The text {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. Its keys come in any order, each
/// once.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : text_(text) {}

  Header parse() {
    Header header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      std::string_view key = quoted();
      expect(':');
      bool* seen = key == "descr"           ? &descr
                   : key == "fortran_order" ? &order
                   : key == "shape"         ? &shape
                                            : nullptr;
      if (!seen) fail(fmt::format("has the unknown key '{}'", key.substr(0, 40)));
      if (std::exchange(*seen, true)) fail(fmt::format("has the key '{}' twice", key));
      if (seen == &descr)
        parse_type(header);
      else if (seen == &order)
        header.column_major = boolean();
      else
        header.shape = sizes();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("goes on behind its end");
    if (!descr || !order || !shape)
      fail(fmt::format("has no key '{}'", !descr ? "descr" : !order ? "fortran_order" : "shape"));
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    TERN_THROW(CheckpointError, "the header of a NumPy array {} (character {} of {})", what, at_,
               text_.size());
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char wanted) {
    skip_space();
    bool there = at_ < text_.size() && text_[at_] == wanted;
    at_ += there ? 1 : 0;
    return there;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("has no '{}' where one must be", wanted));
  }

  /// A text in single or double quotes without escapes; Python 2 may put a u or b before it.
  std::string_view quoted() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == 'u' || text_[at_] == 'b')) ++at_;
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"'))
      fail("has no text where one must be");
    size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail("has a text without an end");
    std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find('\\') != std::string_view::npos) fail("has a text with an escape");
    at_ = end + 1;
    return inside;
  }

  bool boolean() {
    skip_space();
    for (std::string_view word : {"False", "True"})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    fail("has no True or False for the order");
  }

  int64_t whole_number() {
    skip_space();
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) fail("has a size that is no whole number from 0 on");
    at_ += static_cast<size_t>(stop - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a long of Python 2
    return value;
  }

  /// (), (3,), (2, 3).
  Shape sizes() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      if (shape.size() == kMaxRank) fail(fmt::format("has more than {} sizes", kMaxRank));
      shape.push_back(whole_number());
      if (accept(',')) continue;
      if (shape.size() == 1) fail("has a number where a tuple of sizes must be");
      expect(')');
      break;
    }
    return shape;
  }

  void parse_type(Header& header) {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
      Element type = element(/*depth=*/0);
      header.structure = std::move(type.dtype);
      header.width = type.width;
      header.objects = type.objects;
      return;
    }
    header.code = quoted();
    header.big_endian = header.code.starts_with('>');
    const std::string_view code = without_byte_order(header.code);
    header.dtype = dtype_of_numpy_code(code);
    header.objects = code.starts_with('O');
    header.width = width_of(header.code);
  }

  /// Bytes of an element; 0 of objects.
  uint64_t width_of(std::string_view written) const {
    const std::string_view code = without_byte_order(written);
    if (const auto dtype = dtype_of_numpy_code(code)) return itemsize(*dtype);
    TERN_CHECK(is_opaque_numpy_code(code), CheckpointError,
               "the NumPy array has the dtype '{}', which is not supported", written.substr(0, 40));
    uint64_t width = 0;
    if (code[0] == 'O') return width;
    for (char c : code.substr(1, code.find('[') - 1)) {
      width = width * 10 + static_cast<uint64_t>(c - '0');
      check_width(width);
    }
    return code[0] == 'U' ? width * 4 : width;  // UTF-32
  }
  void check_width(uint64_t width) const {
    if (width > uint64_t{1} << 40) fail("has elements of too many bytes");
  }

  /// A type as numpy.dtype() takes it.
  struct Element {
    Value dtype;
    uint64_t width = 0;
    bool objects = false;  ///< a field may be of objects
  };

  /// '<f4', ('<f4', (3,)), [('a', '<f4'), ('b', '<i2', (3,))].
  Element element(size_t depth) {
    constexpr size_t kMaxDepth = 32;
    if (depth > kMaxDepth) fail("has a dtype of too many levels");
    if (accept('[')) return structure(depth);
    if (!accept('(')) {
      const std::string_view code = quoted();
      return {code, width_of(code), without_byte_order(code).starts_with('O')};
    }
    Element type = element(depth + 1);
    expect(',');
    type = repeated(std::move(type), sizes());
    expect(')');
    return type;
  }

  Element repeated(Element type, const Shape& shape) const {
    Value counts = Value::tuple(std::vector<Value>(shape.begin(), shape.end()));
    for (int64_t size : shape) {
      if (__builtin_mul_overflow(type.width, static_cast<uint64_t>(size), &type.width))
        type.width = UINT64_MAX;
      check_width(type.width);
    }
    type.dtype = Value::tuple({std::move(type.dtype), std::move(counts)});
    return type;
  }

  /// What follows a '['. Gaps between the fields are bytes without a name (numpy.lib.format.descr_to_dtype).
  Element structure(size_t depth) {
    Element whole;
    Value names = Value::list(), formats = Value::list(), offsets = Value::list(), titles = Value::list();
    while (!accept(']')) {
      expect('(');
      Value title;
      const bool titled = accept('(');
      if (titled) {
        title = quoted();
        expect(',');
      }
      const std::string_view field = quoted();
      if (titled) expect(')');
      expect(',');
      Element type = element(depth + 1);
      const bool is_gap =
          field.empty() && type.dtype.is_str() && without_byte_order(type.dtype.as_str()).starts_with('V');
      if (accept(',')) type = repeated(std::move(type), sizes());
      expect(')');
      if (!is_gap) {
        names.as_list().emplace_back(field);
        formats.as_list().push_back(std::move(type.dtype));
        offsets.as_list().emplace_back(whole.width);
        titles.as_list().push_back(std::move(title));
      }
      whole.width += type.width;
      check_width(whole.width);
      whole.objects = whole.objects || type.objects;
      if (accept(',')) continue;
      expect(']');
      break;
    }
    whole.dtype = Value{{"names", names},
                        {"formats", formats},
                        {"offsets", offsets},
                        {"titles", titles},
                        {"itemsize", whole.width}};
    return whole;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Header read_header(const ByteSource& source) {
  std::byte start[12];
  TERN_CHECK(source.size() >= 10, CheckpointError, "a NumPy array of {} bytes is cut short", source.size());
  source.read_at(0, std::span(start).first(10));
  TERN_CHECK(std::memcmp(start, kMagic.data(), kMagic.size()) == 0, CheckpointError,
             "this is no NumPy array: it does not begin with \\x93NUMPY");
  auto version = static_cast<int>(start[6]);
  TERN_CHECK(version >= 1 && version <= 3, CheckpointError,
             "the NumPy array has the format version {}; 1 to 3 are known", version);
  uint64_t length = load_le<uint16_t>(start + 8), text_begin = 10;
  if (version > 1) {
    source.read_at(0, start);
    length = load_le<uint32_t>(start + 8);
    text_begin = 12;
  }
  TERN_CHECK(length <= kMaxHeader && length <= source.size() - text_begin, CheckpointError,
             "the header of a NumPy array has {} bytes; {} are there, and at most {} are accepted", length,
             source.size() - text_begin, kMaxHeader);
  std::vector<std::byte> bytes = source.read(text_begin, length);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (version < 3) text = latin1_to_utf8(text);
  TERN_CHECK(is_utf8(text), CheckpointError, "the header of a NumPy array is not UTF-8");
  Header header = HeaderText(text).parse();
  header.data_begin = text_begin + length;
  return header;
}

std::string dtype_text(const Header& header) {
  if (header.dtype) return std::string(name(*header.dtype));
  return header.code.empty() ? "structured" : header.code.substr(0, 40);
}

/// Throws CheckpointError for an array whose data are a pickle.
void refuse_objects(const Header& header) {
  TERN_CHECK(!header.objects, CheckpointError,
             "the NumPy array holds Python objects (dtype '{}'), which are a pickle: they are not read",
             dtype_text(header));
}

/// Throws CheckpointError for an array that is no tensor.
void require_numbers(const Header& header) {
  TERN_CHECK(!header.code.empty(), CheckpointError,
             "the NumPy array has elements of several fields (a structured dtype), which is not supported: "
             "save each field as an array of its own");
  refuse_objects(header);
  TERN_CHECK(header.dtype, CheckpointError, "the NumPy array has the dtype '{}', which is not supported",
             header.code.substr(0, 40));
}

/// Bytes of the data, checked against the file.
uint64_t data_size(const Header& header, uint64_t file_size) {
  uint64_t nbytes = header.width;
  bool overflow = false;
  for (int64_t size : header.shape)
    overflow = overflow || __builtin_mul_overflow(nbytes, static_cast<uint64_t>(size), &nbytes);
  uint64_t held = file_size - header.data_begin;
  const std::string dtype = dtype_text(header);
  TERN_CHECK(!overflow && nbytes <= held, CheckpointError,
             "a NumPy array of shape {} and dtype {} needs {} bytes, but there are {} (incomplete file?)",
             to_string(header.shape), dtype, overflow ? "more than 2^64" : std::to_string(nbytes), held);
  TERN_CHECK(
      nbytes == held, CheckpointError,
      "a NumPy array of shape {} and dtype {} has {} bytes, but {} more follow: files of several arrays "
      "are not read (save them as .npz)",
      to_string(header.shape), dtype, nbytes, held - nbytes);
  return nbytes;
}

/// Host byte order, bools 0 or 1.
void finish(const Header& header, std::span<std::byte> bytes) {
  if (header.big_endian)
    swap_bytes(bytes.data(), bytes.size(), is_complex(*header.dtype) ? header.width / 2 : header.width);
  if (header.dtype == DType::Bool)
    for (std::byte& byte : bytes) byte = byte == std::byte{0} ? byte : std::byte{1};
}

Tensor tensor_of(const Header& header, Storage storage) {
  if (!header.column_major) return Tensor::from_storage(std::move(storage), *header.dtype, header.shape);
  Shape reversed = header.shape;
  std::reverse(reversed.begin(), reversed.end());
  Strides strides = contiguous_strides(reversed);
  std::reverse(strides.begin(), strides.end());
  return Tensor::from_storage(std::move(storage), *header.dtype, header.shape, strides);
}

/// An array that is no tensor.
Value opaque_value(const Header& header, std::string data) {
  refuse_objects(header);
  data_size(header, header.data_begin + data.size());
  return opaque_array(header.code.empty() ? header.structure : Value(header.code), header.shape,
                      header.column_major, Value::bytes(std::move(data)));
}

constexpr std::string_view kSuffix = ".npy";

}  // namespace

Tensor read_npy(const ByteSource& source, const LoadOptions& options) {
  Header header = read_header(source);
  require_numbers(header);
  uint64_t nbytes = data_size(header, source.size());
  LoadBudget(options.limits, source.size()).take_tensor(nbytes);
  if (options.skip_data) return tensor_of(header, storage_from_blob(nullptr, nbytes, [] {}));
  Device device = options.map_location("cpu");
  Storage storage = allocate_storage(nbytes, device);
  std::vector<std::byte> staging(device.is_cpu() ? 0 : nbytes);
  std::span<std::byte> bytes =
      device.is_cpu() ? std::span(static_cast<std::byte*>(storage->data()), nbytes) : std::span(staging);
  source.read_at(header.data_begin, bytes);
  finish(header, bytes);
  if (!device.is_cpu()) copy_from_host(*storage, 0, bytes.data(), nbytes);
  return tensor_of(header, std::move(storage));
}

Value read_npy_value(const ByteSource& source, const LoadOptions& options) {
  const Header header = read_header(source);
  if (header.dtype) return read_npy(source, options);
  refuse_objects(header);
  LoadBudget(options.limits, source.size()).take_tensor(source.size() - header.data_begin);
  std::string data(source.size() - header.data_begin, '\0');
  source.read_at(header.data_begin, std::as_writable_bytes(std::span(data)));
  return opaque_value(header, std::move(data));
}

Value read_npy_value(std::vector<std::byte> bytes, const LoadOptions& options) {
  auto kept = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  auto source = view_memory(*kept);
  Header header = read_header(*source);
  if (!header.dtype) {
    const auto* data = reinterpret_cast<const char*>(kept->data());
    return opaque_value(header, std::string(data + header.data_begin, kept->size() - header.data_begin));
  }
  constexpr uint64_t kAlignment = 16;
  if (!options.map_location("cpu").is_cpu() || header.data_begin % kAlignment != 0 || options.skip_data)
    return read_npy(*source, options);
  uint64_t nbytes = data_size(header, kept->size());
  LoadBudget(options.limits, kept->size()).take_tensor(nbytes);
  std::byte* data = kept->data() + header.data_begin;
  finish(header, std::span(data, nbytes));
  return tensor_of(header, storage_from_blob(data, nbytes, [kept] {}));
}

bool is_npz(const ZipReader& zip) {
  return std::all_of(zip.entries().begin(), zip.entries().end(), [](const ZipEntry& entry) {
    return entry.name.ends_with(kSuffix);  // savez(file, **{'': x}) gives an array without a name
  });
}

std::vector<std::pair<std::string, Value>> read_npz(const ZipReader& zip, const LoadOptions& options) {
  std::vector<std::pair<std::string, Value>> arrays;
  LoadBudget budget(options.limits, zip.source().size());
  for (const ZipEntry& entry : zip.entries()) {
    const std::string array_name(entry.name.substr(0, entry.name.size() - kSuffix.size()));
    with_context(fmt::format("array '{}'", array_name.substr(0, 100)), [&] {
      if (!entry.stored()) budget.take_unpacked(entry.name, entry.size);
      budget.take_tensor(entry.size);
      arrays.emplace_back(array_name, read_npy_value(zip.read(entry, entry.size, options.verify), options));
    });
  }
  return arrays;
}

}  // namespace tern::io

namespace tern {

Tensor load_npy(const std::filesystem::path& path, const LoadOptions& options) {
  auto source = io::open_file(path);
  return with_context(fmt::format("loading '{}'", path.string()),
                      [&] { return io::read_npy(*source, options); });
}

StateDict load_npz(const std::filesystem::path& path, const LoadOptions& options) {
  auto source = io::open_file(path);
  return with_context(fmt::format("loading '{}'", path.string()), [&] {
    io::ZipReader zip(source, options.limits.entries);
    TERN_CHECK(io::is_npz(zip), CheckpointError, "the archive is no .npz: it has the entry '{}'",
               zip.entries().front().name.substr(0, 100));
    StateDict tensors;
    for (auto& [name, array] : io::read_npz(zip, options)) {
      TERN_CHECK(array.is_tensor(), CheckpointError,
                 "the array '{}' holds no numbers (text, dates or structures), and load_npz "
                 "gives tensors only: load() gives the other arrays too",
                 name.substr(0, 100));
      tensors.insert(name, array.as_tensor());
    }
    return tensors;
  });
}

}  // namespace tern
