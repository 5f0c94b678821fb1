// Dataset: samples by index. The interface, and the datasets that are made of tensors or of other datasets;
// those read from files are in mnist.h, cifar10.h and image_folder.h, the generated one in digits.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/core/generator.h"
#include "tern/core/tensor.h"
#include "tern/data/example.h"
#include "tern/data/random.h"

namespace tern::data {

/// Samples by index, 0 to size() - 1. Derive and write size() and get(); the other two have defaults. All are
/// called from several threads at once when a DataLoader has workers.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// How many samples there are.
  virtual int64_t size() const = 0;
  /// One sample. Throws IndexError outside 0 to size() - 1.
  virtual Example get(int64_t index) const = 0;
  /// One sample with random changes (augmentation), whose random numbers must come from `key` and the index
  /// alone, so that an epoch has the same samples whatever the number of workers. By default get(index).
  virtual Example sample(int64_t index, const RandomKey& key) const;
  /// A batch in one go, for datasets that can do it faster than one by one. By default sample() for each,
  /// then default_collate(). Throws ValueError for an empty list; what sample() throws gets the index in its
  /// message.
  virtual Batch get_batch(IntArrayRef indices, const RandomKey& key = {}) const;

 protected:
  Dataset() = default;
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;
};

/// sample(index, key) with the index in the message of whatever it throws. A tern::Error keeps its type;
/// another exception becomes the nested one of a DataError (std::rethrow_if_nested).
Example sample_with_context(const Dataset& dataset, int64_t index, const RandomKey& key);

/// Any type with size() and get(index) is a dataset too.
template <class D>
concept DatasetLike = requires(const D& dataset, int64_t index) {
  { dataset.size() } -> std::convertible_to<int64_t>;
  { dataset.get(index) } -> std::convertible_to<Example>;
};

namespace detail {

template <class D>
struct Pointee {
  using type = D;
};
template <class D>
struct Pointee<std::shared_ptr<D>> {
  using type = D;
};
template <class D>
struct Pointee<std::reference_wrapper<D>> {
  using type = D;
};
/// The dataset in an argument that is one, a std::shared_ptr to one or std::ref of one.
template <class D>
using Referred = std::remove_const_t<typename Pointee<std::remove_cvref_t<D>>::type>;

[[noreturn]] void throw_null_dataset();

/// Such an argument as a std::shared_ptr; std::ref keeps nothing alive.
template <class D>
std::shared_ptr<const D> share(std::shared_ptr<D> dataset) {
  if (!dataset) throw_null_dataset();
  return dataset;
}
template <class D>
std::shared_ptr<const D> share(std::reference_wrapper<D> dataset) {
  return std::shared_ptr<const D>(std::shared_ptr<const D>(), &dataset.get());
}
template <class D>
std::shared_ptr<const std::remove_cvref_t<D>> share(D&& dataset) {
  using Plain = std::remove_cvref_t<D>;
  static_assert(!std::is_abstract_v<Plain>,
                "an abstract dataset cannot be copied: pass a shared_ptr or std::ref");
  return std::make_shared<const Plain>(std::forward<D>(dataset));
}

}  // namespace detail

/// A dataset as an argument, shared and kept alive. From
/// - a dataset by value: moved in, or copied (the datasets of this library are handles whose copies share the
/// data);
/// - a std::shared_ptr to one: shared;
/// - std::ref of one: used in place, and the caller keeps it alive.
class DatasetHandle {
 public:
  template <class D>
  requires DatasetLike<detail::Referred<D>> DatasetHandle(D&& dataset) {
    auto shared = detail::share(std::forward<D>(dataset));
    if constexpr (std::derived_from<detail::Referred<D>, Dataset>)
      dataset_ = std::move(shared);
    else
      dataset_ = std::make_shared<const Adapter<detail::Referred<D>>>(std::move(shared));
  }

  const Dataset& operator*() const { return *dataset_; }
  const Dataset* operator->() const { return dataset_.get(); }

 private:
  template <class D>
  class Adapter final : public Dataset {
   public:
    explicit Adapter(std::shared_ptr<const D> dataset) : dataset_(std::move(dataset)) {}
    int64_t size() const override { return static_cast<int64_t>(dataset_->size()); }
    Example get(int64_t index) const override { return dataset_->get(index); }

   private:
    std::shared_ptr<const D> dataset_;
  };

  std::shared_ptr<const Dataset> dataset_;
};

/// Row i of every tensor is sample i.
class TensorDataset : public Dataset {
 public:
  /// Throws ValueError for no tensors, ShapeError if one has no dimensions or their first sizes differ.
  explicit TensorDataset(std::vector<Tensor> tensors);
  explicit TensorDataset(std::initializer_list<Tensor> tensors)
      : TensorDataset(std::vector<Tensor>(tensors)) {}
  template <class... Rest>
  requires(std::same_as<std::remove_cvref_t<Rest>, Tensor>&&...) explicit TensorDataset(Tensor first,
                                                                                        Rest&&... rest)
      : TensorDataset(std::vector<Tensor>{std::move(first), std::forward<Rest>(rest)...}) {}

  int64_t size() const override { return size_; }
  Example get(int64_t index) const override;
  Batch get_batch(IntArrayRef indices, const RandomKey& key = {}) const override;
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
  int64_t size_ = 0;
};

/// Some samples of a dataset, in the order of `indices`; one may occur more than once.
class Subset : public Dataset {
 public:
  /// Throws IndexError if an index is outside the dataset.
  Subset(DatasetHandle dataset, std::vector<int64_t> indices);

  int64_t size() const override { return static_cast<int64_t>(indices_->size()); }
  Example get(int64_t index) const override { return dataset_->get(inner_index(index)); }
  Example sample(int64_t index, const RandomKey& key) const override;
  Batch get_batch(IntArrayRef indices, const RandomKey& key = {}) const override;
  const std::vector<int64_t>& indices() const { return *indices_; }
  const Dataset& dataset() const { return *dataset_; }

 private:
  int64_t inner_index(int64_t index) const;

  DatasetHandle dataset_;
  std::shared_ptr<const std::vector<int64_t>> indices_;
};

/// Datasets one after the other.
class ConcatDataset : public Dataset {
 public:
  /// Throws ValueError for an empty list.
  explicit ConcatDataset(std::vector<DatasetHandle> datasets);

  int64_t size() const override { return ends_.back(); }
  Example get(int64_t index) const override;
  Example sample(int64_t index, const RandomKey& key) const override;
  Batch get_batch(IntArrayRef indices, const RandomKey& key = {}) const override;

 private:
  struct Place {
    size_t part;
    int64_t index;
  };
  Place find(int64_t index) const;

  std::vector<DatasetHandle> datasets_;
  std::vector<int64_t> ends_;  ///< ends_[i]: samples in the parts 0 to i
};

/// The size of one part of a split: an integer is a number of samples, a floating-point number a fraction.
struct SplitLength {
  template <class T>
  requires std::is_arithmetic_v<T> SplitLength(T value)
      : amount(static_cast<double>(value)), is_fraction(std::is_floating_point_v<T>) {}

  double amount;
  bool is_fraction;
};

/// Splits a dataset at random into parts that do not overlap: `random_split(set, {50000, 10000})`. `lengths`
/// are all sample counts that sum to its size, or all fractions that sum to 1 (the samples left by rounding
/// down go to the first parts, one each, as in PyTorch). The order is drawn from `generator`, by default the
/// default generator. Throws ValueError for lengths that do not fit.
std::vector<Subset> random_split(DatasetHandle dataset, const std::vector<SplitLength>& lengths,
                                 std::optional<Generator> generator = {});

namespace detail {
/// Throws IndexError naming the dataset unless 0 <= index < size.
void check_sample_index(int64_t index, int64_t size, const char* dataset);
}  // namespace detail

}  // namespace tern::data
