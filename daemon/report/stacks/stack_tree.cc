// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/stacks/stack_tree.h"

#include <algorithm>

namespace rollcall {

StackTree::StackTree() : labels_(1), nodes_(1) {}

uint32_t StackTree::Intern(const std::string& frame) {
  const auto [at, is_new] = label_numbers_.emplace(frame, static_cast<uint32_t>(labels_.size()));
  if (is_new) labels_.push_back(frame);
  return at->second;
}

uint32_t StackTree::FindOrAddChild(uint32_t parent, uint32_t label) {
  const auto [at, is_new] =
      child_indices_.emplace(uint64_t{parent} << 32 | label, static_cast<uint32_t>(nodes_.size()));
  if (is_new) {
    nodes_.emplace_back();
    nodes_.back().label = label;
    nodes_.back().parent = parent;
    nodes_[parent].children.push_back(at->second);
  }
  return at->second;
}

uint32_t StackTree::AddNode(uint32_t parent, const std::string& frame, RankRanges ranks,
                            uint64_t threads, uint64_t ending) {
  const uint32_t at = frame.empty() ? 0 : FindOrAddChild(parent, Intern(frame));
  nodes_[at].ranks = std::move(ranks);
  nodes_[at].threads = threads;
  nodes_[at].ending = ending;
  return at;
}

void StackTree::Add(int32_t rank, const std::vector<uint32_t>& frames) {
  uint32_t at = 0;
  for (size_t depth = 0;; ++depth) {
    nodes_[at].ranks.Add(rank);
    ++nodes_[at].threads;
    if (depth == frames.size()) break;
    at = FindOrAddChild(at, frames[depth]);
  }
  ++nodes_[at].ending;
}

std::vector<uint32_t> StackTree::ChildrenInOrder(const Node& node) const {
  std::vector<uint32_t> children = node.children;
  std::stable_sort(children.begin(), children.end(), [this](uint32_t a, uint32_t b) {
    const Node &first = nodes_[a], &second = nodes_[b];
    if (first.ranks.size() != second.ranks.size()) return first.ranks.size() < second.ranks.size();
    if (first.threads != second.threads) return first.threads < second.threads;
    return FrameName(first) < FrameName(second);
  });
  return children;
}

std::vector<StackTree::Class> StackTree::Classes() const {
  std::vector<Class> classes;
  for (const Node& end : nodes_) {
    if (end.ending == 0) continue;
    Class one;
    one.ranks = end.ranks;
    one.threads = end.ending;
    for (const Node* at = &end; at->label != 0; at = &nodes_[at->parent]) {
      one.frames.push_back(FrameName(*at));
    }
    std::reverse(one.frames.begin(), one.frames.end());
    classes.push_back(std::move(one));
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [](const Class& a, const Class& b) { return a.ranks.size() < b.ranks.size(); });
  return classes;
}

}  // namespace rollcall
