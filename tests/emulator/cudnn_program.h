// Graphs of products, reductions, transpositions and pointwise operations, as cuDNN runs them in one kernel:
// here one operation after the other, on numbers rounded to the types that the graph says.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tests/emulator/cudnn_bag.h"

namespace emulator {

class Program {
 public:
  /// In an order in which each operation comes after those whose results it takes.
  explicit Program(std::vector<std::shared_ptr<const Bag>> operations) : operations_(std::move(operations)) {}

  /// Whether all operations are known, and the sizes of their tensors fit.
  bool fits() const;
  /// Asks for the memory of every tensor that has some, and reads the scalars; false where one is missing.
  bool bind(const std::function<void*(const Bag&)>& data);
  void run() const;

 private:
  using Sizes = std::array<int64_t, 4>;
  struct Values {
    Sizes sizes{};
    std::vector<double> numbers{};
    double at(int64_t b, int64_t h, int64_t i, int64_t j) const;
  };

  static Sizes sizes_of(const Bag& tensor);
  Values read(const Bag& tensor, const std::map<int64_t, Values>& inner) const;
  void write(const Bag& tensor, Values values, std::map<int64_t, Values>& inner) const;

  std::vector<std::shared_ptr<const Bag>> operations_;
  std::map<int64_t, void*> memory_{};
  std::map<int64_t, double> scalars_{};
};

}  // namespace emulator
