// The defaults of Dataset, and the datasets that are made of tensors or of other datasets.
#include "tern/data/dataset.h"

#include <algorithm>
#include <cmath>

#include "tern/base/check.h"
#include "tern/data/context.h"
#include "tern/data/rows.h"
#include "tern/data/samplers.h"

namespace tern::data {

namespace detail {

void check_sample_index(int64_t index, int64_t size, const char* dataset) {
  TERN_CHECK(index >= 0 && index < size, IndexError, "{}: index {} is out of range for {} samples", dataset,
             index, size);
}

void throw_null_dataset() { throw ValueError("the dataset is a null pointer"); }

}  // namespace detail

Example Dataset::sample(int64_t index, const RandomKey&) const { return get(index); }

Batch Dataset::get_batch(IntArrayRef indices, const RandomKey& key) const {
  TERN_CHECK(!indices.empty(), ValueError, "get_batch: the list of indices is empty");
  std::vector<Example> examples;
  examples.reserve(indices.size());
  for (const int64_t index : indices) examples.push_back(sample_with_context(*this, index, key));
  return default_collate(examples);
}

Example sample_with_context(const Dataset& dataset, int64_t index, const RandomKey& key) {
  return detail::with_data_context([&] { return fmt::format("sample {}", index); },
                                   [&] { return dataset.sample(index, key); });
}

TensorDataset::TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  TERN_CHECK(!tensors_.empty(), ValueError, "TensorDataset: needs at least one tensor");
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TERN_CHECK(tensors_[i].dim() > 0, ShapeError,
               "TensorDataset: tensor {} has no dimensions; dimension 0 counts the samples", i);
    TERN_CHECK(tensors_[i].size(0) == tensors_[0].size(0), ShapeError,
               "TensorDataset: size mismatch between tensors: tensor 0 is {} and tensor {} is {}; their "
               "first sizes must "
               "be equal",
               to_string(tensors_[0].shape()), i, to_string(tensors_[i].shape()));
  }
  size_ = tensors_[0].size(0);
}

Example TensorDataset::get(int64_t index) const {
  detail::check_sample_index(index, size_, "TensorDataset");
  std::vector<Tensor> rows;
  for (const Tensor& tensor : tensors_) rows.push_back(tensor.select(/*dim=*/0, index));
  return rows;
}

Batch TensorDataset::get_batch(IntArrayRef indices, const RandomKey&) const {
  TERN_CHECK(!indices.empty(), ValueError, "TensorDataset: the list of indices of the batch is empty");
  for (const int64_t index : indices) detail::check_sample_index(index, size_, "TensorDataset");
  std::vector<Tensor> rows;
  for (const Tensor& tensor : tensors_) rows.push_back(detail::gather_rows(tensor, indices));
  return rows;
}

Subset::Subset(DatasetHandle dataset, std::vector<int64_t> indices)
    : dataset_(std::move(dataset)),
      indices_(std::make_shared<const std::vector<int64_t>>(std::move(indices))) {
  const int64_t size = dataset_->size();
  for (size_t i = 0; i < indices_->size(); ++i) {
    const int64_t index = (*indices_)[i];
    TERN_CHECK(index >= 0 && index < size, IndexError,
               "Subset: index {} (number {} of the list) is out of range for a dataset of {} samples", index,
               i, size);
  }
}

int64_t Subset::inner_index(int64_t index) const {
  detail::check_sample_index(index, size(), "Subset");
  return (*indices_)[static_cast<size_t>(index)];
}

Example Subset::sample(int64_t index, const RandomKey& key) const {
  return dataset_->sample(inner_index(index), key);
}

Batch Subset::get_batch(IntArrayRef indices, const RandomKey& key) const {
  std::vector<int64_t> inner;
  inner.reserve(indices.size());
  for (const int64_t index : indices) inner.push_back(inner_index(index));
  return dataset_->get_batch(inner, key);
}

ConcatDataset::ConcatDataset(std::vector<DatasetHandle> datasets) : datasets_(std::move(datasets)) {
  TERN_CHECK(!datasets_.empty(), ValueError, "ConcatDataset: the list of datasets is empty");
  int64_t end = 0;
  for (const DatasetHandle& dataset : datasets_) ends_.push_back(end += dataset->size());
}

ConcatDataset::Place ConcatDataset::find(int64_t index) const {
  detail::check_sample_index(index, size(), "ConcatDataset");
  const auto part = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  return {part, part == 0 ? index : index - ends_[part - 1]};
}

Example ConcatDataset::get(int64_t index) const {
  const Place place = find(index);
  return datasets_[place.part]->get(place.index);
}

Example ConcatDataset::sample(int64_t index, const RandomKey& key) const {
  const Place place = find(index);
  return datasets_[place.part]->sample(place.index, key.child(place.part));
}

Batch ConcatDataset::get_batch(IntArrayRef indices, const RandomKey& key) const {
  // A batch out of one part is that part's own; otherwise sample by sample.
  std::vector<int64_t> inner;
  size_t part = 0;
  for (const int64_t index : indices) {
    const Place place = find(index);
    if (!inner.empty() && place.part != part) return Dataset::get_batch(indices, key);
    part = place.part;
    inner.push_back(place.index);
  }
  return inner.empty() ? Dataset::get_batch(indices, key)
                       : datasets_[part]->get_batch(inner, key.child(part));
}

std::vector<Subset> random_split(DatasetHandle dataset, const std::vector<SplitLength>& lengths,
                                 std::optional<Generator> generator) {
  const int64_t size = dataset->size();
  TERN_CHECK(!lengths.empty(), ValueError, "random_split: the list of lengths is empty");
  std::vector<int64_t> counts;
  double sum = 0;
  for (const SplitLength& length : lengths) {
    TERN_CHECK(length.is_fraction == lengths[0].is_fraction, ValueError,
               "random_split: lengths must be all counts (integers) or all fractions (floating point)");
    TERN_CHECK(length.amount >= 0 && std::isfinite(length.amount), ValueError,
               "random_split: a length must not be negative, got {}", length.amount);
    sum += length.amount;
    counts.push_back(static_cast<int64_t>(
        length.is_fraction ? std::floor(std::min(length.amount, 1.0) * static_cast<double>(size))
                           : length.amount));
  }
  if (lengths[0].is_fraction) {
    int64_t left = size;
    for (const int64_t count : counts) left -= count;
    TERN_CHECK(std::abs(sum - 1) < 1e-9 && left >= 0, ValueError,
               "random_split: the fractions sum to {}, not to 1", sum);
    for (size_t i = 0; left > 0; i = (i + 1) % counts.size(), --left) ++counts[i];
  } else {
    TERN_CHECK(sum == static_cast<double>(size), ValueError,
               "random_split: the lengths sum to {}, the dataset has {} samples", sum, size);
  }
  const std::vector<int64_t> order =
      RandomSampler(size, {.generator = std::move(generator)}).indices(/*epoch=*/0);
  std::vector<Subset> parts;
  auto at = order.begin();
  for (const int64_t count : counts) {
    parts.emplace_back(dataset, std::vector<int64_t>(at, at + count));
    at += count;
  }
  return parts;
}

}  // namespace tern::data
