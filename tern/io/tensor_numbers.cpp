// Reading elements of every dtype from strided host memory.
#include "tern/io/tensor_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tern/base/check.h"
#include "tern/io/mapped_file.h"

namespace tern::io {

namespace {

/// Elements that a tensor may show beyond those its storage holds.
constexpr int64_t kMaxRepeated = int64_t{1} << 26;
constexpr size_t kAtOnce = 4096;

template <class T>
T load(const std::byte* bytes) noexcept {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// How an element is read: `read` gives what Number holds.
struct ReadBool {
  static bool read(const std::byte* p) noexcept { return *p != std::byte{0}; }
};
template <class T>
struct ReadSigned {
  static int64_t read(const std::byte* p) noexcept { return load<T>(p); }
};
template <class T>
struct ReadUnsigned {
  static uint64_t read(const std::byte* p) noexcept { return load<T>(p); }
};
template <class T>
struct ReadReal {
  static double read(const std::byte* p) noexcept {
    if constexpr (sizeof(T) == 2)
      return static_cast<double>(static_cast<float>(load<T>(p)));
    else
      return static_cast<double>(load<T>(p));
  }
};
template <DType dtype>
struct ReadFloat8 {
  static double read(const std::byte* p) noexcept { return float8_value(dtype, load<uint8_t>(p)); }
};
template <class T>
struct ReadComplex {
  static std::complex<double> read(const std::byte* p) noexcept {
    return {ReadReal<T>::read(p), ReadReal<T>::read(p + sizeof(T))};
  }
};

/// Calls `f.template operator()<Reader>()`; false for a dtype whose elements hold several numbers.
template <class F>
bool visit_reader(DType dtype, F&& f) {
  if (is_float8(dtype)) {
    switch (dtype) {
      case DType::Float8_e4m3fn:
        f.template operator()<ReadFloat8<DType::Float8_e4m3fn>>();
        break;
      case DType::Float8_e5m2:
        f.template operator()<ReadFloat8<DType::Float8_e5m2>>();
        break;
      case DType::Float8_e4m3fnuz:
        f.template operator()<ReadFloat8<DType::Float8_e4m3fnuz>>();
        break;
      case DType::Float8_e5m2fnuz:
        f.template operator()<ReadFloat8<DType::Float8_e5m2fnuz>>();
        break;
      default:
        f.template operator()<ReadFloat8<DType::Float8_e8m0fnu>>();
    }
    return true;
  }
  switch (dtype) {
    case DType::Bool:
      f.template operator()<ReadBool>();
      return true;
    case DType::UInt8:
    case DType::QUInt8:
    case DType::UInt1:
    case DType::UInt2:
    case DType::UInt3:
    case DType::UInt4:
    case DType::UInt5:
    case DType::UInt6:
    case DType::UInt7:
      f.template operator()<ReadUnsigned<uint8_t>>();
      return true;
    case DType::Int8:
    case DType::QInt8:
    case DType::Int1:
    case DType::Int2:
    case DType::Int3:
    case DType::Int4:
    case DType::Int5:
    case DType::Int6:
    case DType::Int7:
      f.template operator()<ReadSigned<int8_t>>();
      return true;
    case DType::Int16:
      f.template operator()<ReadSigned<int16_t>>();
      return true;
    case DType::Int32:
    case DType::QInt32:
      f.template operator()<ReadSigned<int32_t>>();
      return true;
    case DType::Int64:
      f.template operator()<ReadSigned<int64_t>>();
      return true;
    case DType::UInt16:
      f.template operator()<ReadUnsigned<uint16_t>>();
      return true;
    case DType::UInt32:
      f.template operator()<ReadUnsigned<uint32_t>>();
      return true;
    case DType::UInt64:
      f.template operator()<ReadUnsigned<uint64_t>>();
      return true;
    case DType::Float16:
      f.template operator()<ReadReal<Half>>();
      return true;
    case DType::BFloat16:
      f.template operator()<ReadReal<BFloat16>>();
      return true;
    case DType::Float32:
      f.template operator()<ReadReal<float>>();
      return true;
    case DType::Float64:
      f.template operator()<ReadReal<double>>();
      return true;
    case DType::Complex32:
      f.template operator()<ReadComplex<Half>>();
      return true;
    case DType::BComplex32:
      f.template operator()<ReadComplex<BFloat16>>();
      return true;
    case DType::Complex64:
      f.template operator()<ReadComplex<float>>();
      return true;
    case DType::Complex128:
      f.template operator()<ReadComplex<double>>();
      return true;
    default:
      return false;
  }
}

void check_readable(const Tensor& tensor) {
  TERN_CHECK(tensor.is_cpu(), DeviceError, "the numbers of a tensor on {} are read on the cpu: move it there",
             tensor.device().str());
  TERN_CHECK(has_numbers(tensor), DTypeError, "the numbers of a tensor of dtype {} cannot be read one by one",
             name(tensor.dtype()));
  const auto held = static_cast<int64_t>(tensor.storage()->nbytes() / itemsize(tensor.dtype()));
  TERN_CHECK(tensor.numel() <= std::max(held, kMaxRepeated), CheckpointError,
             "a tensor of shape {} repeats the {} elements of its storage: it is not gone through",
             to_string(tensor.shape()), held);
}

/// Goes through the elements in row-major order, in runs at one distance.
class Runs {
 public:
  explicit Runs(const Tensor& tensor) : impl_(tensor.impl()), width_(itemsize(impl_.dtype)) {
    const size_t rank = impl_.shape.size();
    if (impl_.contiguous || rank == 0) {
      length_ = impl_.numel;
      step_ = width_;
      outer_ = 0;
    } else {
      length_ = impl_.shape[rank - 1];
      step_ = static_cast<size_t>(impl_.strides[rank - 1]) * width_;
      outer_ = rank - 1;
    }
    position_.resize(outer_, 0);
    left_ = impl_.numel == 0 ? 0 : impl_.numel / length_;
  }
  int64_t length() const { return length_; }
  size_t step() const { return step_; }
  bool done() const { return left_ == 0; }
  const std::byte* begin() const {
    int64_t at = impl_.offset;
    for (size_t d = 0; d < outer_; ++d) at += position_[d] * impl_.strides[d];
    return static_cast<const std::byte*>(impl_.storage->data()) + static_cast<size_t>(at) * width_;
  }
  void advance() {
    --left_;
    for (size_t d = outer_; d-- > 0;) {
      if (++position_[d] < impl_.shape[d]) break;
      position_[d] = 0;
    }
  }

 private:
  const TensorImpl& impl_;
  size_t width_, step_ = 0, outer_ = 0;
  int64_t length_ = 0, left_ = 0;
  std::vector<int64_t> position_;
};

/// Whole numbers are added exactly as far as long double goes, others as doubles.
template <class T>
struct Accumulator {
  long double sum = 0;
  void add(T value) { sum += static_cast<long double>(value); }
  std::complex<double> result() const { return static_cast<double>(sum); }
};
template <>
struct Accumulator<double> {
  double sum = 0;
  void add(double value) { sum += value; }
  std::complex<double> result() const { return sum; }
};
template <>
struct Accumulator<std::complex<double>> {
  double real = 0, imaginary = 0;
  void add(std::complex<double> value) {
    real += value.real();
    imaginary += value.imag();
  }
  std::complex<double> result() const { return {real, imaginary}; }
};

bool is_nan(std::complex<double> z) { return std::isnan(z.real()) || std::isnan(z.imag()); }
bool is_infinite(std::complex<double> z) {
  return !is_nan(z) && (std::isinf(z.real()) || std::isinf(z.imag()));
}

/// Lets the bytes of a run leave memory behind the one that goes through it.
class PageDropper {
 public:
  PageDropper(bool active, bool in_runs) : active_(active), in_runs_(active && in_runs) {}
  void begin(const std::byte* run) noexcept { dropped_ = run; }
  void passed(const std::byte* end) noexcept {
    if (!in_runs_ || end < dropped_ + kDropBytes) return;
    MappedFile::drop_pages(dropped_, static_cast<size_t>(end - dropped_));
    dropped_ = end;
  }
  /// All of the tensor is gone through.
  void finish(const Tensor& tensor) const noexcept {
    if (!active_ || tensor.numel() == 0) return;
    const TensorImpl& impl = tensor.impl();
    int64_t last = 0;
    for (size_t d = 0; d < impl.shape.size(); ++d) last += (impl.shape[d] - 1) * impl.strides[d];
    const size_t width = itemsize(impl.dtype);
    MappedFile::drop_pages(
        static_cast<const std::byte*>(impl.storage->data()) + static_cast<size_t>(impl.offset) * width,
        static_cast<size_t>(last + 1) * width);
  }

 private:
  static constexpr ptrdiff_t kDropBytes = ptrdiff_t{8} << 20;
  bool active_;
  bool in_runs_;  ///< the elements of a run lie side by side; else the next run needs its pages again
  const std::byte* dropped_ = nullptr;
};

template <class Reader>
void summarize(const Tensor& tensor, bool drop_pages, NumberSummary& summary) {
  PageDropper dropper(drop_pages, Runs(tensor).step() == itemsize(tensor.dtype()));
  using T = decltype(Reader::read(nullptr));
  Accumulator<T> total;
  for (Runs runs(tensor); !runs.done(); runs.advance()) {
    const std::byte* p = runs.begin();
    const size_t step = runs.step();
    for (size_t i = 0; i < static_cast<size_t>(runs.length()) && summary.first.size() < 4; ++i)
      summary.first.emplace_back(Reader::read(p + i * step));
    dropper.begin(p);
    // Sums of parts lose less than one long sum, and are added in parallel.
    const auto length = static_cast<size_t>(runs.length());
    for (size_t begin = 0; begin < length; begin += kAtOnce) {
      Accumulator<T> part[4];
      const size_t end = std::min(length, begin + kAtOnce);
      size_t i = begin;
      for (; i + 4 <= end; i += 4)
        for (size_t k = 0; k < 4; ++k) part[k].add(Reader::read(p + (i + k) * step));
      for (; i < end; ++i) part[0].add(Reader::read(p + i * step));
      if constexpr (std::is_same_v<T, std::complex<double>>) {
        for (const auto& each : part) total.add(each.result());
      } else {
        for (const auto& each : part) total.sum += each.sum;
      }
      dropper.passed(p + end * step);
    }
  }
  dropper.finish(tensor);
  summary.sum = total.result();
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>) {
    // Without one of them the sum is finite, or at least seldom not.
    if (std::isfinite(summary.sum.real()) && std::isfinite(summary.sum.imag())) return;
    for (Runs runs(tensor); !runs.done(); runs.advance()) {
      const std::byte* p = runs.begin();
      dropper.begin(p);
      for (size_t i = 0; i < static_cast<size_t>(runs.length()); ++i, p += runs.step()) {
        const std::complex<double> value = Reader::read(p);
        summary.nans += is_nan(value);
        summary.infinities += is_infinite(value);
        if (i % kAtOnce == 0) dropper.passed(p);
      }
    }
    dropper.finish(tensor);
  }
}

/// A number that holds every whole number of 64 bits and every double exactly, where long double has 64 bits.
struct Exact {
  long double real, imaginary;
};

/// The elements of a tensor one block after the other.
class Blocks {
 public:
  explicit Blocks(const Tensor& tensor) : dtype_(tensor.dtype()), runs_(tensor) {}
  size_t next(std::vector<Exact>& out) {
    out.clear();
    while (out.size() < kAtOnce && !runs_.done()) {
      const auto count = std::min(kAtOnce - out.size(), static_cast<size_t>(runs_.length()) - in_run_);
      const std::byte* p = runs_.begin() + in_run_ * runs_.step();
      visit_reader(dtype_, [&]<class Reader>() {
        for (size_t i = 0; i < count; ++i) {
          const auto value = Reader::read(p + i * runs_.step());
          if constexpr (std::is_same_v<std::remove_const_t<decltype(value)>, std::complex<double>>)
            out.push_back({value.real(), value.imag()});
          else
            out.push_back({static_cast<long double>(value), 0});
        }
      });
      in_run_ += count;
      if (in_run_ < static_cast<size_t>(runs_.length())) break;
      in_run_ = 0;
      runs_.advance();
    }
    return out.size();
  }

 private:
  DType dtype_;
  Runs runs_;
  size_t in_run_ = 0;
};

double distance(long double a, long double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const long double d = std::fabs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : static_cast<double>(d);
}

}  // namespace

bool has_numbers(const Tensor& tensor) noexcept {
  if (!tensor.defined()) return false;
  if (tensor.numel() > 0 && !tensor.storage()->data()) return false;
  return visit_reader(tensor.dtype(), []<class>() {});
}

NumberSummary summarize_numbers(const Tensor& tensor, bool drop_pages) {
  check_readable(tensor);
  NumberSummary summary;
  visit_reader(tensor.dtype(), [&]<class Reader>() { summarize<Reader>(tensor, drop_pages, summary); });
  return summary;
}

NumberDifference difference(const Tensor& a, const Tensor& b, double tolerance) {
  check_readable(a);
  check_readable(b);
  TERN_CHECK(a.shape() == IntArrayRef(b.shape()), ShapeError, "tensors of shapes {} and {} are compared",
             to_string(a.shape()), to_string(b.shape()));
  NumberDifference result;
  if (a.numel() == 0) return result;
  if (a.dtype() == b.dtype() && a.is_contiguous() && b.is_contiguous() &&
      std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0)
    return result;
  Blocks left(a), right(b);
  std::vector<Exact> x, y;
  int64_t position = 0;
  // Blocks end where runs do, which differ with the strides: what is left over is kept.
  size_t used_x = 0, used_y = 0;
  for (; position < a.numel(); ++position, ++used_x, ++used_y) {
    if (used_x == x.size()) {
      left.next(x);
      used_x = 0;
    }
    if (used_y == y.size()) {
      right.next(y);
      used_y = 0;
    }
    const double d = std::hypot(distance(x[used_x].real, y[used_y].real),
                                distance(x[used_x].imaginary, y[used_y].imaginary));
    result.largest = std::max(result.largest, d);
    if (d > tolerance) {
      if (result.different++ == 0) result.first = position;
    }
  }
  return result;
}

}  // namespace tern::io
