// The DataLoader: workers take turns to read batches, make them side by side, and put them where the consumer
// takes them in order. What a batch is made from is in batch_source.cpp.
#include "tern/data/data_loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "tern/base/check.h"
#include "tern/base/parallel.h"
#include "tern/data/batch_source.h"
#include "tern/data/context.h"
#include "tern/device/cuda.h"
#include "tern/device/event.h"
#include "tern/ops/thread_settings.h"

namespace tern::data {

/// What a loader and its running epochs share; it outlives the loader while an iterator is in use.
struct DataLoader::Core {
  Core(std::unique_ptr<detail::BatchSource> batches, const DataLoaderOptions& options);

  std::unique_ptr<detail::BatchSource> source;
  int64_t num_workers;
  int64_t prefetch_factor;
  std::optional<Device> device;
  bool pin_memory;
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
  Batch& current() { return *current_.batch; }
  double weight() const { return current_.weight; }

 private:
  /// A batch that has been read.
  struct Task {
    int64_t number;
    Generator generator;  ///< for what draws random numbers without a RandomKey
    detail::BatchJob job;
  };
  /// What the consumer gets.
  struct Delivery {
    std::optional<Batch> batch = {};  ///< none: the epoch has ended
    double weight = 1;
    std::vector<std::pair<Device, Event>> arrivals = {};  ///< the GPUs that the batch is on its way to
    std::exception_ptr error = {};
  };
  /// A GPU as the workers use it.
  struct Gpu {
    Device device;
    Event begun;                   ///< what the consumer had given it at the start
    std::optional<Stream> shared;  ///< by all workers
  };

  std::optional<Task> read(int64_t number);
  Delivery make(const Task& task) const;
  void place(Batch& batch) const;
  void start_workers(int64_t count);
  void set_up_worker() const;
  void work();
  Delivery next();
  void stop();

  std::shared_ptr<Core> core_;
  const int64_t number_;
  const int64_t begun_;
  const RandomKey key_;
  std::unique_ptr<detail::BatchReader> reader_;
  bool done_ = false;
  Delivery current_;

  const ThreadSettings settings_;  ///< the consumer's
  std::vector<Gpu> gpus_;
  int64_t most_ahead_ = 0;

  std::mutex turn_;     ///< whose worker reads the next batch
  bool ended_ = false;  ///< there is nothing more to read; under turn_

  std::mutex mutex_;  ///< of all that follows; taken after turn_
  std::condition_variable batch_ready_;
  std::condition_variable room_ahead_;
  int64_t taken_;                      ///< batches that the consumer has had; changed by it alone
  int64_t claimed_;                    ///< batches that workers have begun
  std::map<int64_t, Delivery> ready_;  ///< by number
  std::vector<Event> ended_events_;    ///< what each worker had given each GPU at its end
  bool stopped_ = false;
  std::vector<std::thread> workers_;
};

namespace {

/// Apart from the streams of samples.
Generator batch_generator(const RandomKey& key, int64_t number) {
  constexpr uint64_t kOfBatches = 0xba7c4;
  Random random = key.child(kOfBatches).random(number);
  const uint64_t high = random.bits();
  return Generator(high << 32 | random.bits());
}

}  // namespace

DataLoader::Epoch::Epoch(std::shared_ptr<Core> core)
    : core_(std::move(core)),
      number_(core_->next_epoch++),
      begun_(++core_->epochs_begun),
      key_{core_->seed, number_},
      taken_(std::exchange(core_->next_batch, 0)),
      claimed_(taken_) {
  core_->position.epoch = number_;
  core_->position.batch = taken_;
  reader_ = detail::with_data_context([&] { return fmt::format("DataLoader: epoch {}", number_); },
                                      [&] { return core_->source->open(key_); });
  for (int64_t n = 0; n < taken_; ++n)
    TERN_CHECK(read(n), DataError, "DataLoader: epoch {} cannot go on at batch {}: it has {} batches",
               number_, taken_, n);
  const std::optional<int64_t> size = core_->source->size();
  start_workers(size ? std::clamp<int64_t>(*size - taken_, 0, core_->num_workers) : core_->num_workers);
}

void DataLoader::Epoch::start_workers(int64_t count) {
  if (count == 0) return;
  most_ahead_ = count * core_->prefetch_factor;
  // What a stream keeps from one sample to the next, one worker may put on a GPU and another use.
  const bool shared = core_->source->dataset() == nullptr;
  for (int i = 0; i < cuda::device_count(); ++i) {
    const Device device(DeviceType::CUDA, i);
    gpus_.push_back({device, Event(), shared ? std::optional(new_stream(device)) : std::nullopt});
    gpus_.back().begun.record(current_stream(device));
  }
  try {
    for (int64_t i = 0; i < count; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    stop();
    TERN_THROW(Error, "DataLoader: cannot start {} worker threads: {}; use a smaller num_workers", count,
               error.what());
  }
}

/// Reads batch `number`, the one after that read before; none after the last one. Like make(), it may be
/// called in any thread: what draws random numbers without a RandomKey gets those of this batch, whoever
/// makes it, and leaves the consumer's alone.
std::optional<DataLoader::Epoch::Task> DataLoader::Epoch::read(int64_t number) {
  Generator generator = batch_generator(key_, number);
  const DefaultGeneratorGuard guard(generator);
  std::optional<detail::BatchJob> job = detail::with_data_context(
      [&] { return fmt::format("DataLoader: epoch {}, batch {}", number_, number); },
      [&] { return reader_->next(); });
  if (!job) return {};
  return Task{number, std::move(generator), std::move(*job)};
}

DataLoader::Epoch::Delivery DataLoader::Epoch::make(const Task& task) const {
  const DefaultGeneratorGuard guard(task.generator);
  Batch batch = detail::with_data_context(
      [&] { return fmt::format("DataLoader: epoch {}, batch {}", number_, task.number); }, task.job.make);
  place(batch);
  return {.batch = std::move(batch), .weight = task.job.weight};
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
  for (const Gpu& gpu : gpus_) {
    cuda::set_stream(gpu.shared ? *gpu.shared : new_stream(gpu.device));
    gpu.begun.wait(current_stream(gpu.device));
  }
}

void DataLoader::Epoch::work() {
  std::exception_ptr failure;  // of the setting up, for the first batch
  try {
    set_up_worker();
  } catch (...) {
    failure = std::current_exception();
  }
  while (true) {
    std::unique_lock turn(turn_);
    if (ended_) break;
    int64_t number;
    {
      std::unique_lock lock(mutex_);
      room_ahead_.wait(lock, [&] { return stopped_ || claimed_ < taken_ + most_ahead_; });
      if (stopped_) break;
      number = claimed_++;
    }
    Delivery delivery;
    try {
      if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
      const std::optional<Task> task = read(number);
      ended_ = !task;
      turn.unlock();
      if (task) delivery = make(*task);
      if (delivery.batch)
        for (const Gpu& gpu : gpus_)
          if (std::ranges::any_of(delivery.batch->tensors(),
                                  [&](const Tensor& x) { return x.device() == gpu.device; }))
            delivery.arrivals.emplace_back(gpu.device, Event()).second.record(current_stream(gpu.device));
    } catch (...) {
      delivery.error = std::current_exception();
      if (turn.owns_lock()) ended_ = true;  // nothing is read after what could not be
    }
    if (turn.owns_lock()) turn.unlock();
    const std::lock_guard lock(mutex_);
    ready_.emplace(number, std::move(delivery));
    batch_ready_.notify_one();
  }
  try {
    for (const Gpu& gpu : gpus_) {
      Event ended;
      ended.record(current_stream(gpu.device));
      const std::lock_guard lock(mutex_);
      ended_events_.push_back(std::move(ended));
    }
  } catch (...) {  // of a GPU that is lost, which runs nothing any more
  }
}

DataLoader::Epoch::Delivery DataLoader::Epoch::next() {
  if (workers_.empty()) {
    const std::optional<Task> task = read(taken_);
    Delivery delivery = task ? make(*task) : Delivery();
    ++taken_;
    return delivery;
  }
  Delivery delivery;
  {
    std::unique_lock lock(mutex_);
    batch_ready_.wait(lock, [&] { return ready_.contains(taken_); });
    delivery = std::move(ready_.extract(taken_++).mapped());
  }
  room_ahead_.notify_one();
  if (delivery.error) std::rethrow_exception(std::move(delivery.error));
  for (const auto& [gpu, event] : delivery.arrivals) event.wait(current_stream(gpu));
  if (!delivery.arrivals.empty())
    for (const Tensor& x : delivery.batch->tensors())
      if (x.is_cuda()) x.record_stream(current_stream(x.device()));
  return delivery;
}

void DataLoader::Epoch::advance() {
  if (done_) return;
  const bool latest = core_->epochs_begun == begun_;
  current_ = {};
  try {
    current_ = next();
  } catch (...) {
    done_ = true;
    stop();
    throw;
  }
  if (!current_.batch) {
    done_ = true;
    stop();
  }
  if (!latest) return;
  core_->position.epoch = done_ ? number_ + 1 : number_;
  core_->position.batch = done_ ? 0 : taken_;
}

void DataLoader::Epoch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  room_ahead_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  // Whoever stops may free next what the workers' last kernels read. Errors of batches that nobody takes are
  // nobody's.
  for (const Event& event : ended_events_) event.wait_until_done();
  ended_events_.clear();
  ready_.clear();
  reader_.reset();
}

namespace {

/// Checks what both kinds of dataset have in common, and fills in seed and device.
void settle(DataLoaderOptions& options) {
  TERN_CHECK(options.num_workers >= 0 && options.num_workers <= 256, ValueError,
             "DataLoader: num_workers must be 0 to 256, got {}", options.num_workers);
  TERN_CHECK(options.prefetch_factor >= 1 && options.prefetch_factor <= 4096, ValueError,
             "DataLoader: prefetch_factor must be 1 to 4096, got {}", options.prefetch_factor);
  TERN_CHECK(options.batch_size >= 1, ValueError, "DataLoader: batch_size must be positive, got {}",
             options.batch_size);
  TERN_CHECK(options.part.parts >= 1 && options.part.rank >= 0 && options.part.rank < options.part.parts,
             ValueError, "DataLoader: there is no part {} of {}", options.part.rank, options.part.parts);
  if (options.device)
    options.device = with_context("DataLoader", [&] { return resolve_device(*options.device); });
  if (!options.seed) options.seed = draw_seed(std::move(options.generator));
}

}  // namespace

DataLoader::Core::Core(std::unique_ptr<detail::BatchSource> batches, const DataLoaderOptions& options)
    : source(std::move(batches)),
      num_workers(options.num_workers),
      prefetch_factor(options.prefetch_factor),
      device(options.device),
      pin_memory(options.pin_memory),
      seed(*options.seed),
      position{.seed = seed,
               .sampler_seed = source->sampler_seed(),
               .batch_size = options.batch_size,
               .dataset_size = source->dataset_size().value_or(0)} {}

DataLoader::DataLoader(DatasetHandle dataset, DataLoaderOptions options) {
  TERN_CHECK(!(options.sampler && options.shuffle), ValueError,
             "DataLoader: sampler and shuffle exclude each other: a sampler decides the order itself");
  TERN_CHECK(!options.batch_sampler ||
                 (options.batch_size == 1 && !options.shuffle && !options.sampler && !options.drop_last),
             ValueError, "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last");
  settle(options);
  std::shared_ptr<BatchSampler> batches = std::move(options.batch_sampler);
  if (!batches) {
    SamplerHandle order = std::move(options.sampler);
    if (!order && options.shuffle) order = RandomSampler(dataset->size(), {.seed = options.seed});
    if (!order) order = SequentialSampler(dataset->size());
    batches = std::make_shared<BatchSampler>(std::move(order), options.batch_size, options.drop_last);
  }
  core_ = std::make_shared<Core>(detail::indexed_batches(std::move(dataset), std::move(batches), options.part,
                                                         std::move(options.collate_fn)),
                                 options);
}

DataLoader::DataLoader(IterableHandle dataset, DataLoaderOptions options) {
  TERN_CHECK(!options.shuffle, ValueError,
             "DataLoader: a stream has no indices to shuffle; put a data::ShuffleBuffer around it");
  TERN_CHECK(
      !options.sampler && !options.batch_sampler, ValueError,
      "DataLoader: sampler and batch_sampler choose samples by index, and a stream has none: its order "
      "is its own");
  settle(options);
  core_ = std::make_shared<Core>(
      detail::streamed_batches(std::move(dataset), options.batch_size, options.drop_last, options.part,
                               std::move(options.collate_fn)),
      options);
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

namespace {

int64_t known(std::optional<int64_t> number, const char* of_what) {
  TERN_CHECK(
      number, TypeError,
      "DataLoader: the number of {} is not known before the stream has ended: its dataset has no size()",
      of_what);
  return *number;
}

}  // namespace

int64_t DataLoader::size() const { return known(core_->source->size(), "batches"); }
std::optional<int64_t> DataLoader::known_size() const { return core_->source->size(); }
int64_t DataLoader::dataset_size() const { return known(core_->source->dataset_size(), "samples"); }

const Dataset& DataLoader::dataset() const {
  const Dataset* dataset = core_->source->dataset();
  TERN_CHECK(dataset, TypeError,
             "DataLoader: its samples come from a stream, not from a dataset with indices");
  return *dataset;
}

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
  const DataLoaderState& own = core_->position;
  TERN_CHECK(state.batch_size == own.batch_size, ValueError,
             "DataLoader: the state is from batches of {}, this loader has batches of {}", state.batch_size,
             own.batch_size);
  TERN_CHECK(state.dataset_size == own.dataset_size, ValueError,
             "DataLoader: the state is from a dataset of {} samples, this one has {}", state.dataset_size,
             own.dataset_size);
  const std::optional<int64_t> size = core_->source->size();
  TERN_CHECK(state.epoch >= 0 && state.batch >= 0 && (!size || state.batch <= *size), ValueError,
             "DataLoader: the state's epoch {} or batch {} is out of range{}", state.epoch, state.batch,
             size ? fmt::format(" (an epoch has {} batches)", *size) : "");
  core_->seed = state.seed;
  core_->source->set_sampler_seed(state.sampler_seed);
  core_->next_epoch = state.epoch;
  core_->next_batch = state.batch;
  core_->position = state;
}

}  // namespace tern::data
