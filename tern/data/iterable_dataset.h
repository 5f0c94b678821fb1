// IterableDataset: samples one after the other, of a number that need not be known: lines of a log, messages
// of a socket, what a generator makes. Samples by index are in dataset.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/example.h"
#include "tern/data/random.h"

namespace tern::data {

/// What a stream gives: an example, or a function that makes it. Reading is the work of one thread at a time;
/// the functions are called by the workers of a DataLoader side by side, or not at all for samples that are
/// skipped. So decoding and augmentation belong into the function, with random numbers from what it captured
/// alone, such as `key.random(index)`.
class LazyExample {
 public:
  template <class E>
  requires std::convertible_to<E, Example> LazyExample(E&& example)
      : example_(std::in_place_index<0>, std::forward<E>(example)) {}
  template <class F>
  requires std::is_invocable_r_v<Example, const F&> LazyExample(F make)
      : example_(std::in_place_index<1>, std::move(make)) {}

  /// The example; calls the function, if it is one.
  Example operator()() const;

 private:
  std::variant<Example, std::function<Example()>> example_;
};

/// One pass over samples: each call gives the next one, and nothing after the last. From any callable that
/// returns a std::optional of Example or LazyExample; it is moved in and need not be copyable. A callable
/// that returns an Example or a LazyExample is an endless stream.
class SampleStream {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, SampleStream> &&
           std::is_invocable_r_v<std::optional<LazyExample>, std::decay_t<F>&>) SampleStream(F&& next)
      : source_(std::make_unique<Callable<std::decay_t<F>>>(std::forward<F>(next))) {}

  std::optional<LazyExample> operator()() { return source_->next(); }

 private:
  struct Source {
    virtual ~Source() = default;
    virtual std::optional<LazyExample> next() = 0;
  };
  template <class F>
  struct Callable final : Source {
    explicit Callable(F f) : function(std::move(f)) {}
    std::optional<LazyExample> next() override { return function(); }
    F function;
  };

  std::unique_ptr<Source> source_;
};

/// Samples one after the other. Derive and write stream():
///
///     struct Lines : data::IterableDataset {
///       data::SampleStream stream(const data::RandomKey& key) const override {
///         return [file = std::ifstream("log.txt"), key, i = int64_t{0}]() mutable
///                    -> std::optional<data::LazyExample> {
///           std::string line;
///           if (!std::getline(file, line)) return {};
///           return [line, random = key.random(i++)] { return parse(line, random); };  // in a worker
///         };
///       }
///     };
///     data::DataLoader loader(Lines(), {.batch_size = 64, .num_workers = 4});
///
/// A stream is read by one thread at a time, from the first sample to the last, by whichever worker's turn it
/// is: samples come once and in their order whatever the number of workers.
class IterableDataset {
 public:
  virtual ~IterableDataset() = default;

  /// Opens the stream of epoch `key.epoch`, at its first sample; its random numbers must come from `key`
  /// alone. Several streams of a dataset may be in use at once, in several threads.
  virtual SampleStream stream(const RandomKey& key) const = 0;
  /// How many samples a stream gives, where that is known; a DataLoader checks it.
  virtual std::optional<int64_t> size() const { return {}; }

 protected:
  IterableDataset() = default;
  IterableDataset(const IterableDataset&) = default;
  IterableDataset& operator=(const IterableDataset&) = default;
};

/// Any type with stream(key) is an iterable dataset too, and any callable that takes the key: a lambda that
/// opens the stream. size() is used where there is one.
template <class D>
concept IterableLike = !DatasetLike<D> && (requires(const D& dataset, const RandomKey& key) {
  { dataset.stream(key) } -> std::convertible_to<SampleStream>;
} || std::is_invocable_r_v<SampleStream, const D&, const RandomKey&>);

/// An iterable dataset as an argument, shared and kept alive: by value, a std::shared_ptr to one, or std::ref
/// of one, as for DatasetHandle.
class IterableHandle {
 public:
  template <class D>
  requires IterableLike<detail::Referred<D>> IterableHandle(D&& dataset) {
    auto shared = detail::share(std::forward<D>(dataset));
    if constexpr (std::derived_from<detail::Referred<D>, IterableDataset>)
      dataset_ = std::move(shared);
    else
      dataset_ = std::make_shared<const Adapter<detail::Referred<D>>>(std::move(shared));
  }

  const IterableDataset& operator*() const { return *dataset_; }
  const IterableDataset* operator->() const { return dataset_.get(); }

 private:
  template <class D>
  class Adapter final : public IterableDataset {
   public:
    explicit Adapter(std::shared_ptr<const D> dataset) : dataset_(std::move(dataset)) {}
    SampleStream stream(const RandomKey& key) const override {
      if constexpr (requires { dataset_->stream(key); })
        return dataset_->stream(key);
      else
        return (*dataset_)(key);
    }
    std::optional<int64_t> size() const override {
      if constexpr (requires { dataset_->size(); })
        return dataset_->size();
      else
        return {};
    }

   private:
    std::shared_ptr<const D> dataset_;
  };

  std::shared_ptr<const IterableDataset> dataset_;
};

/// Streams one after the other; each is opened when the one before it has ended.
class ChainDataset : public IterableDataset {
 public:
  /// Throws ValueError for an empty list.
  explicit ChainDataset(std::vector<IterableHandle> datasets);

  SampleStream stream(const RandomKey& key) const override;
  /// The sum, where all parts know theirs.
  std::optional<int64_t> size() const override;

 private:
  std::vector<IterableHandle> datasets_;
};

/// A stream in random order, as far as a buffer reaches: `buffer_size` samples wait in it, each next one is
/// drawn from these and its place taken by the stream's next (torch's and tf.data's shuffle buffer). The
/// order is a function of the key, new in every epoch; a buffer as large as the stream makes all orders
/// possible.
class ShuffleBuffer : public IterableDataset {
 public:
  /// Throws ValueError for buffer_size < 1.
  ShuffleBuffer(IterableHandle dataset, int64_t buffer_size);

  SampleStream stream(const RandomKey& key) const override;
  std::optional<int64_t> size() const override { return dataset_->size(); }

 private:
  IterableHandle dataset_;
  int64_t buffer_size_;
};

}  // namespace tern::data
