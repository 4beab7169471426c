// SPDX-License-Identifier: Apache-2.0
// A vector that takes the space of one pointer while it is empty. In the largest
// jobs most members leave their vectors empty.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace rollcall {

// Has the part of std::vector that its users need; iterators are pointers.
template <typename T>
class LazyVector {
 public:
  LazyVector() = default;
  LazyVector(const LazyVector& other) { *this = other; }
  LazyVector(LazyVector&&) noexcept = default;
  LazyVector& operator=(LazyVector&&) noexcept = default;
  LazyVector& operator=(const LazyVector& other) {
    if (this != &other) values_.reset(other.empty() ? nullptr : new std::vector<T>(*other.values_));
    return *this;
  }

  bool empty() const { return values_ == nullptr || values_->empty(); }
  size_t size() const { return values_ == nullptr ? 0 : values_->size(); }
  const T* begin() const { return values_ == nullptr ? nullptr : values_->data(); }
  const T* end() const { return begin() + size(); }
  T* begin() { return values_ == nullptr ? nullptr : values_->data(); }
  T* end() { return begin() + size(); }
  T& operator[](size_t i) { return (*values_)[i]; }
  const T& operator[](size_t i) const { return (*values_)[i]; }
  T& front() { return values_->front(); }
  const T& front() const { return values_->front(); }
  T& back() { return values_->back(); }
  const T& back() const { return values_->back(); }

  size_t capacity() const { return values_ == nullptr ? 0 : values_->capacity(); }
  // Makes room for `count` values and no more.
  void reserve(size_t count) { Values().reserve(count); }
  // Releases room that no value uses.
  void shrink_to_fit() {
    if (empty()) {
      values_.reset();
    } else {
      values_->shrink_to_fit();
    }
  }

  void push_back(const T& value) { Values().push_back(value); }
  void insert(const T* at, const T& value) {
    const auto offset = at - begin();
    Values().insert(Values().begin() + offset, value);
  }
  void erase(const T* first, const T* last) {
    const auto from = first - begin(), to = last - begin();
    if (from != to) values_->erase(values_->begin() + from, values_->begin() + to);
  }

 private:
  std::vector<T>& Values() {
    if (values_ == nullptr) values_ = std::make_unique<std::vector<T>>();
    return *values_;
  }

  std::unique_ptr<std::vector<T>> values_;
};

}  // namespace rollcall
