// A vector of trivially copyable values whose first N elements need no heap. Shapes and strides are such.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>

namespace tern {

template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  SmallVector() noexcept = default;
  explicit SmallVector(size_t size, T value = T{}) { resize(size, value); }
  SmallVector(const T* first, const T* last) { assign(first, last); }
  SmallVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  SmallVector(const SmallVector& other) { assign(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return heap_ ? heap_.get() : inline_; }
  const T* data() const noexcept { return heap_ ? heap_.get() : inline_; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](size_t i) noexcept { return data()[i]; }
  const T& operator[](size_t i) const noexcept { return data()[i]; }
  T& back() noexcept { return data()[size_ - 1]; }
  const T& back() const noexcept { return data()[size_ - 1]; }

  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    size_t grown = std::max(capacity, capacity_ * 2);
    auto heap = std::make_unique<T[]>(grown);
    if (size_ != 0) std::memcpy(static_cast<void*>(heap.get()), data(), size_ * sizeof(T));
    heap_ = std::move(heap);
    capacity_ = grown;
  }
  void resize(size_t size, T value = T{}) {
    reserve(size);
    T* p = data();
    for (size_t i = size_; i < size; ++i) p[i] = value;
    size_ = size;
  }
  void push_back(T value) {
    reserve(size_ + 1);
    data()[size_++] = value;
  }
  void pop_back() noexcept { --size_; }
  void clear() noexcept { size_ = 0; }
  void insert(size_t position, T value) {
    push_back(value);
    std::rotate(begin() + position, end() - 1, end());
  }
  void erase(size_t position) noexcept {
    std::copy(begin() + position + 1, end(), begin() + position);
    --size_;
  }
  void assign(const T* first, const T* last) {
    size_t size = static_cast<size_t>(last - first);
    size_ = 0;
    reserve(size);
    if (size != 0) std::memcpy(static_cast<void*>(data()), first, size * sizeof(T));
    size_ = size;
  }

  bool operator==(const SmallVector& other) const noexcept {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  void take(SmallVector& other) noexcept {
    heap_ = std::move(other.heap_);
    size_ = other.size_;
    capacity_ = heap_ ? other.capacity_ : N;
    if (!heap_ && size_ != 0) std::memcpy(static_cast<void*>(inline_), other.inline_, size_ * sizeof(T));
    other.size_ = 0;
    other.capacity_ = N;
  }

  size_t size_ = 0;
  size_t capacity_ = N;
  std::unique_ptr<T[]> heap_;
  T inline_[N];
};

}  // namespace tern
