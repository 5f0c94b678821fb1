// The samplers. Random orders come from counter-based streams keyed by (seed, epoch).
#include "tern/data/samplers.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>

#include "tern/base/check.h"
#include "tern/core/philox.h"
#include "tern/data/random.h"

namespace tern::data {
namespace {

/// Sets the streams of samplers apart from those of samples, which have the index in this place.
constexpr uint64_t kSamplerStream = uint64_t{1} << 63;

Random order_stream(uint64_t seed, int64_t epoch) {
  return Random(seed, static_cast<uint64_t>(epoch), kSamplerStream);
}

/// Fisher-Yates.
void shuffle(std::vector<int64_t>& list, Random& random) {
  for (size_t i = list.size(); i > 1; --i) {
    std::swap(list[i - 1], list[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
}

double uniform_double(Random& random) {
  const uint64_t high = random.bits();
  return static_cast<double>((high << 32 | random.bits()) >> 11) * 0x1p-53;
}

uint64_t choose_seed(std::optional<uint64_t> seed, std::optional<Generator> generator) {
  return seed ? *seed : draw_seed(std::move(generator));
}

/// An empty list with room for `count` indices.
std::vector<int64_t> list_for(const char* sampler, int64_t count) {
  std::vector<int64_t> list;
  try {
    list.reserve(static_cast<size_t>(count));
  } catch (const std::exception&) {  // std::length_error or std::bad_alloc
    TERN_THROW(OutOfMemoryError,
               "{}: no memory for a list of {} indices: choose a smaller size or num_samples", sampler,
               count);
  }
  return list;
}

std::vector<int64_t> in_order(const char* sampler, int64_t count) {
  std::vector<int64_t> list = list_for(sampler, count);
  list.resize(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), int64_t{0});
  return list;
}

}  // namespace

uint64_t draw_seed(std::optional<Generator> generator) {
  const Generator::State at = (generator ? *generator : default_generator()).reserve(1);
  const auto words = philox(at.seed, at.position);
  return uint64_t{words[0]} << 32 | words[1];
}

SequentialSampler::SequentialSampler(int64_t dataset_size) : size_(dataset_size) {
  TERN_CHECK(dataset_size >= 0, ValueError, "SequentialSampler: the size must not be negative, got {}",
             dataset_size);
}

std::vector<int64_t> SequentialSampler::indices(int64_t) const {
  return in_order("SequentialSampler", size_);
}

RandomSampler::RandomSampler(int64_t dataset_size, const RandomSamplerOptions& options)
    : SeededSampler(choose_seed(options.seed, options.generator)),
      dataset_size_(dataset_size),
      replacement_(options.replacement),
      num_samples_(options.num_samples.value_or(dataset_size)) {
  TERN_CHECK(dataset_size >= 0, ValueError, "RandomSampler: the size must not be negative, got {}",
             dataset_size);
  TERN_CHECK(num_samples_ >= 0 && (num_samples_ == 0 || dataset_size > 0), ValueError,
             "RandomSampler: cannot draw num_samples = {} from {} samples", num_samples_, dataset_size);
}

std::vector<int64_t> RandomSampler::indices(int64_t epoch) const {
  Random random = order_stream(seed(), epoch);
  std::vector<int64_t> list = list_for("RandomSampler", num_samples_);
  if (replacement_) {
    while (static_cast<int64_t>(list.size()) < num_samples_) list.push_back(random.below(dataset_size_));
    return list;
  }
  std::vector<int64_t> order = in_order("RandomSampler", dataset_size_);
  while (static_cast<int64_t>(list.size()) < num_samples_) {
    shuffle(order, random);
    const int64_t wanted = std::min(dataset_size_, num_samples_ - static_cast<int64_t>(list.size()));
    list.insert(list.end(), order.begin(), order.begin() + wanted);
  }
  return list;
}

DistributedSampler::DistributedSampler(int64_t dataset_size, const DistributedSamplerOptions& options)
    : SeededSampler(options.seed),
      dataset_size_(dataset_size),
      num_replicas_(options.num_replicas),
      rank_(options.rank),
      shuffle_(options.shuffle) {
  TERN_CHECK(dataset_size >= 0, ValueError,
             "DistributedSampler: the size of a dataset is not negative, got {}", dataset_size);
  TERN_CHECK(num_replicas_ >= 1 && rank_ >= 0 && rank_ < num_replicas_, ValueError,
             "DistributedSampler: Invalid rank {}, rank should be in the interval [0, {}]", rank_,
             num_replicas_ - 1);
  size_ = dataset_size / num_replicas_ + (!options.drop_last && dataset_size % num_replicas_ != 0 ? 1 : 0);
}

std::vector<int64_t> DistributedSampler::indices(int64_t epoch) const {
  std::vector<int64_t> order = in_order("DistributedSampler", dataset_size_);
  if (shuffle_) {
    Random random = order_stream(seed(), epoch);
    shuffle(order, random);
  }
  std::vector<int64_t> mine = list_for("DistributedSampler", size_);
  for (int64_t i = 0; i < size_; ++i)
    mine.push_back(order[static_cast<size_t>((rank_ + i * num_replicas_) % dataset_size_)]);
  return mine;
}

SubsetRandomSampler::SubsetRandomSampler(std::vector<int64_t> indices, std::optional<uint64_t> seed,
                                         std::optional<Generator> generator)
    : SeededSampler(choose_seed(seed, std::move(generator))), indices_(std::move(indices)) {}

std::vector<int64_t> SubsetRandomSampler::indices(int64_t epoch) const {
  Random random = order_stream(seed(), epoch);
  std::vector<int64_t> list = indices_;
  shuffle(list, random);
  return list;
}

WeightedRandomSampler::WeightedRandomSampler(std::vector<double> weights, int64_t num_samples,
                                             bool replacement, std::optional<uint64_t> seed,
                                             std::optional<Generator> generator)
    : SeededSampler(choose_seed(seed, std::move(generator))),
      weights_(std::move(weights)),
      num_samples_(num_samples),
      replacement_(replacement) {
  TERN_CHECK(num_samples > 0, ValueError, "WeightedRandomSampler: num_samples must be positive, got {}",
             num_samples);
  double sum = 0;
  int64_t positive = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    TERN_CHECK(std::isfinite(weights_[i]) && weights_[i] >= 0, ValueError,
               "WeightedRandomSampler: weight {} is {}; weights must be finite and not negative", i,
               weights_[i]);
    sum += weights_[i];
    positive += weights_[i] > 0 ? 1 : 0;
  }
  TERN_CHECK(positive > 0 && std::isfinite(sum), ValueError,
             "WeightedRandomSampler: the {} weights sum to {}; the sum must be positive and finite",
             weights_.size(), sum);
  TERN_CHECK(
      replacement || num_samples <= positive, ValueError,
      "WeightedRandomSampler: cannot draw {} samples without replacement, only {} weights are positive",
      num_samples, positive);
}

std::vector<int64_t> WeightedRandomSampler::indices(int64_t epoch) const {
  Random random = order_stream(seed(), epoch);
  std::vector<int64_t> list = list_for("WeightedRandomSampler", num_samples_);
  if (replacement_) {
    std::vector<double> cumulative(weights_.size());
    std::partial_sum(weights_.begin(), weights_.end(), cumulative.begin());
    for (int64_t i = 0; i < num_samples_; ++i) {
      const double at = uniform_double(random) * cumulative.back();
      // Rounding may give the sum itself, which belongs to the last positive weight.
      auto found = std::upper_bound(cumulative.begin(), cumulative.end(), at);
      if (found == cumulative.end())
        found = std::lower_bound(cumulative.begin(), cumulative.end(), cumulative.back());
      list.push_back(found - cumulative.begin());
    }
    return list;
  }
  // The num_samples largest of u^(1/weight) (Efraimidis and Spirakis, 2006), compared by their logarithms.
  std::vector<std::pair<double, int64_t>> keys;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const double u = 1.0 - uniform_double(random);
    if (weights_[i] > 0) keys.emplace_back(-std::log(u) / weights_[i], static_cast<int64_t>(i));
  }
  std::partial_sort(keys.begin(), keys.begin() + num_samples_, keys.end());
  for (int64_t i = 0; i < num_samples_; ++i) list.push_back(keys[static_cast<size_t>(i)].second);
  return list;
}

BatchSampler::BatchSampler(SamplerHandle sampler, int64_t batch_size, bool drop_last)
    : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {
  TERN_CHECK(sampler_, ValueError, "BatchSampler: needs a sampler, got a null pointer");
  TERN_CHECK(batch_size > 0, ValueError, "BatchSampler: batch_size must be positive, got {}", batch_size);
}

int64_t BatchSampler::size() const {
  const int64_t samples = sampler_->size();
  return samples / batch_size_ + (!drop_last_ && samples % batch_size_ != 0 ? 1 : 0);
}

std::vector<std::vector<int64_t>> BatchSampler::batches(int64_t epoch) const {
  const std::vector<int64_t> indices = sampler_->indices(epoch);
  std::vector<std::vector<int64_t>> batches;
  const int64_t samples = static_cast<int64_t>(indices.size());
  for (int64_t at = 0; at < samples; at += batch_size_) {
    const int64_t end = std::min(samples, at + batch_size_);
    if (drop_last_ && end - at < batch_size_) break;
    batches.emplace_back(indices.begin() + at, indices.begin() + end);
  }
  return batches;
}

}  // namespace tern::data
