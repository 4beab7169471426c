// SPDX-License-Identifier: Apache-2.0
// A map from rank to T for dense ranks. At a million entries it needs less memory
// and fewer cache misses than the maps of absl and the standard library
// (docs/decisions/diagnosis.md).
//
// Holds the ranks in order, in pages of eight, and the pages in blocks. A page or a block without
// ranks takes no memory, so a high rank costs as much as a low one. References and iterators hold
// until the next insertion or erasure.
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

  using Page = std::vector<value_type>;

  // The pages of kBlockPages neighbours; those after the last page with ranks are missing.
  struct Block {
    size_t number = 0;
    std::vector<Page> pages;
  };

  template <typename Blocks, typename Value>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Value;
    using difference_type = std::ptrdiff_t;
    using pointer = Value*;
    using reference = Value&;

    Iterator() = default;  // the end
    Iterator(Blocks* blocks, size_t block, size_t page, size_t slot)
        : blocks_(blocks), block_(block), page_(page) {
      if (block_ == blocks_->size()) return;
      SetPage(slot);
      SkipEmpty();
    }
    reference operator*() const { return *at_; }
    pointer operator->() const { return at_; }
    Iterator& operator++() {
      if (++at_ == end_) SkipEmpty();
      return *this;
    }
    bool operator==(const Iterator& o) const { return at_ == o.at_; }
    bool operator!=(const Iterator& o) const { return at_ != o.at_; }

   private:
    void SetPage(size_t slot) {
      auto& page = (*blocks_)[block_].pages[page_];
      at_ = page.data() + slot;
      end_ = page.data() + page.size();
    }
    void SkipEmpty() {
      while (at_ == end_) {
        if (++page_ == (*blocks_)[block_].pages.size()) {
          page_ = 0;
          if (++block_ == blocks_->size()) {
            at_ = nullptr;
            return;
          }
        }
        SetPage(0);
      }
    }

    Blocks* blocks_ = nullptr;
    size_t block_ = 0, page_ = 0;
    Value* at_ = nullptr;
    Value* end_ = nullptr;
  };

  using iterator = Iterator<std::vector<Block>, value_type>;
  using const_iterator = Iterator<const std::vector<Block>, const value_type>;

  iterator begin() { return {&blocks_, 0, 0, 0}; }
  iterator end() { return {}; }
  const_iterator begin() const { return {&blocks_, 0, 0, 0}; }
  const_iterator end() const { return {}; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  iterator find(int32_t rank) {
    const Place at = Locate(rank);
    return at.is_taken ? iterator(&blocks_, at.block, at.page, at.slot) : end();
  }
  const_iterator find(int32_t rank) const {
    const Place at = Locate(rank);
    return at.is_taken ? const_iterator(&blocks_, at.block, at.page, at.slot) : end();
  }
  size_t count(int32_t rank) const { return find(rank) == end() ? 0 : 1; }
  const T& at(int32_t rank) const { return Get(*this, rank); }
  T& at(int32_t rank) { return Get(*this, rank); }

  // `rank` must not be negative.
  T& operator[](int32_t rank) {
    const size_t wanted = static_cast<size_t>(rank) / kPageRanks;
    const size_t number = wanted / kBlockPages, nth = wanted % kBlockPages;
    const size_t at = FindBlock(number);
    if (at == blocks_.size() || blocks_[at].number != number) {
      blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at), Block{number, {}});
    }
    std::vector<Page>& pages = blocks_[at].pages;
    if (nth >= pages.size()) pages.resize(nth + 1);
    Page& page = pages[nth];
    const auto place = std::find_if(
        page.begin(), page.end(), [rank](const value_type& value) { return value.first >= rank; });
    if (place != page.end() && place->first == rank) return place->second;
    ++size_;
    return page.emplace(place, rank, T())->second;
  }

  size_t erase(int32_t rank) {
    const Place at = Locate(rank);
    if (!at.is_taken) return 0;
    Page& page = blocks_[at.block].pages[at.page];
    page.erase(page.begin() + static_cast<std::ptrdiff_t>(at.slot));
    --size_;
    return 1;
  }

 private:
  static constexpr size_t kPageRanks = 8;
  static constexpr size_t kBlockPages = 16;

  struct Place {
    bool is_taken = false;
    size_t block = 0, page = 0, slot = 0;
  };

  // Index of the first block with this number or a higher one.
  size_t FindBlock(size_t number) const {
    // Without gaps, a block is at its number.
    if (number < blocks_.size() && blocks_[number].number == number) return number;
    const auto at =
        std::lower_bound(blocks_.begin(), blocks_.end(), number,
                         [](const Block& block, size_t wanted) { return block.number < wanted; });
    return static_cast<size_t>(at - blocks_.begin());
  }

  Place Locate(int32_t rank) const {
    if (rank < 0) return {};
    const size_t wanted = static_cast<size_t>(rank) / kPageRanks;
    const size_t number = wanted / kBlockPages, nth = wanted % kBlockPages;
    const size_t at = FindBlock(number);
    if (at == blocks_.size() || blocks_[at].number != number) return {};
    if (nth >= blocks_[at].pages.size()) return {};
    const Page& page = blocks_[at].pages[nth];
    for (size_t slot = 0; slot < page.size(); ++slot) {
      if (page[slot].first == rank) return {true, at, nth, slot};
    }
    return {};
  }

  template <typename Table>
  static auto& Get(Table& table, int32_t rank) {
    const auto found = table.find(rank);
    if (found == table.end()) throw std::out_of_range("no such rank");
    return found->second;
  }

  std::vector<Block> blocks_;  // by number
  size_t size_ = 0;
};

}  // namespace rollcall
