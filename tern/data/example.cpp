// Examples, and their collation into batches.
#include "tern/data/example.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "tern/base/check.h"
#include "tern/data/rows.h"
#include "tern/ops/shape.h"

namespace tern::data {
namespace {

template <class T>
Tensor scalar_tensor(T number) {
  Tensor tensor = detail::make_tensor({}, dtype_of<T>());
  *tensor.data<T>() = number;
  return tensor;
}

/// The i-th tensors of all examples as one, or those that have the name of the first example's.
Tensor stack_field(const std::vector<Example>& examples, size_t i) {
  const std::vector<std::string>& names = examples[0].names;
  const auto field = [&](const Example& example) -> const Tensor& {
    return names.empty() ? example[i] : example[names[i]];
  };
  const auto label = [&] { return names.empty() ? std::to_string(i) : fmt::format("'{}'", names[i]); };
  const Tensor& first = field(examples[0]);
  bool plain = true;
  for (size_t entry = 0; entry < examples.size(); ++entry) {
    const Tensor& tensor = field(examples[entry]);
    TERN_CHECK(IntArrayRef(tensor.shape()) == IntArrayRef(first.shape()), DataError,
               "default_collate: tensors {} of the examples differ in shape: {} at entry 0 and {} at entry "
               "{}; make them "
               "equal in a transform (Resize, CenterCrop) or pass a collate_fn",
               label(), to_string(first.shape()), to_string(tensor.shape()), entry);
    TERN_CHECK(tensor.dtype() == first.dtype(), DataError,
               "default_collate: tensors {} of the examples differ in dtype: {} at entry 0 and {} at entry "
               "{}; convert "
               "them in the dataset",
               label(), name(first.dtype()), name(tensor.dtype()), entry);
    TERN_CHECK(tensor.device() == first.device(), DataError,
               "default_collate: tensors {} of the examples are on different devices: {} at entry 0 and {} "
               "at entry {}",
               label(), first.device().str(), tensor.device().str(), entry);
    plain = plain && detail::is_plain(tensor);
  }
  if (!plain) {
    TensorList tensors;
    for (const Example& example : examples) tensors.push_back(field(example));
    return stack(tensors, /*dim=*/0);
  }
  Shape shape;
  shape.resize(first.shape().size() + 1);
  shape[0] = static_cast<int64_t>(examples.size());
  std::copy(first.shape().begin(), first.shape().end(), shape.begin() + 1);
  Tensor batch = detail::make_tensor(shape, first.dtype());
  char* to = static_cast<char*>(batch.data_ptr());
  const size_t row_bytes = first.nbytes();
  if (row_bytes == 0) return batch;
  for (const Example& example : examples) {
    std::memcpy(to, field(example).data_ptr(), row_bytes);
    to += row_bytes;
  }
  return batch;
}

std::string names_of(const Example& example) {
  if (example.names.empty()) return "none";
  return fmt::format("'{}'", fmt::join(example.names, "', '"));
}

}  // namespace

Tensor Value::from_number(bool number) { return scalar_tensor(number); }
Tensor Value::from_number(double number) { return scalar_tensor(number); }
Tensor Value::from_number(int64_t number) { return scalar_tensor(number); }

Example::Example(std::initializer_list<Field> fields) {
  TERN_CHECK(fields.size() > 0, ValueError, "an example needs at least one tensor, the list is empty");
  for (const auto& [name, value] : fields) {
    TERN_CHECK(!contains(name), ValueError, "two tensors of the example have the name '{}'", name);
    push(Value(value).take());
    names.push_back(name);
  }
}

Example::Example(const std::vector<Tensor>& tensors) {
  TERN_CHECK(!tensors.empty(), ValueError, "an example needs at least one tensor, the list is empty");
  for (const Tensor& tensor : tensors) push(Tensor(tensor));
}

void Example::push(Tensor&& tensor) {
  TERN_CHECK(tensor.defined(), ValueError, "tensor {} of the example is undefined (default-constructed)",
             size());
  if (!data.defined())
    data = std::move(tensor);
  else if (!target.defined())
    target = std::move(tensor);
  else
    rest.push_back(std::move(tensor));
}

Tensor& Example::operator[](size_t i) {
  TERN_CHECK(i < size(), IndexError, "tensor {} of an example that has {}", i, size());
  return i == 0 ? data : i == 1 ? target : rest[i - 2];
}

bool Example::contains(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Tensor& Example::operator[](std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  TERN_CHECK(found != names.end(), IndexError, "no tensor of the example has the name '{}'; its names are {}",
             name, names_of(*this));
  return (*this)[static_cast<size_t>(found - names.begin())];
}

std::vector<Tensor> Example::tensors() const {
  std::vector<Tensor> all;
  for (size_t i = 0; i < size(); ++i) all.push_back((*this)[i]);
  return all;
}

void Example::check_size(size_t expected) const {
  TERN_CHECK(size() == expected, ValueError,
             "a batch of {} tensor{} cannot be taken apart into {}; use unpack<{}>(), tensors() or batch[i]",
             size(), size() == 1 ? "" : "s", expected, size());
}

Batch default_collate(const std::vector<Example>& examples) {
  TERN_CHECK(!examples.empty(), ValueError,
             "default_collate: there is nothing to collate, the list is empty");
  const size_t fields = examples[0].size();
  TERN_CHECK(fields > 0, DataError, "default_collate: the example at entry 0 has no tensors");
  for (size_t entry = 0; entry < examples.size(); ++entry) {
    TERN_CHECK(
        examples[entry].size() == fields, DataError,
        "default_collate: the examples differ in the number of tensors: {} at entry 0 and {} at entry {}",
        fields, examples[entry].size(), entry);
    TERN_CHECK(std::ranges::is_permutation(examples[entry].names, examples[0].names), DataError,
               "default_collate: the examples differ in the names of their tensors: {} at entry 0 and {} at "
               "entry {}",
               names_of(examples[0]), names_of(examples[entry]), entry);
  }
  std::vector<Tensor> stacked;
  for (size_t i = 0; i < fields; ++i) stacked.push_back(stack_field(examples, i));
  Batch batch(stacked);
  batch.names = examples[0].names;
  return batch;
}

}  // namespace tern::data
