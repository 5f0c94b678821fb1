// Samplers: in which order a DataLoader visits a dataset. A sampler is a function of the epoch, so that an
// order can be repeated and a run resumed in its middle: its state is its seed and the epoch's number.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/core/generator.h"

namespace tern::data {

/// The order of visits. Derive and write size() and indices(); both must depend on nothing but the sampler
/// and `epoch`.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// How many indices an epoch has.
  virtual int64_t size() const = 0;
  /// All indices of an epoch, in order. The samplers here throw OutOfMemoryError for more than fit in memory.
  virtual std::vector<int64_t> indices(int64_t epoch) const = 0;
  /// What its random numbers are keyed by, to be saved with a checkpoint; 0 if it has none.
  virtual uint64_t seed() const { return 0; }
  /// Restores what seed() gave; ignored by samplers without random numbers.
  virtual void set_seed(uint64_t) {}

 protected:
  Sampler() = default;
  Sampler(const Sampler&) = default;
  Sampler& operator=(const Sampler&) = default;
};

/// Draws a seed for something that keys its own random numbers: one 64-bit number of the generator.
uint64_t draw_seed(std::optional<Generator> generator);

/// Base of the samplers with random numbers.
class SeededSampler : public Sampler {
 public:
  uint64_t seed() const override { return seed_; }
  void set_seed(uint64_t seed) override { seed_ = seed; }

 protected:
  explicit SeededSampler(uint64_t seed) : seed_(seed) {}

 private:
  uint64_t seed_;
};

/// 0, 1, 2, ...
class SequentialSampler : public Sampler {
 public:
  /// Throws ValueError for a negative size.
  explicit SequentialSampler(int64_t dataset_size);
  int64_t size() const override { return size_; }
  std::vector<int64_t> indices(int64_t epoch) const override;

 private:
  int64_t size_;
};

/// How a sampler with random numbers is made. The seed is `seed`, else one number drawn from `generator`,
/// else from the default generator.
struct RandomSamplerOptions {
  bool replacement = false;                 ///< an index may come more than once
  std::optional<int64_t> num_samples = {};  ///< indices per epoch; by default the size of the dataset
  std::optional<uint64_t> seed = {};
  std::optional<Generator> generator = {};
};

/// A new random order in every epoch. Without replacement and with more samples than the dataset has, whole
/// orders follow each other.
class RandomSampler : public SeededSampler {
 public:
  /// Throws ValueError for a negative size, or samples from an empty dataset.
  explicit RandomSampler(int64_t dataset_size, const RandomSamplerOptions& options = {});
  int64_t size() const override { return num_samples_; }
  std::vector<int64_t> indices(int64_t epoch) const override;

 private:
  int64_t dataset_size_;
  bool replacement_;
  int64_t num_samples_;
};

/// The given indices in a new random order in every epoch.
class SubsetRandomSampler : public SeededSampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices, std::optional<uint64_t> seed = {},
                               std::optional<Generator> generator = {});
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  std::vector<int64_t> indices(int64_t epoch) const override;

 private:
  std::vector<int64_t> indices_;
};

/// Indices with probability proportional to their weights, which need not sum to 1.
class WeightedRandomSampler : public SeededSampler {
 public:
  /// Throws ValueError for a weight that is negative or not finite, weights that are all 0, num_samples < 1,
  /// or fewer positive weights than samples when there is no replacement.
  WeightedRandomSampler(std::vector<double> weights, int64_t num_samples, bool replacement = true,
                        std::optional<uint64_t> seed = {}, std::optional<Generator> generator = {});
  int64_t size() const override { return num_samples_; }
  std::vector<int64_t> indices(int64_t epoch) const override;

 private:
  std::vector<double> weights_;
  int64_t num_samples_;
  bool replacement_;
};

struct DistributedSamplerOptions {
  int64_t num_replicas = 1;  ///< processes: dist::ProcessGroup::size()
  int64_t rank = 0;          ///< of this one
  bool shuffle = true;
  uint64_t seed = 0;       ///< the same on all processes
  bool drop_last = false;  ///< what is left over is left out; else some indices come twice
};

/// A process' part of a dataset (torch.utils.data.DistributedSampler): every num_replicas-th index of one
/// order, the same on all processes and new in every epoch. All parts have one size.
class DistributedSampler : public SeededSampler {
 public:
  /// Throws ValueError for a negative size, no replicas, or a rank that is none of theirs.
  explicit DistributedSampler(int64_t dataset_size, const DistributedSamplerOptions& options = {});
  int64_t size() const override { return size_; }
  std::vector<int64_t> indices(int64_t epoch) const override;

 private:
  int64_t dataset_size_, num_replicas_, rank_, size_;
  bool shuffle_;
};

/// A sampler as an argument: a std::shared_ptr to one is shared, a sampler by value is moved in or copied.
class SamplerHandle {
 public:
  SamplerHandle() = default;
  template <class S>
  requires std::derived_from<std::remove_cvref_t<S>, Sampler> SamplerHandle(S&& sampler)
      : sampler_(std::make_shared<std::remove_cvref_t<S>>(std::forward<S>(sampler))) {}
  template <std::derived_from<Sampler> S>
  SamplerHandle(std::shared_ptr<S> sampler) : sampler_(std::move(sampler)) {}

  explicit operator bool() const { return sampler_ != nullptr; }
  Sampler& operator*() const { return *sampler_; }
  Sampler* operator->() const { return sampler_.get(); }

 private:
  std::shared_ptr<Sampler> sampler_;
};

/// Indices in groups: the batches. Derive to form batches by another rule (by length, by class).
class BatchSampler {
 public:
  /// Groups of `batch_size` (the last may be smaller, or is dropped). Throws ValueError for no sampler or
  /// batch_size < 1.
  BatchSampler(SamplerHandle sampler, int64_t batch_size, bool drop_last);
  virtual ~BatchSampler() = default;

  /// How many batches an epoch has.
  virtual int64_t size() const;
  /// All batches of an epoch, in order.
  virtual std::vector<std::vector<int64_t>> batches(int64_t epoch) const;
  virtual uint64_t seed() const { return sampler_->seed(); }
  virtual void set_seed(uint64_t seed) { sampler_->set_seed(seed); }
  int64_t batch_size() const { return batch_size_; }

 private:
  SamplerHandle sampler_;
  int64_t batch_size_;
  bool drop_last_;
};

}  // namespace tern::data
