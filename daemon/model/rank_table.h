// SPDX-License-Identifier: Apache-2.0
// A map from rank to T for ranks that are few and dense: what absl's and the
// standard library's maps cost in memory and in cache misses matters at a
// million entries (docs/decisions/diagnosis.md).
//
// Ranks stand in pages of eight, in order; a page exists only where a rank of
// it does. References hold until the next insertion or erasure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

namespace rollcall {

template <typename T>
class RankTable {
 public:
  using value_type = std::pair<int32_t, T>;

  template <typename Pages, typename Value>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Value;
    using difference_type = std::ptrdiff_t;
    using pointer = Value*;
    using reference = Value&;

    Iterator(Pages* pages, size_t page, size_t slot) : pages_(pages), page_(page), slot_(slot) {
      SkipEmpty();
    }
    reference operator*() const { return (*pages_)[page_][slot_]; }
    pointer operator->() const { return &**this; }
    Iterator& operator++() {
      ++slot_;
      SkipEmpty();
      return *this;
    }
    bool operator==(const Iterator& o) const { return page_ == o.page_ && slot_ == o.slot_; }
    bool operator!=(const Iterator& o) const { return !(*this == o); }

   private:
    void SkipEmpty() {
      while (page_ < pages_->size() && slot_ >= (*pages_)[page_].size()) {
        ++page_;
        slot_ = 0;
      }
    }
    Pages* pages_;
    size_t page_, slot_;
  };

  using Page = std::vector<value_type>;
  using iterator = Iterator<std::vector<Page>, value_type>;
  using const_iterator = Iterator<const std::vector<Page>, const value_type>;

  iterator begin() { return {&pages_, 0, 0}; }
  iterator end() { return {&pages_, pages_.size(), 0}; }
  const_iterator begin() const { return {&pages_, 0, 0}; }
  const_iterator end() const { return {&pages_, pages_.size(), 0}; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  iterator find(int32_t rank) {
    const auto [page, slot] = Locate(rank);
    return page < pages_.size() ? iterator(&pages_, page, slot) : end();
  }
  const_iterator find(int32_t rank) const {
    const auto [page, slot] = Locate(rank);
    return page < pages_.size() ? const_iterator(&pages_, page, slot) : end();
  }
  size_t count(int32_t rank) const { return find(rank) == end() ? 0 : 1; }
  const T& at(int32_t rank) const { return Get(*this, rank); }
  T& at(int32_t rank) { return Get(*this, rank); }

  // `rank` must not be negative.
  T& operator[](int32_t rank) {
    const size_t wanted = static_cast<size_t>(rank) / kPageRanks;
    if (wanted >= pages_.size()) pages_.resize(wanted + 1);
    Page& page = pages_[wanted];
    const auto at = std::find_if(page.begin(), page.end(),
                                 [rank](const value_type& value) { return value.first >= rank; });
    if (at != page.end() && at->first == rank) return at->second;
    ++size_;
    return page.emplace(at, rank, T())->second;
  }

  size_t erase(int32_t rank) {
    const auto [page, slot] = Locate(rank);
    if (page >= pages_.size()) return 0;
    pages_[page].erase(pages_[page].begin() + static_cast<std::ptrdiff_t>(slot));
    --size_;
    return 1;
  }

 private:
  static constexpr size_t kPageRanks = 8;

  // Page and slot; the page is pages_.size() where the rank is not in the table.
  std::pair<size_t, size_t> Locate(int32_t rank) const {
    const size_t wanted = rank < 0 ? pages_.size() : static_cast<size_t>(rank) / kPageRanks;
    if (wanted >= pages_.size()) return {pages_.size(), 0};
    const Page& page = pages_[wanted];
    for (size_t slot = 0; slot < page.size(); ++slot) {
      if (page[slot].first == rank) return {wanted, slot};
    }
    return {pages_.size(), 0};
  }

  template <typename Table>
  static auto& Get(Table& table, int32_t rank) {
    const auto found = table.find(rank);
    if (found == table.end()) throw std::out_of_range("no such rank");
    return found->second;
  }

  std::vector<Page> pages_;
  size_t size_ = 0;
};

}  // namespace rollcall
