// Batches by index and batches of a stream.
#include "tern/data/batch_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tern/base/check.h"
#include "tern/data/context.h"

namespace tern::data::detail {
namespace {

/// The samples of a batch that a part has.
struct Share {
  size_t begin;
  size_t end;
  double weight;
};

Share share_of(const BatchPart& part, size_t size) {
  const auto parts = static_cast<size_t>(part.parts), rank = static_cast<size_t>(part.rank);
  const size_t begin = size * rank / parts, end = size * (rank + 1) / parts;
  if (parts == 1 || size == 0) return {0, size, 1};
  if (begin == end) return {0, 1, 0};
  return {begin, end, static_cast<double>((end - begin) * parts) / static_cast<double>(size)};
}

/// Context of errors.
auto sample_number(int64_t position) {
  return [position] { return fmt::format("sample {}", position); };
}

class IndexedBatches final : public BatchSource {
 public:
  IndexedBatches(DatasetHandle dataset, std::shared_ptr<BatchSampler> sampler, BatchPart part,
                 CollateFn collate_fn)
      : dataset_(std::move(dataset)),
        sampler_(std::move(sampler)),
        part_(part),
        collate_fn_(std::move(collate_fn)) {}

  std::unique_ptr<BatchReader> open(const RandomKey& key) const override {
    return std::make_unique<Reader>(*this, key);
  }
  std::optional<int64_t> size() const override { return sampler_->size(); }
  std::optional<int64_t> dataset_size() const override { return dataset_->size(); }
  const Dataset* dataset() const override { return &*dataset_; }
  uint64_t sampler_seed() const override { return sampler_->seed(); }
  void set_sampler_seed(uint64_t seed) override { sampler_->set_seed(seed); }

 private:
  class Reader final : public BatchReader {
   public:
    Reader(const IndexedBatches& source, const RandomKey& key)
        : source_(source), key_(key), batches_(source.sampler_->batches(key.epoch)) {}

    std::optional<BatchJob> next() override {
      if (next_ == batches_.size()) return {};
      const std::vector<int64_t>& whole = batches_[next_++];
      const Share share = share_of(source_.part_, whole.size());
      std::vector<int64_t> own(whole.begin() + static_cast<std::ptrdiff_t>(share.begin),
                               whole.begin() + static_cast<std::ptrdiff_t>(share.end));
      return BatchJob{[&source = source_, key = key_, own = std::move(own)] { return source.make(own, key); },
                      share.weight};
    }

   private:
    const IndexedBatches& source_;
    RandomKey key_;
    std::vector<std::vector<int64_t>> batches_;
    size_t next_ = 0;
  };

  Batch make(const std::vector<int64_t>& indices, const RandomKey& key) const {
    if (!collate_fn_) return dataset_->get_batch(indices, key);
    std::vector<Example> examples;
    examples.reserve(indices.size());
    for (const int64_t index : indices) examples.push_back(sample_with_context(*dataset_, index, key));
    return collate_fn_(examples);
  }

  DatasetHandle dataset_;
  std::shared_ptr<BatchSampler> sampler_;
  BatchPart part_;
  CollateFn collate_fn_;
};

class StreamedBatches final : public BatchSource {
 public:
  StreamedBatches(IterableHandle dataset, int64_t batch_size, bool drop_last, BatchPart part,
                  CollateFn collate_fn)
      : dataset_(std::move(dataset)),
        batch_size_(batch_size),
        drop_last_(drop_last),
        part_(part),
        collate_fn_(collate_fn ? std::move(collate_fn) : default_collate) {}

  std::unique_ptr<BatchReader> open(const RandomKey& key) const override {
    return std::make_unique<Reader>(*this, key);
  }
  std::optional<int64_t> size() const override {
    const std::optional<int64_t> samples = dataset_->size();
    if (!samples) return {};
    return *samples / batch_size_ + (!drop_last_ && *samples % batch_size_ != 0 ? 1 : 0);
  }
  std::optional<int64_t> dataset_size() const override { return dataset_->size(); }

 private:
  class Reader final : public BatchReader {
   public:
    Reader(const StreamedBatches& source, const RandomKey& key)
        : source_(source), stream_(source.dataset_->stream(key)), size_(source.dataset_->size()) {}

    std::optional<BatchJob> next() override {
      std::vector<LazyExample> samples;
      while (!ended_ && std::ssize(samples) < source_.batch_size_) {
        if (auto sample = with_data_context(sample_number(position_), [&] { return read(); }))
          samples.push_back(std::move(*sample));
        else
          ended_ = true;
      }
      if (samples.empty() || (source_.drop_last_ && std::ssize(samples) < source_.batch_size_)) return {};
      const Share share = share_of(source_.part_, samples.size());
      const int64_t first = position_ - std::ssize(samples) + static_cast<int64_t>(share.begin);
      samples.erase(samples.begin() + static_cast<std::ptrdiff_t>(share.end), samples.end());
      samples.erase(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(share.begin));
      return BatchJob{
          [&source = source_, own = std::move(samples), first] { return source.make(own, first); },
          share.weight};
    }

   private:
    std::optional<LazyExample> read() {
      std::optional<LazyExample> sample = stream_();
      if (size_)
        TERN_CHECK(sample ? position_ < *size_ : position_ == *size_, DataError,
                   "the stream {} after {} samples, but its dataset has size {}", sample ? "goes on" : "ends",
                   position_, *size_);
      if (sample) ++position_;
      return sample;
    }

    const StreamedBatches& source_;
    SampleStream stream_;
    std::optional<int64_t> size_;
    int64_t position_ = 0;  ///< samples read
    bool ended_ = false;    ///< the stream is not asked again
  };

  /// The samples at `first` and after it.
  Batch make(const std::vector<LazyExample>& samples, int64_t first) const {
    std::vector<Example> examples;
    examples.reserve(samples.size());
    for (const LazyExample& sample : samples)
      examples.push_back(with_data_context(sample_number(first + std::ssize(examples)), sample));
    return collate_fn_(examples);
  }

  IterableHandle dataset_;
  int64_t batch_size_;
  bool drop_last_;
  BatchPart part_;
  CollateFn collate_fn_;
};

}  // namespace

std::unique_ptr<BatchSource> indexed_batches(DatasetHandle dataset, std::shared_ptr<BatchSampler> sampler,
                                             BatchPart part, CollateFn collate_fn) {
  return std::make_unique<IndexedBatches>(std::move(dataset), std::move(sampler), part,
                                          std::move(collate_fn));
}

std::unique_ptr<BatchSource> streamed_batches(IterableHandle dataset, int64_t batch_size, bool drop_last,
                                              BatchPart part, CollateFn collate_fn) {
  return std::make_unique<StreamedBatches>(std::move(dataset), batch_size, drop_last, part,
                                           std::move(collate_fn));
}

}  // namespace tern::data::detail
