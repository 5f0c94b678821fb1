// The text of tensors against PyTorch's, kept in data/print_cases.txt (written by
// tests/support/make_print_cases.py).
#include "tern/ops/print.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tern/core/memory.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print_names.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

struct Case {
  DType dtype = DType::Float32;
  Shape shape;
  PrintOptions options;
  std::vector<std::string> values;
  std::string text;
  int line = 0;
};

/// The words of a line after its first.
std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line.substr(line.find(' ') == std::string::npos ? line.size() : line.find(' ')));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void set_option(PrintOptions& options, const std::string& word) {
  size_t equals = word.find('=');
  std::string key = word.substr(0, equals);
  int value = std::atoi(word.c_str() + equals + 1);
  if (key == "precision")
    options.precision = value;
  else if (key == "threshold")
    options.threshold = value;
  else if (key == "edgeitems")
    options.edgeitems = value;
  else if (key == "linewidth")
    options.linewidth = value;
  else if (key == "sci_mode")
    options.sci_mode = value != 0;
  else
    ADD_FAILURE() << "unknown option " << word;
}

std::vector<Case> read_cases() {
  auto path = std::filesystem::path(TERN_TESTS_DIR) / "ops/data/print_cases.txt";
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<Case> cases;
  Case current;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("dtype")) {
      current = Case();
      current.line = number;
      current.dtype = parse_dtype(words_of(line).at(0));
    } else if (line.starts_with("shape")) {
      for (const std::string& word : words_of(line)) current.shape.push_back(std::atoll(word.c_str()));
    } else if (line.starts_with("options")) {
      for (const std::string& word : words_of(line)) set_option(current.options, word);
    } else if (line.starts_with("values")) {
      current.values = words_of(line);
    } else if (line.starts_with("linear")) {
      double a = std::atof(words_of(line).at(0).c_str()), b = std::atof(words_of(line).at(1).c_str());
      for (int64_t i = 0; i < checked_numel(current.shape); ++i)
        current.values.push_back(std::to_string(static_cast<int64_t>(a + b * static_cast<double>(i))));
      if (is_floating_point(current.dtype)) {
        for (size_t i = 0; i < current.values.size(); ++i) {
          char text[64];
          std::snprintf(text, sizeof text, "%a", a + b * static_cast<double>(i));
          current.values[i] = text;
        }
      }
    } else if (line == "text") {
      while (std::getline(file, line) && line != "end") {
        ++number;
        current.text += (current.text.empty() ? "" : "\n") + line;
      }
      ++number;
      cases.push_back(current);
    }
  }
  return cases;
}

template <class T>
void write(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

/// One number of a case as `dtype`; a complex number's parts come one by one.
void write_value(char* out, const std::string& text, DType dtype) {
  double real = std::strtod(text.c_str(), nullptr);
  switch (dtype) {
    case DType::Float32:
    case DType::Complex64:
      return write(out, static_cast<float>(real));
    case DType::Float64:
    case DType::Complex128:
      return write(out, real);
    case DType::Float16:
      return write(out, Half(static_cast<float>(real)).bits);
    case DType::BFloat16:
      return write(out, BFloat16(static_cast<float>(real)).bits);
    default:
      break;
  }
  uint64_t integer = text[0] == '-' ? static_cast<uint64_t>(std::strtoll(text.c_str(), nullptr, 10))
                                    : std::strtoull(text.c_str(), nullptr, 10);
  std::memcpy(out, &integer, itemsize(dtype));  // little-endian: the low bytes come first
}

Tensor tensor_of(const Case& c) {
  Tensor x = empty_contiguous(c.shape, checked_numel(c.shape), c.dtype, kCPU);
  bool complex = c.dtype == DType::Complex64 || c.dtype == DType::Complex128;
  size_t step = itemsize(c.dtype) / (complex ? 2 : 1);
  EXPECT_EQ(c.values.size() * step, x.nbytes()) << "line " << c.line;
  for (size_t i = 0; i < c.values.size(); ++i)
    write_value(static_cast<char*>(x.data_ptr()) + i * step, c.values[i], c.dtype);
  return x;
}

TEST(Print, EqualsPyTorch) {
  std::vector<Case> cases = read_cases();
  EXPECT_GT(cases.size(), 400u);
  for (const Case& c : cases)
    EXPECT_EQ(to_string(tensor_of(c), c.options), c.text) << "print_cases.txt:" << c.line;
}

/// What PyTorch prints, with "@" for the device where tensors lie that are made without one.
std::string printed(std::string text) {
  const Device device = get_default_device();
  const std::string suffix = device.is_cpu() ? "" : ", device='" + device.str() + "'";
  for (size_t at; (at = text.find('@')) != std::string::npos;) text.replace(at, 1, suffix);
  return text;
}

TEST(Print, SaysWhatTheNumbersDoNot) {
  Tensor x = tensor({1.0, -2.5}, {.dtype = float32, .device = {}, .requires_grad = true});
  EXPECT_EQ(to_string(x), printed("tensor([ 1.0000, -2.5000]@, requires_grad=True)"));
  EXPECT_EQ(x.str(), to_string(x));
  EXPECT_EQ(to_string(exp(x)), printed("tensor([2.7183, 0.0821]@, grad_fn=<ExpBackward0>)"));
  EXPECT_EQ(to_string(x.detach()), printed("tensor([ 1.0000, -2.5000]@)"));
  EXPECT_EQ(to_string(to(x, float64).relu()),
            printed("tensor([1., 0.]@, dtype=torch.float64, grad_fn=<ReluBackward0>)"));
  EXPECT_EQ(to_string(to(x.cpu(), float64)),
            "tensor([ 1.0000, -2.5000], dtype=torch.float64, grad_fn=<ToCopyBackward0>)");
  std::ostringstream stream;
  stream << tensor({1, 2});
  EXPECT_EQ(stream.str(), printed("tensor([1, 2]@)"));
  EXPECT_EQ(to_string(Tensor()), "undefined tensor");
  std::ostringstream numbers;
  numbers << tensor({0.5}).item() << ' ' << tensor({-3}).item() << ' ' << tensor({true}).item();
  EXPECT_EQ(numbers.str(), "0.5 -3 True");
}

TEST(Print, PutsSuffixesOnNewLines) {
  Tensor x = full({13}, 0.5, {.dtype = float64, .device = {}, .requires_grad = true});
  EXPECT_EQ(to_string(x),
            printed("tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000,\n"
                    "        0.5000, 0.5000, 0.5000, 0.5000]@, dtype=torch.float64,\n"
                    "       requires_grad=True)"));
}

TEST(Print, ReadsViewsInTheirOrder) {
  Tensor x = arange(6).view({2, 3});
  EXPECT_EQ(to_string(x.t()), printed("tensor([[0, 3],\n        [1, 4],\n        [2, 5]]@)"));
  EXPECT_EQ(to_string(x.select(1, 2)), printed("tensor([2, 5]@)"));
  EXPECT_EQ(to_string(expand(tensor({7}), {2, 2})), printed("tensor([[7, 7],\n        [7, 7]]@)"));
}

TEST(Print, OptionsOfTheProcess) {
  set_printoptions({.precision = 2});
  EXPECT_EQ(to_string(tensor({1.12345})), printed("tensor([1.12]@)"));
  set_printoptions({});
  EXPECT_EQ(to_string(tensor({1.12345})), printed("tensor([1.1235]@)"));
  EXPECT_THROW(set_printoptions({.precision = -1}), ValueError);
}

TEST(Print, NamesOfGradientFunctions) {
  struct Row {
    const char* record;
    const char* printed;
  };
  constexpr Row rows[] = {{"add", "AddBackward0"},         {"log_softmax", "LogSoftmaxBackward0"},
                          {"add_", "AddBackward0"},        {"square", "PowBackward0"},
                          {"gelu(tanh)", "GeluBackward0"}, {"_unsafe_view", "UnsafeViewBackward0"},
                          {"sum.dim", "SumBackward1"},     {"conv2d", "ConvolutionBackward0"},
                          {"copy_", "CopyBackwards"},      {"log1p", "Log1PBackward0"}};
  for (const Row& row : rows) EXPECT_EQ(grad_fn_class(row.record), row.printed);
}

}  // namespace
}  // namespace tern
