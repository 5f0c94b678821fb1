// The streams that are made of other streams, and the sample that a stream gives.
#include "tern/data/iterable_dataset.h"

#include "tern/base/check.h"

namespace tern::data {

Example LazyExample::operator()() const {
  const auto* make = std::get_if<1>(&example_);
  return make ? (*make)() : std::get<0>(example_);
}

ChainDataset::ChainDataset(std::vector<IterableHandle> datasets) : datasets_(std::move(datasets)) {
  TERN_CHECK(!datasets_.empty(), ValueError, "ChainDataset: the list of datasets is empty");
}

SampleStream ChainDataset::stream(const RandomKey& key) const {
  return [datasets = datasets_, key, opened = size_t{0},
          part = std::optional<SampleStream>()]() mutable -> std::optional<LazyExample> {
    while (true) {
      if (part)
        if (auto sample = (*part)()) return sample;
      part.reset();
      if (opened == datasets.size()) return {};
      part = datasets[opened]->stream(key.child(opened));
      ++opened;
    }
  };
}

std::optional<int64_t> ChainDataset::size() const {
  int64_t sum = 0;
  for (const IterableHandle& dataset : datasets_) {
    const std::optional<int64_t> size = dataset->size();
    if (!size) return {};
    sum += *size;
  }
  return sum;
}

ShuffleBuffer::ShuffleBuffer(IterableHandle dataset, int64_t buffer_size)
    : dataset_(std::move(dataset)), buffer_size_(buffer_size) {
  TERN_CHECK(buffer_size >= 1, ValueError, "ShuffleBuffer: buffer_size must be positive, got {}",
             buffer_size);
}

SampleStream ShuffleBuffer::stream(const RandomKey& key) const {
  constexpr uint64_t kOfBuffers = 0x5b0f;  // apart from the dataset's own
  return [source = std::optional(dataset_->stream(key)), random = key.child(kOfBuffers).random(buffer_size_),
          size = static_cast<size_t>(buffer_size_),
          buffer = std::vector<LazyExample>()]() mutable -> std::optional<LazyExample> {
    const auto read = [&]() -> std::optional<LazyExample> {
      if (!source) return {};
      auto sample = (*source)();
      if (!sample) source.reset();  // it is not asked again
      return sample;
    };
    while (buffer.size() < size) {
      auto sample = read();
      if (!sample) break;
      buffer.push_back(std::move(*sample));
    }
    if (buffer.empty()) return {};
    std::swap(buffer[static_cast<size_t>(random.below(static_cast<int64_t>(buffer.size())))], buffer.back());
    LazyExample drawn = std::move(buffer.back());
    buffer.pop_back();
    return drawn;
  };
}

}  // namespace tern::data
