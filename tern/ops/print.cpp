// The rules are those of PyTorch's torch/_tensor_str.py; names of gradient functions are in print_names.cpp.
#include "tern/ops/print.h"

#include <cmath>
#include <cstring>
#include <mutex>
#include <ostream>
#include <vector>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/core/recording.h"
#include "tern/ops/copy.h"
#include "tern/ops/print_names.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

std::mutex options_mutex;
PrintOptions process_options;

/// Python's text of an infinity or NaN: without the sign of a NaN.
std::string text_of(double value, const char* format, int precision) {
  if (std::isnan(value)) return "nan";
  return fmt::format(fmt::runtime(format), value, precision);
}

/// How the numbers of one tensor are written: as whole numbers, with a fixed precision, or in scientific
/// notation, in one width.
class FloatFormat {
 public:
  FloatFormat(const std::vector<double>& values, const PrintOptions& options)
      : precision_(options.precision) {
    double smallest = INFINITY, largest = 0;
    bool any = false;
    for (double v : values) {
      if (!std::isfinite(v) || v == 0) continue;
      any = true;
      smallest = std::min(smallest, std::abs(v));
      largest = std::max(largest, std::abs(v));
      whole_ = whole_ && v == std::ceil(v);
    }
    if (!any) return;
    scientific_ =
        options.sci_mode.value_or(largest / smallest > 1000.0 || largest > 1.0e8 || smallest < 1.0e-4);
    for (double v : values)
      if (std::isfinite(v) && v != 0) width_ = std::max(width_, bare(v).size());
  }

  size_t width() const { return width_; }
  std::string operator()(double value) const { return fmt::format("{:>{}}", bare(value), width_); }

 private:
  std::string bare(double value) const {
    if (scientific_) return text_of(value, "{:.{}e}", precision_);
    if (!whole_) return text_of(value, "{:.{}f}", precision_);
    std::string text = text_of(value, "{:.{}f}", 0);
    return std::isfinite(value) ? text + "." : text;
  }

  int precision_;
  bool whole_ = true;
  bool scientific_ = false;
  size_t width_ = 1;
};

template <class T>
std::vector<T> read(const Tensor& host, size_t per_element = 1) {
  std::vector<T> values(static_cast<size_t>(host.numel()) * per_element);
  if (!values.empty())
    std::memcpy(static_cast<void*>(values.data()), host.data_ptr(), values.size() * sizeof(T));
  return values;
}

template <class T>
std::vector<double> to_doubles(const std::vector<T>& values) {
  std::vector<double> result;
  result.reserve(values.size());
  for (T v : values) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      result.push_back(static_cast<float>(v));
    else
      result.push_back(static_cast<double>(v));
  }
  return result;
}

/// The text of each element, in one width.
struct Cells {
  std::vector<std::string> texts;
  size_t width = 1;
};

Cells float_cells(const std::vector<double>& values, const PrintOptions& options) {
  FloatFormat format(values, options);
  Cells cells;
  for (double v : values) cells.texts.push_back(format(v));
  cells.width = format.width();
  return cells;
}

/// real+imagj: the parts are formatted each on its own.
Cells complex_cells(const std::vector<double>& parts, const PrintOptions& options) {
  std::vector<double> real, imag;
  for (size_t i = 0; i < parts.size(); i += 2) {
    real.push_back(parts[i]);
    imag.push_back(parts[i + 1]);
  }
  Cells a = float_cells(real, options), b = float_cells(imag, options);
  for (size_t i = 0; i < a.texts.size(); ++i) {
    std::string imaginary = b.texts[i].substr(b.texts[i].find_first_not_of(' ')) + "j";
    a.texts[i] += (imaginary[0] == '-' || imaginary[0] == '+' ? "" : "+") + imaginary;
  }
  a.width += b.width + 1;
  return a;
}

template <class T>
Cells integer_cells(const std::vector<T>& values) {
  Cells cells;
  for (T v : values) {
    if constexpr (std::is_same_v<T, bool>)
      cells.texts.push_back(v ? "True" : "False");
    else
      cells.texts.push_back(std::to_string(v));
    cells.width = std::max(cells.width, cells.texts.back().size());
  }
  for (std::string& text : cells.texts) text.insert(0, cells.width - text.size(), ' ');
  return cells;
}

/// Elements that hold several numbers: their bytes, the highest first.
Cells packed_cells(const Tensor& host) {
  const size_t width = itemsize(host.dtype());
  const std::vector<uint8_t> bytes = read<uint8_t>(host, width);
  Cells cells;
  for (size_t i = 0; i < bytes.size(); i += width) {
    std::string text = "0x";
    for (size_t b = width; b-- > 0;) text += fmt::format("{:02x}", bytes[i + b]);
    cells.texts.push_back(std::move(text));
  }
  cells.width = 2 + 2 * width;
  return cells;
}

Cells cells_of(const Tensor& host, const PrintOptions& options) {
  switch (host.dtype()) {
    case DType::Bool: {
      std::vector<bool> values;
      for (uint8_t v : read<uint8_t>(host)) values.push_back(v != 0);
      return integer_cells(values);
    }
    case DType::UInt8:
      return integer_cells(read<uint8_t>(host));
    case DType::Int8:
      return integer_cells(read<int8_t>(host));
    case DType::Int16:
      return integer_cells(read<int16_t>(host));
    case DType::Int32:
      return integer_cells(read<int32_t>(host));
    case DType::Int64:
      return integer_cells(read<int64_t>(host));
    case DType::UInt16:
      return integer_cells(read<uint16_t>(host));
    case DType::UInt32:
      return integer_cells(read<uint32_t>(host));
    case DType::UInt64:
      return integer_cells(read<uint64_t>(host));
    case DType::Float16:
      return float_cells(to_doubles(read<Half>(host)), options);
    case DType::BFloat16:
      return float_cells(to_doubles(read<BFloat16>(host)), options);
    case DType::Float32:
      return float_cells(to_doubles(read<float>(host)), options);
    case DType::Float64:
      return float_cells(read<double>(host), options);
    case DType::Complex64:
      return complex_cells(to_doubles(read<float>(host, 2)), options);
    case DType::Complex128:
      return complex_cells(read<double>(host, 2), options);
    case DType::Complex32:
      return complex_cells(to_doubles(read<Half>(host, 2)), options);
    case DType::BComplex32:
      return complex_cells(to_doubles(read<BFloat16>(host, 2)), options);
    case DType::Float8_e4m3fn:
    case DType::Float8_e5m2:
    case DType::Float8_e4m3fnuz:
    case DType::Float8_e5m2fnuz:
    case DType::Float8_e8m0fnu: {
      std::vector<double> values;
      for (uint8_t bits : read<uint8_t>(host)) values.push_back(float8_value(host.dtype(), bits));
      return float_cells(values, options);
    }
    case DType::QInt8:
    case DType::Int1:
    case DType::Int2:
    case DType::Int3:
    case DType::Int4:
    case DType::Int5:
    case DType::Int6:
    case DType::Int7:
      return integer_cells(read<int8_t>(host));
    case DType::QUInt8:
    case DType::UInt1:
    case DType::UInt2:
    case DType::UInt3:
    case DType::UInt4:
    case DType::UInt5:
    case DType::UInt6:
    case DType::UInt7:
      return integer_cells(read<uint8_t>(host));
    case DType::QInt32:
      return integer_cells(read<int32_t>(host));
    case DType::QUInt4x2:
    case DType::QUInt2x4:
    case DType::Float4_e2m1fn_x2:
    case DType::Float6_e2m3fn_x4:
    case DType::Float6_e3m2fn_x4:
    case DType::Bits8:
    case DType::Bits16:
    case DType::Bits1x8:
    case DType::Bits2x4:
    case DType::Bits4x2:
      break;
  }
  return packed_cells(host);
}

/// Writes the cells of the kept elements in brackets, lines and, where elements were left out, with "...".
class Layouter {
 public:
  Layouter(const Cells& cells, const Shape& kept, const Shape& full, const PrintOptions& options)
      : cells_(cells), kept_(kept), full_(full), options_(options) {}

  std::string write(size_t depth, int64_t indent) {
    if (kept_.empty()) return cells_.texts[0];
    if (depth + 1 == kept_.size()) return row(depth, indent);
    std::string separator =
        "," + std::string(kept_.size() - depth - 1, '\n') + std::string(static_cast<size_t>(indent) + 1, ' ');
    std::string text = "[";
    for (int64_t i = 0; i < kept_[depth]; ++i) {
      if (i != 0) text += separator;
      if (is_cut(depth) && i == options_.edgeitems) text += "..." + separator;
      text += write(depth + 1, indent + 1);
    }
    if (is_cut(depth) && options_.edgeitems == 0) text += "...";
    return text + "]";
  }

 private:
  bool is_cut(size_t depth) const { return kept_[depth] != full_[depth]; }

  std::string row(size_t depth, int64_t indent) {
    std::vector<std::string> items;
    for (int64_t i = 0; i < kept_[depth]; ++i) {
      if (is_cut(depth) && i == options_.edgeitems) items.push_back(" ...");
      items.push_back(cells_.texts[next_++]);
    }
    if (is_cut(depth) && options_.edgeitems == 0) items.push_back("...");
    int64_t per_line =
        std::max<int64_t>(1, (options_.linewidth - indent) / (static_cast<int64_t>(cells_.width) + 2));
    std::string text = "[";
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) {
        bool new_line = static_cast<int64_t>(i) % per_line == 0;
        text += new_line ? ",\n" + std::string(static_cast<size_t>(indent) + 1, ' ') : ", ";
      }
      text += items[i];
    }
    return text + "]";
  }

  const Cells& cells_;
  const Shape& kept_;
  const Shape& full_;
  const PrintOptions& options_;
  size_t next_ = 0;
};

/// x without the middle of its long dimensions.
Tensor edges_of(Tensor x, int64_t edgeitems) {
  for (int64_t d = 0; d < x.dim(); ++d)
    if (x.size(d) > 2 * edgeitems)
      x = cat({narrow(x, d, 0, edgeitems), narrow(x, d, x.size(d) - edgeitems, edgeitems)}, d);
  return x;
}

std::string contents(const Tensor& x, int64_t indent, const PrintOptions& options) {
  if (x.numel() == 0) return "[]";
  bool summarize = static_cast<double>(x.numel()) > options.threshold;
  Tensor kept = contiguous(to(summarize ? edges_of(x, options.edgeitems) : x, kCPU));
  return Layouter(cells_of(kept, options), kept.shape(), x.shape(), options).write(0, indent);
}

bool has_default_dtype(DType dtype) {
  DType complex = get_default_dtype() == DType::Float64 ? DType::Complex128 : DType::Complex64;
  return dtype == get_default_dtype() || dtype == complex || dtype == DType::Int64 || dtype == DType::Bool;
}

std::string size_text(const Shape& shape) {
  std::string list = to_string(IntArrayRef(shape));
  return "size=(" + list.substr(1, list.size() - 2) + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace

void set_printoptions(const PrintOptions& options) {
  TERN_CHECK(
      options.precision >= 0 && options.edgeitems >= 0 && options.linewidth >= 0 && options.threshold >= 0,
      ValueError,
      "set_printoptions: numbers must not be negative: precision {}, threshold {}, edgeitems {}, linewidth "
      "{}",
      options.precision, options.threshold, options.edgeitems, options.linewidth);
  std::lock_guard lock(options_mutex);
  process_options = options;
}

PrintOptions get_printoptions() {
  std::lock_guard lock(options_mutex);
  return process_options;
}

std::string to_string(const Tensor& x) { return to_string(x, get_printoptions()); }

std::string to_string(const Tensor& x, const PrintOptions& options) {
  if (!x.defined()) return "undefined tensor";
  if (x.storage()->is_uninitialized()) return "<UninitializedParameter>";  // PyTorch's text
  detail::host_reads("printing");
  NoGradGuard no_grad;
  std::vector<std::string> suffixes;
  if (!x.device().is_cpu()) suffixes.push_back("device='" + x.device().str() + "'");
  bool empty = x.numel() == 0;
  if ((empty && x.dim() != 1) || (!empty && options.edgeitems == 0)) suffixes.push_back(size_text(x.shape()));
  // Nothing in an empty tensor shows its dtype, so only the default one goes without saying.
  if (empty ? x.dtype() != get_default_dtype() : !has_default_dtype(x.dtype()))
    suffixes.push_back("dtype=torch." + std::string(name(x.dtype())));
  std::string function = x.grad_fn_name();
  if (!function.empty())
    suffixes.push_back("grad_fn=<" + grad_fn_class(function) + ">");
  else if (x.requires_grad())
    suffixes.push_back("requires_grad=True");

  const std::string prefix = "tensor(";
  const int64_t indent = static_cast<int64_t>(prefix.size());
  std::string text = prefix + contents(x.detach(), indent, options);
  size_t line_start = text.rfind('\n');
  int64_t line =
      static_cast<int64_t>(line_start == std::string::npos ? text.size() + 2 : text.size() - line_start + 1);
  for (const std::string& suffix : suffixes) {
    int64_t length = static_cast<int64_t>(suffix.size());
    bool new_line = line + length + 2 > options.linewidth;
    text += new_line ? ",\n" + std::string(static_cast<size_t>(indent), ' ') + suffix : ", " + suffix;
    line = new_line ? indent + length : line + length + 2;
  }
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << "torch.Size(" << to_string(IntArrayRef(shape)) << ')';
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << "torch." << name(dtype); }

std::ostream& detail::print_scalar(std::ostream& out, const Scalar& number) {
  if (number.kind() == DType::Bool) return out << (number.to_bool() ? "True" : "False");
  return number.is_floating_point() ? out << number.to_double() : out << number.to_int();
}

std::ostream& detail::print_device(std::ostream& out, Device device) { return out << device.str(); }

}  // namespace tern
