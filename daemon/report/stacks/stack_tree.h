// SPDX-License-Identifier: Apache-2.0
// The stacks of many threads of many ranks, merged from the outermost frame inwards: equal stacks
// share one branch, and a rank that differs has its own.
//
// Plain values; one owner, no lock. Designed for 16,384 ranks of 40 threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/words/rank_ranges.h"

namespace rollcall {

class StackTree {
 public:
  struct Node {
    uint32_t label = 0;  // 0 means the root
    uint32_t parent = 0;
    RankRanges ranks;
    uint64_t threads = 0;  // threads with this frame
    uint64_t ending = 0;   // threads with this frame as the innermost
    std::vector<uint32_t> children;
  };

  // Threads with equal stacks.
  struct Class {
    RankRanges ranks;
    uint64_t threads = 0;
    std::vector<std::string> frames;  // outermost first
  };

  StackTree();

  // Returns the number of a frame's name, for Add(). Equal names get the same number.
  uint32_t Intern(const std::string& frame);

  // Adds a node of a tree that was merged elsewhere; returns its index, for its children.
  uint32_t AddNode(uint32_t parent, const std::string& frame, RankRanges ranks, uint64_t threads,
                   uint64_t ending);

  // Adds one thread. `frames` are outermost first.
  void Add(int32_t rank, const std::vector<uint32_t>& frames);

  const std::string& FrameName(const Node& node) const { return labels_[node.label]; }
  const Node& root() const { return nodes_[0]; }
  const Node& node(uint32_t index) const { return nodes_[index]; }

  // Branches of the fewest ranks first, so that differences are at the top.
  std::vector<uint32_t> ChildrenInOrder(const Node& node) const;
  std::vector<Class> Classes() const;

 private:
  uint32_t FindOrAddChild(uint32_t parent, uint32_t label);

  std::vector<std::string> labels_;
  absl::flat_hash_map<std::string, uint32_t> label_numbers_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<uint64_t, uint32_t> child_indices_;  // parent and label
};

// Returns text for people: one line for each frame, one level for each branch, and the ranks where
// branches separate. At most 100 columns: omits template arguments and parameters of names. At most
// `most_lines`, then the number of omitted lines.
std::string ToText(const StackTree& tree, size_t most_lines = 2000);

// "main;train;ncclAllReduce 63", one line for each class: the input format of flame graph tools.
std::string ToFolded(const StackTree& tree);

// Returns a graph for Graphviz.
std::string ToDot(const StackTree& tree);

// {"frame": "...", "ranks": "0-2,4", "threads": 5, "children": [...]}
std::string ToJson(const StackTree& tree);

}  // namespace rollcall
