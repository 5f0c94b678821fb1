// Where a DataLoader's batches come from: a dataset with indices and its sampler, or a stream. Which thread
// does what is in data_loader.cpp. Not public.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "tern/data/data_loader.h"

namespace tern::data::detail {

/// A batch that has been read and is to be made.
struct BatchJob {
  std::function<Batch()> make;  ///< in any thread, side by side with those of other batches
  double weight = 1;            ///< DataLoader::Iterator::weight()
};

/// The batches of one epoch, one after the other; for one thread at a time.
class BatchReader {
 public:
  virtual ~BatchReader() = default;
  /// The next batch; none after the last one.
  virtual std::optional<BatchJob> next() = 0;
};

/// The batches of all epochs. It outlives its readers and their jobs.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// The batches of epoch `key.epoch`, from the first on.
  virtual std::unique_ptr<BatchReader> open(const RandomKey& key) const = 0;
  /// Batches in an epoch, samples in the dataset; none where the number is not known.
  virtual std::optional<int64_t> size() const = 0;
  virtual std::optional<int64_t> dataset_size() const = 0;
  /// The dataset with indices; null for a stream.
  virtual const Dataset* dataset() const { return nullptr; }
  /// What the order is keyed by.
  virtual uint64_t sampler_seed() const { return 0; }
  virtual void set_sampler_seed(uint64_t) {}
};

/// Batches of the samples that the sampler chooses. Without a collate_fn the dataset makes them.
std::unique_ptr<BatchSource> indexed_batches(DatasetHandle dataset, std::shared_ptr<BatchSampler> sampler,
                                             BatchPart part, CollateFn collate_fn);

/// Batches of `batch_size` samples as the stream gives them. Every part reads all samples and makes its own.
std::unique_ptr<BatchSource> streamed_batches(IterableHandle dataset, int64_t batch_size, bool drop_last,
                                              BatchPart part, CollateFn collate_fn);

}  // namespace tern::data::detail
