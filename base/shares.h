// SPDX-License-Identifier: Apache-2.0
// Shares of a common resource: how much of it each user has, and which item makes room when it is
// used up.
//
// Each item belongs to a user and a host. The largest share makes room: the user or the host with
// the largest sum of weights, and, within it, the host or user with the largest part. So one user
// on a thousand hosts is as heavy as the sum, a host that invents users is as heavy as their sum,
// and a user beside them on that host is not. A host may also be heavy because many people use it:
// no user there makes room for a user who has much more elsewhere.
//
// Each call takes a time logarithmic in the number of items. Pure; one owner, no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace rollcall {

struct Owner {
  std::string user;
  std::string host;
};

template <typename Item>
class Shares {
 public:
  enum class First : uint8_t { kOldest, kNewest };

  // Adds the item, or changes its weight. An item keeps its owner and its age.
  void Put(const Item& item, const Owner& owner, size_t weight) {
    const auto [at, is_new] = items_.try_emplace(item, Held{owner, 0, next_});
    if (is_new) ++next_;
    const Held& held = at->second;
    by_user_.Move(held.owner.user, held.owner.host, {held.number, item}, held.weight, weight);
    by_host_.Move(held.owner.host, held.owner.user, {held.number, item}, held.weight, weight);
    total_ += weight - held.weight;
    at->second.weight = weight;
  }

  // Does nothing if the item is not there.
  void Remove(const Item& item) {
    const auto at = items_.find(item);
    if (at == items_.end()) return;
    const Held& held = at->second;
    by_user_.Take(held.owner.user, held.owner.host, {held.number, item}, held.weight);
    by_host_.Take(held.owner.host, held.owner.user, {held.number, item}, held.weight);
    total_ -= held.weight;
    items_.erase(at);
  }

  bool empty() const { return items_.empty(); }
  size_t total() const { return total_; }  // of the weights
  size_t WeightOf(const Item& item) const {
    const auto at = items_.find(item);
    return at == items_.end() ? 0 : at->second.weight;
  }
  // nullopt if the item is not there.
  std::optional<Owner> OwnerOf(const Item& item) const {
    const auto at = items_.find(item);
    return at == items_.end() ? std::nullopt : std::optional<Owner>(at->second.owner);
  }

  // Returns an item of the heaviest, or nullopt if there are no items.
  std::optional<Item> Heaviest(First first) const {
    if (items_.empty()) return std::nullopt;
    const Table& table = HeavierTable();
    return Choose(table.parts.at(table.heaviest()).heaviest_part(), first);
  }

  // The item that makes room for one of weight 1 of `newcomer`. nullopt if none has more than the
  // newcomer would have then, so the newcomer gets no place.
  std::optional<Item> MakesRoomFor(const Owner& newcomer, First first) const {
    if (items_.empty()) return std::nullopt;
    const Table& heavier = HeavierTable();
    const std::optional<Item> found = MakesRoomIn(heavier, newcomer, first);
    if (found.has_value() && !IsMuchHeavier(newcomer.user, items_.at(*found).owner.user)) {
      return found;
    }
    // Many users may share the heaviest host. A user with about as much as all of them together
    // makes room instead.
    const Table& other = &heavier == &by_user_ ? by_host_ : by_user_;
    if (2 * other.by_weight.rbegin()->first < heavier.by_weight.rbegin()->first)
      return std::nullopt;
    return MakesRoomIn(other, newcomer, first);
  }

 private:
  // No user of a host makes room for a user who has much more elsewhere.
  bool IsMuchHeavier(const std::string& user, const std::string& than) const {
    constexpr size_t kMuch = 16;
    return by_user_.WeightOf(user) > kMuch * by_user_.WeightOf(than);
  }

  using Numbered = std::pair<uint64_t, Item>;
  using ByWeight = std::set<std::pair<size_t, std::string>>;
  struct Held {
    Owner owner;
    size_t weight = 0;
    uint64_t number = 0;  // rises with the age of the newest
  };
  struct Part {  // of a group: what a user has on a host
    size_t weight = 0;
    std::set<Numbered> items;
  };
  struct Group {  // what a user or a host has
    size_t weight = 0;
    std::map<std::string, Part> parts;
    ByWeight by_weight;

    size_t WeightOf(const std::string& part) const {
      const auto at = parts.find(part);
      return at == parts.end() ? 0 : at->second.weight;
    }
    const std::set<Numbered>& heaviest_part() const {
      return parts.at(by_weight.rbegin()->second).items;
    }
  };
  struct Table {
    std::map<std::string, Group> parts;
    ByWeight by_weight;

    const std::string& heaviest() const { return by_weight.rbegin()->second; }
    size_t WeightOf(const std::string& group) const {
      const auto at = parts.find(group);
      return at == parts.end() ? 0 : at->second.weight;
    }

    void Move(const std::string& name, const std::string& part_name, const Numbered& item,
              size_t from, size_t to) {
      Group& group = parts[name];
      Part& part = group.parts[part_name];
      by_weight.erase({group.weight, name});
      group.by_weight.erase({part.weight, part_name});
      group.weight += to - from;
      part.weight += to - from;
      part.items.insert(item);
      by_weight.insert({group.weight, name});
      group.by_weight.insert({part.weight, part_name});
    }

    void Take(const std::string& name, const std::string& part_name, const Numbered& item,
              size_t weight) {
      Move(name, part_name, item, weight, 0);
      Group& group = parts.at(name);
      Part& part = group.parts.at(part_name);
      part.items.erase(item);
      if (!part.items.empty()) return;
      group.by_weight.erase({part.weight, part_name});
      group.parts.erase(part_name);
      if (!group.parts.empty()) return;
      by_weight.erase({group.weight, name});
      parts.erase(name);
    }
  };

  const Table& HeavierTable() const {
    const bool users_are = by_user_.by_weight.rbegin()->first >= by_host_.by_weight.rbegin()->first;
    return users_are ? by_user_ : by_host_;
  }
  std::optional<Item> MakesRoomIn(const Table& table, const Owner& newcomer, First first) const {
    const std::string& heaviest = table.heaviest();
    const bool is_by_user = &table == &by_user_;
    const std::string& group = is_by_user ? newcomer.user : newcomer.host;
    const std::string& part = is_by_user ? newcomer.host : newcomer.user;
    const Group& loser = table.parts.at(heaviest);
    if (group == heaviest) {
      if (loser.WeightOf(part) + 1 >= loser.by_weight.rbegin()->first) return std::nullopt;
    } else if (table.WeightOf(group) + 1 >= loser.weight) {
      return std::nullopt;
    }
    return Choose(loser.heaviest_part(), first);
  }
  static Item Choose(const std::set<Numbered>& items, First first) {
    return first == First::kOldest ? items.begin()->second : items.rbegin()->second;
  }

  std::map<Item, Held> items_;
  Table by_user_, by_host_;
  size_t total_ = 0;
  uint64_t next_ = 0;
};

}  // namespace rollcall
