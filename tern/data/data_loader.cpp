// The DataLoader: workers claim batches by number and put them into a ring, from which the consumer takes
// them in order.
#include "tern/data/data_loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "tern/base/check.h"
#include "tern/base/parallel.h"
#include "tern/device/cuda.h"
#include "tern/device/event.h"
#include "tern/ops/thread_settings.h"

namespace tern::data {

/// What a loader and its running epochs share; it outlives the loader while an iterator is in use.
struct DataLoader::Core {
  DatasetHandle dataset;
  std::shared_ptr<BatchSampler> batch_sampler;
  int64_t num_workers;
  int64_t prefetch_factor;
  BatchPart part;
  CollateFn collate_fn;
  std::optional<Device> device;
  bool pin_memory;
  int64_t batch_size;
  uint64_t seed;

  int64_t next_epoch = 0;
  int64_t next_batch = 0;    ///< at which the next epoch starts
  int64_t epochs_begun = 0;  ///< tells the epoch that was started last from older ones still in use
  DataLoaderState position = {};
};

/// One pass over the batches of an epoch.
class DataLoader::Epoch {
 public:
  explicit Epoch(std::shared_ptr<Core> core);
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;
  ~Epoch() { stop(); }

  /// Makes the next batch the current one. After the last one, or when it throws, the epoch is done.
  void advance();
  bool done() const { return done_; }
  Batch& current() { return current_; }
  double weight() const;

 private:
  struct Slot {
    bool ready = false;
    Batch batch;
    std::vector<std::pair<Device, Event>> arrivals;  ///< the GPUs that the batch is on its way to
    std::exception_ptr error;
  };

  std::vector<int64_t> own_part(const std::vector<int64_t>& whole) const;
  Batch make(size_t number) const;
  void place(Batch& batch) const;
  void set_up_worker() const;
  Batch take(size_t number);
  void work();
  void stop();

  std::shared_ptr<Core> core_;
  int64_t number_;
  int64_t begun_;
  RandomKey key_;
  std::vector<std::vector<int64_t>> batches_;
  size_t taken_;  ///< batches that the consumer has had; changed under the mutex, by the consumer alone
  bool done_ = false;
  Batch current_;

  std::mutex mutex_;
  std::condition_variable batch_ready_;
  std::condition_variable slot_free_;
  std::vector<Slot> ring_;                              ///< batch n lies at n modulo the size
  size_t claimed_ = 0;                                  ///< batches that workers have begun
  const ThreadSettings settings_;                       ///< the consumer's
  std::vector<std::pair<Device, Event>> begun_events_;  ///< what the consumer had given each GPU at the start
  std::vector<Event> ended_events_;                     ///< what each worker had given each GPU at its end
  bool stopped_ = false;
  std::vector<std::thread> workers_;
};

namespace {

/// Apart from the streams of samples.
Generator batch_generator(const RandomKey& key, size_t number) {
  constexpr uint64_t kOfBatches = 0xba7c4;
  Random random = key.child(kOfBatches).random(static_cast<int64_t>(number));
  const uint64_t high = random.bits();
  return Generator(high << 32 | random.bits());
}

}  // namespace

DataLoader::Epoch::Epoch(std::shared_ptr<Core> core)
    : core_(std::move(core)),
      number_(core_->next_epoch),
      begun_(++core_->epochs_begun),
      key_{core_->seed, number_},
      batches_(core_->batch_sampler->batches(number_)) {
  taken_ = std::min(static_cast<size_t>(std::exchange(core_->next_batch, 0)), batches_.size());
  claimed_ = taken_;
  core_->next_epoch = number_ + 1;
  core_->position.epoch = number_;
  core_->position.batch = static_cast<int64_t>(taken_);
  const size_t left = batches_.size() - taken_;
  const size_t workers = std::min(static_cast<size_t>(core_->num_workers), left);
  if (workers == 0) return;
  for (int i = 0; i < cuda::device_count(); ++i) {
    const Device gpu(DeviceType::CUDA, i);
    begun_events_.emplace_back(gpu, Event()).second.record(current_stream(gpu));
  }
  ring_.resize(std::min(workers * static_cast<size_t>(core_->prefetch_factor), left));
  try {
    for (size_t i = 0; i < workers; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    stop();
    TERN_THROW(Error, "DataLoader: cannot start {} worker threads: {}; use a smaller num_workers", workers,
               error.what());
  }
}

namespace {

/// Where part `rank` of `size` samples begins.
int64_t begin_of(const BatchPart& part, int64_t rank, size_t size) {
  return static_cast<int64_t>(size) * rank / part.parts;
}

}  // namespace

std::vector<int64_t> DataLoader::Epoch::own_part(const std::vector<int64_t>& whole) const {
  const BatchPart& part = core_->part;
  const int64_t begin = begin_of(part, part.rank, whole.size());
  const int64_t end = begin_of(part, part.rank + 1, whole.size());
  if (begin == end) return {whole.begin(), whole.begin() + std::min<int64_t>(1, std::ssize(whole))};
  return {whole.begin() + begin, whole.begin() + end};
}

double DataLoader::Epoch::weight() const {
  const BatchPart& part = core_->part;
  const size_t size = batches_[taken_ - 1].size();
  if (part.parts == 1 || size == 0) return 1;
  const int64_t own = begin_of(part, part.rank + 1, size) - begin_of(part, part.rank, size);
  return static_cast<double>(own * part.parts) / static_cast<double>(size);
}

/// Makes batch `number`; called from any thread. What draws random numbers without a RandomKey gets those of
/// this batch, whoever makes it, and leaves the consumer's alone.
Batch DataLoader::Epoch::make(size_t number) const {
  const std::vector<int64_t> indices = own_part(batches_[number]);
  const Dataset& dataset = *core_->dataset;
  const auto where = [&] { return fmt::format("DataLoader: epoch {}, batch {}", number_, number); };
  const DefaultGeneratorGuard guard(batch_generator(key_, number));
  try {
    if (!core_->collate_fn) return dataset.get_batch(indices, key_);
    std::vector<Example> examples;
    examples.reserve(indices.size());
    for (const int64_t index : indices) examples.push_back(sample_with_context(dataset, index, key_));
    return core_->collate_fn(examples);
  } catch (Error& error) {
    error.add_context(where());
    throw;
  } catch (const std::exception& error) {
    std::throw_with_nested(DataError(fmt::format("{}: {}", where(), error.what())));
  }
}

/// Brings a batch to where the options want it.
void DataLoader::Epoch::place(Batch& batch) const {
  for (size_t i = 0; i < batch.size(); ++i) {
    if (core_->pin_memory && batch[i].is_cpu()) batch[i] = batch[i].pin_memory();
    if (core_->device) batch[i] = batch[i].to(*core_->device, {.non_blocking = true});
  }
}

void DataLoader::Epoch::set_up_worker() const {
  settings_.apply();
  // The workers run side by side; the kernels inside them need not.
  set_thread_local_num_threads(1);
  for (const auto& [gpu, event] : begun_events_) {
    cuda::set_stream(new_stream(gpu));
    event.wait(current_stream(gpu));
  }
}

void DataLoader::Epoch::work() {
  std::exception_ptr failure;  // of the setting up, for the first batch
  try {
    set_up_worker();
  } catch (...) {
    failure = std::current_exception();
  }
  std::unique_lock lock(mutex_);
  while (true) {
    slot_free_.wait(
        lock, [&] { return stopped_ || claimed_ == batches_.size() || claimed_ < taken_ + ring_.size(); });
    if (stopped_ || claimed_ == batches_.size()) {
      try {
        for (const auto& [gpu, event] : begun_events_)
          ended_events_.emplace_back().record(current_stream(gpu));
      } catch (...) {  // of a GPU that is lost, which runs nothing any more
      }
      return;
    }
    const size_t number = claimed_++;
    lock.unlock();
    Batch batch;
    std::vector<std::pair<Device, Event>> arrivals;
    std::exception_ptr error;
    try {
      if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
      batch = make(number);
      place(batch);
      for (const auto& [gpu, event] : begun_events_)
        if (std::ranges::any_of(batch.tensors(), [&on = gpu](const Tensor& x) { return x.device() == on; }))
          arrivals.emplace_back(gpu, Event()).second.record(current_stream(gpu));
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    Slot& slot = ring_[number % ring_.size()];
    slot.batch = std::move(batch);
    slot.arrivals = std::move(arrivals);
    slot.error = std::move(error);
    slot.ready = true;
    batch_ready_.notify_one();
  }
}

Batch DataLoader::Epoch::take(size_t number) {
  if (workers_.empty()) {
    Batch batch = make(number);
    place(batch);
    ++taken_;
    return batch;
  }
  Batch batch;
  std::vector<std::pair<Device, Event>> arrivals;
  std::exception_ptr error;
  {
    std::unique_lock lock(mutex_);
    Slot& slot = ring_[number % ring_.size()];
    batch_ready_.wait(lock, [&] { return slot.ready; });
    batch = std::exchange(slot.batch, Batch());
    arrivals = std::exchange(slot.arrivals, {});
    error = std::exchange(slot.error, nullptr);
    slot.ready = false;
    ++taken_;
  }
  slot_free_.notify_all();
  if (error) std::rethrow_exception(std::move(error));
  for (const auto& [gpu, event] : arrivals) event.wait(current_stream(gpu));
  if (!arrivals.empty())
    for (size_t i = 0; i < batch.size(); ++i)
      if (batch[i].is_cuda()) batch[i].record_stream(current_stream(batch[i].device()));
  return batch;
}

void DataLoader::Epoch::advance() {
  if (done_) return;
  const bool latest = core_->epochs_begun == begun_;
  current_ = Batch();
  if (taken_ == batches_.size()) {
    done_ = true;
    stop();
    if (latest) {
      core_->position.epoch = number_ + 1;
      core_->position.batch = 0;
    }
    return;
  }
  try {
    current_ = take(taken_);
  } catch (...) {
    done_ = true;
    stop();
    throw;
  }
  if (latest) core_->position.batch = static_cast<int64_t>(taken_);
}

void DataLoader::Epoch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  slot_free_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  // Whoever stops may free next what the workers' last kernels read. Errors of batches that nobody takes are
  // nobody's.
  for (const Event& event : ended_events_) event.wait_until_done();
  ended_events_.clear();
}

DataLoader::DataLoader(DatasetHandle dataset, DataLoaderOptions options) {
  TERN_CHECK(options.num_workers >= 0 && options.num_workers <= 256, ValueError,
             "DataLoader: num_workers must be 0 to 256, got {}", options.num_workers);
  TERN_CHECK(options.prefetch_factor >= 1 && options.prefetch_factor <= 4096, ValueError,
             "DataLoader: prefetch_factor must be 1 to 4096, got {}", options.prefetch_factor);
  TERN_CHECK(options.batch_size >= 1, ValueError, "DataLoader: batch_size must be positive, got {}",
             options.batch_size);
  TERN_CHECK(options.part.parts >= 1 && options.part.rank >= 0 && options.part.rank < options.part.parts,
             ValueError, "DataLoader: there is no part {} of {}", options.part.rank, options.part.parts);
  TERN_CHECK(!(options.sampler && options.shuffle), ValueError,
             "DataLoader: sampler and shuffle exclude each other: a sampler decides the order itself");
  TERN_CHECK(!options.batch_sampler ||
                 (options.batch_size == 1 && !options.shuffle && !options.sampler && !options.drop_last),
             ValueError, "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last");
  if (options.device)
    options.device = with_context("DataLoader", [&] { return resolve_device(*options.device); });

  const uint64_t seed = options.seed ? *options.seed : draw_seed(std::move(options.generator));
  std::shared_ptr<BatchSampler> batches = std::move(options.batch_sampler);
  if (!batches) {
    SamplerHandle order = std::move(options.sampler);
    if (!order && options.shuffle) order = RandomSampler(dataset->size(), {.seed = seed});
    if (!order) order = SequentialSampler(dataset->size());
    batches = std::make_shared<BatchSampler>(std::move(order), options.batch_size, options.drop_last);
  }
  core_ = std::make_shared<Core>(Core{.dataset = std::move(dataset),
                                      .batch_sampler = std::move(batches),
                                      .num_workers = options.num_workers,
                                      .prefetch_factor = options.prefetch_factor,
                                      .part = options.part,
                                      .collate_fn = std::move(options.collate_fn),
                                      .device = options.device,
                                      .pin_memory = options.pin_memory,
                                      .batch_size = options.batch_size,
                                      .seed = seed});
  core_->position = {.seed = seed,
                     .sampler_seed = core_->batch_sampler->seed(),
                     .batch_size = core_->batch_size,
                     .dataset_size = core_->dataset->size()};
}

DataLoader::Iterator::Iterator(std::unique_ptr<Epoch> epoch) : epoch_(std::move(epoch)) {}
DataLoader::Iterator::Iterator(Iterator&&) noexcept = default;
DataLoader::Iterator& DataLoader::Iterator::operator=(Iterator&&) noexcept = default;
DataLoader::Iterator::~Iterator() = default;

Batch& DataLoader::Iterator::operator*() const {
  TERN_CHECK(epoch_ && !epoch_->done(), ValueError,
             "DataLoader: there is no batch here: the epoch has ended");
  return epoch_->current();
}

double DataLoader::Iterator::weight() const {
  TERN_CHECK(epoch_ && !epoch_->done(), ValueError,
             "DataLoader: there is no batch here: the epoch has ended");
  return epoch_->weight();
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  TERN_CHECK(epoch_ && !epoch_->done(), ValueError, "DataLoader: cannot move on: the epoch has ended");
  epoch_->advance();
  return *this;
}

bool DataLoader::Iterator::operator==(std::default_sentinel_t) const { return !epoch_ || epoch_->done(); }

DataLoader::Iterator DataLoader::begin() {
  auto epoch = std::make_unique<Epoch>(core_);
  epoch->advance();
  return Iterator(std::move(epoch));
}

int64_t DataLoader::size() const { return core_->batch_sampler->size(); }
int64_t DataLoader::dataset_size() const { return core_->dataset->size(); }
const Dataset& DataLoader::dataset() const { return *core_->dataset; }
int64_t DataLoader::next_epoch() const { return core_->next_epoch; }

void DataLoader::set_epoch(int64_t epoch) {
  TERN_CHECK(epoch >= 0, ValueError, "DataLoader: the epoch must not be negative, got {}", epoch);
  core_->next_epoch = epoch;
  core_->next_batch = 0;
  core_->position.epoch = epoch;
  core_->position.batch = 0;
}

DataLoaderState DataLoader::state() const { return core_->position; }

void DataLoader::load_state(const DataLoaderState& state) {
  TERN_CHECK(state.batch_size == core_->batch_size, ValueError,
             "DataLoader: the state is from batches of {}, this loader has batches of {}", state.batch_size,
             core_->batch_size);
  TERN_CHECK(state.dataset_size == core_->dataset->size(), ValueError,
             "DataLoader: the state is from a dataset of {} samples, this one has {}", state.dataset_size,
             core_->dataset->size());
  TERN_CHECK(state.epoch >= 0 && state.batch >= 0 && state.batch <= size(), ValueError,
             "DataLoader: the state's epoch {} or batch {} is out of range (an epoch has {} batches)",
             state.epoch, state.batch, size());
  core_->seed = state.seed;
  core_->batch_sampler->set_seed(state.sampler_seed);
  core_->next_epoch = state.epoch;
  core_->next_batch = state.batch;
  core_->position = state;
}

}  // namespace tern::data
