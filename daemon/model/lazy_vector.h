// SPDX-License-Identifier: Apache-2.0
// A vector that takes one pointer while it is empty: most members of the largest
// jobs have nothing in theirs.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace rollcall {

// Has what its users need of std::vector; iterators are pointers.
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
