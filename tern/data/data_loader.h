// DataLoader: batches of a dataset or of a stream, made in worker threads ahead of their use. Orders are in
// samplers.h, streams in iterable_dataset.h, the making of a batch in dataset.h and example.h.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "tern/core/device.h"
#include "tern/core/generator.h"
#include "tern/data/dataset.h"
#include "tern/data/example.h"
#include "tern/data/iterable_dataset.h"
#include "tern/data/samplers.h"

namespace tern::data {

/// Which part of each batch a loader has, where several processes share every batch.
struct BatchPart {
  int64_t rank = 0;
  int64_t parts = 1;
};

/// How a DataLoader forms its batches.
struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;        ///< a new random order in every epoch
  SamplerHandle sampler = {};  ///< the order; not together with shuffle
  std::shared_ptr<BatchSampler> batch_sampler =
      {};                                   ///< the batches; not together with the three above or drop_last
  int64_t num_workers = 0;                  ///< threads; 0: batches are made when they are asked for
  int64_t prefetch_factor = 2;              ///< batches that each worker may be ahead
  bool drop_last = false;                   ///< leave out a last batch that is not full
  BatchPart part = {};                      ///< of each batch; batch_size is that of the whole
  CollateFn collate_fn = {};                ///< by default the dataset's get_batch()
  std::optional<uint64_t> seed = {};        ///< of shuffling and of random transforms
  std::optional<Generator> generator = {};  ///< the seed is drawn from it if `seed` is not given
  std::optional<Device> device = {};        ///< batches are moved there; by default they stay where they are
  bool pin_memory = false;                  ///< batches lie in pinned memory, for copies that do not block
};

/// Where a loader stands: with the seeds, all that is needed to go on in the middle of an epoch.
struct DataLoaderState {
  uint64_t seed = 0;          ///< of random transforms
  uint64_t sampler_seed = 0;  ///< of the order
  int64_t epoch = 0;
  int64_t batch = 0;  ///< batches of this epoch that have been handed out
  int64_t batch_size = 0;
  int64_t dataset_size = 0;  ///< 0 for a stream that does not know its size
  bool operator==(const DataLoaderState&) const = default;
};

/// Batches of a dataset:
///
///     data::DataLoader loader(train_set, {.batch_size = 256, .shuffle = true, .num_workers = 2});
///     for (int epoch = 0; epoch < 5; ++epoch)
///       for (auto& [x, y] : loader) ...
///
/// Every begin() starts a new epoch with a new order, derived from (seed, epoch); the first is epoch 0.
/// Batches and their order are the same whatever the number of workers; so are random numbers that the
/// dataset or the collate_fn draw from the default generator, which is one of the loader's own, seeded anew
/// for each batch from (seed, epoch, number of the batch). Without a seed and a generator, the seed is drawn
/// from the default generator when the loader is made.
///
/// With `part`, loaders of one seed in several processes share every batch: each has a part of it, of equal
/// length up to one sample, in their order. A batch with fewer samples than parts leaves some without one:
/// they have its first, with weight() 0.
///
/// The samples of an IterableDataset come in the order of its stream: workers take turns to read it, and what
/// it gave is made into batches side by side. Resuming reads what had been handed out once more, and makes
/// nothing of it. Leaving the loop early waits for the batch that is being read.
///
/// Workers use streams of their own on every GPU, those of an IterableDataset one for all: what they or the
/// collate_fn put there is on its way, through pinned memory, while the batches before it are computed, and
/// the consumer's current stream waits for it. They have the settings of the thread that started the epoch:
/// default device, current GPU, grad mode, autocast.
///
/// What the dataset throws comes out of begin() or ++ at the batch's turn, with epoch, batch and sample in
/// its message (a tern::Error keeps its type, another exception is nested in a DataError); the epoch is over
/// then and the loader can be used again. Leaving the loop early stops the workers, which finish the batch
/// they are at. A loader is for one thread; several loaders may share a dataset.
class DataLoader {
  struct Core;
  class Epoch;

 public:
  /// Throws ValueError for batch_size, prefetch_factor < 1, num_workers outside 0 to 256, a part that is
  /// none, or options that exclude each other; DeviceError for a device that is not there.
  explicit DataLoader(DatasetHandle dataset, DataLoaderOptions options = {});
  /// Of a stream; throws ValueError also for shuffle, sampler and batch_sampler, which need indices.
  explicit DataLoader(IterableHandle dataset, DataLoaderOptions options = {});

  /// A single pass over one epoch. Moving on waits for the next batch.
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    Iterator(Iterator&&) noexcept;
    Iterator& operator=(Iterator&&) noexcept;
    ~Iterator();

    /// The batch; valid until the iterator moves on.
    Batch& operator*() const;
    Batch* operator->() const { return &**this; }
    /// What this part's mean counts for in the mean over all parts, so that they come to the mean of the
    /// whole batch: its share of the samples, times the number of parts. 1 where batches are not shared.
    double weight() const;
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const;

   private:
    friend class DataLoader;
    explicit Iterator(std::unique_ptr<Epoch> epoch);
    std::unique_ptr<Epoch> epoch_;
  };

  /// Starts the next epoch and waits for its first batch.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  /// Batches in an epoch (`len` in Python), samples in the dataset. Throws TypeError for a stream that does
  /// not know its size.
  int64_t size() const;
  int64_t dataset_size() const;
  /// Batches in an epoch; none for a stream that does not know its size.
  std::optional<int64_t> known_size() const;
  /// Throws TypeError for a stream.
  const Dataset& dataset() const;

  /// The number of the epoch that the next begin() starts.
  int64_t next_epoch() const;
  /// The next begin() starts epoch `epoch` at its first batch. Throws ValueError if negative.
  void set_epoch(int64_t epoch);

  /// How many batches of which epoch have been handed out, in the epoch that was started last; after its end,
  /// the start of the next one.
  DataLoaderState state() const;
  /// Goes on where `state` was taken: the next begin() starts its epoch at its batch, with its seed. Throws
  /// ValueError if the state is from another size of batch or dataset, or out of range.
  void load_state(const DataLoaderState& state);

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace tern::data
